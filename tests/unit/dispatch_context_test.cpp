// Contexts and plans on the stub driver and a compiler that compiles nothing: what is compiled, loaded and
// launched when, and what happens when it cannot be.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <functional>
#include <latch>
#include <new>
#include <thread>
#include <vector>

#include "configure/configure.hpp"
#include "dispatch/run.hpp"
#include "mxjit/error.hpp"
#include "unit/on_stub.hpp"
#include "unit/refusal.hpp"

namespace {
// Allocations of this thread, counted while it asks for that.
thread_local bool counting = false;
thread_local int allocations = 0;
}  // namespace

// Every form that pairs with the delete below, for a sanitizer replaces those that are left out.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (counting) ++allocations;
  return std::malloc(size);
}
void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace mxjit::dispatch {
namespace {

using driver::stub;

using test::batched_gemm_args;
using test::expect_error;
using test::gemm_args;
using test::row_args;
using test::rowwise;
using test::tensor;

constexpr CUstream stream = nullptr;

class ContextOnStub : public ::testing::Test {
 protected:
  void SetUp() override {
    stub().reset();
    driver::stub_api().ctx_set_current(nullptr);
  }

  std::unique_ptr<Context> make(int device = 0, bool forbid = false) {
    cache::Options options;  // memory only
    options.forbid_compile = forbid;
    return ContextAccess::make(driver::DeviceContext::primary(driver::stub_api(), device), libraries_,
                               std::make_shared<cache::Cache>(options, cache::Seams{nullptr, compiler_}));
  }

  std::shared_ptr<test::FakeCompiler> compiler_ = std::make_shared<test::FakeCompiler>();
  std::shared_ptr<driver::Libraries> libraries_ = std::make_shared<driver::Libraries>();
};

TEST_F(ContextOnStub, CompilesLoadsAndLaunchesOnceThenOnlyLaunches) {
  const auto context = make();
  context->quantize({}, row_args(100, 200), stream);
  EXPECT_EQ(compiler_->compiles, 1);
  EXPECT_EQ(stub().library_loads, 1U);
  EXPECT_EQ(stub().strict_loads, 0U);
  EXPECT_EQ(stub().launches, 1U);
  const auto function_loads = stub().function_loads.load();
  const auto queries = stub().capture_queries.load();
  for (int i = 0; i < 10; ++i) context->quantize({}, row_args(100, 200), stream);
  EXPECT_EQ(compiler_->compiles, 1);
  EXPECT_EQ(stub().library_loads, 1U);
  EXPECT_EQ(stub().function_loads, function_loads);
  EXPECT_EQ(stub().capture_queries, queries);
  EXPECT_EQ(stub().launches, 11U);
}

TEST_F(ContextOnStub, OtherShapesOfOneKernelNeitherCompileNorLoad) {
  const auto context = make();
  for (const std::int64_t m : {1, 2, 3, 100, 128, 129, 5000})
    for (const std::int64_t n : {1, 31, 32, 128}) context->quantize({}, row_args(m, n), stream);
  EXPECT_EQ(compiler_->compiles, 1);
  EXPECT_EQ(stub().library_loads, 1U);
  EXPECT_EQ(stub().function_loads, 1U);
  EXPECT_EQ(stub().launches, 28U);
}

TEST_F(ContextOnStub, PlanPreparesTheOneCallEntry) {
  const auto context = make();
  const QuantizePlan plan = context->plan({}, row_args(100, 200));
  EXPECT_EQ(stub().launches, 0U);
  const auto loads = stub().function_loads.load();
  context->quantize({}, row_args(100, 200), stream);
  plan.launch(row_args(100, 200), stream);
  EXPECT_EQ(stub().function_loads, loads);
  EXPECT_EQ(stub().launches, 2U);
  EXPECT_EQ(compiler_->compiles, 1);
}

TEST_F(ContextOnStub, WarmCallsAllocateNothing) {
  const auto context = make();
  const QuantizeArgs args = row_args(100, 200);
  const QuantizePlan plan = context->plan({}, args);
  allocations = 0;
  counting = true;
  for (int i = 0; i < 100; ++i) {
    context->quantize({}, args, stream);
    plan.launch(args, stream);
  }
  counting = false;
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(stub().launches, 200U);
}

TEST_F(ContextOnStub, WarmGemmCallsNeitherCompileNorLoadNorAllocate) {
  const auto context = make();
  const GemmArgs args = gemm_args(128, 512, 1024), other = gemm_args(127, 512, 2048);
  const GemmPlan plan = context->plan(rowwise(), args);
  context->gemm(rowwise(), args, stream);
  context->gemm(rowwise(), other, stream);
  const int compiles = compiler_->compiles;
  EXPECT_LE(compiles, 2);  // the two may get different tiles
  allocations = 0;
  counting = true;
  for (int i = 0; i < 100; ++i) {
    context->gemm(rowwise(), args, stream);
    context->gemm(rowwise(), other, stream);
    plan.launch(args, stream);
  }
  counting = false;
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(compiler_->compiles, compiles);
  EXPECT_EQ(stub().launches, 302U);
  EXPECT_EQ(stub().strict_loads, 0U);
}

TEST_F(ContextOnStub, GemmWithoutOutputLaunchesNothingAndABatchOneByOne) {
  const auto context = make();
  context->gemm(rowwise(), gemm_args(0, 512, 256), stream);
  context->gemm(rowwise(), gemm_args(128, 0, 256), stream);
  EXPECT_EQ(compiler_->compiles, 0);
  EXPECT_EQ(stub().launches, 0U);
  context->gemm(rowwise(), gemm_args(128, 512, 0), stream);  // D is still written
  EXPECT_EQ(stub().launches, 1U);
  context->gemm(rowwise(), batched_gemm_args(3, 128, 512, 256), stream);
  EXPECT_EQ(stub().launches, 4U);
}

TEST_F(ContextOnStub, GemmThatIsNotLoadedLeavesACaptureIntact) {
  const auto context = make();
  stub().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  expect_error(ErrorCode::not_loaded, "stream",
               [&] { context->gemm(rowwise(), gemm_args(128, 512, 256), stream); });
  EXPECT_EQ(compiler_->compiles, 0);
  stub().capture = CU_STREAM_CAPTURE_STATUS_NONE;
  context->gemm(rowwise(), gemm_args(128, 512, 256), stream);
  stub().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  context->gemm(rowwise(), gemm_args(128, 512, 256), stream);
  EXPECT_EQ(stub().launches, 2U);
}

TEST_F(ContextOnStub, GemmPlansRefuseWhatTheyWereNotMadeFor) {
  const auto context = make();
  const GemmPlan plan = context->plan(rowwise(), gemm_args(128, 512, 256));
  EXPECT_NO_THROW(plan.launch(gemm_args(999, 64, 512), stream));
  GemmArgs unaligned = gemm_args(128, 512, 256);
  unaligned.a.data = reinterpret_cast<void*>(0x10000001);
  expect_error(ErrorCode::invalid_argument, "a", [&] { plan.launch(unaligned, stream); });
  expect_error(ErrorCode::invalid_argument, "a", [&] { plan.launch(gemm_args(128, 512, 0), stream); });
}

TEST_F(ContextOnStub, EmptyTensorsLaunchNothing) {
  const auto context = make();
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{0, 200}, {100, 0}, {0, 0}})
    context->quantize({}, row_args(m, n), stream);
  const QuantizePlan plan = context->plan({}, row_args(1, 200));
  plan.launch(row_args(0, 200), stream);
  EXPECT_EQ(stub().launches, 0U);
}

