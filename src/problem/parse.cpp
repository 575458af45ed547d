// JSON -> Problem. Types and closed sets are checked here; what fields mean together is checked by validate.
#include <fmt/format.h>

#include "problem/fields.hpp"
#include "problem/problem.hpp"
#include "problem/vocabulary.hpp"

namespace mxjit::problem {

using nlohmann::json;

namespace {

Extent read_extent(const json& value, const std::string& pointer) {
  if (value.is_object()) {
    const Fields fields(value, pointer, {"min", "max"});
    const std::int64_t low = fields.need_integer("min", 0);
    return {low, fields.need_integer("max", low)};
  }
  if (!value.is_number_integer()) {
    fail(pointer, "an integer, at least 0, or a range {\"min\": a, \"max\": b}", describe(value));
  }
  return {read_integer(value, pointer, 0)};
}

Shape read_shape(const Fields& fields) {
  const json& value = fields.need("shape");
  const std::string pointer = fields.at("shape");
  if (!value.is_array()) fail(pointer, "an array of extents", describe(value));
  Shape shape;
  for (const json& extent : value)
    shape.push_back(read_extent(extent, fmt::format("{}/{}", pointer, shape.size())));
  return shape;
}

Pitch read_pitch(const Fields& fields) {
  Pitch pitch;
  if (const json* ld = fields.find_set("ld")) pitch.ld = read_integer(*ld, fields.at("ld"), 0);
  if (const json* align = fields.find_set("align")) {
    pitch.align = static_cast<int>(read_integer(*align, fields.at("align"), 1, 16));
  }
  return pitch;
}

TensorSpec read_tensor(const Fields& fields, std::span<const DType> dtypes) {
  TensorSpec tensor;
  tensor.dtype = fields.choose("dtype", dtypes);
  tensor.shape = read_shape(fields);
  const Pitch pitch = read_pitch(fields);
  tensor.ld = pitch.ld;
  tensor.align = pitch.align;
  return tensor;
}

// "block", whichever of `allowed` it spells.
Block read_block(const Fields& fields, std::span<const Block> allowed) {
  const json& value = fields.need("block");
  std::string known;
  for (const Block& candidate : allowed) {
    const json spelled = block_json(candidate);
    // Compared by type first: nlohmann holds 32 and 32.0 equal, a problem file does not.
    if (spelled.type() == value.type() || (spelled.is_number_integer() && value.is_number_integer())) {
      const bool integers =
          !value.is_array() || std::all_of(value.begin(), value.end(),
                                           [](const json& element) { return element.is_number_integer(); });
      if (integers && spelled == value) return candidate;
    }
    known += (known.empty() ? "" : ", ") + spelled.dump();
  }
  fail(fields.at("block"), allowed.size() > 1 ? "one of " + known : known, describe(value));
}

std::int64_t read_group_count(const Fields& fields) { return fields.need_integer("count", 1, kMaxGroups); }

// The fields of a recipe that dequantize shares.
struct Scheme {
  Scaling scaling;
  Block block;
  ScaleLayout layout;
};

Scheme read_scheme(const Fields& fields, bool tile_local) {
  Scheme scheme{};
  scheme.scaling = fields.choose("scaling", std::span<const Scaling>(kScalings));
  scheme.block = read_block(fields, tile_local ? tile_blocks(scheme.scaling) : recipe_blocks(scheme.scaling));
  scheme.layout =
      fields.choose("scale_layout", scale_layouts(scheme.scaling, scheme.block), ScaleLayout::plain);
  return scheme;
}

Recipe read_recipe(const Fields& fields, bool tile_local = false) {
  Recipe recipe;
  recipe.format = fields.choose("format", std::span<const DType>(kFormats), DType::e4m3);
  const Scheme scheme = read_scheme(fields, tile_local);
  recipe.scaling = scheme.scaling;
  recipe.block = scheme.block;
  recipe.scale_layout = scheme.layout;
  const auto allowed = roundings(recipe.scaling);
  recipe.rounding = fields.choose("rounding", allowed, allowed.front());
  if (const json* cap = fields.find_set("amax_cap"))
    recipe.amax_cap = read_number(*cap, fields.at("amax_cap"));
  return recipe;
}

Recipe read_recipe(const json& value, const std::string& pointer, bool tile_local = false) {
  return read_recipe(
      Fields(value, pointer, {"format", "scaling", "block", "rounding", "scale_layout", "amax_cap"}),
      tile_local);
}

std::optional<MGroups> read_m_groups(const Fields& fields) {
  const json* value = fields.find_set("groups");
  if (value == nullptr) return std::nullopt;
  const Fields groups(*value, fields.at("groups"), {"count", "axis", "alignment"});
  MGroups result;
  result.count = read_group_count(groups);
  if (const json* axis = groups.find("axis"); axis != nullptr && *axis != "m") {
    fail(groups.at("axis"), "\"m\"", describe(*axis));
  }
  if (groups.find("alignment") != nullptr) {
    result.alignment = static_cast<int>(groups.need_integer("alignment", 1, 128));
  }
  return result;
}

std::string read_kind(const json& value, const std::string& pointer, std::string_view known) {
  if (!value.is_object()) fail(pointer, "null or an object with the field kind", describe(value));
  const auto kind = value.find("kind");
  if (kind == value.end()) fail(join_pointer(pointer, "kind"), "this field, it is required", "none");
  if (!kind->is_string()) fail(join_pointer(pointer, "kind"), known, describe(*kind));
  return kind->get<std::string>();
}

Swiglu read_swiglu(const json& value, const std::string& pointer) {
  if (const std::string kind = read_kind(value, pointer, "\"swiglu\""); kind != "swiglu") {
    fail(join_pointer(pointer, "kind"), "\"swiglu\"", describe(json(kind)));
  }
  const Fields fields(value, pointer, {"kind", "interleave", "alpha", "limit"});
  Swiglu swiglu;
  swiglu.interleave = fields.flag("interleave", swiglu.interleave);
  swiglu.alpha = fields.number("alpha", swiglu.alpha);
  if (const json* limit = fields.find_set("limit")) swiglu.limit = read_number(*limit, fields.at("limit"));
  return swiglu;
}

Pre read_pre(const json& value, const std::string& pointer) {
  constexpr std::string_view known = "one of \"swiglu\", \"rmsnorm\"";
  const std::string kind = read_kind(value, pointer, known);
  if (kind == "swiglu") return read_swiglu(value, pointer);
  if (kind != "rmsnorm") fail(join_pointer(pointer, "kind"), known, describe(json(kind)));
  const Fields fields(value, pointer, {"kind", "eps"});
  RmsNorm norm;
  norm.eps = fields.number("eps", norm.eps);
  return norm;
}

Axes read_axes(const Fields& fields) {
  Axes axes;
  const json* value = fields.find("axes");
  if (value == nullptr) return axes;
  constexpr std::string_view known = "a non-empty array of \"row\", \"col\", each at most once";
  if (!value->is_array() || value->empty()) fail(fields.at("axes"), known, describe(*value));
  axes = {.row = false, .col = false};
  for (std::size_t i = 0; i < value->size(); ++i) {
    const json& axis = (*value)[i];
    bool* const chosen = axis == "row" ? &axes.row : axis == "col" ? &axes.col : nullptr;
    if (chosen == nullptr || *chosen)
      fail(fmt::format("{}/{}", fields.at("axes"), i), known, describe(*value));
    *chosen = true;
  }
  return axes;
}

Quantize read_quantize(const json& document) {
  const Fields fields(document, "",
                      {"schema", "op", "name", "input", "format", "scaling", "block", "axes", "rounding",
                       "scale_layout", "groups", "amax_cap", "pre", "emit_high"});
  Quantize op;
  const Fields input(fields.need("input"), fields.at("input"), {"dtype", "shape", "layout", "ld", "align"});
  op.input = read_tensor(input, kFloats);
  op.input_layout = input.choose("layout", std::span<const InputLayout>(kInputLayouts), InputLayout::row);
  op.recipe = read_recipe(fields);
  op.axes = read_axes(fields);
  op.groups = read_m_groups(fields);
  if (const json* pre = fields.find_set("pre")) op.pre = read_pre(*pre, fields.at("pre"));
  op.emit_high = fields.flag("emit_high", false);
  return op;
}

bool read_axis(const Fields& fields) {
  const json* axis = fields.find("axis");
  if (axis == nullptr || *axis == "row") return false;
  if (*axis != "col") fail(fields.at("axis"), "one of \"row\", \"col\"", describe(*axis));
  return true;
}

Dequantize read_dequantize(const json& document) {
  const Fields fields(
      document, "",
      {"schema", "op", "name", "q", "scaling", "block", "scale_layout", "axis", "groups", "output"});
  Dequantize op;
  op.q = read_tensor(Fields(fields.need("q"), fields.at("q"), {"dtype", "shape", "ld", "align"}), kFormats);
  const Scheme scheme = read_scheme(fields, false);
  op.scaling = scheme.scaling;
  op.block = scheme.block;
  op.scale_layout = scheme.layout;
  op.axis_col = read_axis(fields);
  op.groups = read_m_groups(fields);
  const Fields output(fields.need("output"), fields.at("output"), {"dtype", "ld", "align"});
  op.output = output.choose("dtype", std::span<const DType>(kFloats));
  op.output_pitch = read_pitch(output);
  return op;
}

PackScales read_pack_scales(const json& document, bool unpack) {
  const Fields fields(document, "", {"schema", "op", "name", "scales", "placement", "groups"});
  PackScales op;
  op.unpack = unpack;
  const Fields scales(fields.need("scales"), fields.at("scales"), {"shape", "ld", "align"});
  op.shape = read_shape(scales);
  op.pitch = read_pitch(scales);
  op.placement = fields.choose("placement", std::span<const Placement>(kPlacements));
  if (const json* groups = fields.find_set("groups")) {
    op.groups = read_group_count(Fields(*groups, fields.at("groups"), {"count"}));
  }
  return op;
}

PadGroups read_pad_groups(const json& document, bool unpad) {
  const Fields fields(document, "", {"schema", "op", "name", "input", "groups", "alignment"});
  PadGroups op;
  op.unpad = unpad;
  op.input = read_tensor(Fields(fields.need("input"), fields.at("input"), {"dtype", "shape", "ld", "align"}),
                         kPadTypes);
  op.groups = read_group_count(Fields(fields.need("groups"), fields.at("groups"), {"count"}));
  op.alignment = fields.need_integer("alignment", 1);
  return op;
}

OperandScaling read_operand_scaling(const json& value, const std::string& pointer) {
  const Fields fields(value, pointer, {"kind", "block", "layout"});
  const Scaling kind = fields.choose("kind", std::span<const Scaling>(kScalings));
  const Block block = read_block(fields, operand_blocks(kind));
  return {.kind = kind,
          .block = block,
          .layout = fields.choose("layout", scale_layouts(kind, block), ScaleLayout::plain)};
}

Operand read_operand(const Fields& document, std::string_view name) {
  const Fields fields(document.need(name), document.at(name),
                      {"dtype", "shape", "major", "scaling", "ld", "align"});
  Operand operand;
  operand.tensor = read_tensor(fields, kOperandTypes);
  if (const json* major = fields.find("major")) {
    if (*major != "k" && *major != "mn") fail(fields.at("major"), "one of \"k\", \"mn\"", describe(*major));
    operand.mn_major = *major == "mn";
  }
  if (const json* scaling = fields.find_set("scaling")) {
    operand.scaling = read_operand_scaling(*scaling, fields.at("scaling"));
  }
  return operand;
}

GemmOutput read_gemm_output(const Fields& document) {
  GemmOutput d;
  const json* value = document.find("d");
  if (value == nullptr) return d;
  const Fields fields(*value, document.at("d"), {"dtype", "ld", "align", "requant", "amax"});
  d.tensor.dtype = fields.choose("dtype", std::span<const DType>(kResultTypes), DType::bf16);
  const Pitch pitch = read_pitch(fields);
  d.tensor.ld = pitch.ld;
  d.tensor.align = pitch.align;
  if (const json* requant = fields.find_set("requant")) {
    d.requant = read_recipe(*requant, fields.at("requant"), true);
  }
  d.amax = fields.flag("amax", false);
  return d;
}

Gemm read_gemm(const json& document) {
  const Fields fields(document, "",
                      {"schema", "op", "name", "a", "b", "d", "accumulation", "bias", "alpha", "beta",
                       "groups", "tail", "epilogue", "deterministic", "batch_invariant"});
  Gemm op;
  op.a = read_operand(fields, "a");
  op.b = read_operand(fields, "b");
  op.d = read_gemm_output(fields);
  op.accumulation =
      fields.choose("accumulation", std::span<const Accumulation>(kAccumulations), Accumulation::promote);
  if (const json* bias = fields.find_set("bias")) {
    const Fields spec(*bias, fields.at("bias"), {"dtype", "ld", "align"});
    op.bias = spec.choose("dtype", std::span<const DType>(kFloats));
    op.bias_pitch = read_pitch(spec);
  }
  op.alpha = fields.number("alpha", op.alpha);
  op.beta = fields.number("beta", op.beta);
  if (const json* groups = fields.find_set("groups")) {
    const Fields spec(*groups, fields.at("groups"), {"kind", "count"});
    op.groups =
        GemmGroups{spec.choose("kind", std::span<const GemmGroupKind>(kGroupKinds)), read_group_count(spec)};
  }
  if (const json* tail = fields.find("tail")) {
    if (*tail != "zero" && *tail != "keep")
      fail(fields.at("tail"), "one of \"zero\", \"keep\"", describe(*tail));
    op.tail_keep = *tail == "keep";
  }
  if (const json* epilogue = fields.find_set("epilogue")) {
    op.epilogue = read_swiglu(*epilogue, fields.at("epilogue"));
  }
  op.deterministic = fields.flag("deterministic", true);
  op.batch_invariant = fields.flag("batch_invariant", false);
  return op;
}

Moe read_moe(const json& document) {
  const Fields fields(document, "",
                      {"schema", "op", "name", "tokens", "hidden", "intermediate", "experts", "top_k",
                       "local_experts", "weights", "activations", "activation", "routing_weight_on", "d"});
  Moe op;
  op.tokens = read_extent(fields.need("tokens"), fields.at("tokens"));
  op.hidden = read_extent(fields.need("hidden"), fields.at("hidden"));
  op.intermediate = read_extent(fields.need("intermediate"), fields.at("intermediate"));
  op.experts = fields.need_integer("experts", 1, kMaxGroups);
  op.top_k = fields.need_integer("top_k", 1, kMaxGroups);
  op.local_count = op.experts;
  if (const json* local = fields.find("local_experts")) {
    const std::string pointer = fields.at("local_experts");
    if (!local->is_array() || local->size() != 2) fail(pointer, "[first, count]", describe(*local));
    op.first_local = read_integer((*local)[0], pointer + "/0", 0, kMaxGroups);
    op.local_count = read_integer((*local)[1], pointer + "/1", 0, kMaxGroups);
  }
  op.weights = read_recipe(fields.need("weights"), fields.at("weights"));
  op.activations = read_recipe(fields.need("activations"), fields.at("activations"));
  if (const json* activation = fields.find("activation")) {
    op.activation = read_swiglu(*activation, fields.at("activation"));
  }
  if (const json* on = fields.find("routing_weight_on")) {
    if (*on != "input" && *on != "output") {
      fail(fields.at("routing_weight_on"), "one of \"input\", \"output\"", describe(*on));
    }
    op.weight_on_input = *on == "input";
  }
  if (const json* d = fields.find("d")) {
    const Fields spec(*d, fields.at("d"), {"dtype", "ld", "align"});
    op.d = spec.choose("dtype", std::span<const DType>(kFloats), DType::bf16);
    op.d_pitch = read_pitch(spec);
  }
  return op;
}

}  // namespace

Problem parse(std::string_view text) {
  const json document = read_json(text, "problem file");
  if (!document.is_object()) fail("", "a JSON object", describe(document));
  const auto need = [&document](const char* name) -> const json& {
    const auto found = document.find(name);
    if (found == document.end()) fail(join_pointer("", name), "this field, it is required", "none");
    return *found;
  };
  read_integer(need("schema"), "/schema", 1, 1);
  const std::string op = need("op").is_string() ? document["op"].get<std::string>() : "";

  Problem problem;
  if (op == "quantize") {
    problem.op = read_quantize(document);
  } else if (op == "dequantize") {
    problem.op = read_dequantize(document);
  } else if (op == "pack_scales" || op == "unpack_scales") {
    problem.op = read_pack_scales(document, op == "unpack_scales");
  } else if (op == "pad_groups" || op == "unpad_groups") {
    problem.op = read_pad_groups(document, op == "unpad_groups");
  } else if (op == "gemm") {
    problem.op = read_gemm(document);
  } else if (op == "moe") {
    problem.op = read_moe(document);
  } else {
    fail("/op",
         "one of \"quantize\", \"dequantize\", \"pack_scales\", \"unpack_scales\", \"pad_groups\", "
         "\"unpad_groups\", \"gemm\", \"moe\"",
         describe(document["op"]));
  }
  if (const auto name = document.find("name"); name != document.end())
    problem.name = read_string(*name, "/name");
  validate(problem);
  return with_defaults(std::move(problem));
}

}  // namespace mxjit::problem
