// JSON text from outside, read with the care it needs: bounded depth, no duplicate keys, no byte order mark.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mxjit::problem {

/// Objects and arrays deeper than this are refused, so that nothing that walks the value can exhaust the
/// stack.
inline constexpr int kMaxJsonDepth = 64;

/// Parses one JSON value in UTF-8. `what` names the text in messages ("problem file"). Throws
/// Error(invalid_argument): argument() is the JSON pointer of a duplicate key or of what nests too deep, and
/// empty where the text is not JSON.
nlohmann::json read_json(std::string_view text, std::string_view what);

/// `pointer` extended by one object key, escaped as JSON pointers are.
std::string join_pointer(std::string_view pointer, std::string_view key);

/// A value in a message: compact JSON, shortened, always valid UTF-8.
std::string describe(const nlohmann::json& value);

}  // namespace mxjit::problem
