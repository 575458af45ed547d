#include "codegen/descriptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "codegen/target.hpp"
#include "mxjit/error.hpp"

namespace mxjit::codegen {
namespace {

using configure::Configuration;
using configure::Constant;
using Json = nlohmann::json;

[[noreturn]] void refuse(std::string_view field, std::string_view expected, std::string_view got) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("kernel descriptor {}: expected {}, got {}", field, expected, got),
              std::string(field));
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_identifier(std::string_view text) {
  if (text.empty() || !is_letter(text.front())) return false;
  for (const char c : text) {
    if (!is_letter(c) && !is_digit(c)) return false;
  }
  return true;
}

// Identifiers joined by `separator`, such as "quantize/mx_dual" or "Rounding::rceil".
bool is_joined(std::string_view text, std::string_view separator) {
  for (std::size_t at = 0;;) {
    const std::size_t next = text.find(separator, at);
    if (!is_identifier(text.substr(at, next - at))) return false;
    if (next == std::string_view::npos) return true;
    at = next + separator.size();
  }
}

void check_range(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) {
    refuse(field, fmt::format("an integer from {} to {}", low, high), fmt::format("{}", value));
  }
}

void check(const KernelDescriptor& descriptor) {
  const Configuration& configuration = descriptor.configuration;
  if (!is_joined(configuration.kernel, "/")) {
    refuse("/kernel", "the name of a template, such as \"quantize/mx_dual\"",
           fmt::format("\"{}\"", configuration.kernel));
  }
  for (const auto& [name, value] : configuration.constants) {
    const std::string field = "/constants/" + name;
    if (!is_identifier(name)) refuse(field, "an identifier as name", fmt::format("\"{}\"", name));
    if (name == "threads" || name == "shared_bytes" || name == "cluster") {
      refuse(field, "a name that Config does not hold already", fmt::format("\"{}\"", name));
    }
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && !is_joined(*text, "::")) {
      refuse(field, "the name of an enumerator", fmt::format("\"{}\"", *text));
    }
  }
  check_range("/threads", configuration.threads, 1, 1024);
  check_range("/min_blocks", configuration.min_blocks, 1, 32);
  check_range("/shared_bytes", configuration.shared_bytes, 0, 1 << 20);
  check_range("/cluster", configuration.cluster, 1, 16);
  if (to_string(parse_target(descriptor.target)) != descriptor.target) {
    refuse("/target", "a name such as \"sm_90a\"", fmt::format("\"{}\"", descriptor.target));
  }
}

std::string print(const Constant& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  return fmt::format("\"{}\"", std::get<std::string>(value));  // an identifier: nothing to escape
}

std::int64_t integer(std::string_view field, const Json& value) {
  if (!value.is_number_integer()) refuse(field, "an integer", value.dump());
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    refuse(field, "an integer of 64 bits", value.dump());
  }
  return value.get<std::int64_t>();
}

int small_integer(std::string_view field, const Json& value) {
  const std::int64_t wide = integer(field, value);
  check_range(field, wide, 0, std::numeric_limits<int>::max());
  return static_cast<int>(wide);
}

std::string name(std::string_view field, const Json& value) {
  if (!value.is_string()) refuse(field, "a string", value.dump());
  return value.get<std::string>();
}

Constant constant(const std::string& field, const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return value.get<std::string>();
  return integer(field, value);
}

// Refuses what a tree of values would hide or could not hold: repeated fields, and depth.
Json parse_strictly(std::string_view text) {
  std::vector<std::set<std::string>> fields;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (depth > 2) refuse("", "values nested at most twice", "deeper ones");
      fields.emplace_back();
    } else if (event == Json::parse_event_t::object_end || event == Json::parse_event_t::array_end) {
      fields.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto field = value.get<std::string>();
      if (!fields.back().insert(field).second) refuse("/" + field, "each field once", "it twice");
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& error) {
    refuse("", "JSON", error.what());
  }
}

}  // namespace

std::string print(const KernelDescriptor& descriptor) {
  check(descriptor);
  const Configuration& configuration = descriptor.configuration;
  std::string constants;
  for (const auto& [field, value] : configuration.constants) {
    if (!constants.empty()) constants += ',';
    constants += fmt::format("\"{}\":{}", field, print(value));
  }
  return fmt::format(
      R"({{"cluster":{},"constants":{{{}}},"kernel":"{}","min_blocks":{},"schema":{},"shared_bytes":{},"target":"{}","threads":{}}})",
      configuration.cluster, constants, configuration.kernel, configuration.min_blocks, descriptor_schema,
      configuration.shared_bytes, descriptor.target, configuration.threads);
}

KernelDescriptor parse_descriptor(std::string_view json) {
  const Json document = parse_strictly(json);
  if (!document.is_object()) refuse("", "an object", document.type_name());
  static constexpr std::array<std::string_view, 8> known = {"cluster", "constants",    "kernel", "min_blocks",
                                                            "schema",  "shared_bytes", "target", "threads"};
  for (const auto& [field, value] : document.items()) {
    if (std::find(known.begin(), known.end(), field) == known.end())
      refuse("/" + field, fmt::format("one of {}", fmt::join(known, ", ")), "it");
  }
  for (const std::string_view field : known) {
    if (!document.contains(field)) refuse("/" + std::string(field), "a value", "none");
  }
  if (integer("/schema", document["schema"]) != descriptor_schema) {
    refuse("/schema", fmt::format("{}", descriptor_schema), document["schema"].dump());
  }
  KernelDescriptor descriptor;
  Configuration& configuration = descriptor.configuration;
  const Json& constants = document["constants"];
  if (!constants.is_object()) refuse("/constants", "an object", constants.type_name());
  for (const auto& [field, value] : constants.items()) {
    configuration.constants.emplace(field, constant("/constants/" + field, value));
  }
  configuration.kernel = name("/kernel", document["kernel"]);
  configuration.threads = small_integer("/threads", document["threads"]);
  configuration.min_blocks = small_integer("/min_blocks", document["min_blocks"]);
  configuration.shared_bytes = small_integer("/shared_bytes", document["shared_bytes"]);
  configuration.cluster = small_integer("/cluster", document["cluster"]);
  descriptor.target = name("/target", document["target"]);
  check(descriptor);
  return descriptor;
}

}  // namespace mxjit::codegen