TEST_F(ContextOnStub, BadCallsLaunchCompileAndLoadNothing) {
  const auto context = make();
  QuantizeArgs args = row_args(100, 200);
  args.q_row.data = args.x.data;
  expect_error(ErrorCode::invalid_argument, "q_row", [&] { context->quantize({}, args, stream); });
  expect_error(ErrorCode::invalid_argument, "q_row", [&] { context->plan({}, args); });
  QuantizeOptions options;
  options.block.cols = 0;
  expect_error(ErrorCode::invalid_argument, "options.block",
               [&] { context->quantize(options, row_args(100, 200), stream); });
  options = {.block = {.rows = 1, .cols = 32}, .axes = {.row = false, .col = false}};
  expect_error(ErrorCode::invalid_argument, "options.axes", [&] { context->quantize(options, {}, stream); });
  EXPECT_EQ(stub().launches, 0U);
  EXPECT_EQ(compiler_->compiles, 0);
  EXPECT_EQ(stub().library_loads, 0U);
}

// Numbers of groups up to a power of two share a kernel and a place among the plans.
TEST_F(ContextOnStub, PlansOfOtherNumbersOfGroups) {
  const auto context = make();
  const auto grouped = [](std::int32_t count) {
    QuantizeArgs args = row_args(256, 200);
    args.offsets = test::tensor(0x40000000, DType::i32, {count});
    return args;
  };
  QuantizeOptions options;
  for (const std::int32_t count : {4, 3}) {
    options.groups.count = count;
    context->plan(options, grouped(count)).launch(grouped(count), stream);
    context->quantize(options, grouped(count), stream);
  }
  EXPECT_EQ(stub().launches, 4U);
  EXPECT_EQ(compiler_->compiles, 1);
}

