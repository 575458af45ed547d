// The table of measured choices: what it says of which problems, and its file.
#include "configure/tuning_table.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "configure/configure.hpp"
#include "mxjit/error.hpp"
#include "problem/layout.hpp"

namespace mxjit::configure {
namespace {

// Row-wise with fast accumulation: on an H200 the model gives 512x5120x5120 tiles of 128x160.
problem::Gemm rowwise(std::int64_t m, std::int64_t n = 5120, std::int64_t k = 5120,
                      bool batch_invariant = false) {
  problem::Gemm gemm;
  gemm.a.tensor.shape = {m, k};
  gemm.b.tensor.shape = {n, k};
  for (problem::Operand* operand : {&gemm.a, &gemm.b}) {
    operand->tensor.dtype = DType::e4m3;
    operand->scaling.emplace();
    operand->scaling->kind = Scaling::fp32;
    operand->scaling->block = {.kind = Block::Kind::row};
  }
  gemm.accumulation = Accumulation::fast;
  gemm.batch_invariant = batch_invariant;
  return std::get<problem::Gemm>(problem::with_defaults({"", gemm}).op);
}

const DeviceKind h200{"h200", 132};

void add(TuningTable& table, const problem::Gemm& problem, const std::string& tile,
         const DeviceKind& kind = h200) {
  const auto index = tile_of_name(gemm_traits(problem), tile);
  ASSERT_TRUE(index) << tile;
  DeviceTuning& device = table.devices[kind];
  device.gpu = "NVIDIA H200";
  device.gemm[TuningTable::class_of(problem)] = {problem, *index, 41.5, 43.25};
}

std::string tile_of(const problem::Gemm& problem, const GemmTuning* tuning) {
  const GemmTraits traits = gemm_traits(problem);
  const problem::GemmExtents extents = problem::gemm_extents(problem);
  return tile_name(gemm_tiles(traits)[static_cast<std::size_t>(
      choose_tile(traits, extents.m.max, extents.n.max, extents.k.max, 132, tuning))]);
}

std::string why_refused(const std::string& text) {
  try {
    parse_tuning(text);
  } catch (const Error& error) {
    const std::string reason = error.what();
    const bool other_format = reason.find("of format") != std::string::npos;
    EXPECT_EQ(error.code(), other_format ? ErrorCode::unsupported : ErrorCode::io);
    return reason;
  }
  return {};
}

TEST(TuningTable, NamesOfTilesAreDistinct) {
  for (const Accumulation accumulation : {Accumulation::fast, Accumulation::promote})
    for (const auto form : {GemmTraits::Form::row, GemmTraits::Form::block}) {
      GemmTraits traits;
      traits.a.form = traits.b.form = form;
      traits.accumulation = accumulation;
      std::set<std::string> names;
      int index = 0;
      for (const GemmTile& tile : gemm_tiles(traits)) {
        EXPECT_TRUE(names.insert(tile_name(tile)).second) << tile_name(tile);
        EXPECT_EQ(tile_of_name(traits, tile_name(tile)), index++);
      }
    }
  EXPECT_EQ(tile_of_name(GemmTraits{}, "100x100"), std::nullopt);
}

TEST(TuningTable, AnEntryReplacesTheModelsChoiceForItsClassAlone) {
  TuningTable table;
  ASSERT_EQ(tile_of(rowwise(512), nullptr), "128x160");
  add(table, rowwise(512), "128x128");
  const GemmTuning tuning = table.choices(h200);
  for (const std::int64_t m : {449, 500, 512}) EXPECT_EQ(tile_of(rowwise(m), &tuning), "128x128") << m;
  for (const std::int64_t m : {16, 448, 513, 1024})
    EXPECT_EQ(tile_of(rowwise(m), &tuning), tile_of(rowwise(m), nullptr)) << m;
  for (const problem::Gemm& other :
       {rowwise(512, 5104), rowwise(512, 5120, 5136), rowwise(512, 5120, 5120, true)})
    EXPECT_EQ(tile_of(other, &tuning), tile_of(other, nullptr));
  problem::Gemm fp16 = rowwise(512);
  fp16.d.tensor.dtype = DType::fp16;
  EXPECT_EQ(tile_of(fp16, &tuning), "128x160");
  const GemmTuning elsewhere = table.choices(DeviceKind{"h200", 78});
  EXPECT_EQ(tile_of(rowwise(512), &elsewhere), "128x160");
}

TEST(TuningTable, FewRowsCountBySixteen) {
  TuningTable table;
  add(table, rowwise(33), "64x192");
  const GemmTuning tuning = table.choices(h200);
  EXPECT_EQ(tile_of(rowwise(48), &tuning), "64x192");
  EXPECT_EQ(tile_of(rowwise(49), &tuning), tile_of(rowwise(49), nullptr));
  EXPECT_EQ(tile_of(rowwise(32), &tuning), tile_of(rowwise(32), nullptr));
}

// Whose matrices are launched one by one, each cut into tiles by itself.
TEST(TuningTable, ABatchIsOfTheClassOfItsMatrices) {
  const auto batched = [](std::int64_t count, bool one_b) {
    problem::Gemm gemm = rowwise(512);
    gemm.a.tensor.shape.insert(gemm.a.tensor.shape.begin(), count);
    gemm.b.tensor.shape.insert(gemm.b.tensor.shape.begin(), one_b ? 1 : count);
    gemm.d.tensor.shape.clear();
    return std::get<problem::Gemm>(problem::with_defaults({"", gemm}).op);
  };
  for (const problem::Gemm& gemm : {batched(1, false), batched(3, false), batched(300, true)}) {
    EXPECT_TRUE(is_dense_fp8(gemm_traits(gemm), profile("h200")));
    EXPECT_EQ(TuningTable::class_of(gemm), TuningTable::class_of(rowwise(512)));
  }
}

TEST(TuningTable, BatchInvariantProblemsGetOneTileWhateverM) {
  TuningTable table;
  add(table, rowwise(16, 5120, 5120, true), "64x96");
  const GemmTuning tuning = table.choices(h200);
  for (const std::int64_t m : {1, 16, 512, 100000})
    EXPECT_EQ(tile_of(rowwise(m, 5120, 5120, true), &tuning), "64x96") << m;
}

TEST(TuningTable, PrintedAndReadAgainItIsTheSame) {
  TuningTable table;
  add(table, rowwise(512), "128x128");
  add(table, rowwise(16), "64x64");
  add(table, rowwise(4096), "128x224", {"h20", 78});
  const std::string text = print(table);
  const TuningTable again = parse_tuning(text);
  EXPECT_EQ(print(again), text);
  EXPECT_EQ(again.size(), 3U);
  const TunedGemm& tuned = again.devices.at(h200).gemm.at(TuningTable::class_of(rowwise(512)));
  EXPECT_EQ(tuned.us, 41.5);
  EXPECT_EQ(tuned.model_us, 43.25);
  EXPECT_EQ(tile_name(gemm_tiles(gemm_traits(tuned.problem))[static_cast<std::size_t>(tuned.tile)]),
            "128x128");
  EXPECT_EQ(again.devices.at(h200).gpu, "NVIDIA H200");
  EXPECT_EQ(parse_tuning(print({})).size(), 0U);
}

TEST(TuningTable, WhatIsNoTableIsRefusedWithTheReason) {
  TuningTable table;
  add(table, rowwise(512), "128x128");
  const std::string text = print(table);
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(why_refused(text.substr(0, length)), "") << length;
  auto foreign = nlohmann::json::parse(text);
  foreign["format"] = tuning_format + 1;
  EXPECT_NE(why_refused(foreign.dump()).find("format 2"), std::string::npos) << why_refused(foreign.dump());
  for (const char* bad : {"[]", "null", "7", "{}", R"({"format": 1})", R"({"format": "1", "devices": []})",
                          R"({"format": 1, "devices": {}})", R"({"format": 1, "devices": [7]})",
                          R"({"format": 1, "devices": [{"profile": "h200", "gpu": "x", "gemm": []}]})"})
    EXPECT_NE(why_refused(bad), "") << bad;
  auto timeless = nlohmann::json::parse(text);
  timeless["devices"][0]["gemm"][0]["us"] = -1;
  EXPECT_NE(why_refused(timeless.dump()), "");
}

// Of a library with other devices, tiles and problems.
TEST(TuningTable, WhatThisLibraryDoesNotKnowIsLeftOut) {
  TuningTable table;
  add(table, rowwise(512), "128x128");
  const auto with = [&](const std::function<void(nlohmann::json&)>& change) {
    auto document = nlohmann::json::parse(print(table));
    change(document["devices"][0]);
    return parse_tuning(document.dump()).size();
  };
  EXPECT_EQ(with([](auto&) {}), 1U);
  EXPECT_EQ(with([](auto& device) { device["note"] = "more"; }), 1U);
  EXPECT_EQ(with([](auto& device) { device["profile"] = "h300"; }), 0U);
  EXPECT_EQ(with([](auto& device) { device["gemm"][0]["tile"] = "512x512"; }), 0U);
  EXPECT_EQ(with([](auto& device) { device["gemm"][0]["problem"]["sparse"] = true; }), 0U);
  EXPECT_EQ(with([](auto& device) { device["gemm"][0]["problem"]["accumulation"] = "exact"; }), 0U);
}

TEST(TuningTable, AddingKeepsWhatIsThereAndTargetsAreTold) {
  TuningTable own, other;
  add(own, rowwise(512), "128x128");
  add(other, rowwise(512), "128x224");
  add(other, rowwise(1024), "128x224");
  EXPECT_EQ(own.add(other), 1U);
  const GemmTuning tuning = own.choices(h200);
  EXPECT_EQ(tile_of(rowwise(512), &tuning), "128x128");
  EXPECT_EQ(tile_of(rowwise(1024), &tuning), "128x224");
  EXPECT_EQ(own.of_target("sm_90a").size(), 2U);
  EXPECT_TRUE(own.of_target("sm_100a").empty());
}

}  // namespace
}  // namespace mxjit::configure
