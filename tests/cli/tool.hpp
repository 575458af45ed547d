// Runs the built program in a folder of its own, and says what it did.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace mxjit::test {

struct Ran {
  int status = -1;  // exit status; 128 + signal when one ended it
  std::string out, err;

  nlohmann::json json() const;  // what stdout holds; fails the test when it is no JSON
};

struct How {
  std::map<std::string, std::string> env = {};     // added to a clean environment
  std::optional<std::uint64_t> largest_file = {};  // RLIMIT_FSIZE of the program, in bytes
  bool stdout_full = false;                        // stdout is /dev/full
  bool terminal = false;                           // stderr is a terminal; Ran::err is what it showed
  std::filesystem::path program = MXJIT_TOOL;      // another copy of it
  std::optional<unsigned> user = {};  // to run as, with the group of that number; for the superuser
  /// Asked again and again while the program runs: once true, the program is killed (SIGKILL).
  std::function<bool()> kill_when = {};
};

/// A fixture with a private folder, which is HOME and the working directory of the program.
class ToolTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Ran tool(const std::vector<std::string>& args, const How& how = {});

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& bytes) const;
  std::string read(const std::string& name) const;
  bool exists(const std::string& name) const { return std::filesystem::exists(path(name)); }
  /// Names in the private folder: what a run left behind.
  std::set<std::string> names() const;
  /// Why nothing can be compiled here, or empty.
  std::string why_no_nvrtc();
  bool has_gpu();

 private:
  std::filesystem::path folder_;
};

}  // namespace mxjit::test
