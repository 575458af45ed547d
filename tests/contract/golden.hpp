// The golden cases: files made by other people's code, in the folder that MXJIT_GOLDENS names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "safetensors/host_tensor.hpp"

namespace mxjit::contract {

/// The folder of the cases, empty where MXJIT_GOLDENS is not set.
std::filesystem::path goldens();
/// Names of the cases that ship with the project's test plan, so that each is a test of its own.
const std::vector<std::string>& golden_names();

std::string read_text(const std::filesystem::path& path);

/// How expect.json says that outputs are compared.
struct Comparison {
  enum class Kind { bytes, values, close } kind = Kind::bytes;
  double tolerance = 0.0;  // for close: of the relative Frobenius norm
};
Comparison read_comparison(const std::filesystem::path& path);

/// What differs between an output and the golden tensor; empty where nothing does. "bytes" folds the sign of
/// an e4m3 NaN (both are NaN, ours is 0x7F) and takes any NaN for a NaN scale.
std::string difference(const HostTensor& output, const HostTensor& expected, const Comparison& comparison);

/// Runs one case. Adds a test failure for everything that differs.
void check_case(const std::filesystem::path& folder);

}  // namespace mxjit::contract
