// `mxjit bench`: measures the library on this machine and writes the result file (problem file and command
// line are documented with the program).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace mxjit::bench {

struct BenchOptions {
  std::string suite;                     // "dispatch", "compile", "quantize", "gemm", "overlap"
  std::filesystem::path out;             // folder for SUITE.json and SUITE.md; empty: no files
  std::optional<std::string> cache_dir;  // writable cache root; the compile suite always uses a fresh one
  std::string only;                      // an ECMAScript regex: rows whose "name shape" it finds; empty: all
  bool quick = false;                    // fewer shapes and samples: a smoke test, not a measurement
  bool json = false;                     // the result file's JSON on stdout instead of the table
};

/// Runs one suite. Returns 0, or 1 when a result differs from the reference. Throws Error(invalid_argument)
/// for an unknown suite and for an `only` that is no regex or finds no row, Error(unsupported) for a suite of
/// an op that is not executable, Error(unavailable) when a needed part (GPU, NVRTC) is missing here,
/// Error(io) when the files cannot be written.
int bench_command(const BenchOptions& options);

}  // namespace mxjit::bench
