// A compiler that compiles nothing, and kernels for it. Needs no test framework.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "codegen/descriptor.hpp"
#include "compile/compiler.hpp"

namespace mxjit::test {

namespace fs = std::filesystem;

/// The `index`-th of many kernels.
codegen::KernelDescriptor kernel(int index = 0, const std::string& target = "sm_90a");

/// An ELF file that passes for a cubin: chip, one global function, and `payload`.
std::vector<std::uint8_t> fake_cubin(int sm, const std::string& symbol, const std::string& payload);

/// What FakeCompiler makes of `descriptor`.
std::vector<std::uint8_t> expected_cubin(const codegen::KernelDescriptor& descriptor);

/// Compiles in no time and deterministically; counts, across processes too when `tally` names a file.
class FakeCompiler : public compile::Compiler {
 public:
  std::string identity() override { return name; }
  compile::Compiled compile(const codegen::KernelDescriptor& descriptor) override;

  std::string name = "compiler-1";
  std::string build = "13.0.88";
  std::chrono::milliseconds delay{0};
  std::string tally;
  std::function<void(const codegen::KernelDescriptor&)> before;  // may throw
  std::atomic<int> compiles{0};
};

/// Adds one to a tally file, across processes.
void tally(const fs::path& file);
/// What a tally file counts, compilations for one.
int tallied(const fs::path& tally);

}  // namespace mxjit::test
