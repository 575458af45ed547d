// Configurations: what problems get, what is refused, and that ranges yield all of it.
#include "configure/configure.hpp"

#include <gtest/gtest.h>

#include <set>

#include "loops.hpp"
#include "mxjit/error.hpp"

namespace mxjit::configure {
namespace {

problem::Problem quantize(const std::string& fields) {
  return problem::parse(R"({"schema": 1, "op": "quantize", "scaling": "mx", )" + fields + "}");
}

constexpr const char* bf16 = R"("block": 32, "input": {"dtype": "bf16", "shape": [384, 640]})";

TEST(Profiles, EveryTargetHasADefault) {
  std::set<std::string_view> names;
  for (const Profile& candidate : profiles()) {
    EXPECT_TRUE(names.insert(candidate.name).second) << candidate.name;
    EXPECT_EQ(&profile(candidate.name), &candidate);
    EXPECT_EQ(default_profile(candidate.target).target, candidate.target);
    EXPECT_LE(candidate.shared_bytes_per_block, candidate.shared_bytes_per_sm);
  }
  EXPECT_EQ(default_profile("sm_90a").name, "h200");
}

TEST(Profiles, UnknownNamesListTheKnown) {
  try {
    profile("h201");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("\"h200\", \"h100-sxm\""), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("\"h201\""), std::string::npos);
  }
  EXPECT_THROW(default_profile("sm_80"), Error);
}

TEST(Configure, IsPureAndIndependentOfM) {
  const Profile& h200 = profile("h200");
  const auto one = configure(quantize(bf16), h200);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one, configure(quantize(bf16), h200));
  EXPECT_EQ(one.front().kernel, "quantize/mx");
  EXPECT_EQ(one.front().threads % 32, 0);
}

TEST(Configure, ARangeCoversEveryProblemInside) {
  const Profile& h200 = profile("h200");
  const auto range = configure(
      quantize(
          R"("block": 32, "axes": ["row", "col"], "input": {"dtype": "bf16", "shape": [{"min": 1, "max": 40000}, 5120]})"),
      h200);
  EXPECT_EQ(std::set(range.begin(), range.end()).size(), range.size());
  for (int m = 1; m <= 40000; m = m * 3 / 2 + 1) {
    const auto one =
        configure(quantize(R"("block": 32, "axes": ["row", "col"], "input": {"dtype": "bf16", "shape": [)" +
                           std::to_string(m) + ", 5120]}"),
                  h200);
    for (const Configuration& configuration : one) {
      EXPECT_NE(std::find(range.begin(), range.end(), configuration), range.end()) << m;
    }
  }
}

// Rows and columns of a problem's tile, and lanes beside each other.
std::vector<std::int64_t> tile_of(const std::string& fields) {
  const auto found = configure(quantize(fields), profile("h200"));
  EXPECT_EQ(found.size(), 1U) << fields;
  const auto constant = [&](const char* name) {
    return std::get<std::int64_t>(found.front().constants.at(name));
  };
  const std::int64_t across = constant("lanes_across");
  return {32 / across * constant("rows_per_lane") * constant("warps_m"), 8 * across * constant("warps_n"),
          across};
}

TEST(Configure, TilesFollowWhatThereIsToDo) {
  using Tile = std::vector<std::int64_t>;
  const std::string both = R"("block": 32, "axes": ["row", "col"], )",
                    blocked = R"("scale_layout": "blocked", )";
  const std::string swiglu = R"("pre": {"kind": "swiglu"}, )",
                    groups = R"("groups": {"count": 4, "alignment": 32}, )";
  const auto x = [](const std::string& shape) {
    return R"("input": {"dtype": "bf16", "shape": )" + shape + "}";
  };
  EXPECT_EQ(tile_of(both + x("[128, 5120]")), (Tile{32, 128, 4}));
  EXPECT_EQ(tile_of(both + blocked + x("[128, 5120]")), (Tile{128, 32, 4}));
  EXPECT_EQ(tile_of(both + x("[4096, 5120]")), (Tile{128, 128, 16}));
  EXPECT_EQ(tile_of(both + x("[131072, 5120]")), (Tile{256, 128, 16}));
  EXPECT_EQ(tile_of(both + x("[1, 128, 5120]")), (Tile{128, 128, 16})) << "experts may be many";
  EXPECT_EQ(tile_of(both + groups + blocked + x("[128, 5120]")), (Tile{128, 128, 16}))
      << "whole tiles of codes";
  EXPECT_EQ(tile_of(both + swiglu + x("[8192, 10240]")), (Tile{64, 128, 8}));
  EXPECT_EQ(tile_of(both + swiglu + blocked + x("[131072, 10240]")), (Tile{64, 128, 8}));
  EXPECT_EQ(tile_of(both + swiglu + x("[131072, 10240]")), (Tile{128, 128, 8}))
      << "longer runs of plain codes";
  EXPECT_EQ(tile_of(both + swiglu + groups + blocked + x("[8192, 10240]")), (Tile{128, 128, 8}));
}

