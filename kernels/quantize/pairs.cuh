// Pairs of elements, as the quantize kernels hold them: what needs no scale. Everything works on pairs, so
// that the same code serves two columns or, after an exchange of halves, two rows.
#pragma once

#include "ptx/arithmetic.cuh"
#include "ptx/convert.cuh"
#include "ptx/memory.cuh"
#include "ptx/types.cuh"

namespace mxjit {

enum class Input { bf16, fp16, fp32 };
enum class Format { e4m3, e5m2 };
enum class Rounding { rceil, floor, ceil, even, none, pow2 };
enum class ScaleLayout { plain, blocked, mn_major };

/// What happens to x before it is quantized. The result is rounded to bf16 first.
/// swiglu_interleaved: gates and ups alternate along rows of x. rmsnorm_turned: what is normalized lies down
/// the columns of x.
enum class Pre { none, swiglu, swiglu_interleaved, rmsnorm, rmsnorm_turned };

/// Where the value before quantization is written, too: nowhere, as the matrix lies, or as its transpose.
enum class High { none, row, turned };

struct Floats {
  float low, high;
};

template <Input input>
struct Pairs;

/// Two 16-bit elements in a word.
struct PackedPairs {
  using Pair = u32;
  static constexpr int bytes = 2;

  // Pairs of two rows from two pairs of columns, and the exchange between lanes.
  static __device__ __forceinline__ Pair lows(Pair a, Pair b) { return ptx::prmt(a, b, 0x5410); }
  static __device__ __forceinline__ Pair highs(Pair a, Pair b) { return ptx::prmt(a, b, 0x7632); }
  static __device__ __forceinline__ Pair exchange(Pair a, u32 mask) { return ptx::shfl_xor(a, mask); }
};

template <>
struct Pairs<Input::bf16> : PackedPairs {
  static constexpr Input input = Input::bf16;
  static __device__ __forceinline__ Pair max_abs(Pair a, Pair b) { return ptx::max_abs_bf16x2(a, b); }
  static __device__ __forceinline__ Floats widen(Pair x) {
    return {__uint_as_float(x << 16), __uint_as_float(x & 0xFFFF0000)};
  }
};

template <>
struct Pairs<Input::fp16> : PackedPairs {
  static constexpr Input input = Input::fp16;
  static __device__ __forceinline__ Pair max_abs(Pair a, Pair b) { return ptx::max_abs_f16x2(a, b); }
  static __device__ __forceinline__ Floats widen(Pair x) {
    return {ptx::cvt_f32_f16(static_cast<u16>(x)), ptx::cvt_f32_f16(static_cast<u16>(x >> 16))};
  }
};

template <>
struct Pairs<Input::fp32> {
  using Pair = Vector2;
  static constexpr int bytes = 4;
  static constexpr Input input = Input::fp32;

  static __device__ __forceinline__ Pair max_abs(Pair a, Pair b) {
    return {ptx::max_abs_f32(a.x, b.x), ptx::max_abs_f32(a.y, b.y)};
  }
  static __device__ __forceinline__ Floats widen(Pair x) {
    return {__uint_as_float(x.x), __uint_as_float(x.y)};
  }
  static __device__ __forceinline__ Pair lows(Pair a, Pair b) { return {a.x, b.x}; }
  static __device__ __forceinline__ Pair highs(Pair a, Pair b) { return {a.y, b.y}; }
  static __device__ __forceinline__ Pair exchange(Pair a, u32 mask) {
    return {ptx::shfl_xor(a.x, mask), ptx::shfl_xor(a.y, mask)};
  }
};

/// The bits of the largest magnitude of both halves.
template <class N>
__device__ __forceinline__ u32 largest_of(typename N::Pair pair) {
  const Floats wide = N::widen(pair);
  const u32 low = __float_as_uint(wide.low) & 0x7FFFFFFF, high = __float_as_uint(wide.high) & 0x7FFFFFFF;
  return low > high ? low : high;
}

/// FP8 bytes of four elements, the first in the low byte.
template <Format format>
__device__ __forceinline__ u32 pack4(float a, float b, float c, float d) {
  return format == Format::e4m3 ? ptx::cvt_e4m3x4(a, b, c, d) : ptx::cvt_e5m2x4(a, b, c, d);
}

/// of[index], a power of two of them, by selects alone: registers have no addresses.
template <int count, class Pair>
__device__ __forceinline__ Pair pick(const Pair (&of)[count], int index) {
  if constexpr (count == 1) {
    return of[0];
  } else {
    Pair half[count / 2];
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      half[i] = of[i];
      if ((index & count / 2) != 0) half[i] = of[i + count / 2];
    }
    return pick(half, index);
  }
}

}  // namespace mxjit
