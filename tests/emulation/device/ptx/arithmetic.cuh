// As kernels/ptx/arithmetic.cuh.
#pragma once

#include "numbers.hpp"
#include "ptx/types.cuh"

namespace mxjit::emulation {

// max.NaN.xorsign.abs on magnitude bits: a NaN becomes the canonical one.
template <unsigned sign_bit, unsigned infinity>
unsigned max_abs(unsigned a, unsigned b) {
  const unsigned magnitude_a = a & (sign_bit - 1), magnitude_b = b & (sign_bit - 1);
  if (magnitude_a > infinity || magnitude_b > infinity) return sign_bit - 1;
  return ((a ^ b) & sign_bit) | (magnitude_a > magnitude_b ? magnitude_a : magnitude_b);
}

template <class Half>
unsigned each_half(Half half) {
  return (half(0) & 0xFFFF) | half(16) << 16;
}

inline int signed_half(unsigned pair, int shift) { return static_cast<short>(pair >> shift & 0xFFFF); }

}  // namespace mxjit::emulation

namespace mxjit::ptx {

inline u32 max_abs_bf16x2(u32 a, u32 b) {
  return emulation::each_half([&](int shift) {
    return emulation::max_abs<0x8000, 0x7F80>(a >> shift & 0xFFFF, b >> shift & 0xFFFF);
  });
}
inline u32 max_abs_f16x2(u32 a, u32 b) {
  return emulation::each_half([&](int shift) {
    return emulation::max_abs<0x8000, 0x7C00>(a >> shift & 0xFFFF, b >> shift & 0xFFFF);
  });
}
inline u32 max_abs_f32(u32 a, u32 b) { return emulation::max_abs<0x80000000, 0x7F800000>(a, b); }

// The product of two bf16 numbers is exact in fp64.
inline u32 mul_bf16x2(u32 a, u32 b) {
  return emulation::each_half([&](int shift) {
    return emulation::round_ieee(emulation::widen_ieee(a >> shift & 0xFFFF, emulation::bf16) *
                                     emulation::widen_ieee(b >> shift & 0xFFFF, emulation::bf16),
                                 emulation::bf16);
  });
}
inline u32 fma_bf16x2(u32 a, u32 b, u32 c) {
  return emulation::each_half([&](int shift) {
    // The sum rounds twice; kernels add to a zero or a NaN only.
    return emulation::round_ieee(emulation::widen_ieee(a >> shift & 0xFFFF, emulation::bf16) *
                                         emulation::widen_ieee(b >> shift & 0xFFFF, emulation::bf16) +
                                     emulation::widen_ieee(c >> shift & 0xFFFF, emulation::bf16),
                                 emulation::bf16);
  });
}

inline u32 add_relu_s16x2(u32 a, u32 b) {
  return emulation::each_half([&](int shift) {
    // The sum wraps, then is cut at zero.
    const short sum = static_cast<short>(emulation::signed_half(a, shift) + emulation::signed_half(b, shift));
    return static_cast<u32>(sum < 0 ? 0 : sum);
  });
}
inline u32 min_u16x2(u32 a, u32 b) {
  return emulation::each_half([&](int shift) {
    const u32 x = a >> shift & 0xFFFF, y = b >> shift & 0xFFFF;
    return x < y ? x : y;
  });
}

inline u32 add_min_u16x2(u32 a, u32 b, u32 c) {
  const u32 sum = emulation::each_half([&](int shift) { return (a >> shift) + (b >> shift); });
  return min_u16x2(sum, c);
}
inline u32 add_max_u16x2(u32 a, u32 b, u32 c) {
  const u32 sum = emulation::each_half([&](int shift) { return (a >> shift) + (b >> shift); });
  return ~min_u16x2(~sum, ~c);
}

inline float min_nan_f32(float a, float b) {
  return __builtin_isnan(a) || __builtin_isnan(b) ? __builtin_nanf("") : a < b ? a : b;
}
inline float max_nan_f32(float a, float b) {
  return __builtin_isnan(a) || __builtin_isnan(b) ? __builtin_nanf("") : a > b ? a : b;
}

// As wrong as the instructions may be, now up and now down, so that nobody counts on more.
inline float ex2_approx(float a) {
  const double error = __builtin_bit_cast(u32, a) % 2 == 0 ? 0x1p-22 : -0x1p-22;
  const float result = static_cast<float>(__builtin_exp2(static_cast<double>(a)) * (1 + 0.9 * error));
  return __builtin_fabsf(result) < 0x1p-126f ? 0.0f : result;
}
inline float rcp_approx(float a) {
  const float result = 1.0f / a;
  if (__builtin_fabsf(result) < 0x1p-126f) return __builtin_copysignf(0.0f, a);
  if (!__builtin_isfinite(result)) return result;
  return __builtin_bit_cast(float, __builtin_bit_cast(u32, result) + (__builtin_bit_cast(u32, a) % 2));
}

inline u32 prmt(u32 low, u32 high, u32 selector) {
  const u64 bytes = u64{high} << 32 | low;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 digit = selector >> 4 * i & 0xF;
    u32 byte = static_cast<u32>(bytes >> 8 * (digit & 7)) & 0xFF;
    if (digit & 8) byte = byte & 0x80 ? 0xFF : 0;  // the sign, repeated
    result |= byte << 8 * i;
  }
  return result;
}

}  // namespace mxjit::ptx
