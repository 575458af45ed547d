// The GEMM templates through NVRTC: every tile compiles without spilling and holds the instructions that make
// it fast. Skipped where there is no NVRTC.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "codegen/target.hpp"
#include "codegen/with_nvrtc.hpp"
#include "configure/gemm.hpp"
#include "disassembler.hpp"
#include "mxjit/error.hpp"

namespace mxjit {
namespace {

using configure::Configuration;
using configure::GemmTraits;
using Form = GemmTraits::Form;
using problem::Accumulation;

GemmTraits traits(Accumulation accumulation, Form a, Form b, DType d = DType::bf16) {
  GemmTraits made;
  made.a = {.dtype = DType::e4m3, .form = a};
  made.b = {.dtype = DType::e4m3, .form = b};
  if (b == Form::block) made.b.block_rows = 128;
  made.d = d;
  made.accumulation = accumulation;
  return made;
}

std::string text(const Configuration& configuration) { return codegen::print({configuration, "sm_90a"}); }

class GemmKernels : public test::WithNvrtc<> {
 protected:
  compile::Compiled compile(const Configuration& configuration, const std::string& target = "sm_90a") {
    compile::Compiled compiled = nvrtc_->compile(compile::request({configuration, target}));
    EXPECT_EQ(compiled.resources.spill_bytes, 0) << target << ": " << text(configuration);
    EXPECT_EQ(compiled.resources.stack_bytes, 0) << target << ": " << text(configuration);
    return compiled;
  }
  void compile_tiles(const GemmTraits& of) {
    for (const configure::GemmTile& tile : configure::gemm_tiles(of)) {
      const Configuration configuration = configure::dense_fp8_configuration(of, tile);
      EXPECT_LE(configuration.shared_bytes, 227 * 1024) << text(configuration);
      compile(configuration);
    }
  }
};

TEST_F(GemmKernels, FastTiles) { compile_tiles(traits(Accumulation::fast, Form::row, Form::row)); }
TEST_F(GemmKernels, PromoteTiles) { compile_tiles(traits(Accumulation::promote, Form::row, Form::row)); }
TEST_F(GemmKernels, BlockTiles) {
  compile_tiles(traits(Accumulation::promote, Form::block_mn_major, Form::block));
}

TEST_F(GemmKernels, TilesOfSwiglu) {
  GemmTraits gated = traits(Accumulation::fast, Form::row, Form::row);
  gated.epilogue = Epilogue::swiglu_interleaved;
  gated.bias = static_cast<std::uint8_t>(DType::bf16);
  compile_tiles(gated);
}
TEST_F(GemmKernels, TilesOfSwigluAndBlocksOfD) {
  GemmTraits gated = traits(Accumulation::promote, Form::block_mn_major, Form::block, DType::e4m3);
  gated.epilogue = Epilogue::swiglu;
  gated.requant = GemmTraits::Requant{Scaling::mx, Rounding::rceil, ScaleLayout::blocked};
  compile_tiles(gated);
  gated.requant = GemmTraits::Requant{Scaling::fp32, Rounding::none, ScaleLayout::mn_major};
  gated.amax = true;
  compile_tiles(gated);
}

class GemmKernelsLong : public GemmKernels {};

// Everything that the epilogue can hold, on every tile.
TEST_F(GemmKernelsLong, Epilogues) {
  for (const DType d : {DType::bf16, DType::fp16, DType::fp32})
    for (const bool bulk_store : {true, false})
      for (const auto& base : {traits(Accumulation::fast, Form::row, Form::row, d),
                               traits(Accumulation::fast, Form::tensor, Form::none, d),
                               traits(Accumulation::promote, Form::row, Form::tensor, d),
                               traits(Accumulation::promote, Form::block, Form::block, d),
                               traits(Accumulation::promote, Form::block_mn_major, Form::row, d)}) {
        GemmTraits full = base;
        full.bulk_store = bulk_store;
        full.beta = true;
        full.bias = static_cast<std::uint8_t>(DType::fp32);
        compile_tiles(full);
      }
}

TEST_F(GemmKernelsLong, E4m3AndAmax) {
  for (const bool bulk_store : {true, false})
    for (const auto& base : {traits(Accumulation::fast, Form::row, Form::row, DType::e4m3),
                             traits(Accumulation::promote, Form::row, Form::tensor, DType::e4m3),
                             traits(Accumulation::promote, Form::block_mn_major, Form::block, DType::e4m3),
                             traits(Accumulation::promote, Form::block, Form::row, DType::bf16)}) {
      GemmTraits full = base;
      full.bulk_store = bulk_store;
      full.amax = true;
      compile_tiles(full);
      if (full.d != DType::e4m3) continue;
      full.amax = false;
      full.bias = static_cast<std::uint8_t>(DType::bf16);
      compile_tiles(full);
    }
}

// SwiGLU and D's scales: alone, on the schedules that overlap them, and beside what takes the most registers.
TEST_F(GemmKernelsLong, SwigluAndBlocksOfD) {
  const std::optional<GemmTraits::Requant> none,
      codes = GemmTraits::Requant{Scaling::mx, Rounding::rceil, ScaleLayout::blocked},
      factors = GemmTraits::Requant{Scaling::fp32, Rounding::none, ScaleLayout::mn_major};
  for (const auto& base :
       {traits(Accumulation::fast, Form::row, Form::row), traits(Accumulation::promote, Form::row, Form::row),
        traits(Accumulation::promote, Form::row, Form::tensor),
        traits(Accumulation::promote, Form::block, Form::block)})
    for (const Epilogue epilogue : {Epilogue::none, Epilogue::swiglu, Epilogue::swiglu_interleaved})
      for (const auto& requant : {none, codes, factors}) {
        if (epilogue == Epilogue::none && !requant) continue;
        GemmTraits full = base;
        full.epilogue = epilogue;
        full.requant = requant;
        if (requant) full.d = DType::e4m3;
        if (epilogue != Epilogue::swiglu_interleaved) compile_tiles(full);
        if (epilogue == Epilogue::swiglu) continue;
        full.bias = static_cast<std::uint8_t>(DType::fp32);
        full.bulk_store = false;
        compile_tiles(full);
      }
}

TEST_F(GemmKernels, OtherOperandTypes) {
  GemmTraits mixed = traits(Accumulation::promote, Form::tensor, Form::tensor);
  mixed.a.dtype = DType::e5m2;
  compile(configure::dense_fp8_configuration(mixed, configure::gemm_tiles(mixed).front()));
  mixed.b.dtype = DType::e5m2;
  compile(configure::dense_fp8_configuration(mixed, configure::gemm_tiles(mixed).front()));
}

TEST_F(GemmKernels, GeneralKernelForEveryTarget) {
  GemmTraits general = traits(Accumulation::exact, Form::row, Form::tensor);
  general.b.mn_major = true;
  general.bias = static_cast<std::uint8_t>(DType::fp16);
  general.beta = true;
  GemmTraits codes = traits(Accumulation::promote, Form::codes_blocked, Form::codes, DType::fp32);
  codes.a.block_cols = 32;
  codes.b.block_rows = codes.b.block_cols = 32;
  codes.a.mn_major = true;
  GemmTraits blocks = traits(Accumulation::exact, Form::block, Form::block_mn_major, DType::fp16);
  blocks.a.dtype = DType::e5m2;
  blocks.b.dtype = DType::bf16;
  GemmTraits of_k = traits(Accumulation::exact, Form::k, Form::codes, DType::e4m3);
  of_k.b.mn_major = true;
  of_k.b.block_cols = 32;
  of_k.requant = GemmTraits::Requant{Scaling::fp32, Rounding::none, ScaleLayout::plain};
  of_k.epilogue = Epilogue::swiglu;
  std::size_t turn = 0;
  for (const GemmTraits& each : {general, codes, blocks, of_k})
    for (const std::string_view target : test::targets_in_turn(turn++))
      compile(configure::general_configuration(each), std::string(target));
}

TEST_F(GemmKernels, OutputFormsOfTheGeneralKernel) {
  GemmTraits by_scale = traits(Accumulation::exact, Form::row, Form::tensor, DType::e4m3);
  by_scale.amax = true;
  by_scale.bias = static_cast<std::uint8_t>(DType::bf16);
  by_scale.epilogue = Epilogue::swiglu_interleaved;
  GemmTraits codes = traits(Accumulation::promote, Form::block, Form::block, DType::e4m3);
  codes.requant = GemmTraits::Requant{Scaling::mx, Rounding::even, ScaleLayout::blocked};
  codes.epilogue = Epilogue::swiglu;
  GemmTraits factors = traits(Accumulation::promote, Form::row, Form::row, DType::e4m3);
  factors.requant = GemmTraits::Requant{Scaling::fp32, Rounding::pow2, ScaleLayout::mn_major};
  factors.epilogue = Epilogue::swiglu;
  factors.amax = true;
  GemmTraits plain = factors;
  plain.requant = GemmTraits::Requant{Scaling::fp32, Rounding::none, ScaleLayout::plain};
  plain.epilogue = Epilogue::none;
  std::size_t turn = 1;
  for (const GemmTraits& each : {by_scale, codes, factors, plain})
    for (const std::string_view target : test::targets_in_turn(turn++))
      compile(configure::general_configuration(each), std::string(target));
}

// ---- machine code

TEST_F(GemmKernels, MachineCode) {
  const std::filesystem::path program = test::disassembler();
  if (program.empty()) GTEST_SKIP() << "no nvdisasm here (MXJIT_DISASSEMBLER names one)";
  for (const GemmTraits& each : {traits(Accumulation::fast, Form::row, Form::row),
                                 traits(Accumulation::promote, Form::block_mn_major, Form::block)}) {
    const Configuration configuration =
        configure::dense_fp8_configuration(each, configure::gemm_tiles(each).front());
    const std::string code = test::disassemble(program, compile(configuration).cubin);
    EXPECT_NE(code.find("QGMMA"), std::string::npos) << text(configuration);
    EXPECT_NE(code.find("UTMALDG"), std::string::npos) << text(configuration);
    EXPECT_NE(code.find("UTMASTG"), std::string::npos) << text(configuration);
  }
  const std::string code = test::disassemble(
      program,
      compile(configure::general_configuration(traits(Accumulation::exact, Form::row, Form::row))).cubin);
  EXPECT_NE(code.find("HMMA"), std::string::npos);
  EXPECT_EQ(code.find("UTMALDG"), std::string::npos);
}

}  // namespace
}  // namespace mxjit
