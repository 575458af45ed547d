#include "bench/random_data.hpp"

namespace mxjit::bench {

void fill_normal(const driver::Api& api, const DeviceProgram& program, CUdeviceptr out,
                 std::uint64_t elements, std::uint64_t seed, CUstream stream) {
  constexpr unsigned threads = 256;
  constexpr std::uint64_t a_block = 2 * threads;
  const auto blocks = static_cast<unsigned>((elements + a_block - 1) / a_block);
  seed <<= 40;  // the index is added to it: far apart for any tensor
  launch_grid(api, program.function("fill_normal"), blocks, threads, stream, {&out, &elements, &seed});
}

}  // namespace mxjit::bench
