#include "base/resources.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace mxjit {
namespace {

using Number = std::optional<std::uint64_t>;

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The number that starts `text`, blanks before it left out; none for "max" and "-1", which set no limit.
Number number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

// The number behind `name` in lines such as "MemAvailable:  123 kB" and "inactive_file 123".
Number field(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (std::string_view(line).starts_with(name)) return number(std::string_view(line).substr(name.size()));
  return std::nullopt;
}

// A process's group and the groups around it, below the folder that a controller is mounted at. A container
// may see its own group as the top, under a path that leads nowhere: the top is looked at in any case.
std::vector<std::string> groups(const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  while (path.size() > 1) {
    folders.push_back(mount + path);
    path.resize(path.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

struct Mounted {
  bool unified = false;  // version 2
  bool cpu = false, memory = false;
  std::vector<std::string> folders;
};

std::vector<Mounted> mounted(const std::string& root) {
  std::vector<Mounted> all;
  const std::string base = root + "/sys/fs/cgroup";
  std::istringstream lines(text_of(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {  // "ID:CONTROLLERS:PATH"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      path = line.substr(second + 1);
    if (path.empty() || path.front() != '/') continue;
    if (controllers.empty()) {
      all.push_back({true, true, true, groups(base, path)});
      all.push_back({true, true, true, groups(base + "/unified", path)});
      continue;
    }
    const std::string list = "," + controllers + ",";
    const bool cpu = list.find(",cpu,") != std::string::npos;
    const bool memory = list.find(",memory,") != std::string::npos;
    if (cpu) all.push_back({false, true, false, groups(base + "/" + controllers, path)});
    if (cpu) all.push_back({false, true, false, groups(base + "/cpu", path)});
    if (memory) all.push_back({false, false, true, groups(base + "/memory", path)});
  }
  return all;
}

Number cores_of(const std::string& folder, bool unified) {
  Number quota, period;
  if (unified) {
    const std::string text = text_of(folder + "/cpu.max");  // "QUOTA PERIOD"
    quota = number(text);
    if (const std::size_t blank = text.find(' '); blank != std::string::npos)
      period = number(std::string_view(text).substr(blank));
  } else {
    quota = number(text_of(folder + "/cpu.cfs_quota_us"));
    period = number(text_of(folder + "/cpu.cfs_period_us"));
  }
  if (!quota || !period || *period == 0) return std::nullopt;
  return (*quota + *period - 1) / *period;
}

// Pages of files that nobody used lately go before memory runs out.
Number memory_of(const std::string& folder, bool unified) {
  const Number limit = number(text_of(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes")));
  if (!limit) return std::nullopt;
  const std::uint64_t used =
      number(text_of(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"))).value_or(0);
  const std::uint64_t idle =
      field(text_of(folder + "/memory.stat"), unified ? "inactive_file " : "total_inactive_file ")
          .value_or(0);
  const std::uint64_t taken = used - std::min(used, idle);
  return *limit - std::min(*limit, taken);
}

unsigned affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails where the machine has more than 1024: then the quota alone decides.
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1024;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace

Resources available_resources(const std::string& root) {
  std::uint64_t cores = affinity();
  std::uint64_t memory = std::numeric_limits<std::uint64_t>::max();
  if (const Number free = field(text_of(root + "/proc/meminfo"), "MemAvailable:")) memory = *free * 1024;
  for (const Mounted& controller : mounted(root))
    for (const std::string& folder : controller.folders) {
      if (controller.cpu) cores = std::min(cores, cores_of(folder, controller.unified).value_or(cores));
      if (controller.memory)
        memory = std::min(memory, memory_of(folder, controller.unified).value_or(memory));
    }
  const bool known = memory != std::numeric_limits<std::uint64_t>::max();
  return {static_cast<unsigned>(std::max<std::uint64_t>(cores, 1)),
          known ? std::max<std::uint64_t>(memory, 1) : 0};
}

}  // namespace mxjit
