// What a miss says: the nearest entry, the fields that differ, the line that helps.
#include <gtest/gtest.h>

#include "mxjit/error.hpp"
#include "support.hpp"

namespace mxjit::cache {
namespace {

using test::FakeCompiler;
using test::Folder;
using test::kernel;
using test::rooted;

class ExplainTest : public testing::Test {
 protected:
  Cache open(bool forbid = false) const {
    Options options = rooted(folder_.root());
    options.forbid_compile = forbid;
    return Cache(options, {nullptr, compiler_});
  }
  Folder folder_;
  std::shared_ptr<FakeCompiler> compiler_ = std::make_shared<FakeCompiler>();
};

TEST_F(ExplainTest, HitNamesLayerAndBuild) {
  Cache cache = open();
  cache.get(kernel());
  Explanation told = cache.explain(kernel());
  EXPECT_TRUE(told.hit);
  EXPECT_EQ(told.layer, "memory");
  EXPECT_EQ(told.key, to_hex(codegen::key(kernel())));
  told = open().explain(kernel());
  EXPECT_EQ(told.layer, folder_.root().string());
  EXPECT_EQ(told.build, "13.0.88");
}

TEST_F(ExplainTest, EmptyCacheHasNoNearest) {
  const Explanation told = open().explain(kernel());
  EXPECT_FALSE(told.hit);
  EXPECT_EQ(told.layer, "");
  EXPECT_EQ(told.nearest_key, "");
  EXPECT_TRUE(told.differs.empty());
  EXPECT_NE(told.reason, "");
  EXPECT_FALSE(test::fs::exists(folder_.root()));
}

TEST_F(ExplainTest, NearestIsTheOneWithFewestDifferences) {
  Cache cache = open();
  codegen::KernelDescriptor far = kernel(1, "sm_100a");
  far.configuration.constants["twice"] = false;
  cache.get(far);
  cache.get(kernel(2));
  codegen::KernelDescriptor other_template = kernel(0);
  other_template.configuration.kernel = "tiny/other";
  cache.get(other_template);
  Explanation told = open().explain(kernel(0));
  EXPECT_FALSE(told.hit);
  EXPECT_EQ(told.nearest_key, to_hex(codegen::key(kernel(2))));
  EXPECT_EQ(told.differs, std::vector<std::string>{"index"});
  EXPECT_EQ(told.nearest_layer, folder_.root().string());
  codegen::KernelDescriptor asked = kernel(2, "sm_120a");
  asked.configuration.threads = 256;
  asked.configuration.constants.erase("columns");
  EXPECT_EQ(open().explain(asked).differs, (std::vector<std::string>{"target", "threads", "columns"}));
}

TEST_F(ExplainTest, OtherBuildInTheRootIsNamed) {
  open().get(kernel());
  compiler_->name = "compiler-2";
  const Explanation told = open().explain(kernel());
  EXPECT_FALSE(told.hit);
  EXPECT_EQ(told.differs, std::vector<std::string>{"build"});
  EXPECT_NE(told.reason.find("13.0.88"), std::string::npos);
}

TEST_F(ExplainTest, RefusedEntryIsNamedAndLeftAlone) {
  open().get(kernel());
  const auto entry = test::only_entry(folder_.root());
  test::write_bytes(entry, "junk");
  const Explanation told = open().explain(kernel());
  EXPECT_FALSE(told.hit);
  EXPECT_NE(told.reason.find(entry.string()), std::string::npos);
  EXPECT_EQ(test::read_bytes(entry), "junk");
}

TEST_F(ExplainTest, ChangesNothing) {
  Cache cache = open();
  cache.explain(kernel());
  EXPECT_EQ(cache.counters().memory_hits + cache.counters().root_hits + cache.counters().compiles, 0U);
  EXPECT_EQ(cache.get(kernel())->cubin, test::expected_cubin(kernel()));
}

TEST_F(ExplainTest, ForbiddenMissSaysEverything) {
  open().get(kernel(1));
  Cache cache = open(true);
  try {
    cache.get(kernel(0), R"({"op":"quantize","name":"it's"})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_forbidden);
    const std::string text = error.what();
    const std::string expected[] = {
        "sm_90a",
        R"({"op":"quantize","name":"it's"})",
        codegen::print(kernel(0)),
        to_hex(codegen::key(kernel(0))),
        to_hex(codegen::key(kernel(1))),
        "differs in index",
        "mxjit prewarm --problems /dev/stdin --arch sm_90a --cache '" + folder_.root().string() +
            R"(' <<< '{"op":"quantize","name":"it'\''s"}')",
    };
    for (const std::string& part : expected)
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(compiler_->compiles, 1);
  EXPECT_EQ(cache.find(kernel(0)), nullptr);
}

TEST_F(ExplainTest, A36BundleForAnotherTargetSaysSo) {
  Cache builder = open();
  builder.get(kernel(0, "sm_100a"));
  const std::string bundle = folder_.path() / "b";
  builder.export_bundle(bundle);
  Options options;
  options.layers = {bundle};
  options.forbid_compile = true;
  try {
    Cache(options, {nullptr, compiler_}).get(kernel(0, "sm_90a"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("no entry for sm_90a"), 0U) << error.what();
    EXPECT_NE(std::string(error.what()).find("differs in target"), std::string::npos);
  }
}

}  // namespace
}  // namespace mxjit::cache
