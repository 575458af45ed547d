#include "problem/json_text.hpp"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "mxjit/error.hpp"

namespace mxjit::problem {

using nlohmann::json;

namespace {

// Shortens at a character boundary and keeps a message printable whatever the text held.
std::string shorten(std::string text, std::size_t limit) {
  if (text.size() > limit) {
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
    text.resize(limit);
    text += "...";
  }
  return text;
}

std::string ascii_only(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) >= 0x80 || static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return text;
}

// Walks the text before any value is built; the first fault stops the parser.
class Inspector : public nlohmann::json_sax<json> {
 public:
  explicit Inspector(std::string_view what) : what_(what) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    if (!level.keys.insert(name).second) {
      const std::string pointer = join_pointer(path(), name);
      return stop(fmt::format("{}: the key appears twice in one object; each may appear once", pointer),
                  pointer);
    }
    level.key = name;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    std::string text = error.what();
    if (const auto end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
    return stop(fmt::format("{}: expected one JSON value in UTF-8, got a {}", what_,
                            shorten(ascii_only(std::move(text)), 300)),
                {});
  }

  const std::string& message() const { return message_; }
  const std::string& pointer() const { return pointer_; }

 private:
  struct Level {
    bool object = false;
    std::set<std::string> keys;
    std::string key;
    std::size_t index = 0;
  };

  std::string path() const {
    std::string pointer;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) pointer = step(pointer, levels_[i]);
    return pointer;
  }
  static std::string step(const std::string& pointer, const Level& level) {
    return level.object ? join_pointer(pointer, level.key) : fmt::format("{}/{}", pointer, level.index);
  }

  bool value() {
    if (!levels_.empty()) ++levels_.back().index;
    return true;
  }
  bool open(bool object) {
    if (levels_.size() >= static_cast<std::size_t>(kMaxJsonDepth)) {
      const std::string pointer = step(path(), levels_.back());
      return stop(fmt::format("{}: expected at most {} levels of nesting, got more", what_, kMaxJsonDepth),
                  pointer);
    }
    levels_.emplace_back();
    levels_.back().object = object;
    return true;
  }
  bool close() {
    levels_.pop_back();
    return value();
  }
  bool stop(std::string message, std::string pointer) {
    message_ = std::move(message);
    pointer_ = std::move(pointer);
    return false;
  }

  std::string what_;
  std::vector<Level> levels_;
  std::string message_;
  std::string pointer_;
};

}  // namespace

std::string join_pointer(std::string_view pointer, std::string_view key) {
  std::string result(pointer);
  result += '/';
  for (const char c : key) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

std::string describe(const json& value) {
  return shorten(value.dump(-1, ' ', false, json::error_handler_t::replace), 80);
}

json read_json(std::string_view text, std::string_view what) {
  const auto refuse = [](const std::string& message, const std::string& pointer) {
    throw Error(ErrorCode::invalid_argument, message, pointer);
  };
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    refuse(fmt::format("{}: expected UTF-8 without a byte order mark, got one in the first 3 bytes", what),
           {});
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    refuse(fmt::format("{}: expected one JSON value in UTF-8, got an empty text", what), {});
  }
  Inspector inspector(what);
  if (!json::sax_parse(text.begin(), text.end(), &inspector))
    refuse(inspector.message(), inspector.pointer());
  try {
    return json::parse(text.begin(), text.end());
  } catch (const json::exception& error) {  // the inspector has accepted the text, so only resources can fail
    throw Error(ErrorCode::internal, fmt::format("{}: {}", what, error.what()));
  }
}

}  // namespace mxjit::problem
