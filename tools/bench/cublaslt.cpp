#include "bench/cublaslt.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <span>

#include "driver/device_buffer.hpp"
#include "mxjit/error.hpp"

#if defined(MXJIT_HAVE_CUBLASLT)
#include <cublasLt.h>
#include <dlfcn.h>
#endif

namespace mxjit::bench {

#if defined(MXJIT_HAVE_CUBLASLT)
namespace {

constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

struct Entries {
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtGetVersion) get_version = nullptr;
  decltype(&::cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
};

template <typename Entry>
bool find(void* library, const char* name, Entry& entry) {
  entry = reinterpret_cast<Entry>(dlsym(library, name));
  return entry != nullptr;
}

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(ErrorCode::driver, fmt::format("{}: cuBLAS status {}", call, static_cast<int>(status)));
}

// Descriptors live as long as the process: a benchmark makes a few hundred small ones.
struct Problem {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
};

class Prepared : public CublasLt::Matmul {
 public:
  Prepared(const Entries& entries, cublasLtHandle_t handle, void* workspace, const Problem& problem,
           const cublasLtMatmulAlgo_t& algorithm)
      : entries_(entries), handle_(handle), workspace_(workspace), problem_(problem), algorithm_(algorithm) {}

  cublasStatus_t try_launch(const PeerTensors& tensors, CUstream stream) const {
    const float one = 1.0F, zero = 0.0F;
    // Column-major: D^T (n, m) = B (k, n)^T * A (k, m).
    return entries_.matmul(handle_, problem_.desc, &one, tensors.b, problem_.b, tensors.a, problem_.a, &zero,
                           tensors.d, problem_.d, tensors.d, problem_.d, &algorithm_, workspace_,
                           workspace_bytes, stream);
  }
  void launch(const PeerTensors& tensors, CUstream stream) const override {
    check(try_launch(tensors, stream), "cublasLtMatmul");
  }

 private:
  const Entries& entries_;
  cublasLtHandle_t handle_;
  void* workspace_;
  Problem problem_;
  cublasLtMatmulAlgo_t algorithm_;
};

class Opened : public CublasLt {
 public:
  Opened(const Entries& entries, cublasLtHandle_t handle)
      : entries_(entries), handle_(handle), workspace_(driver::api(), workspace_bytes) {}

  std::string version() const override { return fmt::format("{}", entries_.get_version()); }

  std::unique_ptr<Matmul> prepare(const PeerProblem& problem, const PeerTensors& tensors,
                                  CUstream stream) override {
    Problem made;
    check(entries_.desc_create(&made.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      return entries_.desc_set(made.desc, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
    };
    bool known = set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T) &&
                 set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) &&
                 set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(problem.fast)) &&
                 set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, problem.b_scale) &&
                 set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, problem.a_scale);
#if CUDA_VERSION >= 12090
    if (problem.scaling == PeerScaling::row)
      known = known && set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F) &&
              set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
    if (problem.scaling == PeerScaling::block)
      known = known && set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F) &&
              set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
#else
    if (problem.scaling != PeerScaling::tensor) return nullptr;
#endif
    if (!known) return nullptr;
    const auto m = static_cast<std::uint64_t>(problem.m), n = static_cast<std::uint64_t>(problem.n),
               k = static_cast<std::uint64_t>(problem.k);
    check(entries_.layout_create(&made.b, CUDA_R_8F_E4M3, k, n, problem.k), "cublasLtMatrixLayoutCreate");
    check(entries_.layout_create(&made.a, CUDA_R_8F_E4M3, k, m, problem.k), "cublasLtMatrixLayoutCreate");
    check(entries_.layout_create(&made.d, CUDA_R_16BF, n, m, problem.n), "cublasLtMatrixLayoutCreate");
    cublasLtMatmulPreference_t preference = nullptr;
    check(entries_.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
    check(entries_.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                  sizeof workspace_bytes),
          "cublasLtMatmulPreferenceSetAttribute");
    std::array<cublasLtMatmulHeuristicResult_t, 8> suggestions{};
    int count = 0;
    if (entries_.heuristic(handle_, made.desc, made.b, made.a, made.d, made.d, preference,
                           static_cast<int>(suggestions.size()), suggestions.data(),
                           &count) != CUBLAS_STATUS_SUCCESS)
      return nullptr;
    return best_of(made, std::span(suggestions).first(static_cast<std::size_t>(count)), tensors, stream);
  }

 private:
  std::unique_ptr<Matmul> best_of(const Problem& problem,
                                  std::span<const cublasLtMatmulHeuristicResult_t> suggestions,
                                  const PeerTensors& tensors, CUstream stream) const {
    const driver::Api& api = driver::api();
    const driver::OwnedEvent before = driver::make_event(api), after = driver::make_event(api);
    std::unique_ptr<Prepared> best;
    float best_ms = std::numeric_limits<float>::max();
    for (const auto& suggestion : suggestions) {
      auto candidate =
          std::make_unique<Prepared>(entries_, handle_, workspace_.data(), problem, suggestion.algo);
      if (candidate->try_launch(tensors, stream) != CUBLAS_STATUS_SUCCESS) continue;
      driver::check(api, api.event_record(before.get(), stream), "cuEventRecord");
      for (int i = 0; i < 5; ++i) candidate->launch(tensors, stream);
      driver::check(api, api.event_record(after.get(), stream), "cuEventRecord");
      driver::check(api, api.event_synchronize(after.get()), "cuEventSynchronize");
      float ms = 0.0F;
      driver::check(api, api.event_elapsed_time(&ms, before.get(), after.get()), "cuEventElapsedTime");
      if (ms >= best_ms) continue;
      best_ms = ms;
      best = std::move(candidate);
    }
    return best;
  }

  Entries entries_;
  cublasLtHandle_t handle_;
  driver::DeviceBuffer workspace_;
};

}  // namespace

std::unique_ptr<CublasLt> CublasLt::open(std::string& why) {
  void* library = nullptr;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    why = dlerror();
    return nullptr;
  }
  Entries e;
  const bool all = find(library, "cublasLtCreate", e.create) &&
                   find(library, "cublasLtGetVersion", e.get_version) &&
                   find(library, "cublasLtMatmulDescCreate", e.desc_create) &&
                   find(library, "cublasLtMatmulDescSetAttribute", e.desc_set) &&
                   find(library, "cublasLtMatrixLayoutCreate", e.layout_create) &&
                   find(library, "cublasLtMatmulPreferenceCreate", e.preference_create) &&
                   find(library, "cublasLtMatmulPreferenceSetAttribute", e.preference_set) &&
                   find(library, "cublasLtMatmulAlgoGetHeuristic", e.heuristic) &&
                   find(library, "cublasLtMatmul", e.matmul);
  cublasLtHandle_t handle = nullptr;
  if (!all || e.create(&handle) != CUBLAS_STATUS_SUCCESS) {
    why = "libcublasLt lacks an entry point or cannot start";
    return nullptr;
  }
  return std::make_unique<Opened>(e, handle);
}
#else
std::unique_ptr<CublasLt> CublasLt::open(std::string& why) {
  why = "built without cublasLt.h";
  return nullptr;
}
#endif

}  // namespace mxjit::bench
