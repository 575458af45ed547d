#include "bench/machine.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/dynamic_library.hpp"
#include "bench/statistics.hpp"
#include "compile/nvrtc.hpp"
#include "mxjit/error.hpp"

namespace mxjit::bench {
namespace {

// The few entry points of NVML that are used, declared here: its header is no part of what a build needs.
using NvmlInit = int (*)();
using NvmlDriverVersion = int (*)(char* version, unsigned length);
using NvmlDeviceByBusId = int (*)(const char* bus_id, void** device);
constexpr int nvml_success = 0;
constexpr int nvml_clock_sm = 1;
constexpr int nvml_clock_memory = 2;

/// NVML, initialized, or nothing.
const std::optional<DynamicLibrary>& nvml() {
  static const std::optional<DynamicLibrary> library = []() -> std::optional<DynamicLibrary> {
    try {
      DynamicLibrary opened = DynamicLibrary::open("NVML", {"libnvidia-ml.so.1"});
      const auto init = reinterpret_cast<NvmlInit>(opened.find("nvmlInit_v2"));
      if (init == nullptr || init() != nvml_success) return std::nullopt;
      return opened;
    } catch (const Error&) {
      return std::nullopt;
    }
  }();
  return library;
}

std::string driver_version() {
  if (!nvml()) return {};
  const auto get = reinterpret_cast<NvmlDriverVersion>(nvml()->find("nvmlSystemGetDriverVersion"));
  std::array<char, 96> text{};
  if (get == nullptr || get(text.data(), text.size()) != nvml_success) return {};
  return text.data();
}

/// PCI address, by which NVML finds the device that CUDA numbers in its own way.
std::string bus_id(CUdevice device) {
  const DynamicLibrary cuda = DynamicLibrary::open("the CUDA driver", {"libcuda.so.1"});
  const auto get = reinterpret_cast<decltype(&::cuDeviceGetPCIBusId)>(cuda.find("cuDeviceGetPCIBusId"));
  std::array<char, 32> text{};
  if (get == nullptr || get(text.data(), static_cast<int>(text.size()), device) != CUDA_SUCCESS) return {};
  return text.data();
}

}  // namespace

Machine describe_machine(const driver::Api& api, CUdevice device) {
  Machine machine;
  std::array<char, 256> name{};
  driver::check(api, api.device_get_name(name.data(), static_cast<int>(name.size()), device),
                "cuDeviceGetName");
  int version = 0;
  driver::check(api, api.driver_get_version(&version), "cuDriverGetVersion");
  machine.gpu = name.data();
  machine.driver = driver_version();
  machine.cuda = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  machine.nvrtc = nvrtc_version();
  return machine;
}

std::string first_clause(const std::string& text) { return text.substr(0, text.find_first_of(";\n")); }

std::string nvrtc_version() {
  try {
    return compile::Nvrtc::open()->build();
  } catch (const Error&) {
    return {};
  }
}

Clocks::Clocks(CUdevice device) {
  if (!nvml()) return;
  const auto by_bus_id =
      reinterpret_cast<NvmlDeviceByBusId>(nvml()->find("nvmlDeviceGetHandleByPciBusId_v2"));
  if (by_bus_id == nullptr || by_bus_id(bus_id(device).c_str(), &device_) != nvml_success) return;
  get_clock_ = reinterpret_cast<GetClock>(nvml()->find("nvmlDeviceGetClockInfo"));
}

void Clocks::read() {
  if (get_clock_ == nullptr) return;
  unsigned sm = 0;
  unsigned memory = 0;
  if (get_clock_(device_, nvml_clock_sm, &sm) != nvml_success) return;
  if (get_clock_(device_, nvml_clock_memory, &memory) != nvml_success) return;
  sm_.push_back(sm);
  memory_.push_back(memory);
}

void Clocks::report(Machine& machine) const {
  if (sm_.empty()) return;
  machine.sm_mhz = summarize(sm_).median;
  machine.mem_mhz = summarize(memory_).median;
}

}  // namespace mxjit::bench
