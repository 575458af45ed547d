#include "mxjit/device.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "codegen/target.hpp"
#include "dispatch/profile_of_device.hpp"
#include "driver/device_context.hpp"
#include "driver/driver.hpp"
#include "mxjit/error.hpp"

namespace mxjit::cli {

namespace {

const configure::Profile* profile_or_null(const driver::DeviceFacts& facts) {
  try {
    return &dispatch::profile_of(facts);
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

DeviceChoice parse_device(const std::string& text) {
  if (text == "auto") return {DeviceChoice::Kind::automatic, 0};
  if (text == "cpu") return {DeviceChoice::Kind::cpu, 0};
  if (text == "cuda") return {DeviceChoice::Kind::cuda, 0};
  constexpr std::string_view prefix = "cuda:";
  if (text.starts_with(prefix)) {
    int index = -1;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data() + prefix.size(), end, index);
    if (result.ec == std::errc() && result.ptr == end && index >= 0) return {DeviceChoice::Kind::cuda, index};
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--device: \"{}\"; expected auto, cpu, cuda or cuda:N", text), "--device");
}

void add_device_option(CLI::App& command, DeviceChoice& choice) {
  command
      .add_option_function<std::string>(
          "--device", [&choice](const std::string& text) { choice = parse_device(text); },
          "Where it runs: auto (a GPU if there is one that has the kernel, else the CPU), cpu, cuda or "
          "cuda:N")
      ->type_name("auto|cpu|cuda[:N]")
      ->check([](const std::string& text) {
        try {
          parse_device(text);
          return std::string();
        } catch (const Error& error) {
          return std::string(error.what());
        }
      });
}

void add_arch_option(CLI::App& command, std::string& arch) {
  command
      .add_option("--arch", arch, "Target to compile for, such as sm_90a (default: the GPU's, else sm_90a)")
      ->type_name("ARCH");
}

std::string target_or_default(const std::string& arch) {
  if (!arch.empty()) return codegen::normalize_target(arch);
  for (const Gpu& gpu : gpus())
    if (gpu.profile != nullptr) return gpu.target;
  return "sm_90a";
}

std::vector<Gpu> gpus() {
  std::vector<Gpu> found;
  try {
    const driver::Api& api = driver::api();
    int count = 0;
    driver::check(api, api.device_get_count(&count), "cuDeviceGetCount");
    for (int i = 0; i < count; ++i) {
      CUdevice device{};
      driver::check(api, api.device_get(&device, i), "cuDeviceGet");
      const driver::DeviceFacts facts = driver::device_facts(api, device);
      Gpu gpu{i, facts.name, facts.target, facts.sm_count, 0, profile_or_null(facts)};
      driver::check(api, api.device_total_mem(&gpu.memory_bytes, device), "cuDeviceTotalMem");
      found.push_back(std::move(gpu));
    }
  } catch (const Error&) {
    // No usable driver: why_no_gpu() tells the reason where it matters.
  }
  return found;
}

}  // namespace mxjit::cli
