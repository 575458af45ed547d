// The tensors of every op: dtypes and stored shapes worked out by hand from the layouts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "mxjit/error.hpp"
#include "problem/problem.hpp"

namespace mxjit::problem {
namespace {

using Sizes = std::vector<std::int64_t>;

std::vector<TensorDecl> tensors_of(const std::string& op, const std::string& fields) {
  return tensors(parse(R"({"schema":1,"op":")" + op + "\"," + fields + "}"));
}

TensorDecl find(const std::vector<TensorDecl>& decls, const std::string& name) {
  const auto found =
      std::find_if(decls.begin(), decls.end(), [&](const TensorDecl& d) { return d.name == name; });
  if (found == decls.end()) {
    ADD_FAILURE() << "no tensor " << name;
    return {};
  }
  return *found;
}

std::string names(const std::vector<TensorDecl>& decls) {
  std::string text;
  for (const TensorDecl& decl : decls) text += (decl.output ? ">" : "<") + decl.name + " ";
  return text;
}

const std::string kInput = R"("input":{"dtype":"bf16","shape":[130,96]},)";

TEST(ProblemTensors, QuantizeMxPlain) {
  const auto decls = tensors_of("quantize", kInput + R"("scaling":"mx","block":32,"axes":["row","col"])");
  EXPECT_EQ(names(decls), "<x >q_row >s_row >q_col >s_col ");
  EXPECT_EQ(find(decls, "x").shape, (Sizes{130, 96}));
  EXPECT_EQ(find(decls, "q_row").shape, (Sizes{130, 96}));
  EXPECT_EQ(find(decls, "q_row").dtype, DType::e4m3);
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{130, 3}));
  EXPECT_EQ(find(decls, "s_row").dtype, DType::e8m0);
  EXPECT_EQ(find(decls, "s_row").also_dtypes, std::vector{DType::u8});
  EXPECT_EQ(find(decls, "q_col").shape, (Sizes{96, 130}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{96, 5}));
}

TEST(ProblemTensors, QuantizeMxOtherBlocksAndLayouts) {
  auto decls = tensors_of("quantize", kInput + R"("scaling":"mx","block":[32,32],"axes":["row","col"])");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{5, 3}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{3, 5}));
  decls = tensors_of("quantize", kInput + R"("scaling":"mx","block":128,"axes":["row","col"])");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{130, 1}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{96, 2}));
  // Tall blocks repeat over their rows before they are laid out: the same bytes as 1x32.
  for (const char* block : {"32", "[32,32]"}) {
    decls = tensors_of(
        "quantize",
        kInput + R"("scaling":"mx","axes":["row","col"],"scale_layout":"blocked","block":)" + block);
    EXPECT_EQ(find(decls, "s_row").shape, (Sizes{256 * 4}));
    EXPECT_EQ(find(decls, "s_row").dtype, DType::u8);
    EXPECT_EQ(find(decls, "s_col").shape, (Sizes{128 * 8}));
  }
}

TEST(ProblemTensors, QuantizeExperts) {
  const std::string input = R"("input":{"dtype":"fp16","shape":[3,48,80],"layout":"col"},)";
  auto decls = tensors_of("quantize", input + R"("scaling":"mx","block":32,"axes":["row","col"])");
  EXPECT_EQ(find(decls, "x").shape, (Sizes{3, 80, 48}));
  EXPECT_EQ(find(decls, "x").dtype, DType::fp16);
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{3, 48, 3}));
  EXPECT_EQ(find(decls, "q_col").shape, (Sizes{3, 80, 48}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{3, 80, 2}));
  decls = tensors_of("quantize",
                     input + R"("scaling":"mx","block":32,"axes":["row","col"],"scale_layout":"blocked")");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{3 * 128 * 4}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{3 * 128 * 4}));
  decls = tensors_of("quantize", input + R"("scaling":"fp32","block":"row","axes":["row","col"])");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{3, 48}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{3, 80}));
  decls = tensors_of("quantize", input + R"("scaling":"fp32","block":"tensor")");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{1}));
}

