#include "emulation/host_compiler.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/sha256.hpp"
#include "cache/support.hpp"
#include "codegen/target.hpp"
#include "mxjit/error.hpp"

namespace mxjit::emulation {
namespace {

namespace fs = std::filesystem;

// Nothing here rounds twice or fuses by itself: what a kernel's numbers must be, it says.
constexpr const char* options =
    "-std=c++20 -O1 -w -fPIC -shared -fvisibility=hidden -ffp-contract=off "
    "-fno-strict-aliasing";

std::string compiler() {
  const char* asked = std::getenv("MXJIT_EMULATION_CXX");
  return asked != nullptr && *asked != '\0' ? asked : "c++";
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string output_of(const std::string& command) {
  std::string text;
  if (FILE* pipe = ::popen(command.c_str(), "r")) {
    char buffer[4096];
    while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, size);
    ::pclose(pipe);
  }
  return text;
}

const fs::path& device_headers() {
  static const fs::path path = fs::path(MXJIT_TESTS_DIR) / "emulation" / "device";
  return path;
}

}  // namespace

// The emulated instructions are part of what compiles.
std::string HostCompiler::identity() {
  static const std::string identity = [] {
    std::string all = compiler() + output_of(compiler() + " --version 2>&1") + options;
    std::vector<fs::path> headers;
    for (const auto& entry : fs::recursive_directory_iterator(device_headers()))
      if (entry.is_regular_file()) headers.push_back(entry.path());
    std::sort(headers.begin(), headers.end());
    for (const fs::path& header : headers) all += contents(header);
    return "host 2 " + to_hex(sha256(all));
  }();
  return identity;
}

std::string compile_for_host(const std::string& source, const std::string& symbol) {
  const test::Folder folder;
  const fs::path file = folder.path() / "kernel.cpp", object = folder.path() / "kernel.so",
                 log = folder.path() / "log";
  std::ofstream(file) << source
                      << fmt::format(
                             "template <class Params>\n"
                             "void mxjit_call(void (*kernel)(Params), const void* params) {{\n"
                             "  kernel(*static_cast<const Params*>(params));\n"
                             "}}\n"
                             "template <class Params>\n"
                             "constexpr unsigned long mxjit_size(void (*)(Params)) {{\n"
                             "  return sizeof(Params);\n"
                             "}}\n"
                             "extern \"C\" __attribute__((visibility(\"default\")))\n"
                             "void mxjit_entry(const void* params) {{ mxjit_call(&{0}, params); }}\n"
                             "extern \"C\" __attribute__((visibility(\"default\")))\n"
                             "const unsigned long mxjit_params_bytes = mxjit_size(&{0});\n",
                             symbol);
  // The emulation's ptx/ stands before the kernels'.
  const std::string command =
      fmt::format("{} {} -include {}/emulation.hpp -I {} -I {}/../kernels -o {} {} > {} 2>&1", compiler(),
                  options, device_headers().string(), device_headers().string(), MXJIT_TESTS_DIR,
                  object.string(), file.string(), log.string());
  if (std::system(command.c_str()) != 0)
    throw Error(ErrorCode::compile_failed, fmt::format("{}\n{}", command, contents(log)));
  return contents(object);
}

compile::Compiled HostCompiler::compile(const codegen::KernelDescriptor& descriptor) {
  const auto from = std::chrono::steady_clock::now();
  compile::Compiled compiled;
  compiled.symbol = codegen::symbol(descriptor);
  compiled.cubin = test::fake_cubin(codegen::parse_target(descriptor.target).number, compiled.symbol,
                                    compile_for_host(codegen::generate_source(descriptor), compiled.symbol));
  compiled.build = "0.0.0";
  compiled.compiler = identity();
  compiled.resources.registers = 1;
  compiled.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
  return compiled;
}

std::string shared_object(const void* cubin) {
  // Section 3 of fake_cubin.
  const auto* bytes = static_cast<const char*>(cubin);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof header);
  Elf64_Shdr text;
  std::memcpy(&text, bytes + header.e_shoff + 3 * sizeof text, sizeof text);
  return {bytes + text.sh_offset, text.sh_size};
}

}  // namespace mxjit::emulation
