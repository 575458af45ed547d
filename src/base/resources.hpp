// What this process may use of the machine: its cores and memory within the limits of its cgroups.
#pragma once

#include <cstdint>
#include <string>

namespace mxjit {

struct Resources {
  unsigned cores = 1;              // of the affinity mask and of the cgroups' CPU quotas, rounded up
  std::uint64_t memory_bytes = 0;  // what can be taken now without swapping; 0: not known
};

/// Reads /proc and /sys/fs/cgroup (version 2 and 1) below `root`. What cannot be read sets no limit.
Resources available_resources(const std::string& root = {});

}  // namespace mxjit
