// Problem files: what is accepted, what the defaults are, and what every kind of bad input is told.
#include <gtest/gtest.h>

#include <string>

#include "mxjit/error.hpp"
#include "problem/problem.hpp"

namespace mxjit::problem {
namespace {

const char* const kQuantize =
    R"({"schema":1,"op":"quantize","input":{"dtype":"bf16","shape":[64,96]},"scaling":"mx","block":32})";
const char* const kGemm = R"({"schema":1,"op":"gemm","a":{"dtype":"e4m3","shape":[64,96]},)"
                          R"("b":{"dtype":"e4m3","shape":[32,96]}})";
const char* const kMoe =
    R"({"schema":1,"op":"moe","tokens":7,"hidden":64,"intermediate":96,"experts":8,"top_k":2,)"
    R"("weights":{"scaling":"mx","block":[32,32]},"activations":{"scaling":"mx","block":32}})";

// `text` with the first `from` replaced by `to`.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// `text` with one more field.
std::string plus(std::string text, const std::string& field) {
  return text.insert(text.size() - 1, "," + field);
}

struct Refusal {
  std::string argument = "(accepted)";
  std::string message;
};

Refusal refusal(const std::string& text) {
  try {
    (void)parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return {error.argument(), error.what()};
  }
  return {};
}

void expect_refused(const std::string& text, const std::string& argument, const std::string& fragment) {
  const Refusal got = refusal(text);
  EXPECT_EQ(got.argument, argument) << text << "\n" << got.message;
  EXPECT_NE(got.message.find(fragment), std::string::npos) << got.message << "\nlacks: " << fragment;
}

TEST(ProblemParse, QuantizeDefaults) {
  const Quantize op = std::get<Quantize>(parse(kQuantize).op);
  EXPECT_EQ(op.input.ld, 96);
  EXPECT_EQ(op.input.align, 16);
  EXPECT_EQ(op.input_layout, InputLayout::row);
  EXPECT_EQ(op.recipe.format, DType::e4m3);
  EXPECT_EQ(op.recipe.rounding, Rounding::rceil);
  EXPECT_EQ(op.recipe.scale_layout, ScaleLayout::plain);
  EXPECT_TRUE(op.axes.row);
  EXPECT_FALSE(op.axes.col);
  EXPECT_FALSE(op.groups);
  EXPECT_FALSE(op.emit_high);
  const std::string floats = with(with(kQuantize, "\"mx\"", "\"fp32\""), "32}", "\"row\"}");
  EXPECT_EQ(std::get<Quantize>(parse(floats).op).recipe.rounding, Rounding::none);
  const std::string grouped = plus(kQuantize, R"("groups":{"count":4})");
  EXPECT_EQ(std::get<Quantize>(parse(grouped).op).groups->alignment, 128);
}

TEST(ProblemParse, GemmDefaults) {
  const Gemm op = std::get<Gemm>(parse(kGemm).op);
  EXPECT_EQ(op.d.tensor.dtype, DType::bf16);
  EXPECT_EQ(op.d.tensor.shape, (Shape{64, 32}));
  EXPECT_EQ(op.d.tensor.ld, 32);
  EXPECT_EQ(op.accumulation, Accumulation::promote);
  EXPECT_EQ(op.alpha, 1.0);
  EXPECT_EQ(op.beta, 0.0);
  EXPECT_TRUE(op.deterministic);
  EXPECT_FALSE(op.batch_invariant || op.tail_keep || op.bias || op.groups || op.epilogue || op.a.scaling);
}

TEST(ProblemParse, MoeDefaults) {
  const Moe op = std::get<Moe>(parse(kMoe).op);
  EXPECT_EQ(op.first_local, 0);
  EXPECT_EQ(op.local_count, 8);
  EXPECT_EQ(op.d, DType::bf16);
  EXPECT_FALSE(op.weight_on_input);
  EXPECT_EQ(op.activation, Swiglu{});
}

TEST(ProblemParse, AlignIsTheLargestThatDividesThePitch) {
  struct Case {
    const char* shape;
    const char* dtype;
    int align;
  };
  for (const Case& c : {Case{"[3,8]", "bf16", 16}, Case{"[3,4]", "bf16", 8}, Case{"[3,6]", "bf16", 4},
                        Case{"[3,5]", "bf16", 2}, Case{"[3,5]", "fp32", 4}, Case{"[3,0]", "bf16", 16}}) {
    const std::string text = with(with(kQuantize, "[64,96]", c.shape), "bf16", c.dtype);
    EXPECT_EQ(std::get<Quantize>(parse(text).op).input.align, c.align) << text;
  }
}

TEST(ProblemParse, PitchOfATransposedInputRunsAlongM) {
  const std::string text = with(kQuantize, "[64,96]", R"([60,96],"layout":"col")");
  EXPECT_EQ(std::get<Quantize>(parse(text).op).input.ld, 60);
  EXPECT_EQ(std::get<Quantize>(parse(text).op).input.align, 8);
  expect_refused(with(text, "\"col\"", R"("col","ld":59)"), "/input/ld", "at least the row extent 60");
  EXPECT_EQ(refusal(with(text, "\"col\"", R"("col","ld":61)")).argument, "(accepted)");
}

TEST(ProblemParse, RangesAreExtents) {
  const std::string text = with(kQuantize, "[64,96]", R"([{"min":1,"max":64},96])");
  const Problem problem = parse(text);
  EXPECT_FALSE(is_concrete(problem));
  EXPECT_EQ(std::get<Quantize>(problem.op).input.shape[0], Extent(1, 64));
  EXPECT_EQ(std::get<Quantize>(problem.op).input.ld, 96);
  EXPECT_TRUE(is_concrete(largest(problem)));
  EXPECT_EQ(std::get<Quantize>(largest(problem).op).input.shape[0], Extent(64));
  // The pitch of a range is that of each problem in it.
  const Problem wide = parse(with(kQuantize, "[64,96]", R"([64,{"min":1,"max":96}])"));
  EXPECT_FALSE(std::get<Quantize>(wide.op).input.ld || std::get<Quantize>(wide.op).input.align);
  EXPECT_EQ(std::get<Quantize>(largest(wide).op).input.ld, 96);
  EXPECT_EQ(parse(print(wide)), wide);
  expect_refused(with(kQuantize, "[64,96]", R"([{"min":5,"max":4},96])"), "/input/shape/0/max", "at least 5");
  expect_refused(with(kQuantize, "[64,96]", R"([{"min":5},96])"), "/input/shape/0/max", "required");
  expect_refused(with(kQuantize, "[64,96]", R"([{"min":1,"max":2,"step":1},96])"), "/input/shape/0/step",
                 "min, max");
}

TEST(ProblemParse, ZeroExtentsAreAccepted) {
  for (const char* shape : {"[0,96]", "[64,0]", "[0,0]", "[0,64,96]", "[2,0,96]"}) {
    EXPECT_EQ(refusal(with(kQuantize, "[64,96]", shape)).argument, "(accepted)") << shape;
  }
  EXPECT_EQ(refusal(with(with(kGemm, "[64,96]", "[64,0]"), "[32,96]", "[32,0]")).argument, "(accepted)");
}

TEST(ProblemParse, WrongTypesNameTheField) {
  expect_refused(with(kQuantize, "64", "64.0"), "/input/shape/0", "an integer");
  expect_refused(with(kQuantize, "64", "1e9"), "/input/shape/0", "an integer");
  expect_refused(with(kQuantize, "64", "true"), "/input/shape/0", "an integer");
  expect_refused(with(kQuantize, "64", "\"64\""), "/input/shape/0", "an integer");
  expect_refused(with(kQuantize, "64", "-1"), "/input/shape/0", "at least 0");
  expect_refused(with(kQuantize, "64", "9223372036854775808"), "/input/shape/0", "got 9223372036854775808");
  expect_refused(with(kQuantize, "64", "null"), "/input/shape/0", "got null");
  expect_refused(with(kQuantize, "[64,96]", "64"), "/input/shape", "an array of extents");
  expect_refused(with(kQuantize, "1,", "1.0,"), "/schema", "from 1 to 1");
  expect_refused(with(kQuantize, "1,", "2,"), "/schema", "got 2");
  expect_refused(with(kQuantize, "32}", "32.0}"), "/block", "32, 128, [32,32], [128,128]");
  expect_refused(with(kQuantize, "32}", "[32.0,32]}"), "/block", "[32,32]");
  expect_refused(plus(kQuantize, R"("emit_high":0)"), "/emit_high", "true or false");
  expect_refused(plus(kQuantize, R"("emit_high":null)"), "/emit_high", "true or false");
  expect_refused(plus(kQuantize, R"("name":7)"), "/name", "a string");
  expect_refused(with(kQuantize, R"({"dtype":"bf16","shape":[64,96]})", "[]"), "/input", "an object");
  expect_refused(plus(kGemm, R"("alpha":"1")"), "/alpha", "a number");
  EXPECT_EQ(refusal(plus(kGemm, R"("alpha":2)")).argument, "(accepted)");
  expect_refused("[]", "", "a JSON object");
  expect_refused("7", "", "a JSON object");
}

TEST(ProblemParse, ClosedSetsListWhatIsAllowed) {
  expect_refused(with(kQuantize, "bf16", "int8"), "/input/dtype", R"("bf16", "fp16", "fp32", got "int8")");
  expect_refused(with(kQuantize, "\"mx\"", "\"nv\""), "/scaling", R"("mx", "fp32", got "nv")");
  expect_refused(plus(kQuantize, R"("format":"e3m4")"), "/format", R"("e4m3", "e5m2")");
  expect_refused(plus(kQuantize, R"("rounding":"pow2")"), "/rounding", R"("rceil", "floor", "ceil", "even")");
  expect_refused(
      with(plus(kQuantize, R"("rounding":"rceil")"), R"("mx","block":32)", R"("fp32","block":128)"),
      "/rounding", R"("none", "pow2")");
  expect_refused(with(kQuantize, "32}", "64}"), "/block", "got 64");
  expect_refused(with(kQuantize, "32}", "\"row\"}"), "/block", "got \"row\"");
  expect_refused(with(kQuantize, "\"mx\"", "\"fp32\""), "/block",
                 R"(128, [128,128], "row", "tensor", got 32)");
  expect_refused(plus(kQuantize, R"("scale_layout":"mn_major")"), "/scale_layout", R"("plain", "blocked")");
  expect_refused(
      with(plus(kQuantize, R"("scale_layout":"blocked")"), R"("mx","block":32)", R"("fp32","block":128)"),
      "/scale_layout", R"("plain", "mn_major")");
  expect_refused(
      with(plus(kQuantize, R"("scale_layout":"mn_major")"), R"("mx","block":32)", R"("fp32","block":"row")"),
      "/scale_layout", "\"plain\", got");
  expect_refused(with(kQuantize, "quantize", "composite"), "/op", "\"unpad_groups\", \"gemm\", \"moe\"");
  for (const char* axes : {"[]", "\"row\"", "[\"row\",\"row\"]", "[\"diagonal\"]", "[0]", "null"}) {
    const Refusal got = refusal(plus(kQuantize, std::string("\"axes\":") + axes));
    EXPECT_EQ(got.argument.rfind("/axes", 0), 0U) << axes << got.argument;
    EXPECT_NE(got.message.find("\"row\", \"col\""), std::string::npos) << got.message;
  }
}

TEST(ProblemParse, UnknownAndMissingFields) {
  expect_refused(plus(kQuantize, R"("blocks":32)"), "/blocks", "scaling, block, axes");
  expect_refused(plus(kQuantize, R"("a/b~c":32)"), "/a~1b~0c", "no such field");
  expect_refused(with(kQuantize, "\"dtype\"", "\"type\":1,\"dtype\""), "/input/type", "dtype, shape, layout");
  expect_refused(with(kQuantize, ",\"block\":32", ""), "/block", "required");
  expect_refused(with(kQuantize, "\"scaling\":\"mx\",", ""), "/scaling", "required");
  expect_refused(with(kQuantize, "\"schema\":1,", ""), "/schema", "required");
  expect_refused(with(kQuantize, "\"op\":\"quantize\",", ""), "/op", "required");
  expect_refused(with(kQuantize, ",\"shape\":[64,96]", ""), "/input/shape", "required");
  expect_refused("{}", "/schema", "required");
}

TEST(ProblemParse, TextThatIsNotJson) {
  expect_refused("", "", "an empty text");
  expect_refused(" \n\t", "", "an empty text");
  expect_refused(std::string(kQuantize) + "}", "", "JSON");
  expect_refused(std::string(kQuantize) + " trailing", "", "JSON");
  expect_refused(std::string(kQuantize).substr(0, 60), "", "JSON");
  expect_refused("\xEF\xBB\xBF" + std::string(kQuantize), "", "byte order mark");
  expect_refused(plus(kQuantize, "\"name\":\"\xC3\x28\""), "", "JSON");
  expect_refused(plus(kQuantize, "\"name\":\"\xED\xA0\x80\""), "", "JSON");
  expect_refused(plus(kQuantize, R"("name":"\ud800")"), "", "JSON");
  expect_refused(plus(kGemm, R"("alpha":1e999)"), "", "JSON");
  expect_refused(plus(kGemm, R"("alpha":NaN)"), "", "JSON");
  expect_refused(std::string("\0", 1), "", "JSON");
  expect_refused(plus(kQuantize, R"("scaling":"mx")"), "/scaling", "twice");
  expect_refused(with(kQuantize, "\"dtype\"", "\"dtype\":\"fp16\",\"dtype\""), "/input/dtype", "twice");
  EXPECT_EQ(refusal(plus(kQuantize, R"("name":"café")")).argument, "(accepted)");
}

TEST(ProblemParse, DeepNestingIsAnErrorNotAStackOverflow) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += open;
    const Refusal got = refusal(text);
    EXPECT_NE(got.message.find("64 levels"), std::string::npos) << got.message.substr(0, 200);
  }
  std::string closed(20000, '[');
  closed += std::string(20000, ']');
  EXPECT_NE(refusal(closed).message.find("64 levels"), std::string::npos);
  EXPECT_NE(refusal(plus(kQuantize, "\"pre\":" + closed)).message.find("64 levels"), std::string::npos);
}

