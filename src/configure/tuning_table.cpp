#include "configure/tuning_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "mxjit/error.hpp"
#include "problem/json_text.hpp"
#include "problem/layout.hpp"

namespace mxjit::configure {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& reason) { throw Error(ErrorCode::io, "tuning table: " + reason); }

const Json& member(const Json& object, const char* name, Json::value_t type) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end() || found->type() != type)
    refuse(fmt::format("\"{}\" is missing or of another type", name));
  return *found;
}

std::string text(const Json& object, const char* name) {
  return member(object, name, Json::value_t::string).get<std::string>();
}

double microseconds(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_number())
    refuse(fmt::format("\"{}\" is missing or no number", name));
  const double us = found->get<double>();
  if (!(us > 0) || !std::isfinite(us)) refuse(fmt::format("\"{}\" is no time", name));
  return us;
}

double rounded(double us) { return std::round(us * 1e3) / 1e3; }

const Profile* known_profile(std::string_view name) {
  for (const Profile& profile : profiles())
    if (profile.name == name) return &profile;
  return nullptr;
}

// Adds a measurement that this library can use.
void read_gemm(const Json& item, const Profile& profile, DeviceTuning& device) {
  TunedGemm tuned;
  tuned.us = microseconds(item, "us");
  tuned.model_us = microseconds(item, "model_us");
  const std::string name = text(item, "tile");
  const Json& problem = member(item, "problem", Json::value_t::object);
  try {
    const problem::Problem parsed = problem::with_defaults(problem::parse(problem.dump()));
    const auto* gemm = std::get_if<problem::Gemm>(&parsed.op);
    if (gemm == nullptr) return;
    const problem::GemmExtents extents = problem::gemm_extents(*gemm);
    if (extents.m.is_range() || extents.n.is_range() || extents.k.is_range()) return;
    const GemmTraits traits = gemm_traits(*gemm);
    const auto tile = tile_of_name(traits, name);
    if (!tile || !is_dense_fp8(traits, profile)) return;
    tuned.problem = *gemm;
    tuned.tile = *tile;
    device.gemm.insert_or_assign(TuningTable::class_of(*gemm), std::move(tuned));
  } catch (const Error&) {
    return;  // of another version's vocabulary
  }
}

}  // namespace

std::size_t TuningTable::size() const {
  std::size_t all = 0;
  for (const auto& [kind, device] : devices) all += device.gemm.size();
  return all;
}

GemmTuning TuningTable::choices(const DeviceKind& kind) const {
  GemmTuning made;
  if (const auto found = devices.find(kind); found != devices.end())
    for (const auto& [of, tuned] : found->second.gemm) made.set(of, tuned.tile);
  return made;
}

std::vector<GemmTuning> TuningTable::choices(std::string_view profile) const {
  std::vector<GemmTuning> all;
  for (const auto& [kind, device] : devices)
    if (kind.profile == profile) all.push_back(choices(kind));
  return all;
}

GemmClass TuningTable::class_of(const problem::Gemm& problem) {
  const problem::GemmExtents extents = problem::gemm_extents(problem);
  return gemm_class(gemm_traits(problem), extents.m.max, extents.n.max, extents.k.max);
}

std::size_t TuningTable::add(const TuningTable& other) {
  std::size_t added = 0;
  for (const auto& [kind, device] : other.devices) {
    if (device.gemm.empty()) continue;
    DeviceTuning& own = devices[kind];
    if (own.gpu.empty()) own.gpu = device.gpu;
    for (const auto& [of, tuned] : device.gemm) added += own.gemm.try_emplace(of, tuned).second ? 1 : 0;
  }
  return added;
}

TuningTable TuningTable::of_target(std::string_view target) const {
  TuningTable kept = *this;
  std::erase_if(kept.devices, [&](const auto& item) {
    const Profile* profile = known_profile(item.first.profile);
    return profile == nullptr || profile->target != target;
  });
  return kept;
}

TuningTable parse_tuning(std::string_view json) {
  Json document;
  try {
    document = problem::read_json(json, "tuning table");
  } catch (const Error& error) {
    refuse(error.what());
  }
  if (const Json& format = member(document, "format", Json::value_t::number_unsigned);
      format != tuning_format)
    throw Error(ErrorCode::unsupported,
                fmt::format("tuning table: of format {}; this library reads format {}", format.dump(),
                            tuning_format));
  TuningTable table;
  for (const Json& item : member(document, "devices", Json::value_t::array)) {
    DeviceKind kind;
    kind.profile = text(item, "profile");
    const auto count = member(item, "sm_count", Json::value_t::number_unsigned).get<std::uint64_t>();
    const std::string gpu = text(item, "gpu");
    const Json& gemm = member(item, "gemm", Json::value_t::array);
    const Profile* profile = known_profile(kind.profile);
    if (profile == nullptr || count == 0 || count > 65536) continue;
    kind.sm_count = static_cast<int>(count);
    DeviceTuning& device = table.devices[kind];
    device.gpu = gpu;
    for (const Json& one : gemm) read_gemm(one, *profile, device);
  }
  std::erase_if(table.devices, [](const auto& item) { return item.second.gemm.empty(); });
  return table;
}

std::string print(const TuningTable& table) {
  Json devices = Json::array();
  for (const auto& [kind, device] : table.devices) {
    if (device.gemm.empty()) continue;
    Json gemm = Json::array();
    for (const auto& [of, tuned] : device.gemm) {
      const GemmTraits traits = gemm_traits(tuned.problem);
      gemm.push_back({{"problem", Json::parse(problem::print({"", tuned.problem}))},
                      {"tile", tile_name(gemm_tiles(traits)[static_cast<std::size_t>(tuned.tile)])},
                      {"us", rounded(tuned.us)},
                      {"model_us", rounded(tuned.model_us)}});
    }
    devices.push_back({{"profile", kind.profile},
                       {"sm_count", static_cast<unsigned>(kind.sm_count)},
                       {"gpu", device.gpu},
                       {"gemm", std::move(gemm)}});
  }
  return Json{{"format", static_cast<unsigned>(tuning_format)}, {"devices", std::move(devices)}}.dump();
}

}  // namespace mxjit::configure
