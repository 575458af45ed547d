// A plugin with mxjit inside: opened, used and closed, again and again.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace {

namespace fs = std::filesystem;

std::ptrdiff_t threads() {
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

bool mapped() {
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find(MXJIT_PLUGIN) != std::string::npos;
}

// Returns the launches that the plugin made, or why not.
std::string use() {
  void* plugin = ::dlopen(MXJIT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return ::dlerror();
  auto* call = reinterpret_cast<int (*)()>(::dlsym(plugin, "mxjit_test_plugin_use"));
  if (call == nullptr) return ::dlerror();
  const int launches = call();
  return ::dlclose(plugin) == 0 ? std::to_string(launches) : "not closed";
}

TEST(Plugin, IsOpenedUsedAndClosedAgainAndAgain) {
  const std::ptrdiff_t before = threads();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(use(), "2");  // every time as if it were the first
    EXPECT_FALSE(mapped()) << "something keeps the plugin in place";
    EXPECT_EQ(threads(), before);
  }
}

TEST(Plugin, ThreadsThatUsedItMayOutliveIt) {
  for (int i = 0; i < 5; ++i) std::jthread([] { EXPECT_EQ(use(), "2"); }).join();
  EXPECT_FALSE(mapped());
}

}  // namespace