TEST(ProblemParse, ExtentsWhoseBytesOverflow) {
  const std::string big = "4611686018427387904";  // 2^62
  expect_refused(with(kQuantize, "[64,96]", "[" + big + ",2]"), "/input/shape", "int64");
  expect_refused(with(kQuantize, "[64,96]", "[3037000500,3037000500]"), "/input/shape", "int64");
  expect_refused(with(kQuantize, "[64,96]", "[0," + big + "]"), "/input/shape", "int64");
  expect_refused(with(kQuantize, "[64,96]", R"([64,96],"ld":9223372036854775807)"), "/input/ld", "int64");
  expect_refused(with(kQuantize, "[64,96]", R"([{"min":1,"max":)" + big + "},96]"), "/input/shape", "int64");
  // One byte an element, but 128 rows of padding in the scales.
  const std::string padded =
      R"({"schema":1,"op":"pack_scales","scales":{"shape":[1,)" + big + R"(]},)" + R"("placement":"dense"})";
  expect_refused(padded, "/scales/shape", "int64");
  expect_refused(with(with(kGemm, "[64,96]", "[" + big + ",1]"), "[32,96]", "[4,1]"), "/a/shape", "int64");
  expect_refused(with(kMoe, "\"tokens\":7", "\"tokens\":" + big), "/tokens", "int64");
}

