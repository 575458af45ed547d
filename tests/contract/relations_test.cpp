// Relations between problems that hold for every input: one axis is the other axis of the transpose, blocked
// scales are packed plain scales, one pass over both axes is two passes, experts do not see each other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "contract/builders.hpp"
#include "loops.hpp"

namespace mxjit::contract {
namespace {

struct Problem {
  std::int64_t m;
  std::int64_t n;
  std::string recipe;
  std::vector<std::uint16_t> x;
};

// Mostly ordinary values, with zeros, subnormals, infinities and NaN among them.
std::uint16_t random_bf16(std::mt19937& random) {
  static const std::vector<std::uint16_t> special = {0x0000, 0x8000, 0x0001, 0x8001, 0x7F7F,
                                                     0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x0460};
  if (random() % 400 == 0) return special[random() % special.size()];
  const auto exponent = 110 + random() % 24;
  return static_cast<std::uint16_t>(random() % 2 << 15 | exponent << 7 | random() % 128);
}

Problem random_problem(std::mt19937& random) {
  static const std::vector<std::string> recipes = {R"("scaling":"mx","block":32)",
                                                   R"("scaling":"mx","block":128,"rounding":"floor")",
                                                   R"("scaling":"mx","block":[32,32],"rounding":"even")",
                                                   R"("scaling":"mx","block":[128,128],"rounding":"ceil")",
                                                   R"("scaling":"mx","block":32,"format":"e5m2")",
                                                   R"("scaling":"fp32","block":"row")",
                                                   R"("scaling":"fp32","block":128,"rounding":"pow2")",
                                                   R"("scaling":"fp32","block":[128,128])",
                                                   R"("scaling":"fp32","block":"tensor","format":"e5m2")"};
  Problem out{1 + static_cast<std::int64_t>(random() % 300),
              1 + static_cast<std::int64_t>(random() % 300),
              recipes[random() % recipes.size()],
              {}};
  for (std::int64_t i = 0; i < out.m * out.n; ++i) out.x.push_back(random_bf16(random));
  return out;
}

TensorMap quantize(std::int64_t m, std::int64_t n, const std::string& rest,
                   const std::vector<std::uint16_t>& x, const std::vector<std::int32_t>& offsets = {}) {
  TensorMap inputs{{"x", tensor_of(DType::bf16, {m, n}, x)}};
  if (!offsets.empty())
    inputs["offsets"] = tensor_of(DType::i32, {static_cast<std::int64_t>(offsets.size())}, offsets);
  return run(fmt::format(R"("op":"quantize","input":{{"dtype":"bf16","shape":[{},{}]}},{})", m, n, rest),
             inputs);
}

std::vector<std::uint16_t> transpose(const std::vector<std::uint16_t>& x, std::int64_t m, std::int64_t n) {
  std::vector<std::uint16_t> out(x.size());
  for (std::int64_t r = 0; r < m; ++r) {
    for (std::int64_t c = 0; c < n; ++c)
      out[static_cast<std::size_t>(c * m + r)] = x[static_cast<std::size_t>(r * n + c)];
  }
  return out;
}

TEST(Relations, ColIsTheRowOfTheTransposeAndBothAreTwo) {
  std::mt19937 random(2);
  for (int i = 0; i < 60 / test::stride(4); ++i) {
    const Problem p = random_problem(random);
    SCOPED_TRACE(fmt::format("{}x{} {}", p.m, p.n, p.recipe));
    const TensorMap both = quantize(p.m, p.n, p.recipe + R"(,"axes":["row","col"])", p.x);
    const TensorMap row = quantize(p.m, p.n, p.recipe, p.x);
    const TensorMap col = quantize(p.n, p.m, p.recipe, transpose(p.x, p.m, p.n));
    EXPECT_EQ(both.at("q_row").bytes, row.at("q_row").bytes);
    EXPECT_EQ(both.at("s_row").bytes, row.at("s_row").bytes);
    EXPECT_EQ(both.at("q_col").bytes, col.at("q_row").bytes);
    EXPECT_EQ(both.at("s_col").bytes, col.at("s_row").bytes);
    EXPECT_EQ(both.at("s_col").shape, col.at("s_row").shape);
  }
}

TEST(Relations, ExpertsAreMatricesOfTheirOwn) {
  std::mt19937 random(3);
  for (int i = 0; i < 30 / test::stride(3); ++i) {
    Problem p = random_problem(random);
    if (p.recipe.find("tensor") != std::string::npos) continue;  // one scale over all experts
    SCOPED_TRACE(fmt::format("{}x{} {}", p.m, p.n, p.recipe));
    const std::string rest = p.recipe + R"(,"axes":["row","col"])";
    const std::vector<std::uint16_t> second = [&] {
      std::vector<std::uint16_t> out;
      for (std::size_t j = 0; j < p.x.size(); ++j) out.push_back(random_bf16(random));
      return out;
    }();
    std::vector<std::uint16_t> together = p.x;
    together.insert(together.end(), second.begin(), second.end());
    const TensorMap out =
        run(fmt::format(R"("op":"quantize","input":{{"dtype":"bf16","shape":[2,{},{}]}},{})", p.m, p.n, rest),
            {{"x", tensor_of(DType::bf16, {2, p.m, p.n}, together)}});
    const TensorMap one = quantize(p.m, p.n, rest, p.x);
    const TensorMap two = quantize(p.m, p.n, rest, second);
    for (const auto& [name, tensor] : out) {
      std::vector<std::uint8_t> expected = one.at(name).bytes;
      expected.insert(expected.end(), two.at(name).bytes.begin(), two.at(name).bytes.end());
      EXPECT_EQ(tensor.bytes, expected) << name;
    }
  }
}

std::vector<std::int32_t> random_ends(std::mt19937& random, std::int64_t m, int alignment) {
  std::vector<std::int32_t> ends(1 + random() % 6);
  for (std::int32_t& end : ends) {
    end = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(m / alignment + 1)) * alignment;
  }
  std::sort(ends.begin(), ends.end());  // repeats are empty groups
  return ends;
}

TEST(Relations, BlockedScalesArePackedPlainScales) {
  std::mt19937 random(4);
  for (int i = 0; i < 60 / test::stride(4); ++i) {
    Problem p = random_problem(random);
    const bool wide = i % 2 == 0;
    p.recipe = wide ? R"("scaling":"mx","block":128)" : R"("scaling":"mx","block":32)";
    const int alignment = wide || i % 3 == 0 ? 128 : 32;
    const std::vector<std::int32_t> ends = random_ends(random, p.m, alignment);
    const std::string groups =
        fmt::format(R"(,"groups":{{"count":{},"axis":"m","alignment":{}}})", ends.size(), alignment);
    SCOPED_TRACE(fmt::format("{}x{} {} ends {}", p.m, p.n, p.recipe + groups, fmt::join(ends, ",")));
    const std::string axes = p.recipe + R"(,"axes":["row","col"])";
    const TensorMap plain = quantize(p.m, p.n, axes, p.x);
    const TensorMap dense = quantize(p.m, p.n, axes + R"(,"scale_layout":"blocked")", p.x);
    const TensorMap placed = quantize(p.m, p.n, axes + R"(,"scale_layout":"blocked")" + groups, p.x, ends);
    EXPECT_EQ(placed.at("q_row").bytes, plain.at("q_row").bytes);
    EXPECT_EQ(placed.at("q_col").bytes, plain.at("q_col").bytes);

    const auto packed = [&](const std::string& name, const std::string& placement,
                            std::vector<std::int32_t> at) {
      HostTensor s = plain.at(name);
      const std::string fields = fmt::format(
          R"("op":"pack_scales","scales":{{"shape":[{},{}]}},"placement":"{}","groups":{})", s.shape[0],
          s.shape[1], placement, at.empty() ? "null" : fmt::format(R"({{"count":{}}})", at.size()));
      TensorMap inputs{{"s", s}};
      if (!at.empty()) inputs["offsets"] = tensor_of(DType::i32, {static_cast<std::int64_t>(at.size())}, at);
      return run(fields, inputs).at("s_blocked").bytes;
    };
    EXPECT_EQ(dense.at("s_row").bytes, packed("s_row", "dense", {}));
    EXPECT_EQ(dense.at("s_col").bytes, packed("s_col", "dense", {}));
    if (alignment == 128) {
      EXPECT_EQ(placed.at("s_row").bytes, dense.at("s_row").bytes);
    } else {
      EXPECT_EQ(placed.at("s_row").bytes, packed("s_row", "m_groups", ends));
    }
    std::vector<std::int32_t> columns = ends;
    for (std::int32_t& end : columns) end /= wide ? 128 : 32;
    EXPECT_EQ(placed.at("s_col").bytes, packed("s_col", "k_groups", columns));
  }
}

// Columns inside a group are the columns of the group's rows alone.
TEST(Relations, ColumnsOfAGroupSeeTheirRowsAlone) {
  std::mt19937 random(6);
  for (int i = 0; i < 30 / test::stride(3); ++i) {
    const Problem p = random_problem(random);
    const std::vector<std::int32_t> ends = random_ends(random, p.m, 1);
    const std::string recipe = R"("scaling":"fp32","block":"row","axes":["col"])";
    const TensorMap out = quantize(
        p.m, p.n, fmt::format(R"({},"groups":{{"count":{},"axis":"m","alignment":1}})", recipe, ends.size()),
        p.x, ends);
    const std::vector<float> scales = elements_of<float>(out.at("s_col"));
    std::int64_t first = 0;
    for (std::size_t g = 0; g < ends.size(); ++g) {
      const std::int64_t size = ends[g] - first;
      const TensorMap alone =
          quantize(size, p.n, recipe,
                   {p.x.begin() + first * p.n, p.x.begin() + static_cast<std::int64_t>(ends[g]) * p.n});
      const std::vector<std::uint8_t>& q = alone.at("q_col").bytes;
      for (std::int64_t c = 0; c < p.n; ++c) {
        EXPECT_TRUE(std::equal(q.begin() + c * size, q.begin() + (c + 1) * size,
                               out.at("q_col").bytes.begin() + c * p.m + first));
      }
      const HostTensor own =
          tensor_of(DType::fp32, {p.n},
                    std::vector<float>(scales.begin() + static_cast<std::int64_t>(g) * p.n,
                                       scales.begin() + static_cast<std::int64_t>(g + 1) * p.n));
      EXPECT_EQ(own.bytes, alone.at("s_col").bytes);
      first = ends[g];
    }
    for (std::int64_t c = 0; c < p.n; ++c) {
      for (std::int64_t r = first; r < p.m; ++r) {
        EXPECT_EQ(out.at("q_col").bytes[static_cast<std::size_t>(c * p.m + r)], 0);
      }
    }
  }
}

TEST(Relations, UnpaddingUndoesPadding) {
  std::mt19937 random(8);
  for (int i = 0; i < 40 / test::stride(4); ++i) {
    const Problem p = random_problem(random);
    std::vector<std::int32_t> ends = random_ends(random, p.m, 1);
    ends.back() = static_cast<std::int32_t>(p.m);
    const std::string fields =
        fmt::format(R"("input":{{"dtype":"bf16","shape":[{},{}]}},"groups":{{"count":{}}},"alignment":{})",
                    p.m, p.n, ends.size(), 1 + random() % 70);
    const HostTensor x = tensor_of(DType::bf16, {p.m, p.n}, p.x);
    const HostTensor offsets = tensor_of(DType::i32, {static_cast<std::int64_t>(ends.size())}, ends);
    TensorMap padded = run(R"("op":"pad_groups",)" + fields, {{"x", x}, {"offsets", offsets}});
    const TensorMap back =
        run(R"("op":"unpad_groups",)" + fields,
            {{"x_padded", padded.at("x_padded")}, {"offsets", offsets}, {"starts", padded.at("starts")}});
    EXPECT_EQ(back.at("x").bytes, x.bytes) << fields;
  }
}

}  // namespace
}  // namespace mxjit::contract
