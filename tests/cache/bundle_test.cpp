// Bundles: the same bytes from the same kernels, used as they are, refused entry by entry.
#include "cache/bundle.hpp"

#include <gtest/gtest.h>

#include <random>

#include "mxjit/error.hpp"
#include "support.hpp"

namespace mxjit::cache {
namespace {

using test::expected_cubin;
using test::FakeCompiler;
using test::Folder;
using test::kernel;
using test::rooted;
namespace fs = std::filesystem;

class BundleTest : public testing::Test {
 protected:
  std::string image(const codegen::KernelDescriptor& descriptor) const {
    FakeCompiler compiler;
    compiler.name = name_;
    compiler.build = build_;
    return serialize(make_entry(descriptor, compiler.compile(descriptor)));
  }
  // A cache that has nothing but the bundle.
  Cache reader(bool forbid = true) const {
    Options options;
    options.layers = {path_};
    options.forbid_compile = forbid;
    return Cache(options, {nullptr, compiler_});
  }
  // A bundle with its manifest altered and signed again, as by somebody who knows the format.
  static std::string resigned(const std::string& bundle, std::string_view from, std::string_view to) {
    std::size_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bundle[8 + i]);
    std::string manifest = bundle.substr(16, length);
    const std::size_t at = manifest.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    manifest.replace(at, from.size(), to);
    std::string head = bundle.substr(0, 8);
    for (int shift = 0; shift < 64; shift += 8) head += static_cast<char>(manifest.size() >> shift);
    head += manifest;
    const Digest digest = sha256(head);
    return head + std::string(digest.begin(), digest.end()) + bundle.substr(16 + length + 32);
  }

  Folder folder_;
  fs::path path_ = folder_.path() / "kernels.bundle";
  std::shared_ptr<FakeCompiler> compiler_ = std::make_shared<FakeCompiler>();
  std::string name_ = "compiler-1", build_ = "13.0.88";
};

TEST_F(BundleTest, A52SameKernelsSameBytes) {
  std::vector<std::string> images;
  for (int i = 0; i < 12; ++i) images.push_back(image(kernel(i)));
  const std::string bundle = make_bundle(images);
  std::mt19937 random(52);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(images.begin(), images.end(), random);
    EXPECT_TRUE(make_bundle(images) == bundle);
  }
  images.push_back(images.front());  // the same entry twice is one entry
  EXPECT_TRUE(make_bundle(images) == bundle);
}

TEST_F(BundleTest, A52ExportsOfTwoRootsAreEqual) {
  std::string bytes[2];
  for (int side = 0; side < 2; ++side) {
    const fs::path root = folder_.path() / ("root" + std::to_string(side));
    Cache cache(rooted(root), {nullptr, compiler_});
    for (int i = 0; i < 6; ++i) cache.get(kernel(side == 0 ? i : 5 - i));
    const fs::path out = folder_.path() / ("out" + std::to_string(side));
    const Transfer done = cache.export_bundle(out);
    EXPECT_EQ(done.entries, 6U);
    EXPECT_TRUE(done.bad.empty());
    bytes[side] = test::read_bytes(out);
    EXPECT_EQ(done.bytes, bytes[side].size());
  }
  EXPECT_TRUE(bytes[0] == bytes[1]);
}

TEST_F(BundleTest, ExportTakesOneTargetWhenAsked) {
  Cache cache(rooted(folder_.root()), {nullptr, compiler_});
  cache.get(kernel(0, "sm_90a"));
  cache.get(kernel(0, "sm_100a"));
  EXPECT_EQ(cache.export_bundle(path_, "sm_100a").entries, 1U);
  EXPECT_EQ(read_manifest(host_files(), path_).front().target, "sm_100a");
}

TEST_F(BundleTest, ManifestTellsWhatIsCoveredWithoutAGpu) {
  test::write_bytes(path_, make_bundle({image(kernel(3))}));
  const auto manifest = read_manifest(host_files(), path_);
  ASSERT_EQ(manifest.size(), 1U);
  EXPECT_EQ(codegen::parse_descriptor(manifest[0].descriptor), kernel(3));
  EXPECT_EQ(manifest[0].key, to_hex(codegen::key(kernel(3))));
  EXPECT_EQ(manifest[0].sha256, to_hex(sha256(image(kernel(3)))));
}