TEST(ProblemParse, QuantizeCombinations) {
  const auto fp32 = [](const std::string& block) {
    return with(kQuantize, R"("mx","block":32)", R"("fp32","block":)" + block);
  };
  expect_refused(with(kQuantize, "[64,96]", "[64]"), "/input/shape", "2 or 3 extents");
  expect_refused(with(kQuantize, "[64,96]", "[1,2,3,4]"), "/input/shape", "2 or 3 extents");
  expect_refused(plus(kQuantize, R"("amax_cap":1200)"), "/amax_cap", "null with scaling");
  expect_refused(plus(fp32("\"row\""), R"("amax_cap":0)"), "/amax_cap", "above 0");
  EXPECT_EQ(refusal(plus(fp32("\"row\""), R"("amax_cap":1200)")).argument, "(accepted)");

  const auto groups = [](int alignment) {
    return R"("groups":{"count":4,"axis":"m","alignment":)" + std::to_string(alignment) + "}";
  };
  const std::string col = R"("axes":["col"],)";
  EXPECT_EQ(refusal(plus(kQuantize, groups(1))).argument, "(accepted)");
  EXPECT_EQ(refusal(plus(kQuantize, col + groups(32))).argument, "(accepted)");
  expect_refused(plus(kQuantize, col + groups(1)), "/groups/alignment",
                 "a multiple of the block's extent along M, 32");
  expect_refused(with(plus(kQuantize, groups(1)), "32,", "[32,32],"), "/groups/alignment", "along M, 32");
  expect_refused(with(plus(kQuantize, col + groups(32)), "32,", "128,"), "/groups/alignment", "along M, 128");
  EXPECT_EQ(refusal(with(plus(kQuantize, groups(1)), "32,", "128,")).argument, "(accepted)");
  EXPECT_EQ(refusal(plus(fp32("\"row\""), col + groups(1))).argument, "(accepted)");
  expect_refused(plus(fp32("\"tensor\""), groups(128)), "/groups", "null with block");
  expect_refused(plus(kQuantize, groups(64)), "/groups/alignment", "128, 32, 1");
  expect_refused(with(plus(kQuantize, groups(128)), "[64,96]", "[2,64,96]"), "/groups", "3D");
  expect_refused(plus(kQuantize, R"("groups":{"count":0})"), "/groups/count", "from 1");
  expect_refused(plus(kQuantize, R"("groups":{"count":4,"axis":"n"})"), "/groups/axis", "\"m\"");

  expect_refused(with(plus(kQuantize, R"("pre":{"kind":"swiglu"})"), "96", "97"), "/input/shape/1", "even");
  EXPECT_EQ(refusal(plus(kQuantize, R"("pre":{"kind":"swiglu","limit":7,"alpha":1.702})")).argument,
            "(accepted)");
  expect_refused(plus(kQuantize, R"("pre":{"kind":"gelu"})"), "/pre/kind", R"("swiglu", "rmsnorm")");
  expect_refused(plus(kQuantize, R"("pre":{"eps":1})"), "/pre/kind", "required");
  expect_refused(plus(kQuantize, R"("pre":{"kind":"rmsnorm","alpha":1})"), "/pre/alpha", "kind, eps");
  expect_refused(plus(kQuantize, R"("pre":{"kind":"rmsnorm","eps":-1})"), "/pre/eps", "at least 0");
  expect_refused(plus(kQuantize, R"("pre":{"kind":"swiglu","limit":0})"), "/pre/limit", "above 0");

  expect_refused(with(kQuantize, "[64,96]", R"([64,96],"align":3)"), "/input/align", "16, 8, 4, 2, 1");
  expect_refused(with(kQuantize, "[64,96]", R"([64,94],"align":16)"), "/input/align",
                 "a divisor of the pitch");
  EXPECT_EQ(refusal(with(kQuantize, "[64,96]", R"([64,94],"ld":96,"align":16)")).argument, "(accepted)");
}