problem::Problem with_float_scales(const std::string& block, const std::string& axes,
                                   const std::string& shape, const std::string& layout = "row") {
  return problem::parse(R"({"schema": 1, "op": "quantize", "scaling": "fp32", "block": )" + block +
                        R"(, "axes": )" + axes + R"(, "input": {"dtype": "bf16", "shape": )" + shape +
                        R"(, "layout": ")" + layout + "\"}}");
}

std::vector<std::string> kernels(const problem::Problem& problem) {
  std::vector<std::string> names;
  for (const Configuration& configuration : configure(problem, profile("h200")))
    names.push_back(configuration.kernel);
  return names;
}

TEST(Configure, FloatScalesThatSpanMoreThanATileTakeTwoPasses) {
  using Names = std::vector<std::string>;
  const Names one_pass = {"quantize/fp32"}, two_passes = {"quantize/fp32_passes"}, rows = {"quantize/rows"};
  const std::string row = R"("row")", tensor = R"("tensor")", shape = "[384, 640]";
  EXPECT_EQ(kernels(with_float_scales("128", R"(["row", "col"])", shape)), one_pass);
  EXPECT_EQ(kernels(with_float_scales("[128, 128]", R"(["row"])", shape)), one_pass);
  EXPECT_EQ(kernels(with_float_scales(row, R"(["row"])", shape)), rows);
  EXPECT_EQ(kernels(with_float_scales(row, R"(["col"])", shape)), two_passes);
  EXPECT_EQ(kernels(with_float_scales(row, R"(["col"])", shape, "col")), rows);
  EXPECT_EQ(kernels(with_float_scales(row, R"(["row"])", shape, "col")), two_passes);
  EXPECT_EQ(kernels(with_float_scales(row, R"(["row", "col"])", shape)), two_passes);
  const std::string grouped = row + R"(, "groups": {"count": 3, "alignment": 1})";
  EXPECT_EQ(kernels(with_float_scales(grouped, R"(["row"])", shape)), rows);
  EXPECT_EQ(kernels(with_float_scales(grouped, R"(["col"])", shape, "col")), two_passes)
      << "groups inside a row";
  EXPECT_EQ(kernels(with_float_scales(tensor, R"(["row"])", shape)), two_passes);
}

TEST(Configure, SmallTensorsAreCutIntoLowTiles) {
  const auto rows_of = [](const std::string& shape, const std::string& axes = R"(["row"])",
                          const std::string& more = "", const std::string& layout = "row") {
    std::set<std::int64_t> rows;
    for (const Configuration& one :
         configure(with_float_scales(R"("tensor")" + more, axes, shape, layout), profile("h200"))) {
      const auto constant = [&](const char* name) { return std::get<std::int64_t>(one.constants.at(name)); };
      EXPECT_EQ(constant("block_rows"), 2 * constant("rows_per_lane") * constant("warps_m"));
      EXPECT_EQ(constant("warps_n"), 1);
      rows.insert(constant("block_rows"));
    }
    return rows;
  };
  const std::set<std::int64_t> low = {32}, high = {128}, either = {32, 128};
  EXPECT_EQ(rows_of("[128, 8192]"), low);
  EXPECT_EQ(rows_of("[100, 5120]"), low);
  EXPECT_EQ(rows_of("[129, 8192]"), high);
  EXPECT_EQ(rows_of("[128, 8193]"), high);
  EXPECT_EQ(rows_of("[0, 0]"), low);
  EXPECT_EQ(rows_of("[1, 1099511627776]"), high);
  EXPECT_EQ(rows_of(R"([{"min": 1, "max": 4096}, 5120])"), either);
  EXPECT_EQ(rows_of(R"([{"min": 1, "max": 4096}, {"min": 100, "max": 200}])"), low);
  EXPECT_EQ(rows_of("[5120, 128]", R"(["col"])", "", "col"), low);
  EXPECT_EQ(rows_of("[128, 5120]", R"(["col"])"), high);
  EXPECT_EQ(rows_of("[128, 5120]", R"(["row", "col"])"), high);
  EXPECT_EQ(rows_of("[2, 64, 4096]"), high);
  EXPECT_EQ(rows_of("[128, 5120]", R"(["row"])", R"(, "emit_high": true)"), high);
  EXPECT_EQ(rows_of("[128, 5120]", R"(["row"])", R"(, "pre": {"kind": "swiglu"})"), high);
}