TEST_F(BundleTest, IsUsedWithoutImport) {
  test::write_bytes(path_, make_bundle({image(kernel(0)), image(kernel(1))}));
  Cache cache = reader();
  EXPECT_EQ(cache.get(kernel(1))->cubin, expected_cubin(kernel(1)));
  EXPECT_EQ(cache.counters().layer_hits, 1U);
  EXPECT_EQ(cache.explain(kernel(0)).layer, path_.string());
  EXPECT_EQ(compiler_->compiles, 0);
}

TEST_F(BundleTest, ReplacedBundleHarmsNobodyWhoHasItOpen) {
  test::write_bytes(path_, make_bundle({image(kernel(0)), image(kernel(1))}));
  Cache cache = reader();
  cache.get(kernel(0));
  test::write_bytes(folder_.path() / "new", make_bundle({image(kernel(2))}));
  fs::rename(folder_.path() / "new", path_);
  EXPECT_EQ(cache.get(kernel(1))->cubin, expected_cubin(kernel(1)));
}

TEST_F(BundleTest, OwnBuildThenTheNewest) {
  std::vector<std::string> images;
  for (const char* build : {"12.9.1", "13.1.0", "13.0.88"}) {
    name_ = build_ = build;
    images.push_back(image(kernel()));
  }
  test::write_bytes(path_, make_bundle(images));
  EXPECT_EQ(reader().get(kernel())->build, "13.1.0");
  compiler_->name = "12.9.1";
  EXPECT_EQ(reader(false).get(kernel())->build, "12.9.1");
}

TEST_F(BundleTest, A30EntryOfOtherTemplatesIsRefusedAlone) {
  Entry other = parse_entry(image(kernel(0)));
  other.templates[5] ^= 1;
  other.key = codegen::key(kernel(0), other.templates);
  test::write_bytes(path_, make_bundle({serialize(other), image(kernel(1))}));
  Cache cache(rooted(folder_.root()), {nullptr, compiler_});
  const Transfer done = cache.import_bundle(path_);
  EXPECT_EQ(done.entries, 1U);
  ASSERT_EQ(done.bad.size(), 1U);
  EXPECT_NE(done.bad[0].reason.find("templates"), std::string::npos);
  EXPECT_EQ(cache.get(kernel(1))->cubin, expected_cubin(kernel(1)));
  const Explanation told = reader().explain(kernel(0));
  EXPECT_FALSE(told.hit);
  EXPECT_EQ(told.differs, std::vector<std::string>{"templates"});
}

TEST_F(BundleTest, A30ManifestWithAnEmptyOrWrongHashIsRefused) {
  const std::string bundle = make_bundle({image(kernel(0)), image(kernel(1))});
  const std::string hash = to_hex(sha256(image(kernel(0))));
  for (const std::string& wrong :
       {std::string(), std::string(64, '0'), hash.substr(1), std::string("x") + hash.substr(1)}) {
    test::write_bytes(path_, resigned(bundle, "\"" + hash + "\"", "\"" + wrong + "\""));
    EXPECT_THROW(reader().get(kernel(0)), Error) << wrong;
    EXPECT_EQ(reader().get(kernel(1))->cubin, expected_cubin(kernel(1))) << wrong;
    std::vector<Bad> bad;
    int sound = 0;
    each_image(
        host_files(), path_, [&](const Entry&, const std::string&) { ++sound; }, bad);
    EXPECT_EQ(sound, 1);
    EXPECT_EQ(bad.size(), 1U);
  }
}

TEST_F(BundleTest, A30VersionSuffixesDoNotMatter) {
  build_ = "13.0.88+cu130";
  test::write_bytes(path_, make_bundle({image(kernel())}));
  EXPECT_NE(reader().get(kernel()), nullptr);
}

TEST_F(BundleTest, MissingPayloadIsRefusedAlone) {
  const std::string bundle = make_bundle({image(kernel(0)), image(kernel(1))});
  test::write_bytes(path_, std::string_view(bundle).substr(0, bundle.size() - 10));
  int sound = 0;
  std::vector<Bad> bad;
  each_image(
      host_files(), path_, [&](const Entry&, const std::string&) { ++sound; }, bad);
  EXPECT_EQ(sound, 1);
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_NE(bad[0].reason.find("payload"), std::string::npos);
}

