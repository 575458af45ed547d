#include "configure/quantize_shared.hpp"

namespace mxjit::configure {

std::vector<std::int64_t> row_lengths(const problem::Extent& n, bool bucketed) {
  const auto start = [&](std::int64_t length) { return bucketed ? bucket(length) : length; };
  std::vector<std::int64_t> lengths;
  const std::int64_t last = start(n.max);
  for (std::int64_t length = start(n.min), steps = 0; length < last && steps < 16; length += 128, ++steps)
    lengths.push_back(length);
  lengths.push_back(last);
  return lengths;
}

void add_values(Configuration& configuration, const problem::Quantize& problem) {
  const auto* swiglu = std::get_if<problem::Swiglu>(&problem.pre);
  const bool turned = problem.input_layout == problem::InputLayout::col;
  // In a transposed input gate and up alternate row by row, as far apart as a pitch says.
  const char* const pre = is_normalized(problem)          ? turned ? "rmsnorm_turned" : "rmsnorm"
                          : swiglu == nullptr             ? "none"
                          : swiglu->interleave && !turned ? "swiglu_interleaved"
                                                          : "swiglu";
  configuration.constants["pre"] = enumerator("Pre", pre);
  configuration.constants["limited"] = swiglu != nullptr && swiglu->limit.has_value();
  configuration.constants["stored"] = enumerator("Input", to_string(problem.input.dtype));
  configuration.constants["groups_turned"] = turned && problem.groups.has_value();
  configuration.constants["high"] = enumerator("High", !problem.emit_high ? "none"
                                                       : turned           ? "turned"
                                                                          : "row");
  configuration.constants["input"] = enumerator("Input", to_string(quantized_dtype(problem)));
}

void add_constants(Configuration& configuration, const problem::Quantize& problem,
                   const QuantizeMatrix& matrix) {
  const problem::Recipe& recipe = problem.recipe;
  configuration.constants["row"] = matrix.row;
  configuration.constants["col"] = matrix.col;
  configuration.constants["batched"] = problem.input.shape.size() == 3;
  configuration.constants["format"] = enumerator("Format", to_string(recipe.format));
  configuration.constants["rounding"] = enumerator("Rounding", to_string(recipe.rounding));
  configuration.constants["scale_layout"] = enumerator("ScaleLayout", to_string(recipe.scale_layout));
}

void add_constants(Configuration& configuration, const TileGeometry& geometry) {
  configuration.constants["rows_per_lane"] = geometry.rows_per_lane;
  configuration.constants["lanes_across"] = geometry.lanes_across;
  configuration.constants["warps_m"] = geometry.warps_m;
  configuration.constants["warps_n"] = geometry.warps_n;
  configuration.threads = static_cast<int>(32 * geometry.warps_m * geometry.warps_n);
  configuration.min_blocks = geometry.min_blocks;
}

void add_constants(Configuration& configuration, const std::optional<problem::MGroups>& groups) {
  configuration.constants["group_alignment"] = std::int64_t{groups ? groups->alignment : 0};
  configuration.constants["max_groups"] = groups ? bucket(groups->count) : std::int64_t{1};
}

void add_new(std::vector<Configuration>& all, Configuration configuration) {
  if (std::find(all.begin(), all.end(), configuration) == all.end()) all.push_back(std::move(configuration));
}

}  // namespace mxjit::configure
