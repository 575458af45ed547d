// NVRTC on a template of the tests' own. Skipped where there is no NVRTC.
#include "compile/nvrtc.hpp"
#include "codegen/with_nvrtc.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "codegen/target.hpp"
#include "compile/cubin.hpp"
#include "compile/locate.hpp"
#include "mxjit/error.hpp"
#include "sample.hpp"

namespace mxjit::compile {
namespace {

class NvrtcTest : public test::WithNvrtc<> {
 protected:
  static Request tiny(const codegen::KernelDescriptor& descriptor) {
    Request made = request(descriptor);
    made.headers.push_back({"tiny/scale_add.cuh", test::sample_template});
    return made;
  }
};

TEST_F(NvrtcTest, CompilesForEveryTarget) {
  for (const std::string_view target : codegen::targets()) {
    codegen::KernelDescriptor descriptor = test::sample();
    descriptor.target = target;
    const Compiled compiled = nvrtc_->compile(tiny(descriptor));
    EXPECT_EQ(compiled.symbol, "mxjit_tiny_scale_add");
    const CubinFacts facts = inspect_cubin(compiled.cubin, compiled.symbol);
    EXPECT_EQ(facts.sm, codegen::parse_target(target).number);
    EXPECT_EQ(facts.kernels, std::vector<std::string>{compiled.symbol});
    EXPECT_TRUE(facts.target.empty() || facts.target == target) << facts.target;
    EXPECT_GT(compiled.resources.registers, 0);
    EXPECT_EQ(compiled.resources.spill_bytes, 0);
    EXPECT_EQ(compiled.resources.stack_bytes, 0);
    EXPECT_EQ(compiled.build, nvrtc_->build());
    EXPECT_EQ(compiled.compiler, nvrtc_->identity());
  }
}

TEST_F(NvrtcTest, SameInputSameBytes) {
  const Compiled one = nvrtc_->compile(tiny(test::sample())), two = nvrtc_->compile(tiny(test::sample()));
  EXPECT_EQ(one.cubin, two.cubin);
}

TEST_F(NvrtcTest, SpillsAreReported) {
  Request made = tiny(test::sample());
  made.source =
      R"(extern "C" __global__ void __launch_bounds__(1024, 2) mxjit_tiny_scale_add(float* x, int n) {
  __shared__ float s[64];
  float a[100];
  s[threadIdx.x & 63] = x[0];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 100; ++i) a[i] = x[i * 64];
  for (int k = 0; k < n; ++k)
#pragma unroll
    for (int i = 0; i < 100; ++i) a[i] = a[i] * a[(i * 7 + 3) % 100] + s[(i + k) & 63];
#pragma unroll
  for (int i = 0; i < 100; ++i) x[i * 64] = a[i];
})";
  const Compiled compiled = nvrtc_->compile(made);
  EXPECT_GT(compiled.resources.spill_bytes, 0);
  EXPECT_GT(compiled.resources.stack_bytes, 0);
  EXPECT_EQ(compiled.resources.registers, 32);
  EXPECT_EQ(compiled.resources.shared_bytes, 256);
}

TEST_F(NvrtcTest, FailureCarriesLogDescriptorAndSource) {
  Request made = tiny(test::sample());
  made.source += "int broken = undeclared_name;\n";
  try {
    nvrtc_->compile(made);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    const std::string text = error.what();
    EXPECT_NE(text.find("undeclared_name"), std::string::npos);
    EXPECT_NE(text.find(codegen::print(test::sample())), std::string::npos);
    EXPECT_NE(text.find("  24 | int broken"), std::string::npos) << text;
    EXPECT_NE(text.find(nvrtc_->path()), std::string::npos);
  }
}

TEST_F(NvrtcTest, A37NoToolkitHeaderIsNeededOrSeen) {
  Request made = tiny(test::sample());
  made.source = "#include <cuda_fp8.h>\n" + made.source;
  EXPECT_THROW(nvrtc_->compile(made), Error);  // whatever the toolkit holds, it is not looked at
}

