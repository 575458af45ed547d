#include "mxjit/types.hpp"

namespace mxjit {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::e4m3:
    case DType::e5m2:
    case DType::e8m0:
    case DType::u8:
    case DType::i8:
    case DType::boolean:
      return 1;
    case DType::bf16:
    case DType::fp16:
    case DType::u16:
    case DType::i16:
      return 2;
    case DType::fp32:
    case DType::u32:
    case DType::i32:
      return 4;
    case DType::fp64:
    case DType::u64:
    case DType::i64:
      return 8;
  }
  return 0;
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bf16";
    case DType::fp16:
      return "fp16";
    case DType::fp32:
      return "fp32";
    case DType::fp64:
      return "fp64";
    case DType::e4m3:
      return "e4m3";
    case DType::e5m2:
      return "e5m2";
    case DType::e8m0:
      return "e8m0";
    case DType::u8:
      return "u8";
    case DType::i8:
      return "i8";
    case DType::u16:
      return "u16";
    case DType::i16:
      return "i16";
    case DType::u32:
      return "u32";
    case DType::i32:
      return "i32";
    case DType::u64:
      return "u64";
    case DType::i64:
      return "i64";
    case DType::boolean:
      return "bool";
  }
  return "unknown";
}

std::string_view to_string(Scaling scaling) { return scaling == Scaling::mx ? "mx" : "fp32"; }

std::string_view to_string(Rounding rounding) {
  switch (rounding) {
    case Rounding::rceil:
      return "rceil";
    case Rounding::floor:
      return "floor";
    case Rounding::ceil:
      return "ceil";
    case Rounding::even:
      return "even";
    case Rounding::none:
      return "none";
    case Rounding::pow2:
      return "pow2";
  }
  return "unknown";
}

std::string_view to_string(ScaleLayout layout) {
  switch (layout) {
    case ScaleLayout::plain:
      return "plain";
    case ScaleLayout::blocked:
      return "blocked";
    case ScaleLayout::mn_major:
      return "mn_major";
  }
  return "unknown";
}

std::string_view to_string(Placement placement) {
  switch (placement) {
    case Placement::dense:
      return "dense";
    case Placement::m_groups:
      return "m_groups";
    case Placement::k_groups:
      return "k_groups";
    case Placement::per_expert:
      return "per_expert";
  }
  return "unknown";
}

std::string_view to_string(Accumulation accumulation) {
  switch (accumulation) {
    case Accumulation::promote:
      return "promote";
    case Accumulation::fast:
      return "fast";
    case Accumulation::exact:
      return "exact";
  }
  return "unknown";
}

}  // namespace mxjit
