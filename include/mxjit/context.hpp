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

#include "mxjit/dequantize.hpp"
#include "mxjit/error.hpp"
#include "mxjit/export.h"
#include "mxjit/gemm.hpp"
#include "mxjit/pad.hpp"
#include "mxjit/quantize.hpp"
#include "mxjit/scales.hpp"
#include "mxjit/statistics.hpp"

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
  /// A file to which the problem of each call is appended, one line of JSON, when its kind is first seen: a
  /// trace, for `mxjit prewarm --trace` and Context::load. Processes may share it; what goes wrong costs one
  /// warning. Unset: MXJIT_TRACE, then none.
  std::optional<std::string> trace;
  /// Ask the driver in every call, not only in the first of its kind, whether each pointer is memory of the
  /// context's device. For debugging: some 0.1 us a tensor.
  bool check_pointers = false;
  /// Kernels of this context may start before what is ahead of them on their stream has ended (programmatic
  /// dependent launch): they get ready, wait for that end, and only then read or write memory, so that
  /// results and order are those of launches without. What is ahead must be a kernel, of whomever, to gain
  /// from it. In a stream capture the edge to such a kernel is programmatic: queries of edges that cannot
  /// express that fail (cudaErrorLossyQuery). Whether set or not, a quantization of few tiles with one scale
  /// for the tensor is two kernels, the second of which starts so; and kernels of this library let dependents
  /// of other makers start early: launch those with the attribute only if they wait (griddepcontrol.wait), as
  /// they always must, even where they need nothing of what is ahead: the next kernel trusts that they did.
  bool early_start = false;
};

namespace dispatch {
struct ContextAccess;
}

/// A quantization resolved to a loaded kernel. Immutable, cheap to copy, usable from many threads at once;
/// tied to the CUDA context it was made in, and keeps what it needs alive after its Context is gone.
class QuantizePlan {
 public:
  /// Launches on `stream` of the plan's context, for tensors of the dtype, rank and N planned for and of an M
  /// in the planned bucket (2^(b-1) < M <= 2^b); pitches and alignments may differ. Never compiles, allocates
  /// or locks. A tensor without elements launches nothing. Throws Error(invalid_argument) naming the
  /// argument, Error(context_lost) when the context was destroyed or reset.
  MXJIT_API void launch(const QuantizeArgs& args, Stream stream) const;

 private:
  friend class Context;
  friend struct dispatch::ContextAccess;
  struct State;
  explicit QuantizePlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// A GEMM resolved to a loaded kernel and its tile, as QuantizePlan.
class GemmPlan {
 public:
  /// Launches on `stream` of the plan's context, for tensors of the dtypes planned for, aligned to 16 bytes
  /// where the planned ones were, with bias and beta (zero or not) as then; extents, pitches and values may
  /// differ, the tile stays. Throws as QuantizePlan::launch.
  MXJIT_API void launch(const GemmArgs& args, Stream stream) const;

 private:
  friend class Context;
  struct State;
  explicit GemmPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// A dequantization resolved to a loaded kernel, as QuantizePlan.
class DequantizePlan {
 public:
  /// Launches on `stream` of the plan's context, for q and x of the dtypes planned for; extents, pitches and
  /// the rest may differ. Throws as QuantizePlan::launch.
  MXJIT_API void launch(const DequantizeArgs& args, Stream stream) const;

 private:
  friend class Context;
  struct State;
  explicit DequantizePlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Moving scale codes, one way or the other, resolved to a loaded kernel, as QuantizePlan.
class PackScalesPlan {
 public:
  /// Launches on `stream` of the plan's context; extents and pitches may differ. Throws as
  /// QuantizePlan::launch.
  MXJIT_API void launch(const PackScalesArgs& args, Stream stream) const;

 private:
  friend class Context;
  struct State;
  explicit PackScalesPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Padding of groups resolved to a loaded kernel, as PackScalesPlan; dtypes may differ, too.
class PadGroupsPlan {
 public:
  MXJIT_API void launch(const PadGroupsArgs& args, Stream stream) const;