TEST(Configure, RowsAloneAfterRmsNormAreHeldOnChip) {
  using Names = std::vector<std::string>;
  const Names rows = {"quantize/rows"}, passes = {"quantize/norm"};
  const std::string shape = "[384, 640]", norm = R"(, "pre": {"kind": "rmsnorm"})";
  EXPECT_EQ(kernels(with_float_scales(R"("row")" + norm, R"(["row"])", shape)), rows);
  EXPECT_EQ(kernels(with_float_scales("128" + norm, R"(["row"])", shape)), rows);
  EXPECT_EQ(kernels(with_float_scales("128" + norm, R"(["row", "col"])", shape)), passes);
  EXPECT_EQ(kernels(with_float_scales("128" + norm, R"(["row"])", shape, "col")), passes);
  EXPECT_EQ(kernels(with_float_scales("[128, 128]" + norm, R"(["row"])", shape)), passes);
  EXPECT_EQ(kernels(with_float_scales(R"("tensor")" + norm, R"(["row"])", shape)), passes);
  const auto mx = [&](const std::string& block, const std::string& axes) {
    return kernels(quantize(R"("input": {"dtype": "bf16", "shape": [384, 640]}, "block": )" + block + norm +
                            R"(, "axes": )" + axes));
  };
  EXPECT_EQ(mx("32", R"(["row"])"), rows);
  EXPECT_EQ(mx(R"(32, "scale_layout": "blocked")", R"(["row"])"), rows);
  EXPECT_EQ(mx("32", R"(["col"])"), passes);
  EXPECT_EQ(mx("128", R"(["row"])"), passes);
  EXPECT_EQ(mx("[32, 32]", R"(["row"])"), passes);
  EXPECT_EQ(mx(R"(32, "groups": {"count": 3, "alignment": 32})", R"(["row"])"), passes);
}

TEST(Configure, FewRowsAfterRmsNormHaveATeamEach) {
  const auto rows_of = [](const std::string& shape) {
    const auto all = configure(with_float_scales(R"("row", "pre": {"kind": "rmsnorm"})", R"(["row"])", shape),
                               profile("h200"));
    std::set<std::int64_t> rows;
    for (const Configuration& one : all) rows.insert(std::get<std::int64_t>(one.constants.at("rows")));
    return rows;
  };
  EXPECT_EQ(rows_of("[512, 5120]"), (std::set<std::int64_t>{1}));
  EXPECT_EQ(rows_of("[513, 5120]"), (std::set<std::int64_t>{2}));
  EXPECT_EQ(rows_of("[2, 5, 5120]"), (std::set<std::int64_t>{2})) << "experts";
  EXPECT_EQ(rows_of(R"([{"min": 1, "max": 1000}, 5120])"), (std::set<std::int64_t>{1, 2}));
}