TEST_F(ContextOnStub, AHeldPlanOfSwigluTakesAnyLimitWhereItHasOne) {
  const auto context = make();
  const QuantizeOptions options{.pre = Pre::swiglu};
  QuantizeArgs args = row_args(100, 200);
  args.x.shape[1] = 400;
  args.x.data = reinterpret_cast<void*>(0x50000000);
  args.swiglu_limit = 7.0;
  const QuantizePlan plan = context->plan(options, args);
  args.swiglu_limit = 3.0;
  args.swiglu_alpha = 1.702;
  EXPECT_NO_THROW(plan.launch(args, stream));
  args.swiglu_limit.reset();
  expect_error(ErrorCode::invalid_argument, "swiglu_limit", [&] { plan.launch(args, stream); });
}

TEST_F(ContextOnStub, AHeldPlanRefusesWhatItWasNotMadeFor) {
  const auto context = make();
  const QuantizePlan plan = context->plan({}, row_args(100, 200));
  EXPECT_NO_THROW(plan.launch(row_args(65, 200), stream));
  EXPECT_NO_THROW(plan.launch(row_args(128, 200), stream));
  QuantizeArgs pitched = row_args(100, 200);
  pitched.x.pitch = 211;
  pitched.x.data = reinterpret_cast<void*>(0x10000002);
  EXPECT_NO_THROW(plan.launch(pitched, stream));
  EXPECT_EQ(stub().launches, 3U);
  expect_error(ErrorCode::invalid_argument, "x", [&] { plan.launch(row_args(64, 200), stream); });
  expect_error(ErrorCode::invalid_argument, "x", [&] { plan.launch(row_args(129, 200), stream); });
  expect_error(ErrorCode::invalid_argument, "x", [&] { plan.launch(row_args(100, 201), stream); });
  QuantizeArgs other = row_args(100, 200);
  other.x.dtype = DType::fp16;
  expect_error(ErrorCode::invalid_argument, "x", [&] { plan.launch(other, stream); });
  other = row_args(100, 200);
  other.s_row.shape[1] = 8;
  expect_error(ErrorCode::invalid_argument, "s_row", [&] { plan.launch(other, stream); });
  EXPECT_EQ(stub().launches, 3U);
}

TEST_F(ContextOnStub, WhileAStreamCapturesOnlyLoadedKernelsLaunch) {
  const auto context = make();
  stub().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  expect_error(ErrorCode::not_loaded, "stream", [&] { context->quantize({}, row_args(100, 200), stream); });
  EXPECT_EQ(compiler_->compiles, 0);
  EXPECT_EQ(stub().library_loads, 0U);
  EXPECT_EQ(stub().launches, 0U);
  // plan() has no stream: it loads, as another thread of a capturing program would.
  context->plan({}, row_args(100, 200));
  EXPECT_EQ(stub().strict_loads, 0U);
  context->quantize({}, row_args(100, 200), stream);
  context->quantize({}, row_args(5000, 160), stream);  // another plan of the loaded kernel
  EXPECT_EQ(stub().launches, 2U);
  EXPECT_EQ(stub().library_loads, 1U);
}

