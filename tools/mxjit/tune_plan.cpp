#include "mxjit/tune_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "configure/gemm.hpp"
#include "configure/gemm_tiles.hpp"
#include "mxjit/error.hpp"
#include "problem/layout.hpp"

namespace mxjit::cli {
namespace {

// What M is measured for a range of it where it has no say in the tile.
constexpr std::int64_t rows_of_invariant = 512;

std::vector<std::int64_t> rows_of(const problem::Gemm& gemm, const problem::Extent& m,
                                  const std::vector<std::int64_t>& asked) {
  if (!m.is_range()) return {m.max};
  if (gemm.batch_invariant) return {std::clamp(rows_of_invariant, m.min, m.max)};
  std::vector<std::int64_t> rows;
  for (const std::int64_t row : asked)
    if (m.min <= row && row <= m.max) rows.push_back(row);
  if (!asked.empty()) return rows;
  for (std::int64_t row = 1; row < m.max; row *= 2)
    if (row >= m.min) rows.push_back(row);
  rows.push_back(m.max);
  return rows;
}

// What is measured: so many rows, and of a batch one matrix, as a launch of the Hopper kernel takes it.
problem::Gemm measured(const problem::Gemm& gemm, std::int64_t rows) {
  problem::Gemm concrete = gemm;
  for (problem::Operand* operand : {&concrete.a, &concrete.b})
    if (operand->tensor.shape.size() == 3) operand->tensor.shape.front() = 1;
  problem::Shape& shape = concrete.a.tensor.shape;
  shape[shape.size() - 2] = rows;
  concrete.d.tensor.shape.clear();  // follows
  return std::get<problem::Gemm>(problem::with_defaults({"", std::move(concrete)}).op);
}

bool without_products(const problem::Gemm& gemm) {
  problem::Shape extents = problem::gemm_output_shape(gemm);
  extents.push_back(problem::gemm_extents(gemm).k);
  return std::ranges::any_of(extents, [](const problem::Extent& extent) { return extent.max == 0; });
}

// Fills in what is measured, or says why nothing is.
std::string prepare(TuneJob& job, const configure::Profile& profile) {
  job.traits = configure::gemm_traits(job.problem);
  if (!configure::is_dense_fp8(job.traits, profile) || !configure::dense_fp8_counts(job.m, job.n, job.k))
    return "its kernel has one configuration";
  const auto tiles = configure::gemm_tiles(job.traits);
  const std::int64_t k_blocks = (job.k + 127) / 128;
  const auto modelled = [&](int tile) {
    return configure::modelled_ns(configure::as_configured(job.traits, tiles[static_cast<std::size_t>(tile)]),
                                  job.m, job.n, k_blocks, profile.sm_count, configure::d_bytes(job.traits));
  };
  job.model = configure::choose_tile(job.traits, job.m, job.n, job.k, profile.sm_count);
  const double most = 2 * modelled(job.model);
  for (int tile = 0; tile < static_cast<int>(tiles.size()); ++tile) {
    configure::Configuration configuration =
        configure::dense_fp8_configuration(job.traits, tiles[static_cast<std::size_t>(tile)]);
    const bool fits = configuration.shared_bytes <= profile.shared_bytes_per_block;
    if (tile != job.model && (!fits || modelled(tile) > most)) continue;
    codegen::KernelDescriptor descriptor{std::move(configuration), std::string(profile.target)};
    std::string key = to_hex(codegen::key(descriptor));
    job.tiles.push_back(tile);
    job.kernels.push_back({std::move(descriptor), std::move(key)});
  }
  return {};
}

}  // namespace

std::vector<PlannedKernel> TunePlan::kernels() const {
  std::vector<PlannedKernel> all;
  std::set<std::string> seen;
  for (const TuneJob& job : jobs)
    for (const Kernel& kernel : job.kernels)
      if (seen.insert(kernel.key).second)
        all.push_back({kernel, {job.title}, problem::print({"", job.problem})});
  return all;
}

TunePlan plan_tuning(const std::vector<problem::Problem>& problems, const configure::Profile& profile,
                     const std::vector<std::int64_t>& rows) {
  TunePlan plan;
  std::set<configure::GemmClass> seen;
  const auto skip = [&](const problem::Problem& problem, const std::string& reason) {
    const std::string name = title(problem);
    const auto same = [&](const UnsupportedProblem& item) {
      return item.problem == name && item.reason == reason;
    };
    if (std::none_of(plan.skipped.begin(), plan.skipped.end(), same))
      plan.skipped.push_back({name, {std::string(profile.target)}, reason});
  };
  for (const problem::Problem& problem : problems) {
    const auto* given = std::get_if<problem::Gemm>(&problem.op);
    if (given == nullptr) {
      skip(problem, "its kernels have one configuration");
      continue;
    }
    try {
      configure::configure_gemm(*given, profile);  // refuses what has no kernel
      const problem::GemmExtents extents = problem::gemm_extents(*given);
      if (extents.n.is_range() || extents.k.is_range()) {
        skip(problem, "N and K must be single numbers");
        continue;
      }
      if (without_products(*given)) {
        skip(problem, "an extent is 0");
        continue;
      }
      const std::vector<std::int64_t> chosen = rows_of(*given, extents.m, rows);
      if (chosen.empty()) skip(problem, "none of --rows lies in the range of M");
      for (const std::int64_t m : chosen) {
        TuneJob job{.title = title(problem),
                    .problem = measured(*given, m),
                    .traits = {},
                    .m = m,
                    .n = extents.n.max,
                    .k = extents.k.max,
                    .tiles = {},
                    .kernels = {}};
        if (const std::string reason = prepare(job, profile); !reason.empty()) {
          skip(problem, reason);
        } else if (seen.insert(configure::TuningTable::class_of(job.problem)).second) {
          plan.jobs.push_back(std::move(job));
        }
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      skip(problem, error.what());
    }
  }
  return plan;
}

}  // namespace mxjit::cli
