// Every tile of the Hopper GEMM kernel in every form that a problem can ask for: what a multiprocessor has
// suffices, and what lies in shared memory lies where the hardware wants it.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/descriptor.hpp"
#include "configure/gemm.hpp"
#include "loops.hpp"

namespace mxjit::configure {
namespace {

using Form = GemmTraits::Form;

std::vector<GemmTraits::Operand> operands() {
  std::vector<GemmTraits::Operand> all;
  for (const Form form : {Form::none, Form::tensor, Form::row}) all.push_back({.form = form});
  for (const Form form : {Form::block, Form::block_mn_major})
    for (const int rows : {1, 128})
      all.push_back({.form = form, .block_rows = static_cast<std::uint8_t>(rows), .block_cols = 128});
  return all;
}

// What becomes of D: rounded, or e4m3 with scales of blocks.
std::vector<std::optional<GemmTraits::Requant>> requantizations(DType d) {
  std::vector<std::optional<GemmTraits::Requant>> all{std::nullopt};
  if (d == DType::e4m3)
    for (const Scaling scaling : {Scaling::mx, Scaling::fp32}) all.push_back({{.scaling = scaling}});
  return all;
}

// Every configuration of the kernel; under a sanitizer, those of some combinations of traits.
void each_configuration(const std::function<void(const Configuration&)>& visit) {
  using problem::Accumulation;
  const auto of = [](DType dtype) { return static_cast<std::uint8_t>(dtype); };
  GemmTraits traits;
  // Prime to the extents of the loops, so that every value of each comes up.
  int turn = 0;
  const int step = test::stride(11);
  const auto visit_forms = [&] {
    if (turn++ % step != 0) return;
    for (const Epilogue epilogue : {Epilogue::none, Epilogue::swiglu, Epilogue::swiglu_interleaved})
      for (const auto& requant : requantizations(traits.d)) {
        traits.epilogue = epilogue;
        traits.requant = requant;
        if (!is_dense_fp8(traits, profile("h200"))) continue;
        for (const GemmTile& tile : gemm_tiles(traits)) visit(dense_fp8_configuration(traits, tile));
      }
  };
  for (const GemmTraits::Operand& a : operands())
    for (const GemmTraits::Operand& b : operands())
      for (const DType d : {DType::bf16, DType::fp16, DType::fp32, DType::e4m3})
        for (const std::uint8_t bias :
             {GemmTraits::no_bias, of(DType::bf16), of(DType::fp16), of(DType::fp32)})
          for (const Accumulation accumulation : {Accumulation::promote, Accumulation::fast})
            for (const bool beta : {false, true})
              for (const bool amax : {false, true})
                for (const bool bulk_store : {false, true}) {
                  traits.a = a;
                  traits.b = b;
                  traits.d = d;
                  traits.bias = bias;
                  traits.accumulation = accumulation;
                  traits.beta = beta;
                  traits.amax = amax;
                  traits.bulk_store = bulk_store;
                  visit_forms();
                }
}

std::int64_t constant(const Configuration& configuration, const char* name) {
  return std::get<std::int64_t>(configuration.constants.at(name));
}

std::string text(const Configuration& configuration) { return codegen::print({configuration, "sm_90a"}); }

TEST(GemmTiles, FitAMultiprocessor) {
  constexpr std::int64_t registers = 65536;
  int configurations = 0;
  each_configuration([&](const Configuration& made) {
    ++configurations;
    ASSERT_LE(made.shared_bytes, 227 * 1024) << text(made);
    ASSERT_LE(made.threads, 1024) << text(made);
    const std::int64_t copy = constant(made, "copy_registers"), math = constant(made, "math_registers");
    const std::int64_t warpgroups = constant(made, "warpgroups");
    ASSERT_EQ(made.threads, (warpgroups + 1) * 128) << text(made);
    // What those that compute take beyond their share of the launch, those that copy have given.
    ASSERT_LE(copy + warpgroups * math, registers / made.threads / 8 * 8 * (warpgroups + 1)) << text(made);
  });
  EXPECT_GT(configurations, 10000 / test::stride(11));
}

TEST(GemmTiles, LieWhereTheHardwareWantsThem) {
  each_configuration([](const Configuration& made) {
    // Rows of a warpgroup's product; columns of a box of D. Factors of both are whole 128 bytes, as boxes
    // are.
    ASSERT_EQ(constant(made, "block_m") % 64, 0) << text(made);
    ASSERT_EQ(constant(made, "block_n") % 32, 0) << text(made);
    // Barriers, of eight bytes, end the shared memory.
    ASSERT_EQ(made.shared_bytes % 8, 0) << text(made);
  });
}

}  // namespace
}  // namespace mxjit::configure
