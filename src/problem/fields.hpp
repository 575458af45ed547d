// Reading the fields of a JSON object: every fault becomes an Error that names the field by JSON pointer,
// says what is allowed and what came.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "problem/json_text.hpp"

namespace mxjit::problem {

/// Throws Error(invalid_argument) "pointer: expected ..., got ...".
[[noreturn]] void fail(const std::string& pointer, std::string_view expected, std::string_view got);

/// "a", "b" or "c": the names of `values` as a message lists them.
template <class T>
std::string list_names(std::span<const T> values) {
  std::string text = values.size() > 1 ? "one of " : "";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += '"';
    text += to_string(values[i]);
    text += '"';
  }
  return text;
}

/// An object whose every key is one of `allowed`.
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string pointer, std::initializer_list<std::string_view> allowed);

  /// The field, or null where it is absent.
  const nlohmann::json* find(std::string_view name) const;
  /// The field, or null where it is absent or JSON null.
  const nlohmann::json* find_set(std::string_view name) const;
  /// The field; its absence is an error.
  const nlohmann::json& need(std::string_view name) const;
  /// The field's JSON pointer.
  std::string at(std::string_view name) const { return join_pointer(pointer_, name); }

  std::int64_t need_integer(std::string_view name, std::int64_t low,
                            std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  bool flag(std::string_view name, bool otherwise) const;
  double number(std::string_view name, double otherwise) const;

  template <class T>
  T choose(std::string_view name, std::span<const T> values) const;
  template <class T>
  T choose(std::string_view name, std::span<const T> values, T otherwise) const {
    return find(name) == nullptr ? otherwise : choose(name, values);
  }

 private:
  const nlohmann::json& object_;
  std::string pointer_;
};

std::int64_t read_integer(const nlohmann::json& value, const std::string& pointer, std::int64_t low,
                          std::int64_t high = std::numeric_limits<std::int64_t>::max());
double read_number(const nlohmann::json& value, const std::string& pointer);
std::string read_string(const nlohmann::json& value, const std::string& pointer);

/// The member of `values` whose to_string is the JSON string `value`.
template <class T>
T read_choice(const nlohmann::json& value, const std::string& pointer, std::span<const T> values) {
  if (value.is_string()) {
    for (const T candidate : values) {
      if (value.get_ref<const std::string&>() == to_string(candidate)) return candidate;
    }
  }
  fail(pointer, list_names(values), describe(value));
}

template <class T>
T Fields::choose(std::string_view name, std::span<const T> values) const {
  return read_choice(need(name), at(name), values);
}

}  // namespace mxjit::problem