TEST_F(NvrtcTest, FilesOfTheWorkingFolderAreNotSeen) {
  namespace fs = std::filesystem;
  const fs::path before = fs::current_path();
  const fs::path folder = fs::temp_directory_path() / ("mxjit_cwd_" + std::to_string(getpid()));
  fs::create_directories(folder / "tiny");
  std::ofstream(folder / "tiny" / "scale_add.cuh") << "#error the working folder's file\n";
  fs::current_path(folder);
  const Compiled compiled = nvrtc_->compile(tiny(test::sample()));
  fs::current_path(before);
  fs::remove_all(folder);
  EXPECT_EQ(compiled.cubin, nvrtc_->compile(tiny(test::sample())).cubin);
}

TEST_F(NvrtcTest, CubinHoldsNoPathOfThisMachine) {
  const Compiled compiled = nvrtc_->compile(tiny(test::sample()));
  const std::string text(compiled.cubin.begin(), compiled.cubin.end());
  EXPECT_EQ(text.find("/tmp"), std::string::npos);
  EXPECT_EQ(text.find("/usr"), std::string::npos);
  EXPECT_EQ(text.find(std::filesystem::current_path().string()), std::string::npos);
}

TEST_F(NvrtcTest, CompilesInParallel) {
  const Compiled expected = nvrtc_->compile(tiny(test::sample()));
  std::vector<std::thread> threads;
  std::vector<Compiled> results(4);
  for (Compiled& result : results) {
    threads.emplace_back([&, this] { result = nvrtc_->compile(tiny(test::sample())); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Compiled& result : results) EXPECT_EQ(result.cubin, expected.cubin);
}

TEST_F(NvrtcTest, PtxNamesTheKernel) {
  EXPECT_NE(nvrtc_->ptx(tiny(test::sample())).find(".entry mxjit_tiny_scale_add"), std::string::npos);
}

TEST_F(NvrtcTest, IdentityIsKnownWithoutOpening) {
  if (build_id(nvrtc_->path()).empty()) GTEST_SKIP() << "this libnvrtc carries no build id";
  EXPECT_EQ(nvrtc_compiler(nvrtc_->path())->identity(), nvrtc_->identity());
}

TEST(Nvrtc, A38MissingLibraryNamesWhatWasTried) {
  try {
    Nvrtc::open("/nowhere/libnvrtc.so.13");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_NE(std::string(error.what()).find("/nowhere/libnvrtc.so.13"), std::string::npos);
  }
  EXPECT_EQ(nvrtc_compiler("/nowhere/libnvrtc.so.13")->identity(), "");
}

TEST(Nvrtc, A50EmptyElementsOfListsAreIgnored) {
  const char* saved = std::getenv("CUDA_HOME");
  const std::string before = saved == nullptr ? "" : saved;
  ::setenv("CUDA_HOME", ":/nowhere:", 1);
  for (const std::string& candidate : nvrtc_candidates({})) {
    EXPECT_FALSE(candidate.starts_with("/lib")) << candidate;
    EXPECT_FALSE(candidate.empty());
  }
  if (saved == nullptr) {
    ::unsetenv("CUDA_HOME");
  } else {
    ::setenv("CUDA_HOME", before.c_str(), 1);
  }
}

TEST(Nvrtc, ResourcesAreReadFromPtxas) {
  Resources resources;
  EXPECT_TRUE(
      read_resources("ptxas info    : Function properties for k\n"
                     "    8 bytes stack frame, 12 bytes spill stores, 30 bytes spill loads\n"
                     "ptxas info    : Function properties for f\n"
                     "    8 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads\n"
                     "ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem\n",
                     resources));
  EXPECT_EQ(resources.spill_bytes, 45);
  EXPECT_EQ(resources.registers, 40);
  EXPECT_EQ(resources.shared_bytes, 256);
  EXPECT_FALSE(read_resources("nothing of the kind", resources));
}

}  // namespace
}  // namespace mxjit::compile
