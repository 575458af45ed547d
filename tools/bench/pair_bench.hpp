// A quantization and the GEMM that takes what it made, one after the other: what lies between the two.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/device_timer.hpp"
#include "bench/gemm_case.hpp"
#include "bench/op_case.hpp"
#include "bench/result.hpp"
#include "bench/tensor_pool.hpp"

namespace mxjit::bench {

struct Pair {
  std::string name;  // "quantize_gemm rowwise"
  OpCase quantize;   // of (M, K): its q_row and s_row are the GEMM's a and a_scale
  GemmCase gemm;
};

/// Scales a row, and of blocks 1x128 by 128x128, of one shape.
std::vector<Pair> pairs(std::int64_t m, std::int64_t n, std::int64_t k);

/// Two contexts of one device. `early` starts kernels early.
struct PairContexts {
  Context& in_order;
  Context& early;
};

/// Times the pair in one set of tensors, but for x and d of which there are two in turn: what one launch
/// leaves in the way of the next shows in their results.
class PairBench {
 public:
  /// `fill` fills a buffer with bf16 and waits. `program` as TensorPool's.
  PairBench(const driver::DeviceContext& device, const DeviceProgram* program, const PairContexts& contexts,
            const Pair& pair, const std::function<void(driver::DeviceBuffer&, CUstream)>& fill);

  /// Captures the jobs, each of `launches` (at least two, an even number).
  void prepare(int launches);
  DeviceTimer& timer() { return timer_; }
  /// After measuring. `empty_node_us`: a node of a graph of empty kernels.
  Row row(double empty_node_us);

 private:
  void quantize(Context& context, int launch, CUstream stream) const;
  void multiply(Context& context, int launch, CUstream stream) const;
  std::vector<std::uint8_t> results(std::size_t job);
  std::string difference();

  const driver::DeviceContext& device_;
  PairContexts contexts_;
  const Pair& pair_;
  DeviceTimer timer_;
  TensorPool pool_;
  driver::DeviceBuffer b_, b_scale_, d_[2];
  std::size_t quantize_job_ = 0, gemm_job_ = 0, in_order_job_ = 0, early_job_ = 0;
};

}  // namespace mxjit::bench
