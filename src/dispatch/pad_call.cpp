#include "dispatch/pad_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "dispatch/problem_of_call.hpp"

namespace mxjit::dispatch {

void PadCall::check() const {
  const Tensor& unpadded = tensor(x);
  const Tensor& padded = tensor(x_padded);
  check_group_count("options.groups", options_.groups);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (options_.alignment < 1 || options_.alignment > most)
    refuse("options.alignment", fmt::format("1 to {}", most), fmt::to_string(options_.alignment));
  switch (unpadded.dtype) {
    case DType::bf16:
    case DType::fp16:
    case DType::fp32:
    case DType::e4m3:
    case DType::e5m2:
    case DType::e8m0:
    case DType::u8:
    case DType::i8:
      break;
    default:
      refuse("x", "dtype bf16, fp16, fp32, e4m3, e5m2, e8m0, u8 or i8",
             std::string(to_string(unpadded.dtype)));
  }
  check_extents("x", unpadded, 2, 2);
  check_countable("x", unpadded.shape[0]);
  Checked checked;
  const std::int64_t rows =
      checked.round_up(unpadded.shape[0] + options_.groups * options_.alignment, options_.alignment);
  if (rows > most)
    refuse("options.alignment", "padded rows that int32 starts can count", fmt::format("{} rows", rows));
  if (padded.dtype != unpadded.dtype)
    refuse("x_padded", fmt::format("dtype {}, as x has", to_string(unpadded.dtype)),
           std::string(to_string(padded.dtype)));
  check_shape("x_padded", padded, {rows, unpadded.shape[1]}, 2);

  std::array<Span, 6> spans;
  spans[x] = check_memory("x", unpadded);
  spans[x_padded] = check_memory("x_padded", padded);
  for (const Index index : {offsets, starts, ends})
    if (index != ends || !unpad_)
      spans[index] = check_words(tensors_[index].name, tensor(index), options_.groups);
  if (tensor(status).data != nullptr) spans[status] = check_words("status", tensor(status), 4);
  check_overlaps(tensors(), std::span(spans).first(tensors().size()));
}

bool PadCall::has_work() const noexcept {
  // Padding writes starts and ends whatever x holds.
  return !unpad_ || (tensor(x).shape[0] > 0 && tensor(x).shape[1] > 0);
}

problem::Problem PadCall::problem() const {
  problem::PadGroups op;
  op.unpad = unpad_;
  op.input = spec_of(tensor(x));
  op.groups = options_.groups;
  op.alignment = options_.alignment;
  return {.name = {}, .op = op};
}

void PadCall::launch(const OpPlan& plan, CUstream stream) const {
  const Tensor& from = tensor(unpad_ ? x_padded : x);
  const Tensor& to = tensor(unpad_ ? x : x_padded);
  const auto element = static_cast<std::int64_t>(size_of_element(from.dtype));
  PadGroupsParams params{};
  params.from = static_cast<const u8*>(from.data);
  params.to = static_cast<u8*>(to.data);
  auto* const words = static_cast<i32*>(tensor(starts).data);
  params.given_starts = words;
  if (!unpad_) {
    params.starts = words;
    params.padded_ends = static_cast<i32*>(tensor(ends).data);
  }
  params.groups = {.ends = static_cast<const i32*>(tensor(offsets).data),
                   .status = static_cast<i32*>(tensor(status).data),
                   .limit = tensor(x).shape[0],
                   .count = options_.groups,
                   .alignment = 1};
  params.from_rows = from.shape[0];
  params.to_rows = to.shape[0];
  params.row_bytes = to.shape[1] * element;
  params.from_pitch = row_pitch(from) * element;
  params.to_pitch = row_pitch(to) * element;
  params.unit = static_cast<u32>(options_.alignment);
  const std::uintptr_t places =
      reinterpret_cast<std::uintptr_t>(params.from) | reinterpret_cast<std::uintptr_t>(params.to) |
      static_cast<std::uintptr_t>(params.row_bytes | params.from_pitch | params.to_pitch);
  params.piece = places % 16 == 0 ? 16 : places % 4 == 0 ? 4 : places % 2 == 0 ? 2 : 1;
  const auto threads = static_cast<std::uint64_t>(plan.kernel.threads);
  const auto pieces = static_cast<std::uint64_t>(std::max<std::int64_t>(params.row_bytes / params.piece, 1));
  params.lanes = static_cast<u32>(std::min(std::bit_ceil(std::min(pieces, threads)), threads));
  const auto rows_at_once = static_cast<std::int64_t>(threads / params.lanes);
  plan.launch(plan.filling(ceil_div(params.to_rows, rows_at_once)), &params, stream);
}

}  // namespace mxjit::dispatch
