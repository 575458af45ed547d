// Traces: what is recorded of calls, and that a context which loaded a trace only launches.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "cache/support.hpp"
#include "dispatch/context_state.hpp"
#include "dispatch/problem_of_call.hpp"
#include "dispatch/replay.hpp"
#include "driver/stub.hpp"
#include "mxjit/error.hpp"
#include "problem/trace.hpp"
#include "unit/on_stub.hpp"

namespace mxjit::dispatch {
namespace {

using driver::stub;
using test::Call;
using test::gemm_args;
using test::row_args;
using test::rowwise;
using test::tensor;

std::vector<std::string> lines_of(const test::fs::path& file) {
  std::vector<std::string> lines;
  std::string text = test::fs::exists(file) ? test::read_bytes(file) : "";
  for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
    lines.push_back(text.substr(0, end));
  EXPECT_EQ(text, "");  // every line ends
  return lines;
}

problem::Problem numbered(int i) { return problem_of({}, row_args(i + 1, 32)); }

class Tracing : public ::testing::Test {
 protected:
  void SetUp() override {
    stub().reset();
    driver::stub_api().ctx_set_current(nullptr);
  }
  std::unique_ptr<Context> make(int device = 0, bool traced = true, bool forbid = false) {
    cache::Options options;  // memory only
    options.forbid_compile = forbid;
    auto context =
        ContextAccess::make(driver::DeviceContext::primary(driver::stub_api(), device), libraries_,
                            std::make_shared<cache::Cache>(options, cache::Seams{nullptr, compiler_}));
    if (traced) ContextAccess::state(*context).trace = trace_;
    return context;
  }
  // One call of many a kind.
  static void call_all(Context& context) {
    context.quantize({}, row_args(100, 200), nullptr);
    QuantizeOptions both{.scale_layout = ScaleLayout::blocked, .axes = {.row = true, .col = true}};
    QuantizeArgs args{.x = tensor(0x10000002, DType::fp16, {2, 64, 96}, 97),
                      .q_row = tensor(0x20000000, DType::e4m3, {2, 64, 96}),
                      .s_row = tensor(0x30000000, DType::e8m0, {2 * 128 * 4}),
                      .q_col = tensor(0x40000000, DType::e4m3, {2, 96, 64}),
                      .s_col = tensor(0x50000000, DType::e8m0, {2 * 128 * 4})};
    context.quantize(both, args, nullptr);
    QuantizeOptions turned{.axes = {.row = false, .col = true}, .transposed_input = true};
    context.quantize(turned,
                     {.x = tensor(0x10000000, DType::fp32, {96, 64}),
                      .q_col = tensor(0x40000000, DType::e4m3, {96, 64}),
                      .s_col = tensor(0x50000000, DType::e8m0, {96, 2})},
                     nullptr);
    QuantizeOptions grouped{.groups = {.count = 5, .alignment = 32}};
    QuantizeArgs groups = row_args(256, 64);
    groups.offsets = tensor(0x60000000, DType::i32, {5});
    context.quantize(grouped, groups, nullptr);
    context.gemm(rowwise(), gemm_args(7, 256, 512), nullptr);
    context.gemm(rowwise(), gemm_args(8000, 256, 512), nullptr);
    context.gemm(rowwise(), gemm_args(7, 256, 512, 4), nullptr);  // unaligned: the general kernel
    GemmArgs sum = gemm_args(7, 256, 512);
    sum.c = sum.d;
    sum.beta = 0.5F;
    sum.bias = tensor(0x60000000, DType::fp32, {256});
    context.gemm(rowwise(), sum, nullptr);
    GemmOptions plain{.a_scale = {},
                      .b_scale = {},
                      .b_mn_major = true,
                      .accumulation = Accumulation::exact,
                      .output = DType::fp32};
    context.gemm(plain,
                 {.a = tensor(0x10000000, DType::bf16, {1, 5, 40}),
                  .a_scale = {},
                  .b = tensor(0x30000000, DType::e5m2, {3, 40, 24}),
                  .b_scale = {},
                  .d = tensor(0x50000000, DType::fp32, {3, 5, 24}, 30),
                  .c = {},
                  .bias = {}},
                 nullptr);
  }
  static constexpr int kinds = 9;

