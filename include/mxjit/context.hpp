// The library's root object: a cache of kernels, and what is loaded of it on one CUDA context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxjit/error.hpp"
#include "mxjit/quantize.hpp"

struct CUstream_st;

namespace mxjit {

/// A CUstream (and a cudaStream_t). Null is the legacy default stream.
using Stream = CUstream_st*;

struct ContextOptions {
  /// Writable cache directory. Unset: MXJIT_CACHE_DIR, then XDG_CACHE_HOME/mxjit, then HOME/.cache/mxjit,
  /// then memory only.
  std::optional<std::string> cache_dir;
  /// Read-only directories and bundles, searched in order after the writable one. Unset: MXJIT_BUNDLE_PATH.
  std::optional<std::vector<std::string>> bundles;
  /// Never compile; a kernel in no layer is Error(compile_forbidden). Unset: MXJIT_COMPILE=forbid.
  std::optional<bool> forbid_compile;
};

/// A quantization resolved to a loaded kernel. Immutable, cheap to copy, usable from many threads at once;
/// tied to the CUDA context it was made in, and keeps what it needs alive after its Context is gone.
class QuantizePlan {
 public:
  /// Launches on `stream` of the plan's context, for tensors whose options, N, pitches and alignment are
  /// those planned for; M may differ inside the plan's bucket. Never compiles, allocates or locks. Throws
  /// Error(invalid_argument) naming the argument.
  void launch(const QuantizeArgs& args, Stream stream) const;

 private:
  friend class Context;
  struct State;
  explicit QuantizePlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Thread-safe. Belongs to the CUDA context that is current in the calling thread at construction, or to the
/// primary context of device 0 where none is.
class Context {
 public:
  explicit Context(const ContextOptions& options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Quantizes: looks up, compiles and loads if needed, launches. Asynchronous. While `stream` captures, a
  /// kernel that is not loaded is Error(not_loaded) and the capture stays intact.
  void quantize(const QuantizeOptions& options, const QuantizeArgs& args, Stream stream);
  /// Compiles and loads, without launching.
  QuantizePlan plan(const QuantizeOptions& options, const QuantizeArgs& args);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Version of the library, "major.minor.patch".
std::string_view version();

}  // namespace mxjit
