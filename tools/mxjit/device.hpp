// --device and --arch: where a problem runs, and what a kernel is compiled for.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "configure/profile.hpp"

namespace mxjit::cli {

struct DeviceChoice {
  enum class Kind { automatic, cpu, cuda };
  Kind kind = Kind::automatic;
  int index = 0;  // of the GPU, for cuda
};

/// "auto", "cpu", "cuda" or "cuda:N". Throws Error(invalid_argument).
DeviceChoice parse_device(const std::string& text);

/// Adds `--device auto|cpu|cuda[:N]`, default auto.
void add_device_option(CLI::App& command, DeviceChoice& choice);
/// Adds `--arch A`; the value stays empty where none is given.
void add_arch_option(CLI::App& command, std::string& arch);

/// The target to compile for: `arch`, else that of the first GPU here, else sm_90a.
std::string target_or_default(const std::string& arch);

/// One GPU as the driver tells it.
struct Gpu {
  int index = 0;
  std::string name;
  std::string target;  // "sm_90a"
  int sm_count = 0;
  std::size_t memory_bytes = 0;
  const configure::Profile* profile = nullptr;  // null: no kernels are generated for its target
};
/// Every GPU here; empty without a driver. Never throws.
std::vector<Gpu> gpus();

}  // namespace mxjit::cli
