// cuBLASLt as a peer, opened at run time. Built only where cublasLt.h was found; types come from it.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mxjit::bench {

/// How cuBLASLt scales its operands.
enum class PeerScaling { tensor, row, block };

struct PeerProblem {
  std::int64_t m = 0, n = 0, k = 0;
  PeerScaling scaling = PeerScaling::tensor;
  bool fast = false;
  const void* a_scale = nullptr;
  const void* b_scale = nullptr;
};

struct PeerTensors {
  const void* a = nullptr;  // e4m3 (m, k)
  const void* b = nullptr;  // e4m3 (n, k)
  void* d = nullptr;        // bf16 (m, n)
};

class CublasLt {
 public:
  /// Null, with the reason, where there is none.
  static std::unique_ptr<CublasLt> open(std::string& why);
  virtual ~CublasLt() = default;

  /// A multiplication with the best of the library's own suggestions, timed on `tensors`.
  class Matmul {
   public:
    virtual ~Matmul() = default;
    virtual void launch(const PeerTensors& tensors, CUstream stream) const = 0;
  };
  /// Null where the library does not take the problem.
  virtual std::unique_ptr<Matmul> prepare(const PeerProblem& problem, const PeerTensors& tensors,
                                          CUstream stream) = 0;
  virtual std::string version() const = 0;
};

}  // namespace mxjit::bench
