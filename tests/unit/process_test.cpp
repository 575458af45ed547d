// The process around the library: forked, ending, without streams, without a home, of another locale.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <locale>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "cache/support.hpp"
#include "capi/handles.hpp"
#include "compile/nvrtc.hpp"
#include "mxjit/mxjit.h"
#include "problem/problem.hpp"
#include "unit/on_stub.hpp"

namespace mxjit {
namespace {

using driver::stub;
using test::FakeCompiler;
using test::Folder;
using test::row_args;
using test::run_children;
using test::stub_context;
namespace fs = std::filesystem;

constexpr Stream stream = nullptr;
constexpr unsigned too_long = 60;  // seconds, after which a child that hangs is ended

class Process : public ::testing::Test {
 protected:
  void SetUp() override {
    stub().reset();
    driver::stub_api().ctx_set_current(nullptr);
    std::fflush(nullptr);  // a child must not print it again
  }

  // What `body` returns in a child process, or 128 and the signal that ended it.
  static int child(const std::function<int()>& body) {
    return run_children(1, [&](int) {
      ::alarm(too_long);
      return body();
    })[0];
  }
};

// 0 when `call` throws such an error that speaks of a fork.
template <typename Call>
int refused_for_fork(ErrorCode code, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    const bool told = std::string(error.what()).find("fork") != std::string::npos;
    if (error.code() == code && told) return 0;
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "no error\n");
  return 2;
}

TEST_F(Process, A49AChildIsToldThatTheDriverDoesNotSurviveAFork) {
  auto context = stub_context();
  const QuantizePlan plan = context->plan({}, row_args(100, 200));
  const GemmPlan gemm = context->plan(test::rowwise(), test::gemm_args(128, 512, 256));
  context->quantize({}, row_args(100, 200), stream);
  const int result = child([&] {
    const auto lost = ErrorCode::context_lost;
    const auto launches = stub().launches.load();
    int failures = refused_for_fork(lost, [&] { context->quantize({}, row_args(100, 200), stream); });
    failures += refused_for_fork(lost, [&] { context->quantize({}, row_args(7, 7), stream); });
    failures += refused_for_fork(lost, [&] { context->plan({}, row_args(7, 7)); });
    failures += refused_for_fork(lost, [&] { plan.launch(row_args(100, 200), stream); });
    failures += refused_for_fork(
        lost, [&] { context->gemm(test::rowwise(), test::gemm_args(128, 512, 256), stream); });
    failures += refused_for_fork(lost, [&] { gemm.launch(test::gemm_args(128, 512, 256), stream); });
    failures += refused_for_fork(ErrorCode::unavailable, [] { stub_context(); });
    failures +=
        refused_for_fork(ErrorCode::unavailable, [] { driver::DeviceContext::current(driver::stub_api()); });
    {
      mxjit_context handle{std::move(context)};
      mxjit_quantize_args none = MXJIT_QUANTIZE_ARGS_INIT;
      if (mxjit_quantize(&handle, nullptr, &none, stream) != MXJIT_INVALID_ARGUMENT) ++failures;
      if (handle.context->statistics().compiles != 2) ++failures;
    }  // its end gives nothing back to a driver that is not this process's
    if (stub().retained[0] != 1 || stub().launches != launches) ++failures;
    return failures;
  });
  EXPECT_EQ(result, 0);
  context->quantize({}, row_args(100, 200), stream);  // the parent goes on
  plan.launch(row_args(100, 200), stream);
  EXPECT_EQ(stub().launches, 3U);
}

TEST_F(Process, A49AChildForkedDuringACompilationDoesNotWaitForIt) {
  const auto compiler = std::make_shared<FakeCompiler>();
  std::latch compiling(1), release(1);
  compiler->before = [&](const auto&) {
    compiling.count_down();
    release.wait();
  };
  const auto context = stub_context({}, compiler);
  std::jthread slow([&] { context->quantize({}, row_args(100, 200), stream); });
  compiling.wait();
  const int result = child([&] {
    return refused_for_fork(ErrorCode::context_lost,
                            [&] { context->quantize({}, row_args(100, 200), stream); });
  });
  release.count_down();
  EXPECT_EQ(result, 0);
}

TEST_F(Process, A49AForkBeforeTheDriverIsInitialisedIsFine) {
  const Folder folder;
  const auto work = [&] {
    const auto context =
        stub_context(test::rooted(folder.root()), std::make_shared<FakeCompiler>(), test::fresh_api());
    const auto launches = stub().launches.load();
    context->quantize({}, row_args(100, 200), stream);
    return stub().launches == launches + 1 ? 0 : 1;
  };
  EXPECT_EQ(child(work), 0);
  EXPECT_EQ(child([&] { return child(work); }), 0);
  test::only_entry(folder.root());
}

// Threads that compile, load and launch until the process is gone.
struct Busy {
  Busy(const fs::path& root, const driver::Api& api) : compiler(std::make_shared<FakeCompiler>()) {
    compiler->delay = std::chrono::milliseconds(2);
    context = stub_context(test::rooted(root), compiler, api);
    for (int t = 0; t < 4; ++t)
      std::thread([this, t, &api] {
        for (int i = 0;; ++i) {
          QuantizeOptions options;
          options.rounding = static_cast<Rounding>((t + i) % 4);
          options.format = i % 8 < 4 ? DType::e4m3 : DType::e5m2;
          QuantizeArgs args = row_args(1 + i % 3000, 64);
          args.q_row.dtype = options.format;
          context->quantize(options, args, stream);
          if (i % 20 == 19) stub_context({}, compiler, api)->plan(options, args);
          ++rounds;
        }
      }).detach();
    while (rounds < 20) std::this_thread::yield();
  }
  std::shared_ptr<FakeCompiler> compiler;
  std::unique_ptr<Context> context;
  std::atomic<int> rounds{0};
};

TEST_F(Process, ExitFromAnyThreadWhileWorkIsInFlight) {
  for (const bool from_another : {false, true}) {
    for (int i = 0; i < 5; ++i) {
      const Folder folder;
      const int result = child([&] {
        stub().reset();
        const driver::Api& api = test::fresh_api();
        auto& busy = *new Busy(folder.root(), api);
        // Ends after the library's own statics, should it have any that end.
        static std::unique_ptr<Context> owned = stub_context({}, busy.compiler, api);
        struct Last {
          ~Last() {
            try {
              owned->quantize({}, row_args(100, 200), stream);
            } catch (const std::exception&) {
              ::_exit(2);
            }
          }
        };
        static const Last last;
        if (from_another) {
          std::jthread([] { std::exit(7); }).join();
        } else {
          while (busy.rounds < 40) std::this_thread::yield();
          std::exit(7);
        }
        return 1;
      });
      EXPECT_EQ(result, 7);
    }
  }
}

TEST_F(Process, ThreadsMayEndWithAContextOfTheirOwn) {
  for (int i = 0; i < 4; ++i)
    std::jthread([] {
      thread_local const std::unique_ptr<Context> own = stub_context();
      own->quantize({}, row_args(100, 200), stream);
      EXPECT_EQ(mxjit_quantize(nullptr, nullptr, nullptr, stream), MXJIT_INVALID_ARGUMENT);
    }).join();
  EXPECT_EQ(stub().launches, 4U);
  EXPECT_EQ(stub().retained[0], 0);
}

// Through the C ABI, the log included, which writes to the closed streams.
TEST_F(Process, ClosedStandardStreams) {
  const Folder folder;
  const int result = child([&] {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    const auto noise = [](void*, std::int32_t, const char*) {
      for (int fd = 0; fd < 3; ++fd) {
        if (::write(fd, "noise", 5) > 0) ::_exit(9);
      }
    };
    mxjit_set_log_callback(noise, nullptr, MXJIT_LOG_DEBUG);
    mxjit_context handle{
        stub_context(test::rooted(folder.root()), std::make_shared<FakeCompiler>(), test::fresh_api())};
    mxjit_quantize_args args = MXJIT_QUANTIZE_ARGS_INIT;
    args.x = {reinterpret_cast<void*>(0x10000000), MXJIT_BF16, 2, {64, 64, 0, 0}, 0};
    args.q_row = {reinterpret_cast<void*>(0x20000000), MXJIT_E4M3, 2, {64, 64, 0, 0}, 0};
    args.s_row = {reinterpret_cast<void*>(0x30000000), MXJIT_E8M0, 2, {64, 2, 0, 0}, 0};
    if (mxjit_quantize(&handle, nullptr, &args, stream) != MXJIT_SUCCESS) return 1;
    return handle.context->statistics().publishes == 1 ? 0 : 2;
  });
  EXPECT_EQ(result, 0);
  test::only_entry(folder.root());
  EXPECT_TRUE(cache::Cache(test::rooted(folder.root()), {}).verify(true).bad.empty());
}

TEST_F(Process, ChildrenThatNobodyWaitsFor) {
  const Folder folder;
  const int result = child([&] {
    std::signal(SIGCHLD, SIG_IGN);
    const auto compiler = compile::nvrtc_compiler();
    const bool real = !compiler->identity().empty();
    const auto context = stub_context(test::rooted(folder.root()),
                                      real ? compiler : std::make_shared<FakeCompiler>(), test::fresh_api());
    context->quantize({}, row_args(100, 200), stream);
    const Statistics told = context->statistics();
    return told.compiles == 1 && told.publishes == 1 ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
}

TEST_F(Process, A21WithoutAHomeKernelsStayInMemory) {
  const Folder folder;
  const int result = child([&] {
    ::clearenv();
    if (::chdir(folder.path().c_str()) != 0) return 3;
    const auto context =
        stub_context(cache::Options::from_environment(), std::make_shared<FakeCompiler>(), test::fresh_api());
    context->quantize({}, row_args(100, 200), stream);
    const Statistics told = context->statistics();
    return told.compiles == 1 && told.publishes + told.publish_failures == 0 ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// Everything that can be done wrong, with and without a sink.
int misuse(const fs::path& folder) {
  const driver::Api& own = test::fresh_api();
  int errors = 0;
  const auto expect = [&](const auto& call) {
    try {
      call();
    } catch (const Error&) {
      ++errors;
    }
  };
  const auto on = [&](const cache::Options& options, std::shared_ptr<compile::Compiler> compiler) {
    expect(
        [&] { stub_context(options, std::move(compiler), own)->quantize({}, row_args(100, 200), stream); });
  };
  const auto fake = std::make_shared<FakeCompiler>();
  const auto failing = std::make_shared<FakeCompiler>();
  failing->before = [](const auto&) { throw Error(ErrorCode::compile_failed, "no"); };
  // Roots: unsafe, not writable, damaged; layers: missing, no bundle.
  fs::create_directory(folder / "open");
  fs::permissions(folder / "open", fs::perms::all);
  on(test::rooted(folder / "open"), fake);
  on(test::rooted("/proc/none"), fake);
  on(test::rooted(folder / "root"), fake);
  test::write_bytes(test::only_entry(folder / "root"), "junk");
  on(test::rooted(folder / "root"), fake);
  test::write_bytes(folder / "junk.bundle", "junk");
  cache::Options layered;
  layered.layers = {folder / "junk.bundle", folder / "missing"};
  on(layered, failing);
  layered.forbid_compile = true;
  on(layered, fake);
  on({}, compile::nvrtc_compiler((folder / "no-nvrtc.so").string()));
  // A source that does not compile, where there is a compiler.
  expect([] {
    compile::Request request;
    request.source = "this is no C++";
    request.options = {"--gpu-architecture=sm_90a"};
    compile::Nvrtc::open()->compile(request);
  });
  // Calls: no context, no plan, no pointers, no sense; a driver that is not there or fails.
  mxjit_context* context = nullptr;
  if (mxjit_context_create(nullptr, &context) == MXJIT_SUCCESS) mxjit_context_destroy(context);
  mxjit_context_options options = MXJIT_CONTEXT_OPTIONS_INIT;
  options.struct_size = 1;
  mxjit_context_create(&options, &context);
  mxjit_quantize(nullptr, nullptr, nullptr, stream);
  mxjit_launch_gemm(nullptr, nullptr, stream);
  mxjit_set_log_callback(nullptr, nullptr, 99);
  const auto sound = stub_context({}, fake, own);
  for (QuantizeArgs args : {QuantizeArgs{}, row_args(-1, 5), row_args(INT64_MAX / 2, INT64_MAX / 2)})
    expect([&] { sound->quantize({}, args, stream); });
  stub().launch_result = CUDA_ERROR_LAUNCH_FAILED;
  expect([&] { sound->quantize({}, row_args(100, 200), stream); });
  stub().launch_result = CUDA_SUCCESS;
  stub().reset_context(0);
  expect([&] { sound->quantize({}, row_args(100, 200), stream); });
  for (const char* json : {"", "{", "[]", R"({"schema":1,"op":"quantize"})"})
    expect([&] { problem::parse(json); });
  ::setenv("MXJIT_LOG", "loud", 1);
  ::setenv("MXJIT_COMPILE", "perhaps", 1);
  expect([] { set_log_sink([](LogLevel, std::string_view) {}); });
  expect([] { cache::Options::from_environment(); });
  ::unsetenv("MXJIT_LOG");
  ::unsetenv("MXJIT_COMPILE");
  return errors;
}

TEST_F(Process, NothingIsEverPrinted) {
  const Folder folder;
  const fs::path printed = folder.path() / "printed";
  for (const bool sink : {false, true}) {
    const fs::path work = folder.path() / (sink ? "with" : "without");
    fs::create_directory(work);
    const int result = child([&] {
      const int file = ::open(printed.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      if (file < 0 || ::dup2(file, 1) < 0 || ::dup2(file, 2) < 0) return 99;
      ::setenv("MXJIT_LOG", "debug", 1);
      int lines = 0;
      if (sink)
        set_log_sink([&](LogLevel, std::string_view) {
          ++lines;
          throw std::runtime_error("a sink that fails");
        });
      const int errors = misuse(work);
      std::fflush(nullptr);
      if (sink && lines < 5) return 98;
      return errors;
    });
    EXPECT_EQ(result, 16);
    EXPECT_EQ(test::read_bytes(printed), "");
  }
}

struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// All text that a call leaves behind: entry, key, problem, messages.
std::string texts_of_a_call(const fs::path& root) {
  const auto context = stub_context(test::rooted(root));
  context->quantize({}, row_args(12345, 4096), stream);
  context->gemm(test::rowwise(), test::gemm_args(4096, 4096, 4096), stream);
  std::string texts;
  for (const std::string& file : test::files_below(root))
    texts += file + "\n" + test::read_bytes(root / file);
  texts += problem::print(problem::parse(R"({"schema":1,"op":"gemm","alpha":1234.5625,"beta":0.5,
      "a":{"dtype":"e4m3","shape":[4096,12345]},"b":{"dtype":"e4m3","shape":[4096,12345]}})"));
  try {
    QuantizeArgs wrong = row_args(12345, 4096);
    wrong.q_row.shape[1] = 1234567;
    context->quantize({}, wrong, stream);
  } catch (const Error& error) {
    texts += error.what();
  }
  return texts;
}

TEST_F(Process, A48ADecimalCommaChangesNoText) {
  const Folder plain, comma;
  const std::string expected = texts_of_a_call(plain.root());
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  const std::string c_before = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed
  const std::string came = texts_of_a_call(comma.root());
  std::setlocale(LC_ALL, c_before.c_str());
  std::locale::global(before);
  EXPECT_EQ(came, expected);
  EXPECT_NE(expected.find("1234.5625"), std::string::npos);
}

}  // namespace
}  // namespace mxjit