TEST(ProblemTensors, QuantizeGroups) {
  const auto grouped = [](const std::string& rest) {
    return tensors_of("quantize",
                      R"("input":{"dtype":"bf16","shape":[640,256]},"axes":["row","col"],)" + rest);
  };
  auto decls = grouped(R"("scaling":"mx","block":32,"scale_layout":"blocked","groups":{"count":3})");
  EXPECT_EQ(names(decls), "<x <offsets >q_row >s_row >q_col >s_col >status ");
  EXPECT_EQ(find(decls, "offsets").shape, (Sizes{3}));
  EXPECT_EQ(find(decls, "offsets").dtype, DType::i32);
  EXPECT_TRUE(find(decls, "status").optional);
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{640 * 8}));             // dense
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{256 * (20 + 4 * 3)}));  // group by group along M
  decls =
      grouped(R"("scaling":"mx","block":32,"scale_layout":"blocked","groups":{"count":3,"alignment":32})");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{(640 + 128 * 3) * 8}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{256 * (20 + 4 * 3)}));
  decls = grouped(R"("scaling":"mx","block":128,"scale_layout":"blocked","groups":{"count":3})");
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{256 * (5 + 4 * 3)}));
  decls = grouped(R"("scaling":"mx","block":32,"groups":{"count":3,"alignment":32})");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{640, 8}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{256, 20}));
  decls = grouped(R"("scaling":"fp32","block":"row","groups":{"count":3,"alignment":1})");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{640}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{3, 256}));
  EXPECT_EQ(find(decls, "s_col").dtype, DType::fp32);
}

TEST(ProblemTensors, QuantizeFloatBlocks) {
  auto decls = tensors_of("quantize", kInput + R"("scaling":"fp32","block":128,"axes":["row","col"])");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{130, 1}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{96, 2}));
  decls = tensors_of("quantize", kInput + R"("scaling":"fp32","block":[128,128],"axes":["row","col"])");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{2, 1}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{1, 2}));
  decls = tensors_of(
      "quantize", kInput + R"("scaling":"fp32","block":128,"axes":["row","col"],"scale_layout":"mn_major")");
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{1, 132}));
  EXPECT_EQ(find(decls, "s_col").shape, (Sizes{2, 96}));
}

TEST(ProblemTensors, QuantizeFusions) {
  auto decls =
      tensors_of("quantize", kInput + R"("scaling":"mx","block":32,"emit_high":true,"axes":["row","col"],)" +
                                 R"("pre":{"kind":"swiglu"})");
  EXPECT_EQ(find(decls, "x").shape, (Sizes{130, 96}));
  EXPECT_EQ(find(decls, "q_row").shape, (Sizes{130, 48}));
  EXPECT_EQ(find(decls, "s_row").shape, (Sizes{130, 2}));
  EXPECT_EQ(find(decls, "q_col").shape, (Sizes{48, 130}));
  EXPECT_EQ(find(decls, "y").shape, (Sizes{130, 48}));
  EXPECT_EQ(find(decls, "y").dtype, DType::bf16);
  decls = tensors_of("quantize", kInput + R"("scaling":"mx","block":32,"pre":{"kind":"rmsnorm"})");
  EXPECT_EQ(names(decls), "<x <weight >q_row >s_row ");
  EXPECT_EQ(find(decls, "weight").shape, (Sizes{96}));
}

TEST(ProblemTensors, Dequantize) {
  const std::string q = R"("q":{"dtype":"e5m2","shape":[640,256]},"output":{"dtype":"fp16"},"scaling":"mx",)";
  auto decls = tensors_of("dequantize",
                          q + R"("block":32,"axis":"col","scale_layout":"blocked","groups":{"count":2})");
  EXPECT_EQ(names(decls), "<q <s <offsets >x ");
  EXPECT_EQ(find(decls, "q").shape, (Sizes{256, 640}));
  EXPECT_EQ(find(decls, "q").dtype, DType::e5m2);
  EXPECT_EQ(find(decls, "s").shape, (Sizes{256 * (20 + 8)}));
  EXPECT_EQ(find(decls, "x").shape, (Sizes{640, 256}));
  EXPECT_EQ(find(decls, "x").dtype, DType::fp16);
}

TEST(ProblemTensors, PackAndUnpack) {
  const auto scales = [](const std::string& shape, const std::string& rest) {
    return R"("scales":{"shape":)" + shape + R"(},"placement":)" + rest;
  };
  auto decls = tensors_of("pack_scales", scales("[129,5]", "\"dense\""));
  EXPECT_EQ(names(decls), "<s >s_blocked ");
  EXPECT_EQ(find(decls, "s_blocked").shape, (Sizes{256 * 8}));
  decls = tensors_of("pack_scales", scales("[257,3]", R"("m_groups","groups":{"count":2})"));
  EXPECT_EQ(find(decls, "s_blocked").shape, (Sizes{(257 + 256) * 4}));
  decls = tensors_of("unpack_scales", scales("[64,5]", R"("k_groups","groups":{"count":3})"));
  EXPECT_EQ(names(decls), "<s_blocked <offsets >s ");
  EXPECT_EQ(find(decls, "s_blocked").shape, (Sizes{128 * (5 + 12)}));
  EXPECT_EQ(find(decls, "s").shape, (Sizes{64, 5}));
  decls = tensors_of("pack_scales", scales("[4,32,1]", "\"per_expert\""));
  EXPECT_EQ(find(decls, "s_blocked").shape, (Sizes{4 * 128 * 4}));
}