TEST(ProblemParse, PackAndPadCombinations) {
  const std::string pack = R"({"schema":1,"op":"pack_scales","scales":{"shape":[64,3]},"placement":"dense"})";
  EXPECT_EQ(refusal(pack).argument, "(accepted)");
  expect_refused(with(pack, "[64,3]", "[2,64,3]"), "/scales/shape", "2 extents");
  expect_refused(with(pack, "dense", "per_expert"), "/scales/shape", "3 extents");
  expect_refused(with(pack, "dense", "m_groups"), "/groups", "\"m_groups\"");
  expect_refused(plus(pack, R"("groups":{"count":2})"), "/groups", "null with placement \"dense\"");
  EXPECT_EQ(refusal(plus(pack, R"("groups":null)")).argument, "(accepted)");
  const std::string pad = R"({"schema":1,"op":"pad_groups","input":{"dtype":"i8","shape":[64,3]},)"
                          R"("groups":{"count":2},"alignment":7})";
  EXPECT_EQ(refusal(pad).argument, "(accepted)");
  expect_refused(with(pad, ":7", ":0"), "/alignment", "at least 1");
  expect_refused(with(pad, "[64,3]", "[64,3,1]"), "/input/shape", "2 extents");
  expect_refused(with(pad, "i8", "i32"), "/input/dtype", "\"e8m0\", \"u8\", \"i8\"");
  expect_refused(with(pad, R"("groups":{"count":2},)", ""), "/groups", "required");
}

