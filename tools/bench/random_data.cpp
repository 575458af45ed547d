#include "bench/random_data.hpp"

#include "dispatch/context_state.hpp"
#include "driver/device_buffer.hpp"

namespace mxjit::bench {

void fill_normal(const driver::Api& api, const DeviceProgram& program, CUdeviceptr out,
                 std::uint64_t elements, std::uint64_t seed, CUstream stream) {
  constexpr unsigned threads = 256;
  constexpr std::uint64_t a_block = std::uint64_t{2} * threads;
  const auto blocks = static_cast<unsigned>((elements + a_block - 1) / a_block);
  seed <<= 40;  // the index is added to it: far apart for any tensor
  launch_grid(api, program.function("fill_normal"), blocks, threads, stream, {&out, &elements, &seed});
}

void fill_normal_codes(Context& context, const DeviceProgram& program, void* out, std::int64_t codes,
                       DType format, std::uint64_t seed, CUstream stream) {
  const driver::Api& api = dispatch::ContextAccess::state(context).device->api();
  constexpr std::int64_t columns = 4096;  // of whole blocks; what is left is a row of its own
  driver::DeviceBuffer x(api, static_cast<std::size_t>(codes * 2)),
      scales(api, static_cast<std::size_t>(codes / 32 + 1));
  fill_normal(api, program, x.address(), static_cast<std::uint64_t>(codes), seed, stream);
  const auto quantize = [&](std::int64_t first, std::int64_t rows, std::int64_t width) {
    if (rows == 0 || width == 0) return;
    QuantizeOptions options;
    options.format = format;
    QuantizeArgs args;
    args.x = {.data = static_cast<std::uint16_t*>(x.data()) + first,
              .dtype = DType::bf16,
              .rank = 2,
              .shape = {rows, width}};
    args.q_row = {
        .data = static_cast<std::uint8_t*>(out) + first, .dtype = format, .rank = 2, .shape = {rows, width}};
    args.s_row = {.data = scales.data(), .dtype = DType::e8m0, .rank = 2, .shape = {rows, (width + 31) / 32}};
    context.quantize(options, args, stream);
  };
  quantize(0, codes / columns, columns);
  quantize(codes / columns * columns, 1, codes % columns);
  driver::check(api, api.stream_synchronize(stream), "cuStreamSynchronize");
}

}  // namespace mxjit::bench
