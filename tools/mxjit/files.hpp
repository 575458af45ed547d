// The files a command line names: read with errors that name them, and outputs that endanger no input.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "problem/problem.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::cli {

/// Throws Error(invalid_argument) when `path` is missing, a directory or unreadable; `argument` is what the
/// command line calls it.
void check_input(const std::filesystem::path& path, const std::string& argument);

/// The whole text of a file. Throws as check_input does, and for one larger than 64 MiB.
std::string read_text(const std::filesystem::path& path, const std::string& argument);

/// Parses a problem file; errors name the file and the field.
problem::Problem load_problem(const std::filesystem::path& path);

/// Parses a trace: its problems, each once; errors name the file, the line and the field.
std::vector<problem::Problem> load_trace(const std::filesystem::path& path, const std::string& argument);

/// Reads a safetensors file; errors name the file.
safetensors::File load_tensors(const std::filesystem::path& path, const std::string& argument = "IN");

/// Refuses, as Error(invalid_argument), an output that is one of `inputs` (by name or as the same file behind
/// another name), that exists as something other than a file, or whose folder does not exist.
void check_output(const std::filesystem::path& out, std::initializer_list<std::filesystem::path> inputs,
                  const std::string& argument = "OUT");

/// Writes bytes through a private temporary in the folder of `path`, then renames. Throws Error(io).
void write_whole(const std::filesystem::path& path, std::string_view bytes);

}  // namespace mxjit::cli