TEST(ProblemParse, GemmCombinations) {
  const auto scaled = [](const std::string& scaling) {
    return with(kGemm, "\"b\":{", R"("b":{"scaling":)" + scaling + ",");
  };
  const std::string mx = R"({"kind":"mx","block":32})";
  expect_refused(with(kGemm, "[32,96]", "[32,95]"), "/b/shape/1", "K of /a/shape, 96, got 95");
  expect_refused(with(kGemm, "[32,96]", "[2,32,96]"), "/b/shape", "2 extents, as /a/shape has, or groups");
  EXPECT_EQ(refusal(with(with(kGemm, "[32,96]", "[2,32,96]"), "[64,96]", "[2,64,96]")).argument,
            "(accepted)");
  EXPECT_EQ(refusal(with(with(kGemm, "[32,96]", "[1,32,96]"), "[64,96]", "[2,64,96]")).argument,
            "(accepted)");
  expect_refused(with(with(kGemm, "[32,96]", "[3,32,96]"), "[64,96]", "[2,64,96]"), "/b/shape/0", "or 1");
  EXPECT_EQ(refusal(plus(kGemm, R"("accumulation":"fast")")).argument, "(accepted)");
  expect_refused(plus(scaled(mx), R"("accumulation":"fast")"), "/accumulation", "mx scaling of b");
  expect_refused(with(plus(kGemm, R"("accumulation":"fast")"), "e4m3", "bf16"), "/accumulation", "a of bf16");
  expect_refused(scaled(R"({"kind":"mx","block":"row"})"), "/b/scaling/block", "32, 128, [32,32], [128,128]");
  expect_refused(scaled(R"({"kind":"fp32","block":32})"), "/b/scaling/block", R"("tensor", "row", "k", 128)");
  expect_refused(scaled(R"({"kind":"fp32","block":"k","layout":"mn_major"})"), "/b/scaling/layout",
                 "\"plain\"");
  expect_refused(scaled(R"({"kind":"fp32","block":128,"layout":"blocked"})"), "/b/scaling/layout",
                 "\"mn_major\"");
  expect_refused(scaled(R"({"kind":"mx"})"), "/b/scaling/block", "required");
  expect_refused(with(kGemm, "\"b\":{", R"("b":{"major":"n",)"), "/b/major", R"("k", "mn")");

  const auto grouped = [](const std::string& kind, const std::string& a, const std::string& b, int count) {
    return plus(with(with(kGemm, "[64,96]", a), "[32,96]", b),
                R"("groups":{"kind":")" + kind + R"(","count":)" + std::to_string(count) + "}");
  };
  for (const char* kind : {"m", "ids"}) {
    EXPECT_EQ(refusal(grouped(kind, "[64,96]", "[4,32,96]", 4)).argument, "(accepted)");
    expect_refused(grouped(kind, "[64,96]", "[4,32,96]", 5), "/b/shape/0", "/groups/count, 5, got 4");
    expect_refused(grouped(kind, "[64,96]", "[32,96]", 4), "/b/shape", "3 extents");
    expect_refused(grouped(kind, "[4,64,96]", "[4,32,96]", 4), "/a/shape", "2 extents");
  }
  EXPECT_EQ(refusal(grouped("m_masked", "[4,64,96]", "[4,32,96]", 4)).argument, "(accepted)");
  expect_refused(grouped("m_masked", "[3,64,96]", "[4,32,96]", 4), "/a/shape/0", "/groups/count");
  EXPECT_EQ(refusal(grouped("k", "[64,96]", "[32,96]", 4)).argument, "(accepted)");
  expect_refused(grouped("k", "[64,96]", "[4,32,96]", 4), "/b/shape", "2 extents");
  expect_refused(grouped("n", "[64,96]", "[32,96]", 4), "/groups/kind", R"("m", "m_masked", "ids", "k")");

  const std::string requant = R"("d":{"dtype":"e4m3","requant":{"scaling":"mx","block":32}})";
  EXPECT_EQ(refusal(plus(kGemm, requant)).argument, "(accepted)");
  expect_refused(plus(kGemm, with(requant, "e4m3", "bf16")), "/d/requant", "null unless");
  expect_refused(plus(kGemm, with(requant, "\"block\":32", "\"block\":128")), "/d/requant/block",
                 "32, got 128");
  expect_refused(plus(kGemm, with(requant, "\"block\":32", R"("block":32,"format":"e5m2")")),
                 "/d/requant/format", "\"e4m3\"");
  expect_refused(plus(kGemm, R"("d":{"dtype":"e5m2"})"), "/d/dtype", R"("bf16", "fp16", "fp32", "e4m3")");
  EXPECT_EQ(refusal(plus(kGemm, R"("beta":1)")).argument, "(accepted)");
  expect_refused(plus(kGemm, R"("beta":1,"d":{"dtype":"e4m3"})"), "/beta", "0 with d of e4m3");
  expect_refused(plus(kGemm, R"("beta":1,"epilogue":{"kind":"swiglu"})"), "/beta", "0 with an epilogue");
  expect_refused(with(plus(kGemm, R"("epilogue":{"kind":"swiglu"})"), "[32,96]", "[33,96]"), "/b/shape/0",
                 "even");
  expect_refused(plus(kGemm, R"("bias":{"dtype":"e4m3"})"), "/bias/dtype", R"("bf16", "fp16", "fp32")");
  expect_refused(plus(kGemm, R"("tail":"drop")"), "/tail", R"("zero", "keep")");
  expect_refused(plus(kGemm, R"("d":{"dtype":"bf16","ld":31})"), "/d/ld", "at least the row extent 32");
}