TEST(ProblemTensors, PadAndUnpad) {
  const std::string rest = R"("input":{"dtype":"fp32","shape":[157,24]},"groups":{"count":4},"alignment":32)";
  auto decls = tensors_of("pad_groups", rest);
  EXPECT_EQ(names(decls), "<x <offsets >x_padded >starts >ends ");
  EXPECT_EQ(find(decls, "x_padded").shape, (Sizes{288, 24}));
  EXPECT_EQ(find(decls, "ends").shape, (Sizes{4}));
  decls = tensors_of("unpad_groups", rest);
  EXPECT_EQ(names(decls), "<x_padded <offsets <starts >x ");
  EXPECT_EQ(find(decls, "x").shape, (Sizes{157, 24}));
}

std::string operand(const std::string& shape, const std::string& scaling) {
  return R"({"dtype":"e4m3","shape":)" + shape + R"(,"scaling":)" + scaling + "}";
}
std::string product(const std::string& a, const std::string& b, const std::string& rest = "") {
  return "\"a\":" + a + ",\"b\":" + b + rest;
}

TEST(ProblemTensors, GemmDense) {
  const std::string mx = R"({"kind":"mx","block":32,"layout":"blocked"})";
  auto decls =
      tensors_of("gemm", product(operand("[160,200]", mx), operand("[96,200]", R"({"kind":"mx","block":32})"),
                                 R"(,"bias":{"dtype":"fp32"},"beta":1,"d":{"dtype":"fp32","amax":true})"));
  EXPECT_EQ(names(decls), "<a <a_scale <b <b_scale <c <bias >d >amax ");
  EXPECT_EQ(find(decls, "a_scale").shape, (Sizes{256 * 8}));
  EXPECT_EQ(find(decls, "b_scale").shape, (Sizes{96, 7}));
  EXPECT_EQ(find(decls, "c").shape, (Sizes{160, 96}));
  EXPECT_EQ(find(decls, "c").dtype, DType::fp32);
  EXPECT_EQ(find(decls, "bias").shape, (Sizes{96}));
  EXPECT_EQ(find(decls, "d").shape, (Sizes{160, 96}));
  EXPECT_EQ(find(decls, "amax").shape, (Sizes{1}));

  decls =
      tensors_of("gemm", product(operand("[130,300]", R"({"kind":"fp32","block":128,"layout":"mn_major"})"),
                                 operand("[200,300]", R"({"kind":"fp32","block":[128,128]})"),
                                 R"(,"d":{"dtype":"e4m3"})"));
  EXPECT_EQ(find(decls, "a_scale").shape, (Sizes{3, 132}));
  EXPECT_EQ(find(decls, "b_scale").shape, (Sizes{2, 3}));
  EXPECT_EQ(find(decls, "d_scale").shape, (Sizes{1}));
  EXPECT_EQ(find(decls, "d_scale").also_shapes, (std::vector<Sizes>{{130}}));

  decls = tensors_of("gemm", product(operand("[130,300]", R"({"kind":"fp32","block":"row"})"),
                                     operand("[200,300]", R"({"kind":"fp32","block":"k"})"),
                                     R"(,"epilogue":{"kind":"swiglu"},"d":{"dtype":"e4m3","requant":)"
                                     R"({"scaling":"mx","block":32}})"));
  EXPECT_EQ(find(decls, "a_scale").shape, (Sizes{130}));
  EXPECT_EQ(find(decls, "b_scale").shape, (Sizes{300}));
  EXPECT_EQ(find(decls, "d").shape, (Sizes{130, 100}));
  EXPECT_EQ(find(decls, "d_scales").shape, (Sizes{130, 4}));
}

TEST(ProblemTensors, GemmMajorAndBatch) {
  auto decls = tensors_of("gemm", R"("a":{"dtype":"bf16","shape":[4,64,96],"major":"mn"},)"
                                  R"("b":{"dtype":"bf16","shape":[1,32,96]})");
  EXPECT_EQ(find(decls, "a").shape, (Sizes{4, 96, 64}));
  EXPECT_EQ(find(decls, "b").shape, (Sizes{1, 32, 96}));
  EXPECT_EQ(find(decls, "d").shape, (Sizes{4, 64, 32}));
  decls = tensors_of("gemm", product(operand("[1,64,96]", R"({"kind":"fp32","block":"row"})"),
                                     operand("[4,32,96]", R"({"kind":"fp32","block":"k"})")));
  EXPECT_EQ(find(decls, "a_scale").shape, (Sizes{1, 64}));
  EXPECT_EQ(find(decls, "b_scale").shape, (Sizes{4, 96}));
  EXPECT_EQ(find(decls, "d").shape, (Sizes{4, 64, 32}));
}

