// The descriptor's JSON form: canonical, strict, and independent of the locale.
#include <gtest/gtest.h>

#include <clocale>
#include <limits>
#include <locale>
#include <string>

#include "mxjit/error.hpp"
#include "sample.hpp"

namespace mxjit::codegen {
namespace {

constexpr std::string_view golden =
    R"({"cluster":1,"constants":{"big":1099511627776,"columns":4,"mode":"TinyMode::add","twice":true},)"
    R"("kernel":"tiny/scale_add","min_blocks":2,"schema":1,"shared_bytes":1024,"target":"sm_90a","threads":128})";

std::string refusal(std::string_view json) {
  try {
    parse_descriptor(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << json;
    return error.argument();
  }
  ADD_FAILURE() << "accepted: " << json;
  return "accepted";
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Descriptor, PrintsTheCanonicalForm) { EXPECT_EQ(print(test::sample()), golden); }

TEST(Descriptor, ReadsWhatItPrints) {
  KernelDescriptor descriptor = test::sample();
  EXPECT_EQ(parse_descriptor(print(descriptor)), descriptor);
  descriptor.configuration.constants["low"] = std::numeric_limits<std::int64_t>::min();
  descriptor.configuration.constants["high"] = std::numeric_limits<std::int64_t>::max();
  descriptor.target = "sm_120a";
  EXPECT_EQ(parse_descriptor(print(descriptor)), descriptor);
}

TEST(Descriptor, A28ReorderedFieldsAreTheSameDescriptorAndKey) {
  const std::string_view reordered =
      R"( {"threads": 128, "target": "sm_90a", "schema": 1, "kernel": "tiny/scale_add",
          "constants": {"twice": true, "mode": "TinyMode::add", "columns": 4, "big": 1099511627776},
          "shared_bytes": 1024, "min_blocks": 2, "cluster": 1} )";
  EXPECT_EQ(parse_descriptor(reordered), test::sample());
  EXPECT_EQ(key(parse_descriptor(reordered)), key(test::sample()));
}

TEST(Descriptor, NamesTheFieldThatIsWrong) {
  const std::string text(golden);
  EXPECT_EQ(refusal(replaced(text, "\"cluster\":1", "\"cluster\":0")), "/cluster");
  EXPECT_EQ(refusal(replaced(text, "\"cluster\":1", "\"cluster\":1.0")), "/cluster");
  EXPECT_EQ(refusal(replaced(text, "\"cluster\":1", "\"cluster\":1e0")), "/cluster");
  EXPECT_EQ(refusal(replaced(text, "\"cluster\":1,", "")), "/cluster");
  EXPECT_EQ(refusal(replaced(text, "\"cluster\":1,", "\"cluster\":1,\"cluster\":1,")), "/cluster");
  EXPECT_EQ(refusal(replaced(text, "\"cluster\":1,", "\"cluster\":1,\"path\":\"/tmp\",")), "/path");
  EXPECT_EQ(refusal(replaced(text, "\"schema\":1", "\"schema\":2")), "/schema");
  EXPECT_EQ(refusal(replaced(text, "\"threads\":128", "\"threads\":4096")), "/threads");
  EXPECT_EQ(refusal(replaced(text, "\"threads\":128", "\"threads\":\"128\"")), "/threads");
  EXPECT_EQ(refusal(replaced(text, "\"threads\":128", "\"threads\":18446744073709551615")), "/threads");
  EXPECT_EQ(refusal(replaced(text, "\"columns\":4", "\"columns\":4.5")), "/constants/columns");
  EXPECT_EQ(refusal(replaced(text, "\"columns\":4", "\"columns\":null")), "/constants/columns");
  EXPECT_EQ(refusal(replaced(text, "\"columns\":4", "\"columns\":18446744073709551615")),
            "/constants/columns");
  EXPECT_EQ(refusal(replaced(text, "TinyMode::add", "1; evil()")), "/constants/mode");
  EXPECT_EQ(refusal(replaced(text, "TinyMode::add", "TinyMode::")), "/constants/mode");
  EXPECT_EQ(refusal(replaced(text, "\"columns\":4", "\"threads\":4")), "/constants/threads");
  EXPECT_EQ(refusal(replaced(text, "tiny/scale_add", "../tiny")), "/kernel");
  EXPECT_EQ(refusal(replaced(text, "tiny/scale_add", "/tiny")), "/kernel");
  EXPECT_EQ(refusal(replaced(text, "tiny/scale_add", "tiny\\\"")), "/kernel");
  EXPECT_EQ(refusal(replaced(text, "sm_90a", "90a")), "/target");
  EXPECT_EQ(refusal(replaced(text, "sm_90a", "sm_x")), "target");
}

TEST(Descriptor, RefusesWhatIsNoDescriptor) {
  refusal("");
  refusal("null");
  refusal("[]");
  refusal("{");
  refusal(std::string(golden) + "x");
  refusal(std::string(20000, '['));
  std::string deep = "{\"constants\":";
  for (int i = 0; i < 20000; ++i) deep += "{\"a\":";
  refusal(deep);
  refusal("{\"kernel\":\"\xff\xfe\"}");
}

TEST(Descriptor, PrintRefusesWhatItCouldNotRead) {
  KernelDescriptor descriptor = test::sample();
  descriptor.configuration.constants["a b"] = true;
  EXPECT_THROW(print(descriptor), Error);
  descriptor = test::sample();
  descriptor.configuration.kernel = "quantize/\"x";
  EXPECT_THROW(generate_source(descriptor), Error);
}

// Groups thousands, the way some locales do; needs none to be installed.
struct Grouping : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Descriptor, A48LocaleChangesNothing) {
  const std::string source = generate_source(test::sample());
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
  const std::string c_before = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed
  EXPECT_EQ(print(test::sample()), golden);
  EXPECT_EQ(generate_source(test::sample()), source);
  EXPECT_EQ(parse_descriptor(golden), test::sample());
  std::setlocale(LC_ALL, c_before.c_str());
  std::locale::global(before);
}

}  // namespace
}  // namespace mxjit::codegen
