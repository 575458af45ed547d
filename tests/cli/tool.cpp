#include "cli/tool.hpp"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace mxjit::test {
namespace {

namespace fs = std::filesystem;

// What the program may take from the environment of the tests: where libraries lie, how sanitizers report.
bool passes(const std::string& variable) {
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "MXJIT_NVRTC", "ASAN_OPTIONS",
                           "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"})
    if (variable.starts_with(std::string(name) + "=")) return true;
  return false;
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// A terminal for the program's stderr; a thread takes what it shows.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    EXPECT_TRUE(master_ >= 0 && ::grantpt(master_) == 0 && ::unlockpt(master_) == 0) << "no terminal";
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    reader_ = std::thread([this] {
      char bytes[512];
      for (ssize_t got = 0; (got = ::read(master_, bytes, sizeof bytes)) > 0;)  // EIO once nobody has it open
        shown_.append(bytes, static_cast<std::size_t>(got));
    });
  }
  int slave() const { return slave_; }
  std::string shown() {
    ::close(slave_);
    reader_.join();
    ::close(master_);
    return shown_;
  }

 private:
  int master_, slave_ = -1;
  std::thread reader_;
  std::string shown_;
};

[[noreturn]] void become(const std::vector<std::string>& args, const std::vector<std::string>& environment,
                         const fs::path& folder, const fs::path& out, const fs::path& err, int terminal,
                         const How& how) {
  const int out_file = ::open(how.stdout_full ? "/dev/full" : out.c_str(), O_CREAT | O_WRONLY, 0600);
  const int err_file = terminal >= 0 ? terminal : ::open(err.c_str(), O_CREAT | O_WRONLY, 0600);
  ::dup2(out_file, STDOUT_FILENO);
  ::dup2(err_file, STDERR_FILENO);
  if (::chdir(folder.c_str()) != 0) std::_Exit(126);
  if (how.largest_file) {
    const rlimit limit{*how.largest_file, *how.largest_file};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(126);
  }
  std::vector<char*> argv, envp;
  argv.reserve(args.size() + 2);
  if (how.user && (::setgroups(0, nullptr) != 0 || ::setgid(*how.user) != 0 || ::setuid(*how.user) != 0))
    std::_Exit(126);
  std::string program = how.program.string();
  argv.push_back(program.data());
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  for (const std::string& variable : environment) envp.push_back(const_cast<char*>(variable.c_str()));
  envp.push_back(nullptr);
  ::execve(program.c_str(), argv.data(), envp.data());
  std::_Exit(127);
}

}  // namespace

nlohmann::json Ran::json() const {
  nlohmann::json document = nlohmann::json::parse(out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << "stdout is no JSON: " << out << "\nstderr: " << err;
  return document;
}

void ToolTest::SetUp() {
  std::string name = (fs::temp_directory_path() / "mxjit-cli-").string() + std::string(6, 'X');
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  folder_ = name;
}

void ToolTest::TearDown() { fs::remove_all(folder_); }

Ran ToolTest::tool(const std::vector<std::string>& args, const How& how) {
  std::vector<std::string> environment = {"HOME=" + folder_.string()};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (passes(*variable) &&
        !how.env.contains(std::string(*variable).substr(0, std::string(*variable).find('='))))
      environment.emplace_back(*variable);
  for (const auto& [name, value] : how.env) environment.push_back(name + "=" + value);

  const fs::path out = folder_.string() + ".out", err = folder_.string() + ".err";
  std::optional<Terminal> terminal;
  if (how.terminal) terminal.emplace();
  const pid_t child = ::fork();
  if (child == 0) become(args, environment, folder_, out, err, terminal ? terminal->slave() : -1, how);
  int status = 0;
  if (how.kill_when) {
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (how.kill_when()) ::kill(child, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } else {
    ::waitpid(child, &status, 0);
  }
  Ran ran{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          how.stdout_full ? "" : text_of(out), terminal ? terminal->shown() : text_of(err)};
  fs::remove(out);
  fs::remove(err);
  return ran;
}

void ToolTest::write(const std::string& name, const std::string& bytes) const {
  std::ofstream stream(path(name), std::ios::binary);
  stream << bytes;
  ASSERT_TRUE(stream.good()) << name;
}

std::string ToolTest::read(const std::string& name) const { return text_of(path(name)); }

std::set<std::string> ToolTest::names() const {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder_)) found.insert(entry.path().filename().string());
  return found;
}

std::string ToolTest::why_no_nvrtc() {
  const nlohmann::json reason = tool({"doctor", "--json"}).json()["nvrtc"]["reason"];
  return reason.is_null() ? std::string() : reason.get<std::string>();
}

bool ToolTest::has_gpu() { return !tool({"doctor", "--json"}).json()["gpus"].empty(); }

}  // namespace mxjit::test