TEST_F(BundleTest, EntryThatIsNotWhatTheManifestSaysIsRefused) {
  const std::string one = make_bundle({image(kernel(0))});
  const std::string key = to_hex(codegen::key(kernel(0))), other = to_hex(codegen::key(kernel(9)));
  test::write_bytes(path_, resigned(one, key, other));
  EXPECT_THROW(reader().get(kernel(9)), Error);
  test::write_bytes(path_, resigned(one, "13.0.88", "13.0.99"));
  EXPECT_THROW(reader().get(kernel(0)), Error);
  test::write_bytes(path_, resigned(one, "\"offset\":0", "\"offset\":18446744073709551615"));
  EXPECT_THROW(reader().get(kernel(0)), Error);
  test::write_bytes(path_, resigned(one, "\"offset\":0", "\"offset\":-1"));
  EXPECT_THROW(reader().get(kernel(0)), Error);
  test::write_bytes(path_, resigned(one, "\"offset\":0", "\"offset\":" + std::string(20000, '[')));
  EXPECT_THROW(reader().get(kernel(0)), Error);
  const std::string deep = std::string(20000, '[') + std::string(20000, ']');
  test::write_bytes(path_, resigned(one, "\"offset\":0", "\"offset\":0,\"more\":" + deep));
  EXPECT_THROW(reader().get(kernel(0)), Error);
  test::write_bytes(path_, resigned(one, "\"entries\":[", "\"entries\":[7,null,{},"));
  EXPECT_NE(reader().get(kernel(0)), nullptr);
}

TEST_F(BundleTest, DamagedBundleIsALayerWithoutEntries) {
  const std::string bundle = make_bundle({image(kernel(0)), image(kernel(1))});
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = bundle;
    if (i % 2 == 0) {
      damaged.resize(random() % bundle.size());
    } else {
      const std::size_t bit = random() % (8 * bundle.size());
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    }
    test::write_bytes(path_, damaged);
    Cache cache = reader();
    for (int k = 0; k < 2; ++k) {
      const auto entry = cache.find(kernel(k));
      ASSERT_TRUE(entry == nullptr || entry->cubin == expected_cubin(kernel(k)));
    }
  }
}

TEST_F(BundleTest, UnusableBundleWarnsOnceAndTheCompilerSteps) {
  test::write_bytes(path_, "no bundle");
  const test::Warnings warnings;
  Cache cache = reader(false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cache.get(kernel(i))->cubin, expected_cubin(kernel(i)));
  EXPECT_EQ(warnings.count(), 1U);
}

TEST_F(BundleTest, ImportIsRepeatable) {
  test::write_bytes(path_, make_bundle({image(kernel(0)), image(kernel(1))}));
  Cache cache(rooted(folder_.root()), {nullptr, compiler_});
  EXPECT_EQ(cache.import_bundle(path_).entries, 2U);
  const Transfer again = cache.import_bundle(path_);
  EXPECT_EQ(again.entries, 0U);
  EXPECT_EQ(again.present, 2U);
  EXPECT_EQ(cache.get(kernel(0))->cubin, expected_cubin(kernel(0)));
  EXPECT_EQ(compiler_->compiles, 0);
  EXPECT_THROW(cache.import_bundle(folder_.path() / "absent"), Error);
  EXPECT_THROW(Cache({}, {nullptr, compiler_}).import_bundle(path_), Error);
}

TEST_F(BundleTest, ExportThatCannotBeWrittenLeavesNothing) {
  Cache(rooted(folder_.root()), {nullptr, compiler_}).get(kernel());
  test::FaultyFiles files(
      [](test::Call call, const std::string&) { return call == test::Call::sync ? -ENOSPC : 0; });
  Cache cache(rooted(folder_.root()), {&files, compiler_});
  fs::create_directory(folder_.path() / "out");
  EXPECT_THROW(cache.export_bundle(folder_.path() / "out" / "b"), Error);
  EXPECT_TRUE(fs::is_empty(folder_.path() / "out"));
  EXPECT_THROW(cache.export_bundle(folder_.path() / "absent" / "b"), Error);
}

}  // namespace
}  // namespace mxjit::cache
