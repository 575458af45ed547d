#include "mxjit/files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/file_system.hpp"
#include "mxjit/error.hpp"
#include "problem/trace.hpp"

namespace mxjit::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_text = 64U << 20U;

[[noreturn]] void refuse(const std::string& argument, const fs::path& path, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} \"{}\": {}", argument, path.string(), why),
              argument);
}

// Calls `read` and puts the file in front of what it throws.
template <class Read>
auto named(const fs::path& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("\"{}\": {}", path.string(), error.what()), error.argument());
  }
}

}  // namespace

void check_input(const fs::path& path, const std::string& argument) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) refuse(argument, path, "there is no such file");
  if (error) refuse(argument, path, error.message());
  if (fs::is_directory(status)) refuse(argument, path, "this is a directory; a file is expected");
  if (access(path.c_str(), R_OK) != 0) refuse(argument, path, std::strerror(errno));
}

std::string read_text(const fs::path& path, const std::string& argument) {
  check_input(path, argument);
  std::error_code error;
  if (const auto size = fs::file_size(path, error); !error && size > largest_text)
    refuse(argument, path, fmt::format("{} bytes; at most {} are read", size, largest_text));
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (stream.bad() || !stream.is_open())
    throw Error(ErrorCode::io,
                fmt::format("\"{}\" could not be read: {}", path.string(), std::strerror(errno)), argument);
  return std::move(text).str();
}

problem::Problem load_problem(const fs::path& path) {
  const std::string text = read_text(path, "PROBLEM");
  return named(path, [&] { return problem::parse(text); });
}

std::vector<problem::Problem> load_trace(const fs::path& path, const std::string& argument) {
  const std::string text = read_text(path, argument);
  return named(path, [&] { return problem::parse_trace(text); });
}

safetensors::File load_tensors(const fs::path& path, const std::string& argument) {
  check_input(path, argument);
  return named(path, [&] { return safetensors::read(path); });
}

void check_output(const fs::path& out, std::initializer_list<fs::path> inputs, const std::string& argument) {
  if (out.empty()) refuse(argument, out, "a file name is expected");
  std::error_code error;
  for (const fs::path& input : inputs) {
    const bool same = out.lexically_normal() == input.lexically_normal() || fs::equivalent(out, input, error);
    if (same)
      refuse(argument, out, fmt::format("this is the input \"{}\"; name another file", input.string()));
  }
  const fs::file_status status = fs::status(out, error);
  if (fs::exists(status) && !fs::is_regular_file(status))
    refuse(argument, out,
           fs::is_directory(status) ? "this is a directory; a file name is expected"
                                    : "this is no regular file, and is left alone");
  const fs::path folder = out.has_parent_path() ? out.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error))
    refuse(argument, out, fmt::format("there is no folder \"{}\"", folder.string()));
}

void write_whole(const fs::path& path, std::string_view bytes) {
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  if (const int error = publish_file(host_files(), folder, path.string(), bytes, beside_prefix); error != 0)
    throw Error(ErrorCode::io,
                fmt::format("\"{}\" could not be written: {}", path.string(), error_text(error)));
}

}  // namespace mxjit::cli
