// wgmma: D (64 x N, fp32 registers of a warpgroup) = A * B + D, both operands K-major in 128-byte-swizzled
// shared memory.
#pragma once

#include "ptx/types.cuh"

namespace mxjit::ptx {

// Shared-memory matrix descriptor of a K-major tile whose rows are one 128-byte swizzle atom: eight rows are
// 1024 bytes apart.
__device__ __forceinline__ u64 wgmma_descriptor(u32 shared_address) {
  constexpr u64 swizzle_128b = u64{1} << 62;
  constexpr u64 stride = u64{1024 >> 4} << 32;
  return swizzle_128b | stride | (u64{1} << 16) | ((shared_address & 0x3ffff) >> 4);
}

// Makes earlier register and shared-memory writes visible to the wgmma instructions that follow.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most `pending` committed groups are unfinished.
template <int pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// Keeps the compiler from moving reads or writes of an accumulator across the asynchronous instructions.
template <int count>
__device__ __forceinline__ void wgmma_pin(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// Operand types of the instruction, as PTX spells them.
enum class WgmmaTypes { e4m3_e4m3, e4m3_e5m2, e5m2_e4m3, e5m2_e5m2 };

template <WgmmaTypes types, int n>
struct Wgmma;  // one specialisation for each pair and each width that tiles have: run(d, a, b, accumulate)

// clang-format off
#define MXJIT_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define MXJIT_R0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define MXJIT_R1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define MXJIT_R2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define MXJIT_R3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define MXJIT_R4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define MXJIT_R5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define MXJIT_R6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define MXJIT_R7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define MXJIT_R8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define MXJIT_R9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define MXJIT_R10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define MXJIT_R11 "%88, %89, %90, %91, %92, %93, %94, %95"

#define MXJIT_WGMMA_FP8(PAIR, PTX, N, REGISTERS, A, B, P, ...)                                                \
  template <>                                                                                                 \
  struct Wgmma<WgmmaTypes::PAIR, N> {                                                                          \
    static __device__ __forceinline__ void run(float (&d)[N / 2], u64 a, u64 b, bool accumulate) {             \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\n"                                              \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32." PTX " {" REGISTERS "}, " A ", " B ", p, 1, 1;\n}" \
                   : __VA_ARGS__                                                                               \
                   : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));                                       \
    }                                                                                                          \
  };

#define MXJIT_WGMMA_WIDTHS(PAIR, PTX) \
  MXJIT_WGMMA_FP8(PAIR, PTX, 32, MXJIT_R0 ", " MXJIT_R1, "%16", "%17", "%18", MXJIT_D8(0), MXJIT_D8(8)) \
  MXJIT_WGMMA_FP8(PAIR, PTX, 64, MXJIT_R0 ", " MXJIT_R1 ", " MXJIT_R2 ", " MXJIT_R3, "%32", "%33", "%34", MXJIT_D8(0), MXJIT_D8(8), MXJIT_D8(16), MXJIT_D8(24)) \
  MXJIT_WGMMA_FP8(PAIR, PTX, 96, MXJIT_R0 ", " MXJIT_R1 ", " MXJIT_R2 ", " MXJIT_R3 ", " MXJIT_R4 ", " MXJIT_R5, "%48", "%49", "%50", MXJIT_D8(0), MXJIT_D8(8), MXJIT_D8(16), MXJIT_D8(24), MXJIT_D8(32), MXJIT_D8(40)) \
  MXJIT_WGMMA_FP8(PAIR, PTX, 112, MXJIT_R0 ", " MXJIT_R1 ", " MXJIT_R2 ", " MXJIT_R3 ", " MXJIT_R4 ", " MXJIT_R5 ", " MXJIT_R6, "%56", "%57", "%58", MXJIT_D8(0), MXJIT_D8(8), MXJIT_D8(16), MXJIT_D8(24), MXJIT_D8(32), MXJIT_D8(40), MXJIT_D8(48)) \
  MXJIT_WGMMA_FP8(PAIR, PTX, 128, MXJIT_R0 ", " MXJIT_R1 ", " MXJIT_R2 ", " MXJIT_R3 ", " MXJIT_R4 ", " MXJIT_R5 ", " MXJIT_R6 ", " MXJIT_R7, "%64", "%65", "%66", MXJIT_D8(0), MXJIT_D8(8), MXJIT_D8(16), MXJIT_D8(24), MXJIT_D8(32), MXJIT_D8(40), MXJIT_D8(48), MXJIT_D8(56)) \
  MXJIT_WGMMA_FP8(PAIR, PTX, 160, MXJIT_R0 ", " MXJIT_R1 ", " MXJIT_R2 ", " MXJIT_R3 ", " MXJIT_R4 ", " MXJIT_R5 ", " MXJIT_R6 ", " MXJIT_R7 ", " MXJIT_R8 ", " MXJIT_R9, "%80", "%81", "%82", MXJIT_D8(0), MXJIT_D8(8), MXJIT_D8(16), MXJIT_D8(24), MXJIT_D8(32), MXJIT_D8(40), MXJIT_D8(48), MXJIT_D8(56), MXJIT_D8(64), MXJIT_D8(72)) \
  MXJIT_WGMMA_FP8(PAIR, PTX, 192, MXJIT_R0 ", " MXJIT_R1 ", " MXJIT_R2 ", " MXJIT_R3 ", " MXJIT_R4 ", " MXJIT_R5 ", " MXJIT_R6 ", " MXJIT_R7 ", " MXJIT_R8 ", " MXJIT_R9 ", " MXJIT_R10 ", " MXJIT_R11, "%96", "%97", "%98", MXJIT_D8(0), MXJIT_D8(8), MXJIT_D8(16), MXJIT_D8(24), MXJIT_D8(32), MXJIT_D8(40), MXJIT_D8(48), MXJIT_D8(56), MXJIT_D8(64), MXJIT_D8(72), MXJIT_D8(80), MXJIT_D8(88))

MXJIT_WGMMA_WIDTHS(e4m3_e4m3, "e4m3.e4m3")
MXJIT_WGMMA_WIDTHS(e4m3_e5m2, "e4m3.e5m2")
MXJIT_WGMMA_WIDTHS(e5m2_e4m3, "e5m2.e4m3")
MXJIT_WGMMA_WIDTHS(e5m2_e5m2, "e5m2.e5m2")
// clang-format on

#undef MXJIT_WGMMA_WIDTHS
#undef MXJIT_WGMMA_FP8
#undef MXJIT_D8
#undef MXJIT_R0
#undef MXJIT_R1
#undef MXJIT_R2
#undef MXJIT_R3
#undef MXJIT_R4
#undef MXJIT_R5
#undef MXJIT_R6
#undef MXJIT_R7
#undef MXJIT_R8
#undef MXJIT_R9
#undef MXJIT_R10
#undef MXJIT_R11

}  // namespace mxjit::ptx
