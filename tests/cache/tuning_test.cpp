// The tuning table beside the entries: layers, bundles, and what is no table.
#include <gtest/gtest.h>

#include <fcntl.h>

#include "cache/bundle.hpp"
#include "cache/cache.hpp"
#include "mxjit/error.hpp"
#include "support.hpp"

namespace mxjit::cache {
namespace {

using configure::TuningTable;
using test::Folder;
using test::open;
namespace fs = std::filesystem;

problem::Gemm problem_of(std::int64_t m) {
  problem::Gemm gemm;
  gemm.a.tensor.shape = {m, 1024};
  gemm.b.tensor.shape = {1024, 1024};
  gemm.a.tensor.dtype = gemm.b.tensor.dtype = DType::e4m3;
  return std::get<problem::Gemm>(problem::with_defaults({"", gemm}).op);
}

void tune(Cache& cache, std::int64_t m, int tile) {
  cache.change_tuning([&](TuningTable& table) {
    configure::DeviceTuning& device = table.devices[{"h200", 132}];
    device.gpu = "NVIDIA H200";
    device.gemm[TuningTable::class_of(problem_of(m))] = {problem_of(m), tile, 1.0, 2.0};
  });
}

int tile_of(const TuningTable& table, std::int64_t m) {
  const auto device = table.devices.find({"h200", 132});
  if (device == table.devices.end()) return -1;
  const auto found = device->second.gemm.find(TuningTable::class_of(problem_of(m)));
  return found == device->second.gemm.end() ? -1 : found->second.tile;
}

// Puts `text` in the place of a sound table.
void spoil(const Folder& folder, const std::string& text) {
  Cache cache = open(folder);
  tune(cache, 128, 3);
  test::write_bytes(folder.root() / "tuning.json", text);
}

// The cache says once what is wrong with its table, and has no choices.
void expect_no_table(Cache& cache, const std::string& warning) {
  const test::Warnings warnings;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(cache.tuning()->empty());
  ASSERT_EQ(warnings.count(), 1U);
  EXPECT_NE(warnings.lines()[0].find(warning), std::string::npos) << warnings.lines()[0];
}

TEST(CacheTuning, WhatIsChangedIsReadByTheNextProcess) {
  const Folder folder;
  Cache cache = open(folder);
  EXPECT_TRUE(cache.tuning()->empty());
  tune(cache, 128, 3);
  tune(cache, 256, 4);
  EXPECT_TRUE(cache.tuning()->empty());  // one process, one answer
  Cache next = open(folder);
  EXPECT_EQ(tile_of(*next.tuning(), 128), 3);
  EXPECT_EQ(tile_of(*next.tuning(), 256), 4);
  EXPECT_EQ(next.verify(true).bad.size(), 0U);
  EXPECT_EQ(next.collect(0).entries, 0U);  // it is no entry
  EXPECT_TRUE(fs::exists(folder.root() / "tuning.json"));
  for (const std::string& file : test::files_below(folder.root()))
    EXPECT_EQ(file.find("tmp-"), std::string::npos) << file;
}

TEST(CacheTuning, WhatIsNoTableIsIgnoredWithOneWarningAndReplaced) {
  for (const std::string& text :
       {std::string("{\"format\": 1"), std::string(R"({"format": "1", "devices": []})"), std::string(),
        std::string("\0\xff", 2)}) {
    const Folder folder;
    spoil(folder, text);
    Cache cache = open(folder);
    expect_no_table(cache, "tuning.json");
    ASSERT_EQ(cache.verify(true).bad.size(), 1U);
    EXPECT_EQ(test::read_bytes(folder.root() / "tuning.json"), text);  // whose it is may read it
    tune(cache, 256, 4);
    Cache next = open(folder);
    EXPECT_EQ(tile_of(*next.tuning(), 256), 4);
    EXPECT_EQ(tile_of(*next.tuning(), 128), -1);
    EXPECT_EQ(next.verify(true).bad.size(), 0U);
  }
}

TEST(CacheTuning, OfAnotherFormatIsLeftAloneAndNotChanged) {
  const Folder folder;
  const std::string text = R"({"format": 99, "devices": []})";
  spoil(folder, text);
  Cache cache = open(folder);
  expect_no_table(cache, "of format 99");
  try {
    tune(cache, 128, 3);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(std::string(error.what()).find("of format 99"), std::string::npos) << error.what();
  }
  EXPECT_EQ(test::read_bytes(folder.root() / "tuning.json"), text);
}

TEST(CacheTuning, AFolderInItsPlaceIsNoTableEither) {
  const Folder folder;
  fs::create_directories(folder.root() / "tuning.json" / "deep");
  fs::permissions(folder.root(), fs::perms::owner_all);
  const test::Warnings warnings;
  Cache cache = open(folder);
  EXPECT_TRUE(cache.tuning()->empty());
  EXPECT_EQ(warnings.count(), 1U);
  tune(cache, 128, 3);
  Cache next = open(folder);
  EXPECT_EQ(tile_of(*next.tuning(), 128), 3);
}

TEST(CacheTuning, AFullDiskIsAnErrorAndLeavesTheTable) {
  const Folder folder;
  Cache first = open(folder);
  tune(first, 128, 3);
  test::FaultyFiles files(
      [](test::Call call, const std::string&) { return call == test::Call::write ? -ENOSPC : 0; });
  Cache cache = open(folder, std::make_shared<test::FakeCompiler>(), &files);
  try {
    tune(cache, 128, 5);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(std::string(error.what()).find("tuning.json"), std::string::npos) << error.what();
  }
  Cache next = open(folder);
  EXPECT_EQ(tile_of(*next.tuning(), 128), 3);
}

TEST(CacheTuning, TheRootGoesBeforeLayersInTheirOrder) {
  const Folder root, layer, last;
  Cache in_root = open(root), in_layer = open(layer), in_last = open(last);
  tune(in_root, 128, 1);
  tune(in_layer, 128, 2);
  tune(in_layer, 256, 3);
  tune(in_last, 256, 4);
  tune(in_last, 512, 5);
  const fs::path bundle = root.path() / "last.bundle";
  EXPECT_EQ(in_last.export_bundle(bundle).tuned, 2U);
  Options options = test::rooted(root.root());
  options.layers = {layer.root(), bundle};
  Cache cache(options, {nullptr, std::make_shared<test::FakeCompiler>()});
  EXPECT_EQ(tile_of(*cache.tuning(), 128), 1);
  EXPECT_EQ(tile_of(*cache.tuning(), 256), 3);
  EXPECT_EQ(tile_of(*cache.tuning(), 512), 5);
}

TEST(CacheTuning, BundlesCarryItAndImportsAddIt) {
  const Folder from, to;
  Cache source = open(from);
  source.get(test::kernel(0));
  const fs::path plain = from.path() / "plain.bundle", tuned = from.path() / "tuned.bundle",
                 again = from.path() / "again.bundle", other = from.path() / "other.bundle";
  EXPECT_EQ(source.export_bundle(plain).tuned, 0U);
  tune(source, 128, 3);
  tune(source, 256, 4);
  EXPECT_EQ(source.export_bundle(tuned).tuned, 2U);
  EXPECT_EQ(source.export_bundle(again).tuned, 2U);
  EXPECT_EQ(test::read_bytes(tuned), test::read_bytes(again));
  EXPECT_NE(test::read_bytes(tuned), test::read_bytes(plain));
  EXPECT_EQ(source.export_bundle(other, "sm_100a").tuned, 0U);
  EXPECT_EQ(read_manifest(host_files(), tuned).size(), 1U);

  Cache target = open(to);
  tune(target, 128, 7);
  const Transfer done = target.import_bundle(tuned);
  EXPECT_EQ(done.entries, 1U);
  EXPECT_EQ(done.tuned, 1U);
  EXPECT_TRUE(done.bad.empty());
  Cache next = open(to);
  EXPECT_EQ(tile_of(*next.tuning(), 128), 7);  // its own stays
  EXPECT_EQ(tile_of(*next.tuning(), 256), 4);
  EXPECT_EQ(target.import_bundle(plain).tuned, 0U);
}

TEST(CacheTuning, ABundleWithAForeignTableStillHasItsKernels) {
  const Folder folder;
  test::FakeCompiler compiler;
  const std::string image = serialize(make_entry(test::kernel(0), compiler.compile(test::kernel(0))));
  const fs::path bundle = folder.path() / "b.bundle";
  test::write_bytes(bundle, make_bundle({image}, R"({"format": 99})"));
  Options options;
  options.layers = {bundle};
  options.forbid_compile = true;
  const test::Warnings warnings;
  Cache cache(options, {nullptr, std::make_shared<test::FakeCompiler>()});
  EXPECT_TRUE(cache.tuning()->empty());
  EXPECT_EQ(warnings.count(), 1U);
  EXPECT_NE(cache.get(test::kernel(0)), nullptr);
  Cache importer = open(folder);
  const Transfer done = importer.import_bundle(bundle);
  EXPECT_EQ(done.entries, 1U);
  ASSERT_EQ(done.bad.size(), 1U);
  EXPECT_NE(done.bad[0].reason.find("format"), std::string::npos) << done.bad[0].reason;
}

// Two that change at the same time: no half of a table, and with locks neither loses the other's.
TEST(CacheTuning, ChangesOfManyProcessesAllStay) {
  const Folder folder;
  open(folder).get(test::kernel(0));
  const auto statuses = test::run_children(6, [&](int index) {
    Cache cache = open(folder);
    for (int i = 0; i < 5; ++i) tune(cache, 64 * (1 + 5 * index + i), index % 4);
    return 0;
  });
  for (const int status : statuses) EXPECT_EQ(status, 0);
  Cache next = open(folder);
  for (int index = 0; index < 6; ++index)
    for (int i = 0; i < 5; ++i) EXPECT_EQ(tile_of(*next.tuning(), 64 * (1 + 5 * index + i)), index % 4);
}

}  // namespace
}  // namespace mxjit::cache
