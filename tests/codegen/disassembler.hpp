// Machine code as text, where a disassembler is installed.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace mxjit::test {

/// Empty where there is none.
inline std::filesystem::path disassembler() {
  const char* named = std::getenv("MXJIT_DISASSEMBLER");
  for (const char* candidate : {named, "/usr/local/cuda/bin/nvdisasm"})
    if (candidate != nullptr && access(candidate, X_OK) == 0) return candidate;
  return {};
}

inline std::string disassemble(const std::filesystem::path& program, const std::vector<std::uint8_t>& cubin) {
  char name[] = "/tmp/mxjit_cubin_XXXXXX";
  const int file = mkstemp(name);
  EXPECT_GE(file, 0);
  close(file);
  std::ofstream(name, std::ios::binary)
      .write(reinterpret_cast<const char*>(cubin.data()), static_cast<std::streamsize>(cubin.size()));
  std::string listing;
  if (std::FILE* pipe = popen((program.string() + " " + name).c_str(), "r")) {
    char buffer[4096];
    while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) listing.append(buffer, got);
    EXPECT_EQ(pclose(pipe), 0);
  }
  std::filesystem::remove(name);
  return listing;
}

}  // namespace mxjit::test
