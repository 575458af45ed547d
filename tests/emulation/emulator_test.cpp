// The emulator itself: what it computes, and that it tells what a device would leave to chance.
#include "emulation/emulator.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "cache/support.hpp"
#include "emulation/device/numbers.hpp"
#include "emulation/host_compiler.hpp"

namespace mxjit::emulation {
namespace {

struct Parameters {
  unsigned* out;
  unsigned count;
};

// Memory that kernels may touch.
class Allocation {
 public:
  explicit Allocation(std::size_t count) : values(count) {
    add_allocation(values.data(), count * sizeof(unsigned));
  }
  ~Allocation() { remove_allocation(values.data()); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  std::vector<unsigned> values;
};

// Runs `body` as a kernel's; `p` is its parameter.
void run_body(const std::string& body, unsigned* out, unsigned count, const Grid& grid) {
  const test::Folder folder;
  const std::string object = compile_for_host(
      "#include \"ptx/memory.cuh\"\n#include \"ptx/mbarrier.cuh\"\n#include \"ptx/mma.cuh\"\n"
      "using namespace mxjit;\n"
      "struct Params { u32* out; u32 count; };\n"
      "extern \"C\" __global__ void __launch_bounds__(1024) kernel(const __grid_constant__ Params p) {\n" +
          body + "\n}\n",
      "kernel");
  const std::string file = (folder.path() / "kernel.so").string();
  std::ofstream(file, std::ios::binary) << object;
  const Program program(file);
  const Parameters parameters{out, count};
  run(program, grid, &parameters);
}

void expect_refused(const std::string& body, const std::string& reason, const Grid& grid = {.threads = 64}) {
  Allocation memory(64);
  try {
    run_body(body, memory.values.data(), 64, grid);
    ADD_FAILURE() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

TEST(Emulator, RunsEveryThreadOfEveryBlock) {
  Allocation memory(2 * 3 * 4 * 64);
  run_body(
      "ptx::st_global(p.out + ((blockIdx.z * 3 + blockIdx.y) * 2 + blockIdx.x) * blockDim.x + threadIdx.x,"
      "               u32(gridDim.x + gridDim.y + gridDim.z + threadIdx.x));",
      memory.values.data(), 0, {.blocks = {2, 3, 4}, .threads = 64});
  for (std::size_t i = 0; i < memory.values.size(); ++i) ASSERT_EQ(memory.values[i], 9 + i % 64) << i;
}

TEST(Emulator, ShufflesWithinAWarp) {
  Allocation memory(64);
  run_body(
      "u32 v = threadIdx.x; for (u32 m = 1; m < 32; m *= 2) v += ptx::shfl_xor(v, m);"
      "v += ptx::shfl_up(threadIdx.x, 1) + 1000 * ptx::shfl(threadIdx.x, 5);"
      "ptx::st_global(p.out + threadIdx.x, v);",
      memory.values.data(), 0, {.threads = 64});
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned warp = i / 32 * 32, sum = 32 * warp + 31 * 16, up = i % 32 == 0 ? i : i - 1;
    EXPECT_EQ(memory.values[i], sum + up + 1000 * (warp + 5)) << i;
  }
}

TEST(Emulator, ShufflesAndVotesOfOtherTypes) {
  Allocation memory(64);
  run_body(
      "const u32 lane = threadIdx.x % 32;"
      "const float half = ptx::shfl(lane + 0.5f, (lane + 1) % 32);"
      "const double eighth = ptx::shfl(threadIdx.x + 0.125, lane / 2);"
      "const u32 votes = ptx::any(threadIdx.x == 40) + 2 * ptx::any(lane == 31) + 4 * ptx::any(lane == 32);"
      "ptx::st_global(p.out + threadIdx.x, u32(1000 * half) * 1000000 + u32(eighth * 8) * 100 + votes);",
      memory.values.data(), 0, {.threads = 64});
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned lane = i % 32, half = (lane + 1) % 32 * 1000 + 500, eighth = (i - lane + lane / 2) * 8 + 1;
    EXPECT_EQ(memory.values[i], half * 1000000 + eighth * 100 + (i < 32 ? 2 : 3)) << i;
  }
}

TEST(Emulator, BarriersOrderSharedMemory) {
  Allocation memory(256);
  run_body(
      "__shared__ u32 all[256]; all[threadIdx.x] = threadIdx.x * 3; __syncthreads();"
      "ptx::st_global(p.out + threadIdx.x, all[255 - threadIdx.x]);",
      memory.values.data(), 0, {.threads = 256});
  for (unsigned i = 0; i < 256; ++i) ASSERT_EQ(memory.values[i], (255 - i) * 3);
}

// Warps run in an order of chance, so that in some block the reader comes first.
TEST(Emulator, AMissingBarrierShows) {
  Allocation memory(64 * 32);
  run_body(
      "__shared__ u32 all[64]; all[threadIdx.x] = 1 + blockIdx.x;"
      "ptx::st_global(p.out + blockIdx.x * 64 + threadIdx.x, all[63 - threadIdx.x]);",
      memory.values.data(), 0, {.blocks = {32, 1, 1}, .threads = 64});
  unsigned wrong_low = 0, wrong_high = 0;
  for (unsigned i = 0; i < 64 * 32; ++i)
    if (memory.values[i] != 1 + i / 64) ++(i % 64 < 32 ? wrong_low : wrong_high);
  EXPECT_GT(wrong_low, 0U);
  EXPECT_GT(wrong_high, 0U);
}

TEST(Emulator, MbarriersCountArrivalsAndParity) {
  Allocation memory(64);
  run_body(
      "u64* b = reinterpret_cast<u64*>(ptx::dynamic_shared());"
      "if (threadIdx.x == 0) ptx::mbarrier_init(b, 32); __syncthreads();"
      "for (u32 round = 0; round < 3; ++round) {"
      "  if (threadIdx.x < 32) { ptx::st_global(p.out + threadIdx.x, round + 1); ptx::mbarrier_arrive(b); }"
      "  else { ptx::mbarrier_wait(b, round % 2);"
      "         ptx::st_global(p.out + threadIdx.x, *(volatile u32*)(p.out + threadIdx.x - 32)); }"
      "  __syncthreads(); }",
      memory.values.data(), 0, {.threads = 64, .shared_bytes = 64});
  EXPECT_EQ(memory.values, std::vector<unsigned>(64, 3));
}

// A is the identity in its left half, B a table: D is B's upper half, transposed as the fragments lie.
TEST(Emulator, MultipliesFragments) {
  Allocation memory(128);
  run_body(
      "u32 lane = threadIdx.x; u32 a[4] = {}, b[2]; float d[4] = {};"
      "for (u32 h = 0; h < 2; ++h) { u32 k = lane % 4 * 2 + h;"
      "  if (lane / 4 == k) a[0] |= 0x3F80u << 16 * h; }"
      "for (u32 e = 0; e < 2; ++e) { b[e] = 0; for (u32 h = 0; h < 2; ++h) {"
      "  float v = float((lane % 4 * 2 + h + 8 * e) * 8 + lane / 4);"
      "  b[e] |= (__float_as_uint(v) >> 16) << 16 * h; } }"
      "ptx::mma_bf16(d, a, b);"
      "for (u32 e = 0; e < 4; ++e) ptx::st_global(p.out + lane * 4 + e, u32(d[e]));",
      memory.values.data(), 0, {.threads = 32});
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned e = 0; e < 4; ++e) {
      const unsigned row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
      EXPECT_EQ(memory.values[lane * 4 + e], row < 8 ? row * 8 + column : 0) << lane << " " << e;
    }
}

TEST(Emulator, RefusesWhatADeviceLeavesToChance) {
  expect_refused("if (threadIdx.x % 2) ptx::shfl_xor(1U, 1); else ptx::shfl_up(1, 1);",
                 "others of its warp in");
  expect_refused("if (threadIdx.x != 7) ptx::shfl_xor(1U, 1);", "left while lanes of its warp wait");
  expect_refused("if (threadIdx.x < 40) mxjit_services->barrier(1, 64);", "no thread can go on");
  expect_refused("ptx::st_global(p.out + p.count, 1u);", "outside every allocation");
  expect_refused("ptx::ld_nc_v4(p.out + 1);", "not aligned to 16 bytes");
  expect_refused("ptx::ld_nc_u16(reinterpret_cast<u8*>(p.out) + 255);", "not aligned to 2 bytes");
  expect_refused(
      "u64* b = reinterpret_cast<u64*>(ptx::dynamic_shared()); if (threadIdx.x == 0) ptx::mbarrier_init(b, "
      "2);"
      "__syncthreads(); if (threadIdx.x == 0) ptx::mbarrier_arrive(b); ptx::mbarrier_wait(b, 0);",
      "waits in mbarrier", {.threads = 64, .shared_bytes = 64});
}

TEST(EmulatedNumbers, EveryPatternReadsBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const double wide = widen_ieee(bits, fp16), brain = widen_ieee(bits, bf16);
    EXPECT_EQ(round_ieee(wide, fp16), wide != wide ? 0x7FFFU : bits);
    EXPECT_EQ(round_ieee(brain, bf16), brain != brain ? 0x7FFFU : bits);
  }
  for (unsigned bits = 0; bits < 0x100; ++bits) {
    const auto e4 = static_cast<float>(widen_e4m3(bits)), e5 = static_cast<float>(widen_e5m2(bits));
    EXPECT_EQ(round_e4m3(e4), e4 != e4 ? 0x7FU : bits);
    // Infinity saturates.
    EXPECT_EQ(round_e5m2(e5), e5 != e5 ? 0x7FU : (bits & 0x7F) == 0x7C ? (bits & 0x80) | 0x7BU : bits);
  }
}

// Typed by hand: ties go to the even pattern, what is too large saturates.
TEST(EmulatedNumbers, RoundsToNearestEven) {
  EXPECT_EQ(round_e4m3(1.0625F), 0x38U);
  EXPECT_EQ(round_e4m3(1.1875F), 0x3AU);
  EXPECT_EQ(round_e4m3(464.0F), 0x7EU);
  EXPECT_EQ(round_e4m3(1e30F), 0x7EU);
  EXPECT_EQ(round_e4m3(-0.0F), 0x80U);
  EXPECT_EQ(round_e4m3(0.0009765625F), 0x00U);   // half of the least subnormal
  EXPECT_EQ(round_e4m3(0.00097656256F), 0x01U);  // just above it
  EXPECT_EQ(round_e5m2(57344.0F), 0x7BU);
  EXPECT_EQ(round_e5m2(1.125F), 0x3CU);
  EXPECT_EQ(round_e5m2(1.375F), 0x3EU);
  EXPECT_EQ(round_ieee(1.00390625, bf16), 0x3F80U);
  EXPECT_EQ(round_ieee(1.01171875, bf16), 0x3F82U);
  EXPECT_EQ(round_ieee(65520.0, fp16), 0x7C00U);
  EXPECT_EQ(round_ieee(65519.0, fp16), 0x7BFFU);
}

}  // namespace
}  // namespace mxjit::emulation
