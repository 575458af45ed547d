#include "safetensors/dtype_names.hpp"

#include <array>
#include <utility>

namespace mxjit::safetensors {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 16> names = {{
    {DType::bf16, "BF16"},
    {DType::fp16, "F16"},
    {DType::fp32, "F32"},
    {DType::fp64, "F64"},
    {DType::e4m3, "F8_E4M3"},
    {DType::e5m2, "F8_E5M2"},
    {DType::e8m0, "F8_E8M0"},
    {DType::u8, "U8"},
    {DType::i8, "I8"},
    {DType::u16, "U16"},
    {DType::i16, "I16"},
    {DType::u32, "U32"},
    {DType::i32, "I32"},
    {DType::u64, "U64"},
    {DType::i64, "I64"},
    {DType::boolean, "BOOL"},
}};

}  // namespace

std::string_view dtype_name(DType dtype) {
  for (const auto& [candidate, name] : names) {
    if (candidate == dtype) return name;
  }
  return {};
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const auto& [dtype, candidate] : names) {
    if (candidate == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace mxjit::safetensors
