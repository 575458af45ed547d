#include "problem/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "mxjit/error.hpp"

namespace mxjit::problem {
namespace {

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

Problem parse_line(std::string_view line, std::size_t number) {
  try {
    return parse(line);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("line {}: {}", number, error.what()), error.argument());
  }
}

}  // namespace

std::vector<Problem> parse_trace(std::string_view text) {
  std::vector<Problem> problems;
  std::set<std::string> seen;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (is_blank(line)) continue;
    Problem problem = parse_line(line, number);
    if (seen.insert(print(problem)).second) problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace mxjit::problem
