#include "device/machine.hpp"

#include <cstdlib>

#include "device/backend.hpp"

namespace mxjit::device {
namespace {

std::unique_ptr<Machine>& instance() {
  static std::unique_ptr<Machine> machine;
  return machine;
}

thread_local CUstream own_stream = nullptr;

}  // namespace

CUstream Machine::stream() const { return own_stream != nullptr ? own_stream : stream_.get(); }

OwnStream::OwnStream() : scope_(Machine::get().device()), stream_(driver::make_stream(Machine::get().api())) {
  own_stream = stream_.get();
}

OwnStream::~OwnStream() { own_stream = nullptr; }

Machine::Machine()
    : device_(driver::DeviceContext::primary(backend_api(), 0)),
      cache_(backend_cache()),
      context_(dispatch::ContextAccess::make(device_, driver::Libraries::process(), cache_)),
      stream_(driver::make_stream(device_->api())) {}

Machine& Machine::get() {
  if (!instance()) instance().reset(new Machine);
  return *instance();
}

void Machine::forget() { instance().reset(); }

std::unique_ptr<Context> Machine::cold_context() const {
  return dispatch::ContextAccess::make(device_, std::make_shared<driver::Libraries>(), cache_);
}

void Machine::synchronize() const {
  driver::check(api(), api().stream_synchronize(stream()), "cuStreamSynchronize");
}

driver::OwnedGraphExec Machine::captured(const std::function<void()>& launch,
                                         CUstreamCaptureMode mode) const {
  driver::check(api(), api().stream_begin_capture(stream(), mode), "cuStreamBeginCapture");
  launch();
  return driver::end_capture(api(), stream());
}

void Machine::run(const driver::OwnedGraphExec& graph) const {
  driver::check(api(), api().graph_launch(graph.get(), stream()), "cuGraphLaunch");
  synchronize();
}

bool small() {
  const char* value = std::getenv("MXJIT_DEVICE_SMALL");
  if (value == nullptr || *value == '\0') return backend_is_slow();
  return std::string(value) != "0";
}

void DeviceTest::SetUp() {
  static const std::string reason = why_no_device();
  if (!reason.empty()) GTEST_SKIP() << reason;
  Machine::get();
}

}  // namespace mxjit::device
