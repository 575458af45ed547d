// The templates of dequantize, pack_scales, pad_groups and their inverses through NVRTC, for every target.
// Skipped where there is no NVRTC.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "codegen/target.hpp"
#include "codegen/with_nvrtc.hpp"
#include "configure/moves.hpp"
#include "mxjit/error.hpp"

namespace mxjit {
namespace {

using configure::Configuration;

class OpsKernels : public test::WithNvrtc<> {
 protected:
  void compile(const Configuration& configuration) {
    for (const std::string_view target : test::targets_in_turn(turn_++)) {
      const codegen::KernelDescriptor descriptor{configuration, std::string(target)};
      const compile::Compiled compiled = nvrtc_->compile(compile::request(descriptor));
      EXPECT_EQ(compiled.resources.spill_bytes, 0) << codegen::print(descriptor);
      EXPECT_EQ(compiled.resources.stack_bytes, 0) << codegen::print(descriptor);
    }
  }

 private:
  std::size_t turn_ = 0;
};

// Every place of scales along both axes; formats and outputs take turns.
TEST_F(OpsKernels, Dequantize) {
  int turn = 0;
  for (const bool axis_col : {false, true})
    for (const ScalePlace place :
         {ScalePlace::tensor, ScalePlace::row, ScalePlace::row_of_group, ScalePlace::plain,
          ScalePlace::mn_major, ScalePlace::blocked, ScalePlace::m_groups, ScalePlace::k_groups}) {
      constexpr DType outputs[] = {DType::bf16, DType::fp16, DType::fp32};
      const bool codes =
          place == ScalePlace::blocked || place == ScalePlace::m_groups || place == ScalePlace::k_groups;
      compile(configure::dequantize_configuration({.format = turn % 2 == 0 ? DType::e4m3 : DType::e5m2,
                                                   .output = outputs[turn % 3],
                                                   .mx = codes || (place == ScalePlace::plain && axis_col),
                                                   .axis_col = axis_col,
                                                   .place = place,
                                                   .block_rows = 1,
                                                   .block_cols = 128}));
      ++turn;
    }
  compile(configure::dequantize_configuration({.block_rows = 32, .block_cols = 32}));
}

TEST_F(OpsKernels, PackScales) {
  for (const bool unpack : {false, true})
    for (const Placement placement : {Placement::dense, Placement::m_groups, Placement::k_groups})
      compile(configure::pack_configuration(unpack, placement));
}

TEST_F(OpsKernels, PadGroups) {
  for (const bool unpad : {false, true}) compile(configure::pad_configuration(unpad));
}

}  // namespace
}  // namespace mxjit
