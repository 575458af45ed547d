// The entry's file image: what is damaged, cut, relabelled or for another chip is refused.
#include "cache/entry.hpp"

#include <gtest/gtest.h>

#include <random>

#include "mxjit/error.hpp"
#include "support.hpp"

namespace mxjit::cache {
namespace {

Entry sample_entry(int index = 0) {
  test::FakeCompiler compiler;
  return make_entry(test::kernel(index), compiler.compile(test::kernel(index)));
}

std::string refusal(std::string_view image) {
  try {
    parse_entry(image);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    return error.what();
  }
  return {};
}

// Somebody who alters an image and makes its digest right again.
std::string resigned(std::string image) {
  const std::string body = image.substr(0, image.size() - 32);
  const Digest digest = sha256(body);
  return body + std::string(digest.begin(), digest.end());
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(from.size(), to.size());
  return text.replace(at, from.size(), to);
}

TEST(Entry, ReadsWhatItWrites) {
  const Entry entry = sample_entry();
  const std::string image = serialize(entry);
  const Entry read = parse_entry(image, codegen::key(test::kernel()));
  EXPECT_EQ(read.key, entry.key);
  EXPECT_EQ(read.descriptor, codegen::print(test::kernel()));
  EXPECT_EQ(read.target, "sm_90a");
  EXPECT_EQ(read.symbol, "mxjit_tiny_scale_add");
  EXPECT_EQ(read.build, "13.0.88");
  EXPECT_EQ(read.compiler, "compiler-1");
  EXPECT_EQ(read.templates, codegen::templates_digest());
  EXPECT_EQ(read.resources, entry.resources);
  EXPECT_EQ(read.cubin, test::expected_cubin(test::kernel()));
  EXPECT_EQ(serialize(read), image);
  const Entry head = parse_entry_header(std::string_view(image).substr(0, header_end(image)));
  EXPECT_EQ(head.descriptor, entry.descriptor);
}

TEST(Entry, A17EveryTruncationIsRefused) {
  const std::string image = serialize(sample_entry());
  for (std::size_t length = 0; length < image.size(); ++length) {
    ASSERT_NE(refusal(std::string_view(image).substr(0, length)), "") << length;
  }
  EXPECT_NE(refusal(image + "x"), "");
  EXPECT_EQ(refusal(image), "");
}

TEST(Entry, A17EveryFlippedBitIsRefused) {
  const std::string image = serialize(sample_entry());
  std::mt19937 random(17);
  const int flips = test::long_tests() ? 100000 : 3000;
  for (int i = 0; i < flips; ++i) {
    std::string damaged = image;
    const std::size_t bit = random() % (8 * image.size());
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    ASSERT_NE(refusal(damaged), "") << "bit " << bit;
  }
}

TEST(Entry, RandomBytesAreRefused) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = i % 2 == 0 ? "MXJITK1\n" : "";
    const std::size_t size = random() % 200;
    for (std::size_t k = 0; k < size; ++k) bytes += static_cast<char>(random() % (i % 3 == 0 ? 4 : 256));
    ASSERT_NE(refusal(bytes), "");
    ASSERT_NE(refusal(resigned(bytes + std::string(32, 'x'))), "");
  }
}

// Damage that the digest does not tell, as from somebody who relabels entries.
TEST(Entry, RelabelledEntriesAreRefused) {
  const std::string image = serialize(sample_entry());
  EXPECT_EQ(refusal(resigned(image)), "");
  const std::pair<std::string_view, std::string_view> swaps[] = {
      {"\"index\":0", "\"index\":1"},           {"\"target\":\"sm_90a\"", "\"target\":\"sm_90f\""},
      {"\"threads\":128", "\"threads\":256"},   {"\"symbol\":\"mxjit_t", "\"symbol\":\"mxjit_s"},
      {"\"format\":1", "\"format\":2"},         {"\"compiler\":", "\"compiles\":"},
      {"\"registers\":32", "\"registers\":-2"}, {"{\"build\"", "[\"build\""},
  };
  for (const auto& [from, to] : swaps) EXPECT_NE(refusal(resigned(replaced(image, from, to))), "") << to;
}

TEST(Entry, A24A25CubinOfAnotherChipIsRefused) {
  Entry entry = sample_entry();
  entry.cubin = test::expected_cubin(test::kernel(0, "sm_100a"));  // well formed, right symbol
  EXPECT_NE(refusal(serialize(entry)).find("sm_100"), std::string::npos);
}

TEST(Entry, CubinIsLookedInto) {
  const Entry good = sample_entry();
  const auto with = [&](std::vector<std::uint8_t> cubin) {
    Entry entry = good;
    entry.cubin = std::move(cubin);
    return refusal(serialize(entry));
  };
  EXPECT_NE(with({}), "");
  EXPECT_NE(with(test::fake_cubin(90, "other_kernel", "x")).find("mxjit_tiny_scale_add"), std::string::npos);
  std::vector<std::uint8_t> other = good.cubin;
  other[18] = 62;  // x86-64
  EXPECT_NE(with(other).find("machine 62"), std::string::npos);
  other = good.cubin;
  other[4] = 1;  // 32 bits
  EXPECT_NE(with(other), "");
  // Offsets, sizes and counts that lead outside.
  std::mt19937 random(3);
  for (int i = 0; i < 1500; ++i) {
    other = good.cubin;
    for (int k = 0; k < 4; ++k) other[random() % other.size()] = static_cast<std::uint8_t>(random());
    with(other);  // whatever it says, it must not read outside
  }
  for (std::size_t length = 0; length < good.cubin.size(); ++length) {
    EXPECT_NE(with({good.cubin.begin(), good.cubin.begin() + static_cast<std::ptrdiff_t>(length)}), "")
        << length;
  }
}

TEST(Entry, A25RenamedEntryIsRefused) {
  const std::string image = serialize(sample_entry(1));
  EXPECT_THROW(parse_entry(image, codegen::key(test::kernel(0))), Error);
  EXPECT_NO_THROW(parse_entry(image, codegen::key(test::kernel(1))));
}

TEST(Entry, A30EntryOfOtherTemplatesIsRefused) {
  Entry entry = sample_entry();
  entry.templates[0] ^= 1;
  entry.key = codegen::key(test::kernel(), entry.templates);
  const std::string image = serialize(entry);
  EXPECT_EQ(refusal(image), "");  // sound by itself
  EXPECT_THROW(parse_entry(image, entry.key), Error);
}

TEST(Entry, BuildsAreOrderedByNumber) {
  EXPECT_TRUE(is_older("12.9.41", "13.0.88"));
  EXPECT_TRUE(is_older("13.0.88", "13.0.100"));
  EXPECT_TRUE(is_older("9.0", "10.0"));
  EXPECT_TRUE(is_older("13.0", "13.0.1"));
  EXPECT_FALSE(is_older("13.0.88", "13.0.88"));
  EXPECT_FALSE(is_older("13.0.0", "13.0"));
}

}  // namespace
}  // namespace mxjit::cache