 private:
  friend class Context;
  struct State;
  explicit PadGroupsPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// The way back, as PadGroupsPlan.
class UnpadGroupsPlan {
 public:
  MXJIT_API void launch(const UnpadGroupsArgs& args, Stream stream) const;

 private:
  friend class Context;
  struct State;
  explicit UnpadGroupsPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Thread-safe. Belongs to the CUDA context that is current in the calling thread at construction, or to the
/// primary context of device 0 where none is.
class Context {
 public:
  /// Throws Error(unavailable) without a GPU, and in a process forked from one that used the driver through
  /// this library: CUDA does not survive a fork. What was made before is Error(context_lost) there.
  MXJIT_API explicit Context(const ContextOptions& options = {});
  MXJIT_API ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Quantizes: looks up, compiles and loads if needed, launches. Asynchronous. While `stream` captures, a
  /// kernel that is not loaded is Error(not_loaded) and the capture stays intact. Where another context or
  /// none is current in the calling thread, this one is made current for the call. Throws
  /// Error(invalid_argument) before anything is launched, Error(unsupported), Error(context_lost), and what
  /// compiling throws.
  MXJIT_API void quantize(const QuantizeOptions& options, const QuantizeArgs& args, Stream stream);
  /// Compiles and loads, without launching. The tensors must be as quantize() wants them.
  MXJIT_API QuantizePlan plan(const QuantizeOptions& options, const QuantizeArgs& args);

  /// Multiplies, as quantize() quantizes. The first call of a kind and tile compiles.
  MXJIT_API void gemm(const GemmOptions& options, const GemmArgs& args, Stream stream);
  /// Compiles and loads, without launching. The tensors must be as gemm() wants them.
  MXJIT_API GemmPlan plan(const GemmOptions& options, const GemmArgs& args);

  /// What this context's cache has done so far.
  MXJIT_API Statistics statistics() const;

  /// Decodes, as quantize() quantizes; so do the entries that follow. Each is one launch, whatever the
  /// extents.
  MXJIT_API void dequantize(const DequantizeOptions& options, const DequantizeArgs& args, Stream stream);
  /// Compiles and loads, without launching, as the plans that follow. The tensors must be as the entry wants
  /// them.
  MXJIT_API DequantizePlan plan(const DequantizeOptions& options, const DequantizeArgs& args);

  /// Moves scale codes from the plain matrix to the blocked layout, and back.
  MXJIT_API void pack_scales(const PackScalesOptions& options, const PackScalesArgs& args, Stream stream);
  MXJIT_API void unpack_scales(const PackScalesOptions& options, const PackScalesArgs& args, Stream stream);
  MXJIT_API PackScalesPlan plan_pack_scales(const PackScalesOptions& options, const PackScalesArgs& args);
  MXJIT_API PackScalesPlan plan_unpack_scales(const PackScalesOptions& options, const PackScalesArgs& args);

  /// Moves groups of rows to starts that are multiples of an alignment, and back.
  MXJIT_API void pad_groups(const PadGroupsOptions& options, const PadGroupsArgs& args, Stream stream);
  MXJIT_API void unpad_groups(const PadGroupsOptions& options, const UnpadGroupsArgs& args, Stream stream);
  MXJIT_API PadGroupsPlan plan(const PadGroupsOptions& options, const PadGroupsArgs& args);
  MXJIT_API UnpadGroupsPlan plan(const PadGroupsOptions& options, const UnpadGroupsArgs& args);

  /// Compiles where needed and loads every kernel that the problems of a trace (one JSON object a line; an
  /// extent may be a range) can need, so that calls of them only launch, in a stream capture too. Throws
  /// Error(invalid_argument) naming the line before anything is loaded, Error(unsupported) for a problem that
  /// has no kernel, and what compiling and loading throw.
  MXJIT_API void load(std::string_view trace);

 private:
  friend struct dispatch::ContextAccess;
  struct State;
  explicit Context(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Version of the library, "major.minor.patch".
MXJIT_API std::string_view version();

}  // namespace mxjit
