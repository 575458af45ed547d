// The golden cases on the device: files made by other people's code.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "contract/golden.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::device {
namespace {

class GoldenOnDevice : public DeviceTest {};

TEST_F(GoldenOnDevice, EveryCaseThatHasAKernel) {
  const std::filesystem::path root = contract::goldens();
  if (root.empty()) GTEST_SKIP() << "MXJIT_GOLDENS is not set";
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root))
    if (std::filesystem::exists(entry.path() / "problem.json")) folders.push_back(entry.path());
  std::ranges::sort(folders);

  std::map<std::filesystem::path, problem::Problem> cases;
  std::vector<problem::Problem> problems;
  for (const std::filesystem::path& folder : folders) {
    SCOPED_TRACE(folder.filename().string());
    const std::string text = contract::read_text(folder / "problem.json");
    if (text.find("\"composite\"") != std::string::npos) continue;
    const problem::Problem problem = problem::parse(text);
    if (!is_supported(problem)) continue;
    cases.emplace(folder, problem);
    problems.push_back(problem);
  }
  prewarm(problems);

  int compared = 0;
  for (const auto& [folder, problem] : cases) {
    SCOPED_TRACE(folder.filename().string());
    const safetensors::File in = safetensors::read(folder / "in.safetensors");
    const safetensors::File expect = safetensors::read(folder / "expect.safetensors");
    const contract::Comparison comparison = contract::read_comparison(folder / "expect.json");
    const TensorMap out = run_guarded(problem, in.tensors);
    EXPECT_EQ(out.size(), expect.tensors.size());
    for (const auto& [name, expected] : expect.tensors) {
      ASSERT_TRUE(out.contains(name)) << name;
      EXPECT_EQ(contract::difference(out.at(name), expected, comparison), "") << name;
    }
    ++compared;
  }
  RecordProperty("cases", compared);
  EXPECT_GE(compared, 30) << "of " << folders.size() << " cases";
}

}  // namespace
}  // namespace mxjit::device