  test::Folder folder_;
  test::fs::path file_ = folder_.path() / "trace.jsonl";
  test::FaultyFiles files_;
  std::shared_ptr<Trace> trace_ = std::make_shared<Trace>(files_, file_.string());
  std::shared_ptr<test::FakeCompiler> compiler_ = std::make_shared<test::FakeCompiler>();
  std::shared_ptr<driver::Libraries> libraries_ = std::make_shared<driver::Libraries>();
};

TEST_F(Tracing, AKindIsRecordedWhenItIsFirstSeenAndNeverAgain) {
  const auto context = make();
  EXPECT_FALSE(test::fs::exists(file_));
  context->quantize({}, row_args(100, 200), nullptr);
  const auto lines = lines_of(file_);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], problem::print(problem::parse(lines[0])));  // canonical
  EXPECT_NE(lines[0].find("\"shape\":[100,200]"), std::string::npos) << lines[0];
  const int calls = files_.calls;
  for (int i = 0; i < 100; ++i) context->quantize({}, row_args(65 + i % 64, 200), nullptr);
  EXPECT_EQ(files_.calls, calls);  // known keys touch no file
  context->plan({}, row_args(100, 200));
  EXPECT_EQ(files_.calls, calls);
  context->plan({}, row_args(1000, 200));
  EXPECT_EQ(lines_of(file_).size(), 2U);
}

TEST_F(Tracing, ContextsOfAProcessShareOne) {
  for (int device = 0; device < driver::Stub::devices; ++device) call_all(*make(device));
  EXPECT_EQ(lines_of(file_).size(), static_cast<std::size_t>(kinds));
  const std::string path = file_.string();
  EXPECT_EQ(Trace::of_process(path), Trace::of_process(path));
  EXPECT_NE(Trace::of_process(path), Trace::of_process(path + "2"));
}

TEST_F(Tracing, AMissThatMayNotCompileIsRecordedAndWhatHasNoKernelIsNot) {
  const auto context = make(0, true, true);
  EXPECT_THROW(context->gemm(rowwise(), gemm_args(7, 256, 512), nullptr), Error);
  EXPECT_EQ(lines_of(file_).size(), 1U);
  QuantizeOptions fp32{
      .scaling = Scaling::fp32, .block = {.kind = Block::Kind::row}, .rounding = Rounding::none};
  QuantizeArgs args = row_args(100, 200);
  args.s_row = tensor(0x30000000, DType::fp32, {100});
  try {
    context->quantize(fp32, args, nullptr);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) return;  // a version that has the kernel
    EXPECT_EQ(lines_of(file_).size(), 1U);
  }
}

// What a context that loaded the trace has not to do any more, call after call.
TEST_F(Tracing, ALoadedTraceIsCompleteOnEveryDevice) {
  call_all(*make());
  const std::string trace = test::read_bytes(file_);
  EXPECT_EQ(lines_of(file_).size(), static_cast<std::size_t>(kinds));
  for (int device = 0; device < driver::Stub::devices; ++device) {
    const auto context = make(device, false);
    context->load(trace);
    const int compiles = compiler_->compiles;
    const auto libraries = stub().library_loads.load(), functions = stub().function_loads.load();
    EXPECT_EQ(libraries_->loads().libraries, libraries);
    EXPECT_EQ(libraries_->loads().functions, functions);
    const auto launches = stub().launches.load();
    // In a capture nothing could be loaded: the calls go through all the same.
    stub().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    call_all(*context);
    stub().capture = CU_STREAM_CAPTURE_STATUS_NONE;
    for (const problem::Problem& problem : problem::parse_trace(trace)) replay(*context, problem);
    EXPECT_EQ(compiler_->compiles, compiles);
    EXPECT_EQ(stub().library_loads, libraries);
    EXPECT_EQ(stub().function_loads, functions);
    EXPECT_GE(stub().launches, launches + 2 * kinds);
  }
}

