// Random problems: print and parse are inverse, and a mutated field is an error that names it.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "loops.hpp"
#include "mxjit/error.hpp"
#include "property/problem_generator.hpp"

namespace mxjit::problem {
namespace {

using nlohmann::json;

constexpr std::uint64_t kSeed = 20260917;

// Every field that has a closed set, as "op /pointer = value", to see that the generator reaches all of them.
void collect(const json& value, const std::string& where, std::set<std::string>& seen) {
  if (value.is_object()) {
    for (const auto& [key, field] : value.items()) collect(field, where + "/" + key, seen);
  } else if (value.is_string() || value.is_boolean() || value.is_null() || where.ends_with("/block")) {
    seen.insert(where + " = " + value.dump());
  }
}

TEST(ProblemProperty, ParseOfPrintIsTheProblem) {
  std::cout << "seed " << kSeed << "\n";
  ProblemGenerator generator(kSeed);
  std::set<std::string> seen;
  int exact = 0;
  for (int i = 0; i < 6000 / test::stride(4); ++i) {
    const Problem problem = generator.any();
    std::string text;
    try {
      text = print(problem);
      const Problem parsed = parse(text);
      ASSERT_EQ(parsed, with_defaults(problem)) << text;
      ASSERT_EQ(print(parsed), text);
      ASSERT_EQ(parse(json::parse(text).dump(2)), parsed) << text;
      exact += parsed == problem ? 1 : 0;
    } catch (const Error& error) {
      FAIL() << "problem " << i << ": " << error.what() << "\n" << text;
    }
    collect(json::parse(text), std::string(op_name(problem)), seen);
  }
  // Some problems leave nothing to the defaults: for those parse(print(p)) == p without any help.
  EXPECT_GT(exact, 60 / test::stride(4));
  for (const char* option : {"quantize/input/dtype = \"bf16\"",
                             "quantize/input/dtype = \"fp16\"",
                             "quantize/input/dtype = \"fp32\"",
                             "quantize/input/layout = \"col\"",
                             "quantize/format = \"e5m2\"",
                             "quantize/block = 32",
                             "quantize/block = 128",
                             "quantize/block = [32,32]",
                             "quantize/block = [128,128]",
                             "quantize/block = \"row\"",
                             "quantize/block = \"tensor\"",
                             "quantize/rounding = \"even\"",
                             "quantize/rounding = \"pow2\"",
                             "quantize/scale_layout = \"blocked\"",
                             "quantize/scale_layout = \"mn_major\"",
                             "quantize/groups/axis = \"m\"",
                             "quantize/pre/kind = \"swiglu\"",
                             "quantize/pre/kind = \"rmsnorm\"",
                             "quantize/emit_high = true",
                             "dequantize/axis = \"col\"",
                             "dequantize/output/dtype = \"fp16\"",
                             "pack_scales/placement = \"dense\"",
                             "unpack_scales/placement = \"m_groups\"",
                             "pack_scales/placement = \"k_groups\"",
                             "pack_scales/placement = \"per_expert\"",
                             "pad_groups/input/dtype = \"e8m0\"",
                             "unpad_groups/op = \"unpad_groups\"",
                             "gemm/a/major = \"mn\"",
                             "gemm/a/scaling/block = \"k\"",
                             "gemm/b/scaling/block = [32,32]",
                             "gemm/b/scaling/layout = \"mn_major\"",
                             "gemm/d/dtype = \"e4m3\"",
                             "gemm/d/requant/scaling = \"mx\"",
                             "gemm/d/amax = true",
                             "gemm/accumulation = \"fast\"",
                             "gemm/accumulation = \"exact\"",
                             "gemm/bias/dtype = \"fp32\"",
                             "gemm/groups/kind = \"m\"",
                             "gemm/groups/kind = \"m_masked\"",
                             "gemm/groups/kind = \"ids\"",
                             "gemm/groups/kind = \"k\"",
                             "gemm/tail = \"keep\"",
                             "gemm/epilogue/interleave = true",
                             "gemm/deterministic = false",
                             "gemm/batch_invariant = true",
                             "moe/routing_weight_on = \"input\"",
                             "moe/weights/block = [128,128]",
                             "moe/activation/limit = null"}) {
    EXPECT_TRUE(seen.count(option)) << "never generated: " << option;
  }
}

TEST(ProblemProperty, EveryConcreteProblemDeclaresItsTensors) {
  std::cout << "seed " << kSeed + 1 << "\n";
  ProblemGenerator generator(kSeed + 1);
  for (int i = 0; i < 3000 / test::stride(4); ++i) {
    const Problem problem = largest(generator.any());
    ASSERT_TRUE(is_concrete(problem));
    std::set<std::string> names;
    bool outputs = false;
    for (const TensorDecl& decl : tensors(problem)) {
      ASSERT_TRUE(names.insert(decl.name).second) << decl.name << " twice: " << print(problem);
      ASSERT_FALSE(outputs && !decl.output) << "inputs come first: " << print(problem);
      outputs = outputs || decl.output;
      for (const std::int64_t extent : decl.shape) ASSERT_GE(extent, 0) << decl.name << print(problem);
    }
    ASSERT_TRUE(outputs);
  }
}

std::string argument_of(const json& document) {
  try {
    (void)parse(document.dump());
  } catch (const Error& error) {
    return error.code() == ErrorCode::invalid_argument ? error.argument() : std::string("(wrong code)");
  }
  return "(accepted)";
}

// The pointers of every value in a document, its root left out.
void pointers(const json& value, const std::string& at, std::vector<std::string>& out) {
  if (!at.empty()) out.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, field] : value.items()) pointers(field, at + "/" + key, out);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) pointers(value[i], at + "/" + std::to_string(i), out);
  }
}