TEST_F(ContextOnStub, AResetContextIsAnErrorAndANewOneLoadsAgain) {
  const auto context = make();
  const QuantizePlan plan = context->plan({}, row_args(100, 200));
  context->quantize({}, row_args(100, 200), stream);
  stub().reset_context(0);
  expect_error(ErrorCode::context_lost, "", [&] { context->quantize({}, row_args(100, 200), stream); });
  expect_error(ErrorCode::context_lost, "", [&] { context->quantize({}, row_args(7, 7), stream); });
  expect_error(ErrorCode::context_lost, "", [&] { context->plan({}, row_args(100, 200)); });
  expect_error(ErrorCode::context_lost, "", [&] { plan.launch(row_args(100, 200), stream); });
  EXPECT_EQ(stub().launches, 1U);
  const auto loads = stub().function_loads.load();
  const auto again = make();
  again->quantize({}, row_args(100, 200), stream);
  EXPECT_EQ(stub().launches, 2U);
  EXPECT_EQ(stub().function_loads, loads + 1);
}

TEST_F(ContextOnStub, ALaunchThatFailsIsAnErrorThatNamesTheCall) {
  const auto context = make();
  stub().launch_result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  try {
    context->quantize({}, row_args(100, 200), stream);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::driver);
    EXPECT_NE(std::string(error.what()).find("cuLaunchKernelEx"), std::string::npos) << error.what();
  }
  stub().launch_result = CUDA_SUCCESS;
  EXPECT_NO_THROW(context->quantize({}, row_args(100, 200), stream));
}

// The line of the message that begins so, without that.
std::string line_of(const std::string& message, const std::string& begin) {
  const std::size_t at = message.find("\n" + begin);
  if (at == std::string::npos) return {};
  const std::size_t from = at + 1 + begin.size();
  return message.substr(from, message.find('\n', from) - from);
}

TEST_F(ContextOnStub, CompilingForbiddenIsAnErrorWithThePrewarmLine) {
  const auto context = make(0, true);
  const Tensor rows = tensor(0x10000000, DType::bf16, {64, 48}), ends = tensor(0x20000000, DType::i32, {3}),
               starts = tensor(0x30000000, DType::i32, {3}),
               padded = tensor(0x40000000, DType::bf16, {160, 48});
  const Tensor codes = tensor(0x10000000, DType::e8m0, {64, 3}),
               blocked = tensor(0x20000000, DType::u8, {512});
  const PadGroupsOptions pad{.groups = 3, .alignment = 32};
  const std::function<void()> calls[] = {
      [&] { context->quantize({}, row_args(100, 200), stream); },
      [&] { context->gemm(rowwise(), gemm_args(7, 256, 512), stream); },
      [&] { context->gemm(rowwise(), gemm_args(7, 256, 512, 4), stream); },
      [&] { context->plan(rowwise(), gemm_args(7, 256, 512)); },
      [&] {
        context->dequantize({},
                            {.q = tensor(0x10000000, DType::e4m3, {100, 200}),
                             .s = tensor(0x20000000, DType::e8m0, {100, 7}),
                             .x = tensor(0x30000000, DType::bf16, {100, 200}),
                             .offsets = {}},
                            stream);
      },
      [&] { context->pack_scales({}, {.s = codes, .s_blocked = blocked, .offsets = {}}, stream); },
      [&] { context->unpack_scales({}, {.s = codes, .s_blocked = blocked, .offsets = {}}, stream); },
      [&] {
        context->pad_groups(pad,
                            {.x = rows,
                             .offsets = ends,
                             .x_padded = padded,
                             .starts = starts,
                             .ends = tensor(0x50000000, DType::i32, {3})},
                            stream);
      },
      [&] {
        context->unpad_groups(pad, {.x_padded = padded, .offsets = ends, .starts = starts, .x = rows},
                              stream);
      },
  };
  for (const auto& call : calls) {
    try {
      call();
      FAIL() << "no error";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.code(), ErrorCode::compile_forbidden) << text;
      // What is prewarmed for that problem is what was missing.
      const std::string problem = line_of(text, "problem: ");
      bool found = false;
      for (const configure::Configuration& made :
           configure::configure(problem::parse(problem), configure::default_profile("sm_90a")))
        found |= codegen::print({made, "sm_90a"}) == line_of(text, "kernel: ");
      EXPECT_TRUE(found) << text;
      EXPECT_EQ(line_of(text, "to add it, where NVRTC is: "),
                "mxjit prewarm --problems /dev/stdin --arch sm_90a <<< '" + problem + "'");
    }
  }
  EXPECT_EQ(compiler_->compiles, 0);
}

