// Help, options and exit statuses of every command.
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

const std::vector<std::vector<std::string>> commands = {{"run"},
                                                        {"quantize"},
                                                        {"prewarm"},
                                                        {"emit"},
                                                        {"replay"},
                                                        {"explain"},
                                                        {"doctor"},
                                                        {"bench"},
                                                        {"tune"},
                                                        {"cache"},
                                                        {"cache", "ls"},
                                                        {"cache", "stats"},
                                                        {"cache", "verify"},
                                                        {"cache", "gc"},
                                                        {"cache", "rm"},
                                                        {"cache", "export"},
                                                        {"cache", "import"}};

std::vector<std::string> with(std::vector<std::string> args, const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

using Usage = ToolTest;

TEST_F(Usage, EveryCommandHasHelpWithExamples) {
  for (const auto& command : commands) {
    const Ran ran = tool(with(command, {"--help"}));
    EXPECT_EQ(ran.status, 0) << command.back();
    EXPECT_NE(ran.out.find("Example"), std::string::npos) << command.back();
    EXPECT_NE(ran.out.find("mxjit " + command.front()), std::string::npos) << command.back();
    EXPECT_EQ(ran.err, "") << command.back();
    if (command != std::vector<std::string>{"cache"}) {
      EXPECT_NE(ran.out.find("--json"), std::string::npos) << command.back();
      EXPECT_NE(ran.out.find("--cache"), std::string::npos) << command.back();
    }
  }
}

TEST_F(Usage, TopLevelHelpListsEveryCommandThatExists) {
  const Ran ran = tool({"--help"});
  EXPECT_EQ(ran.status, 0);
  for (const auto& command : commands)
    EXPECT_NE(ran.out.find(command.front()), std::string::npos) << command.front();
}

TEST_F(Usage, UnknownOptionsAndCommandsAreErrors) {
  for (const auto& command : commands) {
    const Ran ran = tool(with(command, {"--no-such-option"}));
    EXPECT_EQ(ran.status, 2) << command.back();
    EXPECT_EQ(ran.out, "") << command.back();
    EXPECT_TRUE(ran.err.starts_with("mxjit: error: ")) << ran.err;
  }
  EXPECT_EQ(tool({"no-such-command"}).status, 2);
  EXPECT_EQ(tool({}).status, 2);
  EXPECT_EQ(tool({"cache"}).status, 2);
  EXPECT_EQ(tool({"doctor", "extra"}).status, 2);
}

TEST_F(Usage, UsageErrorsAreJsonToo) {
  const Ran ran = tool({"run", "--json"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.json()["error"]["status"], 2);
  EXPECT_NE(ran.err, "");
}

TEST_F(Usage, VersionIsThreeNumbers) {
  const Ran ran = tool({"--version"});
  EXPECT_EQ(ran.status, 0);
  int major = -1, minor = -1, patch = -1;
  EXPECT_EQ(std::sscanf(ran.out.c_str(), "%d.%d.%d", &major, &minor, &patch), 3) << ran.out;
}

TEST_F(Usage, BadValuesOfOptions) {
  write("p.json", "{}");
  const std::vector<std::vector<std::string>> bad = {
      {"run", "p.json", "i", "o", "--device", "gpu"},
      {"run", "p.json", "i", "o", "--device", "cuda:"},
      {"run", "p.json", "i", "o", "--device", "cuda:-1"},
      {"run", "p.json", "i", "o", "--device", "cuda:1x"},
      {"quantize", "i", "o", "--recipe", "mxfp4"},
      {"quantize", "i", "o"},
      {"prewarm"},
      {"prewarm", "--problems", "p.json", "-j", "0"},
      {"prewarm", "--problems", "p.json", "-j", "two"},
      {"prewarm", "--problems", "p.json", "--arch", "sm_90a,,sm_100a"},
      {"prewarm", "--problems", "p.json", "--profile", "h9000"},
      {"prewarm", "--problems", "p.json", "--trace", "p.json"},
      {"prewarm", "--trace", "none"},
      {"replay"},
      {"replay", "none"},
      {"replay", "p.json"},
      {"replay", "p.json", "--count", "0"},
      {"tune", "p.json"},
      {"doctor", "--cache", ""},
      {"cache", "rm"},
      {"cache", "rm", "--all", "0123456789"},
      {"cache", "gc", "--max-bytes", "many"},
      {"cache", "import", "p.json"},
      {"cache", "import", "none"},
      {"emit", "p.json", "--ptx", "--descriptor"}};
  for (const auto& args : bad) {
    const Ran ran = tool(args);
    EXPECT_EQ(ran.status, 2) << ::testing::PrintToString(args) << ran.err;
    EXPECT_TRUE(ran.err.starts_with("mxjit")) << ran.err;
  }
}

// Where a command takes several, they may be named in any place, behind --problems or not.
TEST_F(Usage, ProblemFilesAreNamedAlike) {
  for (const std::string name : {"m16", "m512"}) {
    nlohmann::json problem = {{"schema", 1}, {"op", "gemm"}};
    problem["a"] = problem["b"] = {{"dtype", "e4m3"}, {"shape", {std::stoi(name.substr(1)), 1024}}};
    write(name + ".json", problem.dump());
  }
  for (const auto& command :
       {std::vector<std::string>{"prewarm", "--arch", "sm_90a"}, {"tune", "--rows", "16"}}) {
    const auto listed = [&](const std::vector<std::string>& files) {
      const Ran ran = tool(with(with(command, files), {"--dry-run", "--json", "--cache", "root"}));
      EXPECT_EQ(ran.status, 0) << ran.err;
      return ran.json();
    };
    const nlohmann::json one = listed({"m16.json"}), both = listed({"m16.json", "m512.json"});
    EXPECT_NE(one, both);
    EXPECT_EQ(listed({"--problems", "m16.json"}), one);
    EXPECT_EQ(listed({"--problems", "m16.json", "m512.json"}), both);
    EXPECT_EQ(listed({"m16.json", "--problems", "m512.json"}), both);
    EXPECT_EQ(tool({command[0], "--dry-run", "--json"}).json()["error"]["argument"], "PROBLEM");
    EXPECT_EQ(tool({command[0], "none.json", "--json"}).json()["error"]["argument"], "PROBLEM");
  }
}

TEST_F(Usage, UnknownLogLevelIsAnError) {
  EXPECT_EQ(tool({"doctor"}, {.env = {{"MXJIT_LOG", "loud"}}}).status, 2);
  EXPECT_EQ(tool({"doctor"}, {.env = {{"MXJIT_LOG", "debug"}}}).status, 0);
}

TEST_F(Usage, OutputThatCannotBeWrittenIsAFailure) {
  EXPECT_EQ(tool({"doctor"}, {.stdout_full = true}).status, 1);
}

TEST_F(Usage, DoctorTellsWhatIsMissingAndSucceeds) {
  const Ran ran = tool({"doctor", "--json"}, {.env = {{"MXJIT_NVRTC", "/nowhere/libnvrtc.so"}}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const auto json = ran.json();
  EXPECT_TRUE(json["nvrtc"]["version"].is_null());
  EXPECT_NE(json["nvrtc"]["reason"].get<std::string>().find("/nowhere/libnvrtc.so"), std::string::npos);
  EXPECT_EQ(json["allows"]["run_cpu"], true);
  EXPECT_EQ(json["allows"]["compile"], false);
  EXPECT_EQ(json["allows"]["prewarm"], false);
}

TEST_F(Usage, DoctorNamesAnUnsafeRoot) {
  std::filesystem::create_directory(path("root"));
  std::filesystem::permissions(path("root"), std::filesystem::perms::all);
  auto json = tool({"doctor", "--json", "--cache", "root"}).json();
  EXPECT_EQ(json["cache"]["root"]["safe"], false);
  EXPECT_NE(json["cache"]["root"]["reason"].get<std::string>().find("world-writable"), std::string::npos);
  json = tool({"doctor", "--json", "--cache", "root"}, {.env = {{"MXJIT_CACHE_TRUST_ROOT", "1"}}}).json();
  EXPECT_EQ(json["cache"]["root"]["safe"], true);
}

TEST_F(Usage, OptionsWinOverTheEnvironment) {
  const How how{.env = {{"MXJIT_CACHE_DIR", path("from-environment").string()}}};
  EXPECT_EQ(tool({"doctor", "--json"}, how).json()["cache"]["root"]["path"],
            path("from-environment").string());
  EXPECT_EQ(tool({"doctor", "--json", "--cache", "option"}, how).json()["cache"]["root"]["path"],
            path("option").string());
}

}  // namespace
}  // namespace mxjit::test