// A replay gets the kernels that the calls got: places and pitches are the traced ones.
TEST_F(Tracing, AReplayIsTracedAsItself) {
  call_all(*make());
  const std::vector<std::string> first = lines_of(file_);
  const auto again = std::make_shared<Trace>(files_, (folder_.path() / "again").string());
  const auto context = make();
  ContextAccess::state(*context).trace = again;
  for (const std::string& line : first) replay(*context, problem::parse(line));
  EXPECT_EQ(lines_of(folder_.path() / "again"), first);
}

TEST_F(Tracing, LoadChecksEveryLineFirst) {
  const auto context = make();
  const std::string good = problem::print(numbered(0));
  try {
    context->load(good + "\n\n" + good + "\n{\"schema\":1,\"op\":\"quantise\"}\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_TRUE(std::string(error.what()).starts_with("line 4: ")) << error.what();
    EXPECT_EQ(error.argument(), "/op");
  }
  EXPECT_EQ(stub().library_loads, 0U);
  context->load(good + "\n\r\n" + good);
  EXPECT_EQ(stub().library_loads, 1U);
  EXPECT_EQ(problem::parse_trace(good + "\n\n" + good).size(), 1U);
  EXPECT_TRUE(problem::parse_trace("").empty());
}

TEST_F(Tracing, ProcessesAndThreadsAppendWholeLines) {
  constexpr int children = 8, each = 100;
  const auto results = test::run_children(children, [&](int) {
    Trace trace(host_files(), file_.string());
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < each; ++i) trace.record(numbered(i));
      });
    threads.clear();
    return 0;
  });
  EXPECT_EQ(results, std::vector<int>(children, 0));
  std::vector<std::string> lines = lines_of(file_);
  ASSERT_EQ(lines.size(), static_cast<std::size_t>(children * each));  // each once a process
  std::sort(lines.begin(), lines.end());
  for (const std::string& line : lines)
    EXPECT_EQ(std::count(lines.begin(), lines.end(), line), children) << line;
  EXPECT_EQ(problem::parse_trace(test::read_bytes(file_)).size(), static_cast<std::size_t>(each));
}

TEST_F(Tracing, AFailureCostsOneWarning) {
  for (const Call call : {Call::open, Call::write}) {
    test::FaultyFiles files([&](Call made, const std::string&) { return made == call ? -ENOSPC : 0; });
    const test::Warnings warnings;
    const auto context = make();
    ContextAccess::state(*context).trace = std::make_shared<Trace>(files, file_.string());
    call_all(*context);
    ASSERT_EQ(warnings.count(), 1U);
    EXPECT_NE(warnings.lines()[0].find("trace.jsonl"), std::string::npos) << warnings.lines()[0];
    EXPECT_NE(warnings.lines()[0].find("No space left"), std::string::npos) << warnings.lines()[0];
  }
  const test::Warnings warnings;
  Trace nowhere(host_files(), (folder_.path() / "no" / "such" / "folder").string());
  for (int i = 0; i < 3; ++i) nowhere.record(numbered(i));
  EXPECT_EQ(warnings.count(), 1U);
  const test::fs::path fifo = folder_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Trace(host_files(), fifo.string()).record(numbered(0));  // does not hang
  EXPECT_EQ(warnings.count(), 2U);
}

TEST_F(Tracing, ALineThatWasCutShortStaysAlone) {
  class Short : public FileSystem {
   public:
    ssize_t write(int fd, const void* from, std::size_t size) override {
      return FileSystem::write(fd, from, left-- > 0 ? 10 : size);
    }
    int left = 1;
  };
  Short files;
  const test::Warnings warnings;
  Trace trace(files, file_.string());
  for (int i = 0; i < 3; ++i) trace.record(numbered(i));
  EXPECT_EQ(warnings.count(), 1U);
  const auto lines = lines_of(file_);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1], problem::print(numbered(1)));
  EXPECT_EQ(lines[2], problem::print(numbered(2)));
}

}  // namespace
}  // namespace mxjit::dispatch