TEST(ProblemParse, MoeCombinations) {
  expect_refused(with(kMoe, "\"top_k\":2", "\"top_k\":9"), "/top_k", "1 to /experts, 8");
  expect_refused(plus(kMoe, R"("local_experts":[4,5])"), "/local_experts", "inside the 8 experts");
  expect_refused(plus(kMoe, R"("local_experts":[4])"), "/local_experts", "[first, count]");
  EXPECT_EQ(refusal(plus(kMoe, R"("local_experts":[4,4])")).argument, "(accepted)");
  expect_refused(with(kMoe, "\"mx\",\"block\":32}", "\"mx\",\"block\":[32,32]}"), "/activations/block",
                 "inside one token's row");
  expect_refused(plus(kMoe, R"("activation":null)"), "/activation", "an object");
  expect_refused(plus(kMoe, R"("routing_weight_on":"both")"), "/routing_weight_on", R"("input", "output")");
  expect_refused(with(kMoe, R"({"scaling":"mx","block":[32,32]})", R"({"scaling":"mx"})"), "/weights/block",
                 "required");
}

TEST(ProblemPrint, CanonicalTextIsThatOfTheContract) {
  EXPECT_EQ(
      print(parse(kQuantize)),
      R"({"amax_cap":null,"axes":["row"],"block":32,"emit_high":false,"format":"e4m3","groups":null,)"
      R"("input":{"align":16,"dtype":"bf16","layout":"row","ld":96,"shape":[64,96]},"name":"",)"
      R"("op":"quantize","pre":null,"rounding":"rceil","scale_layout":"plain","scaling":"mx","schema":1})");
}

