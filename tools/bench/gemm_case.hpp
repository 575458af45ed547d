// One GEMM to measure, and the comparison of a timed result with the reference.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/cublaslt.hpp"
#include "mxjit/gemm.hpp"
#include "problem/problem.hpp"

namespace mxjit::bench {

struct GemmCase {
  std::string name;  // "rowwise_fast 512x7168x5120"
  problem::Gemm gemm;
  PeerScaling scaling = PeerScaling::tensor;
};

/// tensor_fast, rowwise_fast, tensor_promote, rowwise_promote and block (1x128 mn_major by 128x128) of one
/// shape.
std::vector<GemmCase> gemm_cases(std::int64_t m, std::int64_t n, std::int64_t k);

/// Device memory that the case has to move: operands, scales and d once.
double moved_bytes(const GemmCase& gemm_case);

/// The descriptors of its kernels on the devices of `profile`, as a JSON array.
std::string configuration_json(const GemmCase& gemm_case, const std::string& profile);

/// What the comparison reads, each call some bytes of one tensor of the timed problem.
using ReadBytes = std::function<std::vector<std::uint8_t>(const std::string& tensor, std::int64_t offset,
                                                          std::int64_t bytes)>;
/// Computes 64 x 64 elements of d, spread over rows and columns, with the reference, and compares. Empty, or
/// the distance where it exceeds what the accumulation allows.
std::string difference_from_reference(const GemmCase& gemm_case, const ReadBytes& read);

}  // namespace mxjit::bench
