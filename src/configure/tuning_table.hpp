// The table of measured choices, of all devices, and its JSON form. Pure: where it lies is the cache's
// business.
//     {"devices": [{"gemm": [{"model_us", "problem", "tile", "us"}...], "gpu", "profile", "sm_count"}...],
//      "format": 1}
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "configure/gemm_tuning.hpp"
#include "configure/profile.hpp"

namespace mxjit::configure {

/// What was measured for a class of problems.
struct TunedGemm {
  problem::Gemm problem;  // that was measured
  int tile = 0;           // index in gemm_tiles
  double us = 0;          // of that tile, and of the model's choice
  double model_us = 0;
};

/// Devices whose measurements hold for each other.
struct DeviceKind {
  std::string profile;  // name
  int sm_count = 0;
  friend auto operator<=>(const DeviceKind&, const DeviceKind&) = default;  // NOLINT(modernize-use-nullptr)
};

struct DeviceTuning {
  std::string gpu;  // name, as the driver says it
  std::map<GemmClass, TunedGemm> gemm;
};

struct TuningTable {
  std::map<DeviceKind, DeviceTuning> devices;

  bool empty() const { return devices.empty(); }
  std::size_t size() const;  ///< classes of problems
  /// The choices for a kind of device; those of every kind with this profile.
  GemmTuning choices(const DeviceKind& kind) const;
  std::vector<GemmTuning> choices(std::string_view profile) const;
  /// The class of a concrete problem's measurement, of a batch that of one matrix: they are launched one by
  /// one. Throws as gemm_traits.
  static GemmClass class_of(const problem::Gemm& problem);
  /// Takes over what `other` has and this one lacks; returns how much.
  std::size_t add(const TuningTable& other);
  /// Without the devices of other targets.
  TuningTable of_target(std::string_view target) const;
};

inline constexpr int tuning_format = 1;

/// Leaves out devices, problems and tiles that this library does not know. Throws Error(io) with the reason
/// for text that is no table, Error(unsupported) for a table of another format.
TuningTable parse_tuning(std::string_view json);
/// The same bytes for the same table. parse_tuning(print(t)) equals t but for times, which are rounded to
/// nanoseconds.
std::string print(const TuningTable& table);

}  // namespace mxjit::configure