TEST(ProblemPrint, NumbersRoundTrip) {
  const std::pair<const char*, double> cases[] = {
      {"0.1", 0.1},         {"1e-300", 1e-300}, {"1.7976931348623157e308", 1.7976931348623157e308},
      {"-5e-324", -5e-324}, {"3", 3.0},         {"-0.0", -0.0}};
  for (const auto& [text, value] : cases) {
    const Problem problem = parse(plus(kGemm, std::string("\"alpha\":") + text));
    EXPECT_EQ(std::get<Gemm>(problem.op).alpha, value) << text;
    EXPECT_EQ(std::get<Gemm>(parse(print(problem)).op).alpha, value) << text;
  }
}

TEST(ProblemValidate, ProblemsBuiltInCodeGetTheSameChecks) {
  Quantize op;
  EXPECT_THROW(validate({.name = "", .op = op}), Error);  // no extents
  op.input.shape = {4, 8};
  EXPECT_NO_THROW(validate({.name = "", .op = op}));
  const auto argument_of = [](const Quantize& bad) {
    try {
      validate({.name = "", .op = bad});
    } catch (const Error& error) {
      return error.argument();
    }
    return std::string("(accepted)");
  };
  Quantize bad = op;
  bad.input.dtype = DType::i32;
  EXPECT_EQ(argument_of(bad), "/input/dtype");
  bad = op;
  bad.recipe.rounding = Rounding::pow2;
  EXPECT_EQ(argument_of(bad), "/rounding");
  bad = op;
  bad.recipe.block.cols = 33;
  EXPECT_EQ(argument_of(bad), "/block");
  bad = op;
  bad.axes = {.row = false, .col = false};
  EXPECT_EQ(argument_of(bad), "/axes");
  bad = op;
  bad.input.shape[1] = Extent(-1);
  EXPECT_EQ(argument_of(bad), "/input/shape/1");
  bad = op;
  bad.groups = MGroups{-4, 128};
  EXPECT_EQ(argument_of(bad), "/groups/count");
  EXPECT_THROW((void)print({.name = "\xFF", .op = op}), Error);
}

}  // namespace
}  // namespace mxjit::problem
