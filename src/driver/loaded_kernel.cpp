#include "driver/loaded_kernel.hpp"

#include <fmt/format.h>

#include "base/immortal.hpp"
#include "mxjit/error.hpp"

namespace mxjit::driver {
namespace {

// Loading allocates device memory, which a capture in another mode forbids to every thread.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Api& api) : api_(api) { api_.thread_exchange_capture_mode(&mode_); }
  ~RelaxedCapture() { api_.thread_exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Api& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace

std::shared_ptr<Libraries> Libraries::process() {
  static const Immortal<std::shared_ptr<Libraries>> instance(std::make_shared<Libraries>());
  return *instance;
}

LoadedKernel Libraries::load(const DeviceContext& context, const Digest& key,
                             std::span<const std::uint8_t> cubin, const std::string& symbol,
                             const KernelLimits& limits) {
  if (const auto ready = find(context, key)) return *ready;
  const Api& api = context.api();
  const RelaxedCapture relaxed(api);

  CUlibrary library = nullptr;
  {
    // Held over the driver's load (some 50 us): the same cubin is never loaded twice.
    const std::scoped_lock lock(mutex_);
    CUlibrary& slot = libraries_[key];
    if (slot == nullptr) {
      ++library_loads_;
      check(api, api.library_load_data(&slot, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            "cuLibraryLoadData");
    }
    library = slot;
  }
  CUkernel kernel = nullptr;
  check(api, api.library_get_kernel(&kernel, library, symbol.c_str()), "cuLibraryGetKernel");

  LoadedKernel loaded{.threads = limits.threads, .shared_bytes = limits.shared_bytes};
  ++function_loads_;
  check(api, api.kernel_get_function(&loaded.function, kernel), "cuKernelGetFunction");
  if (api.func_load != nullptr) check(api, api.func_load(loaded.function), "cuFuncLoad");

  if (limits.shared_bytes > context.facts().shared_bytes_per_block)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} needs {} bytes of shared memory a block; {} offers {}", symbol, limits.shared_bytes,
                    context.facts().name, context.facts().shared_bytes_per_block));
  if (limits.shared_bytes > 0)
    check(api,
          api.func_set_attribute(loaded.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 limits.shared_bytes),
          "cuFuncSetAttribute");
  check(api,
        api.occupancy_max_active_blocks(&loaded.blocks_per_sm, loaded.function, limits.threads,
                                        static_cast<std::size_t>(limits.shared_bytes)),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  if (loaded.blocks_per_sm < 1)
    throw Error(ErrorCode::unsupported,
                fmt::format("{} with {} threads and {} bytes of shared memory does not fit on {}", symbol,
                            limits.threads, limits.shared_bytes, context.facts().name));
  const std::scoped_lock lock(mutex_);
  kernels_[{context.id(), key}] = loaded;
  return loaded;
}

std::optional<LoadedKernel> Libraries::find(const DeviceContext& context, const Digest& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = kernels_.find({context.id(), key});
  if (found == kernels_.end()) return std::nullopt;
  return found->second;
}

}  // namespace mxjit::driver
