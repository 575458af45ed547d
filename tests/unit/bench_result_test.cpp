// The pure parts of the benchmarks: statistics, and the written forms of a result.
#include "bench/result.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/statistics.hpp"

namespace mxjit::bench {
namespace {

using Json = nlohmann::json;

TEST(BenchStatistics, MedianMinMax) {
  const Summary odd = summarize({5, 1, 9});
  EXPECT_EQ(odd.median, 5);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 9);
  EXPECT_EQ(summarize({4, 1, 3, 100}).median, 3.5);
  EXPECT_EQ(summarize({7}).median, 7);
  EXPECT_THROW(summarize({}), std::invalid_argument);
}

TEST(BenchStatistics, DifferencesAreTakenSampleBySample) {
  EXPECT_EQ(differences({3, 10}, {1, 4}), (std::vector<double>{2, 6}));
  EXPECT_THROW(differences({1}, {}), std::invalid_argument);
}

Row copy_bound_row() {
  Row row;
  row.name = "row 1x32";
  row.problem = R"({"op":"quantize"})";
  row.shape = {1000, 3000};
  row.samples = {4, 1, 2};
  row.bytes = 6e6;  // 2 us at 3000 GB/s
  row.configuration = R"(["a","b"])";
  row.large = true;
  row.correct = true;
  return row;
}

TEST(BenchResult, JsonHoldsEveryFieldOfTheResultFile) {
  Result result;
  result.suite = "quantize";
  result.machine = {"NVIDIA H200", "580.1", "13.0", "13.0.88", 1980.0, 3201.0};
  result.roofs.copy_gbs = 4000.0;
  result.digest = "ab12";
  Row row = copy_bound_row();
  row.peer = Peer{"row + col", 6};
  row.extra.emplace_back("copy_us", 1.5);
  result.rows = {row};

  const Json json = Json::parse(to_json(result));
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("suite"), "quantize");
  EXPECT_EQ(json.at("gpu"), "NVIDIA H200");
  EXPECT_EQ(json.at("driver"), "580.1");
  EXPECT_EQ(json.at("cuda"), "13.0");
  EXPECT_EQ(json.at("nvrtc"), "13.0.88");
  EXPECT_EQ(json.at("clocks"), Json({{"sm_mhz", 1980}, {"mem_mhz", 3201}}));
  EXPECT_EQ(json.at("roofs"), Json({{"copy_gbs", 4000},
                                    {"copy_fixed_us", nullptr},
                                    {"bf16_tflops", nullptr},
                                    {"fp8_tflops", nullptr},
                                    {"fp8_promote_tflops", nullptr}}));
  EXPECT_EQ(json.at("digest"), "ab12");
  ASSERT_EQ(json.at("rows").size(), 1U);
  const Json& written = json.at("rows").at(0);
  const Json expected = {{"name", "row 1x32"},
                         {"problem", {{"op", "quantize"}}},
                         {"shape", {1000, 3000}},
                         {"us", 2},
                         {"us_min", 1},
                         {"us_max", 4},
                         {"samples", {4, 1, 2}},
                         {"gbs", 3000},
                         {"of_roof", 0.75},
                         {"peer", "row + col"},
                         {"peer_us", 6},
                         {"peer2", nullptr},
                         {"peer2_us", nullptr},
                         {"speedup", 3},
                         {"configuration", {"a", "b"}},
                         {"large", true},
                         {"correct", true},
                         {"copy_us", 1.5}};
  EXPECT_EQ(written, expected);
}

TEST(BenchResult, UnknownsAreNull) {
  Result result;
  result.suite = "dispatch";
  Row row = copy_bound_row();
  row.bytes.reset();
  row.problem.clear();
  row.configuration.clear();
  result.rows = {row};
  const Json json = Json::parse(to_json(result));
  for (const char* field : {"gpu", "driver", "cuda", "nvrtc", "digest"})
    EXPECT_TRUE(json.at(field).is_null()) << field;
  EXPECT_TRUE(json.at("clocks").at("sm_mhz").is_null());
  const Json& written = json.at("rows").at(0);
  for (const char* field : {"problem", "configuration", "gbs", "of_roof", "peer", "peer_us", "speedup"}) {
    EXPECT_TRUE(written.at(field).is_null()) << field;
  }
  EXPECT_FALSE(written.contains("tflops"));
}

TEST(BenchResult, NumbersKeepSixDigits) {
  Result result;
  Row row = copy_bound_row();
  row.samples = {0.123456789, 1234567.89, 0.0000012345678};
  result.rows = {row};
  const Json json = Json::parse(to_json(result));
  EXPECT_EQ(json.at("rows").at(0).at("samples"), Json({0.123457, 1.23457e6, 1.23457e-6}));
}

TEST(BenchResult, RoofIsTheSlowerOfBytesAndArithmetic) {
  Row row = copy_bound_row();
  Roofs roofs;
  EXPECT_FALSE(of_roof(row, roofs));
  roofs.copy_gbs = 6000;  // 1 us for the bytes
  EXPECT_DOUBLE_EQ(of_roof(row, roofs).value(), 0.5);
  row.flop = 1.6e9;
  EXPECT_FALSE(of_roof(row, roofs)) << "the arithmetic roof was not measured";
  roofs.fp8_tflops = 1000;  // 1.6 us
  EXPECT_DOUBLE_EQ(of_roof(row, roofs).value(), 0.8);
  row.bf16_flop = true;
  roofs.bf16_tflops = 800;  // 2 us
  EXPECT_DOUBLE_EQ(of_roof(row, roofs).value(), 1.0);
}

TEST(BenchResult, TablesShowAWrongResult) {
  Result result;
  result.suite = "quantize";
  Row row = copy_bound_row();
  row.correct = false;
  result.rows = {row};
  EXPECT_NE(to_markdown(result).find("| row 1x32 | 1000x3000 | 2.00 | 1.00 | 4.00 | 3000 | - | NO |"),
            std::string::npos)
      << to_markdown(result);
  const std::string text = to_text(result);
  EXPECT_NE(text.find("row 1x32  1000x3000  2.00"), std::string::npos) << text;
  EXPECT_NE(text.find("NO\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace mxjit::bench
