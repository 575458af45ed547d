// What the program says: results on stdout, errors on stderr, and the exit status that goes with them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "mxjit/error.hpp"
#include "mxjit/statistics.hpp"

namespace mxjit::cli {

/// 0 done, 1 the work failed, 2 bad usage or input, 3 a needed part is missing here.
enum ExitStatus : int { exit_done = 0, exit_failed = 1, exit_bad_usage = 2, exit_part_missing = 3 };

int exit_status(ErrorCode code);

/// Prints one JSON document and a newline on stdout. Text that is not UTF-8 (a file name, say) is replaced,
/// never an error.
void print_json(const nlohmann::ordered_json& document);
/// Prints text on stdout as it is.
void print(std::string_view text);
/// Prints "mxjit: TEXT" and a newline on stderr.
void note(std::string_view text);

/// A "statistics" document: counts, hits by layer, seconds.
nlohmann::ordered_json to_json(const Statistics& statistics);

/// Everything printed reached stdout. Throws Error(io) otherwise (a full disk behind a redirection).
void flush_output();

/// Prints `mxjit COMMAND: error: FIRST LINE` and the details under it on stderr; with `json` also
/// {"error": {"code", "message", "argument", "status"}} on stdout. Returns `status`.
int report_error(std::string_view command, std::string_view code, std::string_view message,
                 std::string_view argument, int status, bool json);

/// Sends the library's log lines of MXJIT_LOG's level (default: warn) and above to stderr. Throws
/// Error(invalid_argument) for an unknown level.
void log_to_stderr();

/// "12.3 MB", "1.02 GB": decimal units.
std::string human_bytes(double bytes);
/// "850 ms", "12.3 s", "3 min 05 s".
std::string human_seconds(double seconds);

}  // namespace mxjit::cli