TEST_F(ContextOnStub, AFailedCompilationIsTriedAgain) {
  compiler_->before = [](const codegen::KernelDescriptor&) { throw Error(ErrorCode::compile_failed, "no"); };
  const auto context = make();
  EXPECT_THROW(context->quantize({}, row_args(100, 200), stream), Error);
  compiler_->before = nullptr;
  EXPECT_NO_THROW(context->quantize({}, row_args(100, 200), stream));
}

TEST_F(ContextOnStub, AScaleOfTheTensorTakesAWorkspace) {
  const auto context = make();
  const QuantizeOptions options{
      .scaling = Scaling::fp32, .block = {.kind = Block::Kind::tensor}, .rounding = Rounding::none};
  QuantizeArgs args = row_args(100, 200);
  args.s_row = tensor(0x30000000, DType::fp32, {1});
  const auto quantize = [&] { context->quantize(options, args, stream); };
  expect_error(ErrorCode::invalid_argument, "workspace", quantize);
  ASSERT_EQ(workspace_size(options, args.x), 512U);
  alignas(256) std::array<std::uint8_t, 512> memory;
  memory.fill(0xA5);
  args.workspace = tensor(reinterpret_cast<std::uintptr_t>(memory.data()), DType::u8, {512});
  quantize();
  EXPECT_EQ(stub().launches, 2U) << "a pass each";
  EXPECT_EQ(memory[0], 0xA5) << "nothing must be zero";
  // Of another M of the same bucket, and of no rows: the scale is written all the same.
  args.x.shape[0] = args.q_row.shape[0] = 127;
  quantize();
  args.x = tensor(0, DType::bf16, {0, 200});
  args.q_row = tensor(0, DType::e4m3, {0, 200});
  quantize();
  EXPECT_EQ(stub().launches, 6U);
}

TEST_F(ContextOnStub, AScaleOfManyTilesTakesOneLaunchAfterAFill) {
  const auto context = make();
  const QuantizeOptions options{
      .scaling = Scaling::fp32, .block = {.kind = Block::Kind::tensor}, .rounding = Rounding::none};
  alignas(256) std::array<std::uint8_t, 4096 + 256> memory;
  for (const std::int64_t columns : {128 * 1024, 128 * 1024 + 1}) {
    const bool few = columns == 128 * 1024;
    QuantizeArgs args = row_args(1, columns);
    args.s_row = tensor(0x30000000, DType::fp32, {1});
    ASSERT_EQ(workspace_size(options, args.x), memory.size());
    memory.fill(0xA5);
    args.workspace =
        tensor(reinterpret_cast<std::uintptr_t>(memory.data()), DType::u8, {std::int64_t{memory.size()}});
    stub().launches = 0;
    context->quantize(options, args, stream);
    EXPECT_EQ(stub().launches, few ? 2U : 1U);
    EXPECT_EQ(std::count(memory.begin(), memory.end(), 0), few ? 0 : std::ssize(memory));
  }
}

TEST_F(ContextOnStub, ScalesWithoutElementsAreWritten) {
  const auto context = make();
  QuantizeOptions options{
      .scaling = Scaling::fp32, .block = {.kind = Block::Kind::row}, .rounding = Rounding::none};
  QuantizeArgs args;
  args.x = tensor(0, DType::bf16, {100, 0});
  args.q_row = tensor(0, DType::e4m3, {100, 0});
  args.s_row = tensor(0x30000000, DType::fp32, {100});
  context->quantize(options, args, stream);
  EXPECT_EQ(stub().launches, 1U);
  args.x = tensor(0, DType::bf16, {0, 7});
  args.q_row = tensor(0, DType::e4m3, {0, 7});
  args.s_row = tensor(0, DType::fp32, {0});
  context->quantize(options, args, stream);
  EXPECT_EQ(stub().launches, 1U) << "nothing to write";
}