TEST(Configure, ARangeOfRowLengthsCoversEveryOneInside) {
  const Profile& h200 = profile("h200");
  for (const std::string layout : {"row", "col"})
    for (const std::string block : {R"("row")", R"("tensor")", "128", R"("row", "pre": {"kind": "rmsnorm"})",
                                    R"(128, "pre": {"kind": "rmsnorm"})"}) {
      const std::string axis = layout == "row" ? R"(["row"])" : R"(["col"])";
      const auto of = [&](const std::string& extent, const Profile& of_profile) {
        const std::string shape = layout == "row" ? "[600, " + extent + "]" : "[" + extent + ", 600]";
        return configure(with_float_scales(block, axis, shape, layout), of_profile);
      };
      // From where another number of lanes is filled, and beside it.
      for (const int first : {127, 128, 129, 255, 256, 257, 512, 1024, 5120}) {
        const int last = 3 * first;
        const auto some =
            of(R"({"min": )" + std::to_string(first) + R"(, "max": )" + std::to_string(last) + "}", h200);
        for (int n = first; n <= last; n += test::stride(5) * (1 + n / 300))
          for (const Configuration& configuration : of(std::to_string(n), h200))
            EXPECT_NE(std::find(some.begin(), some.end(), configuration), some.end())
                << layout << " " << first << " " << n;
      }
      const std::string lengths = R"({"min": 1, "max": 50000})";
      const auto range = of(lengths, h200);
      for (const Profile& any : profiles())
        for (const Configuration& configuration : of(lengths, any)) EXPECT_GE(configuration.min_blocks, 1);
      EXPECT_EQ(std::set(range.begin(), range.end()).size(), range.size());
      for (int n = 1; n <= 50000; n += test::stride(5) * (1 + n / 40))
        for (const Configuration& configuration : of(std::to_string(n), h200))
          EXPECT_NE(std::find(range.begin(), range.end(), configuration), range.end()) << layout << n;
    }
}

TEST(Configure, ATransposedInputExchangesTheAxes) {
  const Profile& h200 = profile("h200");
  EXPECT_EQ(
      configure(
          quantize(
              R"("block": 32, "axes": ["col"], "input": {"dtype": "bf16", "shape": [64, 96], "layout": "col"})"),
          h200),
      configure(quantize(R"("block": 32, "axes": ["row"], "input": {"dtype": "bf16", "shape": [96, 64]})"),
                h200));
}

TEST(Configure, GatesAndUpsThatAlternateInMemoryTakeAKernelOfTheirOwn) {
  const auto pre_of = [](const std::string& fields, const char* layout) {
    const auto all =
        configure(quantize(R"("block": 32, "input": {"dtype": "fp32", "shape": [384, 640], "layout": ")" +
                           std::string(layout) + R"("}, "pre": {"kind": "swiglu")" + fields + "}"),
                  profile("h200"));
    EXPECT_EQ(all.size(), 1U);
    EXPECT_EQ(std::get<std::string>(all.front().constants.at("stored")), "Input::fp32");
    EXPECT_EQ(std::get<std::string>(all.front().constants.at("input")), "Input::bf16");
    return std::get<std::string>(all.front().constants.at("pre"));
  };
  EXPECT_EQ(pre_of("", "row"), "Pre::swiglu");
  EXPECT_EQ(pre_of(R"(, "interleave": true)", "row"), "Pre::swiglu_interleaved");
  EXPECT_EQ(pre_of(R"(, "interleave": true)", "col"), "Pre::swiglu");
}

// Values select nothing; whether there is a limit does.
TEST(Configure, AlphaAndLimitAreValues) {
  const auto of = [](const std::string& fields) {
    return configure(quantize(std::string(bf16) + R"(, "pre": {"kind": "swiglu")" + fields + "}"),
                     profile("h200"));
  };
  EXPECT_EQ(of(R"(, "alpha": 1.702)"), of(""));
  EXPECT_EQ(of(R"(, "alpha": 1.702, "limit": 7)"), of(R"(, "limit": 3.5)"));
  EXPECT_NE(of(R"(, "limit": 7)"), of(""));
}

TEST(Configure, RefusesByName) {
  const auto refused = [](const problem::Problem& problem) -> std::string {
    try {
      configure(problem, profile("h200"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      return error.argument();
    }
    return "nothing";
  };
  EXPECT_EQ(refused(quantize(std::string(bf16) + R"(, "pre": {"kind": "rmsnorm", "eps": 1e-6})")), "nothing");
  const auto padding = [](const std::string& groups) {
    return problem::parse(
        R"({"schema": 1, "op": "pad_groups", "input": {"dtype": "bf16", "shape": [8, 16]}, "groups": {"count": )" +
        groups + R"(}, "alignment": 32})");
  };
  EXPECT_EQ(refused(padding("1025")), "/groups/count");
  EXPECT_EQ(refused(padding("1024")), "nothing");
  EXPECT_EQ(refused(quantize(bf16)), "nothing");
}

}  // namespace
}  // namespace mxjit::configure