TEST(ProblemTensors, GemmGroups) {
  const std::string mx = R"({"kind":"mx","block":32,"layout":"blocked"})";
  const auto groups = [](const std::string& kind) {
    return R"(,"groups":{"kind":")" + kind + R"(","count":4})";
  };
  auto decls = tensors_of("gemm", product(operand("[256,128]", mx), operand("[4,64,128]", mx),
                                          R"(,"bias":{"dtype":"bf16"})" + groups("m")));
  EXPECT_EQ(names(decls), "<a <a_scale <b <b_scale <bias <offsets >d >status ");
  EXPECT_EQ(find(decls, "a_scale").shape, (Sizes{(256 + 512) * 4}));
  EXPECT_EQ(find(decls, "a_scale").also_shapes, (std::vector<Sizes>{{256 * 4}}));
  EXPECT_EQ(find(decls, "b_scale").shape, (Sizes{4 * 128 * 4}));
  EXPECT_EQ(find(decls, "bias").shape, (Sizes{64}));
  EXPECT_EQ(find(decls, "bias").also_shapes, (std::vector<Sizes>{{4, 64}}));
  EXPECT_EQ(find(decls, "d").shape, (Sizes{256, 64}));

  decls = tensors_of("gemm", product(operand("[256,128]", mx), operand("[4,64,128]", mx), groups("ids")));
  EXPECT_EQ(find(decls, "a_scale").shape, (Sizes{256 * 4}));
  EXPECT_EQ(find(decls, "ids").shape, (Sizes{256}));

  decls =
      tensors_of("gemm", product(operand("[4,100,128]", mx), operand("[4,64,128]", mx), groups("m_masked")));
  EXPECT_EQ(find(decls, "a_scale").shape, (Sizes{4 * 128 * 4}));
  EXPECT_EQ(find(decls, "counts").shape, (Sizes{4}));
  EXPECT_EQ(find(decls, "d").shape, (Sizes{4, 100, 64}));

  decls = tensors_of("gemm", product(operand("[64,256]", mx),
                                     operand("[48,256]", R"({"kind":"fp32","block":"row"})"), groups("k")));
  EXPECT_EQ(find(decls, "a_scale").shape, (Sizes{128 * (8 + 16)}));
  EXPECT_EQ(find(decls, "b_scale").shape, (Sizes{4, 48}));
  EXPECT_EQ(find(decls, "d").shape, (Sizes{4, 64, 48}));
}

TEST(ProblemTensors, Moe) {
  const auto decls = tensors_of(
      "moe", R"("tokens":7,"hidden":64,"intermediate":96,"experts":8,"top_k":2,"local_experts":[2,3],)"
             R"("weights":{"scaling":"mx","block":32},"activations":{"scaling":"mx","block":32})");
  EXPECT_EQ(names(decls), "<x <topk_ids <topk_weights <w13 <w13_scale <w2 <w2_scale <w13_bias <w2_bias >y ");
  EXPECT_EQ(find(decls, "topk_ids").shape, (Sizes{7, 2}));
  EXPECT_EQ(find(decls, "topk_ids").also_dtypes, std::vector{DType::i64});
  EXPECT_EQ(find(decls, "w13").shape, (Sizes{3, 192, 64}));
  EXPECT_EQ(find(decls, "w13_scale").shape, (Sizes{3, 192, 2}));
  EXPECT_EQ(find(decls, "w2").shape, (Sizes{3, 64, 96}));
  EXPECT_EQ(find(decls, "w2_scale").shape, (Sizes{3, 64, 3}));
  EXPECT_TRUE(find(decls, "w13_bias").optional);
  EXPECT_EQ(find(decls, "w13_bias").shape, (Sizes{3, 192}));
  EXPECT_EQ(find(decls, "y").shape, (Sizes{7, 64}));
}

TEST(ProblemTensors, ARangeHasNone) {
  const Problem problem = parse(R"({"schema":1,"op":"quantize","scaling":"mx","block":32,)"
                                R"("input":{"dtype":"bf16","shape":[{"min":1,"max":9},32]}})");
  EXPECT_THROW((void)tensors(problem), Error);
  EXPECT_EQ(find(tensors(largest(problem)), "x").shape, (Sizes{9, 32}));
}

}  // namespace
}  // namespace mxjit::problem
