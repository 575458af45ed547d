#include "problem/fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mxjit/error.hpp"

namespace mxjit::problem {

using nlohmann::json;

void fail(const std::string& pointer, std::string_view expected, std::string_view got) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: expected {}, got {}", pointer.empty() ? "document" : pointer, expected, got),
              pointer);
}

Fields::Fields(const json& object, std::string pointer, std::initializer_list<std::string_view> allowed)
    : object_(object), pointer_(std::move(pointer)) {
  if (!object.is_object()) fail(pointer_, "an object", describe(object));
  for (const auto& [name, value] : object.items()) {
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      fail(at(name), fmt::format("no such field; known here: {}", fmt::join(allowed, ", ")),
           describe(json(name)));
    }
  }
}

const json* Fields::find(std::string_view name) const {
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

const json* Fields::find_set(std::string_view name) const {
  const json* value = find(name);
  return value != nullptr && value->is_null() ? nullptr : value;
}

const json& Fields::need(std::string_view name) const {
  const json* value = find(name);
  if (value == nullptr) fail(at(name), "this field, it is required", "none");
  return *value;
}

std::int64_t Fields::need_integer(std::string_view name, std::int64_t low, std::int64_t high) const {
  return read_integer(need(name), at(name), low, high);
}

bool Fields::flag(std::string_view name, bool otherwise) const {
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) fail(at(name), "true or false", describe(*value));
  return value->get<bool>();
}

double Fields::number(std::string_view name, double otherwise) const {
  const json* value = find(name);
  return value == nullptr ? otherwise : read_number(*value, at(name));
}

std::int64_t read_integer(const json& value, const std::string& pointer, std::int64_t low,
                          std::int64_t high) {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  if (value.is_number_integer()) {
    const bool fits =
        !value.is_number_unsigned() || value.get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
    if (fits && value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high)
      return value.get<std::int64_t>();
  }
  const std::string range = high == largest ? fmt::format("an integer, at least {}", low)
                                            : fmt::format("an integer from {} to {}", low, high);
  fail(pointer, range, describe(value));
}

double read_number(const json& value, const std::string& pointer) {
  if (!value.is_number()) fail(pointer, "a number", describe(value));
  return value.get<double>();
}

std::string read_string(const json& value, const std::string& pointer) {
  if (!value.is_string()) fail(pointer, "a string", describe(value));
  return value.get<std::string>();
}

}  // namespace mxjit::problem
