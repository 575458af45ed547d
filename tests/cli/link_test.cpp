// Neither the driver nor the compiler is linked: a machine without them starts the program.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

TEST(Link, A35NoCudaLibraryIsNeeded) {
  FILE* pipe = ::popen("LC_ALL=C ldd '" MXJIT_TOOL "' 2>&1", "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 4096> piece{};
  for (std::size_t got = 0; (got = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
    text.append(piece.data(), got);
  }
  if (::pclose(pipe) != 0) GTEST_SKIP() << "ldd does not run here: " << text;
  EXPECT_NE(text.find("libc.so"), std::string::npos) << text;
  for (const char* name : {"libcuda", "libnvrtc", "libnvidia"})
    EXPECT_EQ(text.find(name), std::string::npos) << text;
}

}  // namespace
