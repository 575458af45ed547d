// The result of one suite, and its two written forms: SUITE.json and SUITE.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mxjit::bench {

/// What the suite ran on. Empty strings and absent clocks are written as null.
struct Machine {
  std::string gpu;
  std::string driver;            // of the kernel module, "580.159.04"
  std::string cuda;              // that libcuda speaks, "13.0"
  std::string nvrtc;             // "13.0.88"
  std::optional<double> sm_mhz;  // median of readings while the suite ran
  std::optional<double> mem_mhz;
};

/// Rates reached in the same run by the plainest code that moves bytes or multiplies. Absent: not measured.
struct Roofs {
  std::optional<double> copy_gbs;       // read plus written, 1e9 bytes a second
  std::optional<double> copy_fixed_us;  // what a 64 MiB copy costs over its bytes
  std::optional<double> bf16_tflops;
  std::optional<double> fp8_tflops;
  std::optional<double> fp8_promote_tflops;
};

struct Peer {
  std::string name;
  double us = 0;
};

struct Row {
  std::string name;                 // starts with the job: "row", "dual", ...
  std::string problem;              // JSON; empty: null
  std::vector<std::int64_t> shape;  // [M,N], [M,N,K] or [T,N,K,E]
  std::vector<double> samples;      // microseconds, in the order taken
  std::optional<double> bytes;      // device memory: every input and output once
  std::optional<double> flop;
  bool bf16_flop = false;  // the arithmetic roof is bf16's, not FP8's
  std::optional<Peer> peer;
  std::optional<Peer> peer2;
  std::string configuration;  // JSON; empty: null
  bool large = false;         // the input exceeds 512 MiB
  bool correct = false;
  std::string difference;                             // where an incorrect result first differs
  std::vector<std::pair<std::string, double>> extra;  // further fields, such as "over_bare_us"
};

struct Result {
  std::string suite;
  Machine machine;
  Roofs roofs;
  std::vector<Row> rows;
  std::vector<std::string> notes;  // what a reader must know: method, what was left out and why
  std::string digest;              // of kernels/ and src/
};

/// Share of the roof that the row's median reaches: max(bytes / copy roof, FLOP / matrix roof) / time. Absent
/// where the roof was not measured or the row moves nothing.
std::optional<double> of_roof(const Row& row, const Roofs& roofs);

/// The result file, one row a line. Numbers to six significant digits.
std::string to_json(const Result& result);
/// The same for people: machine, roofs, notes and a table.
std::string to_markdown(const Result& result);
/// The table alone, in columns for a terminal.
std::string to_text(const Result& result);

}  // namespace mxjit::bench