json with(const json& document, const std::string& pointer, const json& value) {
  json mutated = document;
  mutated[json::json_pointer(pointer)] = value;
  return mutated;
}

// A block such as [32,32] is one value of a closed set: its elements are named by the block's own pointer.
std::string owner(const std::string& pointer) {
  const std::string parent = pointer.substr(0, pointer.rfind('/'));
  return parent.ends_with("/block") ? parent : pointer;
}

bool is_real(const std::string& pointer) {
  for (const char* name : {"/alpha", "/beta", "/eps", "/limit", "/amax_cap"}) {
    if (pointer.ends_with(name)) return true;
  }
  return false;
}

TEST(ProblemProperty, AValueOfTheWrongTypeNamesItsField) {
  std::cout << "seed " << kSeed + 2 << "\n";
  ProblemGenerator generator(kSeed + 2);
  std::map<std::string, int> tried;
  for (int i = 0; i < 150 / test::stride(3); ++i) {
    const json document = json::parse(print(generator.any()));
    std::vector<std::string> all;
    pointers(document, "", all);
    for (const std::string& pointer : all) {
      const json& value = document[json::json_pointer(pointer)];
      const auto expect_named = [&](const json& wrong) {
        ++tried[document["op"].get<std::string>()];
        EXPECT_EQ(argument_of(with(document, pointer, wrong)), owner(pointer))
            << pointer << " = " << wrong.dump() << " in " << document.dump();
      };
      expect_named(value.is_array() ? json("text") : json::array({"text"}));
      if (!value.is_boolean()) expect_named(true);
      if (value.is_string() && pointer != "/name") expect_named("no such value");
      if (value.is_string()) expect_named(12345);
      if (value.is_number_integer()) {
        expect_named(value.get<double>());
        expect_named(-1);
        expect_named(json::parse("18446744073709551615"));
        expect_named(std::to_string(value.get<std::int64_t>()));
      }
      if (value.is_number_float()) {
        EXPECT_TRUE(is_real(pointer)) << pointer;
        expect_named("1.0");
      }
      if (value.is_boolean()) {
        expect_named(0);
        expect_named("true");
        expect_named(nullptr);
      }
    }
  }
  for (const char* op : {"quantize", "dequantize", "pack_scales", "unpack_scales", "pad_groups",
                         "unpad_groups", "gemm", "moe"}) {
    EXPECT_GT(tried[op], 50 / test::stride(3)) << op;
  }
}

TEST(ProblemProperty, AnUnknownFieldIsNamed) {
  std::cout << "seed " << kSeed + 3 << "\n";
  ProblemGenerator generator(kSeed + 3);
  for (int i = 0; i < 400 / test::stride(4); ++i) {
    const json document = json::parse(print(generator.any()));
    std::vector<std::string> all;
    pointers(document, "", all);
    all.emplace_back("");
    for (const std::string& pointer : all) {
      if (!document[json::json_pointer(pointer)].is_object()) continue;
      const std::string extra = pointer + "/unheard_of";
      EXPECT_EQ(argument_of(with(document, extra, 1)), extra) << document.dump();
    }
  }
}

TEST(ProblemProperty, AMissingFieldIsNamed) {
  std::cout << "seed " << kSeed + 4 << "\n";
  const std::map<std::string, std::vector<std::string>> required{
      {"quantize", {"/input", "/input/dtype", "/input/shape", "/scaling", "/block"}},
      {"dequantize", {"/q", "/q/dtype", "/q/shape", "/scaling", "/block", "/output", "/output/dtype"}},
      {"pack_scales", {"/scales", "/scales/shape", "/placement"}},
      {"unpack_scales", {"/scales", "/scales/shape", "/placement"}},
      {"pad_groups", {"/input", "/input/dtype", "/input/shape", "/groups", "/groups/count", "/alignment"}},
      {"unpad_groups", {"/input", "/input/dtype", "/input/shape", "/groups", "/groups/count", "/alignment"}},
      {"gemm", {"/a", "/a/dtype", "/a/shape", "/b", "/b/dtype", "/b/shape"}},
      {"moe",
       {"/tokens", "/hidden", "/intermediate", "/experts", "/top_k", "/weights", "/weights/scaling",
        "/weights/block", "/activations", "/activations/scaling", "/activations/block"}}};
  ProblemGenerator generator(kSeed + 4);
  std::set<std::string> seen;
  for (int i = 0; i < 500 / test::stride(4); ++i) {
    const json document = json::parse(print(generator.any()));
    const std::string op = document["op"];
    seen.insert(op);
    std::vector<std::string> pointers_of_op = required.at(op);
    pointers_of_op.insert(pointers_of_op.end(), {"/schema", "/op"});
    for (const std::string& pointer : pointers_of_op) {
      json mutated = document;
      const std::size_t split = pointer.rfind('/');
      mutated[json::json_pointer(pointer.substr(0, split))].erase(pointer.substr(split + 1));
      EXPECT_EQ(argument_of(mutated), pointer) << document.dump();
    }
  }
  EXPECT_EQ(seen.size(), required.size());
}

}  // namespace
}  // namespace mxjit::problem