TEST_F(ContextOnStub, SixtyFourThreadsCompileAndLoadEachKernelOnce) {
  compiler_->delay = std::chrono::milliseconds(5);
  const auto context = make();
  std::barrier start(64);
  std::atomic<int> errors{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 64; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int i = 0; i < 20; ++i) {
        QuantizeOptions options;
        options.rounding = (t + i) % 2 == 0 ? Rounding::rceil : Rounding::floor;
        try {
          context->quantize(options, row_args(1 + (t * 37 + i) % 300, 200), stream);
        } catch (const std::exception&) {
          ++errors;
        }
      }
    });
  threads.clear();
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(compiler_->compiles, 2);
  EXPECT_EQ(stub().library_loads, 2U);
  EXPECT_EQ(stub().launches, 64U * 20U);
}

TEST_F(ContextOnStub, HitsDoNotWaitForAnotherKeysCompilation) {
  const auto context = make();
  context->quantize({}, row_args(100, 200), stream);
  std::latch compiling(1), release(1);
  compiler_->before = [&](const codegen::KernelDescriptor&) {
    compiling.count_down();
    release.wait();
  };
  std::jthread slow([&] {
    QuantizeOptions options;
    options.rounding = Rounding::even;
    context->quantize(options, row_args(100, 200), stream);
  });
  compiling.wait();
  // Would never come back if it waited for the compilation, which ends only below.
  context->quantize({}, row_args(100, 200), stream);
  EXPECT_EQ(stub().launches, 2U);
  release.count_down();
  slow.join();
  EXPECT_EQ(stub().launches, 3U);
}

TEST_F(ContextOnStub, TwoDevicesFromTwoThreadsLoadEachForItself) {
  const auto first = make(0);
  const auto second = make(1);
  std::vector<std::jthread> threads;
  for (const Context* context : {first.get(), second.get()})
    threads.emplace_back([context] {
      for (int i = 0; i < 100; ++i) const_cast<Context*>(context)->quantize({}, row_args(100, 200), stream);
    });
  threads.clear();
  EXPECT_EQ(stub().launches, 200U);
  EXPECT_EQ(stub().library_loads, 1U);
  EXPECT_EQ(stub().function_loads, 2U);
}

TEST_F(ContextOnStub, AThreadWithoutAContextGetsItsOwnStateBack) {
  const auto context = make();
  std::jthread([&] {
    for (int i = 0; i < 2; ++i) context->quantize({}, row_args(100, 200), stream);
    CUcontext current = nullptr;
    driver::stub_api().ctx_get_current(&current);
    EXPECT_EQ(current, nullptr);
  }).join();
  EXPECT_EQ(stub().launches, 2U);
}

TEST_F(ContextOnStub, APlanOutlivesItsContext) {
  auto context = make();
  const QuantizePlan plan = context->plan({}, row_args(100, 200));
  context.reset();
  EXPECT_EQ(stub().retained[0], 1) << "the plan holds the primary context";
  plan.launch(row_args(100, 200), stream);
  EXPECT_EQ(stub().launches, 1U);
}

TEST_F(ContextOnStub, ProblemsRunOnHostTensors) {
  const auto context = make();
  const problem::Problem problem =
      problem::parse(R"({"schema":1,"op":"quantize","scaling":"mx","block":32,"axes":["row","col"],
                        "input":{"dtype":"bf16","shape":[33,65]}})");
  TensorMap inputs = {
      {"x", {.dtype = DType::bf16, .shape = {33, 65}, .bytes = std::vector<std::uint8_t>(33 * 65 * 2)}}};
  const TensorMap outputs = run_on_device(*context, problem, inputs);
  EXPECT_EQ(outputs.size(), 4U);
  EXPECT_EQ(outputs.at("q_col").shape, (std::vector<std::int64_t>{65, 33}));
  EXPECT_EQ(outputs.at("s_col").bytes.size(), 65U * 2U);
  EXPECT_EQ(stub().launches, 1U);

  inputs.at("x").shape = {65, 33};
  expect_error(ErrorCode::invalid_argument, "x", [&] { run_on_device(*context, problem, inputs); });
  inputs.at("x").shape = {33, 65};
  inputs.at("x").bytes.pop_back();
  expect_error(ErrorCode::invalid_argument, "x", [&] { run_on_device(*context, problem, inputs); });
  expect_error(ErrorCode::invalid_argument, "x", [&] { run_on_device(*context, problem, {}); });
  expect_error(ErrorCode::invalid_argument, "x", [&] { launch_problem(*context, problem, {}, stream); });
  EXPECT_EQ(stub().launches, 1U);
}

}  // namespace
}  // namespace mxjit::dispatch
