#include "device/problems.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "configure/configure.hpp"
#include "device/machine.hpp"
#include "mxjit/error.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::InputLayout;
using problem::Problem;
using problem::Quantize;

constexpr std::array formats = {DType::e4m3, DType::e5m2};
constexpr std::array mx_roundings = {Rounding::rceil, Rounding::floor, Rounding::ceil, Rounding::even};
constexpr std::array fp32_roundings = {Rounding::none, Rounding::pow2};
constexpr std::array alignments = {1, 32, 128};
constexpr std::array mx_blocks = {Block{.rows = 1, .cols = 32}, Block{.rows = 1, .cols = 128},
                                  Block{.rows = 32, .cols = 32}, Block{.rows = 128, .cols = 128}};
constexpr std::array fp32_blocks = {Block{.rows = 1, .cols = 128}, Block{.rows = 128, .cols = 128},
                                    Block{.kind = Block::Kind::row, .rows = 1, .cols = 1},
                                    Block{.kind = Block::Kind::tensor, .rows = 1, .cols = 1}};

template <typename Choices>
auto pick(const Choices& choices, Random& random) {
  return choices[random() % std::size(choices)];
}

// The choices of a recipe for one scaling.
struct Choices {
  Scaling scaling;
  std::vector<Block> blocks;
  std::vector<Rounding> roundings;
  std::vector<ScaleLayout> layouts;
};

std::vector<Choices> all_choices() {
  return {{Scaling::mx,
           {mx_blocks.begin(), mx_blocks.end()},
           {mx_roundings.begin(), mx_roundings.end()},
           {ScaleLayout::plain, ScaleLayout::blocked}},
          {Scaling::fp32,
           {fp32_blocks.begin(), fp32_blocks.end()},
           {fp32_roundings.begin(), fp32_roundings.end()},
           {ScaleLayout::plain, ScaleLayout::mn_major}}};
}

template <typename Visit>
void for_each_recipe(Visit&& visit) {
  for (const Choices& choices : all_choices())
    for (const Block& block : choices.blocks)
      for (const Rounding rounding : choices.roundings)
        for (const ScaleLayout layout : choices.layouts)
          for (const DType format : formats) {
            problem::Recipe recipe;
            recipe.format = format;
            recipe.scaling = choices.scaling;
            recipe.block = block;
            recipe.rounding = rounding;
            recipe.scale_layout = layout;
            visit(recipe);
          }
}

// ---- values

struct Bits {
  int total, mantissa, bias;  // of a floating-point format with one sign bit
  int exponents() const { return (1 << (total - 1 - mantissa)) - 1; }  // the all-ones exponent
};

Bits bits_of(DType dtype) {
  switch (dtype) {
    case DType::fp16:
      return {16, 10, 15};
    case DType::fp32:
      return {32, 23, 127};
    default:
      return {16, 7, 127};
  }
}

// One bit pattern of a regime that lasts for a run of elements.
std::uint32_t pattern_of(int regime, int exponent, const Bits& bits, Random& random) {
  const std::uint32_t sign = below(random, 2U) << (bits.total - 1);
  const auto mantissas = std::uint32_t{1} << bits.mantissa;
  const auto at = [&](int e, std::uint32_t m) {
    return sign | static_cast<std::uint32_t>(std::clamp(e, 0, bits.exponents() - 1)) << bits.mantissa | m;
  };
  switch (regime) {
    case 0:  // near one magnitude
      return at(exponent - static_cast<int>(below(random, 6)), below(random, mantissas));
    case 1:  // any finite
      return at(static_cast<int>(below(random, static_cast<std::uint32_t>(bits.exponents()))),
                below(random, mantissas));
    case 2:  // subnormals and zeros
      return at(0, below(random, 4) == 0 ? 0 : below(random, mantissas));
    case 3: {  // around 1.75 and the other points where scales and codes round
      const std::uint32_t eighth = below(random, 8) * (mantissas / 8);
      const std::uint32_t step = below(random, 3);
      return at(exponent, (eighth + step + mantissas - 1) % mantissas);
    }
    case 4:  // the largest
      return at(bits.exponents() - 1 - static_cast<int>(below(random, 3)), mantissas - 1 - below(random, 3));
    case 5:  // zeros of both signs
      return sign;
    default:  // a rare infinity or NaN among ordinary values
      if (below(random, 24) == 0)
        return sign | static_cast<std::uint32_t>(bits.exponents()) << bits.mantissa |
               (below(random, 2) == 0 ? 0 : 1 + below(random, mantissas - 1));
      return at(bits.bias, below(random, mantissas));
  }
}

}  // namespace

Problem whole(decltype(Problem::op) op) { return problem::with_defaults({.name = {}, .op = std::move(op)}); }

Quantize float_rows() {
  Quantize quantize;
  quantize.recipe.scaling = Scaling::fp32;
  quantize.recipe.rounding = Rounding::none;
  quantize.recipe.block = {.kind = Block::Kind::row, .rows = 1, .cols = 1};
  return quantize;
}

bool is_valid(const Problem& problem) {
  try {
    problem::validate(problem);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool is_supported(const Problem& problem) {
  try {
    configure::configure(problem, configure::default_profile("sm_90a"));
    // The reference refuses by op and option, whatever the extents.
    return !std::holds_alternative<problem::Gemm>(problem.op) &&
           !std::holds_alternative<problem::Moe>(problem.op);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return false;
  }
}

std::vector<Problem> combinations() {
  std::vector<Problem> all;
  for_each_recipe([&](const problem::Recipe& recipe) {
    for (const DType input : input_types)
      for (const Axes axes : axes_choices)
        for (const bool batched : {false, true})
          for (const InputLayout layout : {InputLayout::row, InputLayout::col}) {
            Quantize quantize;
            quantize.input.dtype = input;
            quantize.input.shape = {129, 161};
            if (batched) quantize.input.shape.insert(quantize.input.shape.begin(), 2);
            quantize.input_layout = layout;
            quantize.recipe = recipe;
            quantize.axes = axes;
            const Problem problem = whole(quantize);
            if (is_valid(problem)) all.push_back(problem);
          }
  });
  return all;
}

std::vector<Problem> shapes() {
  const std::vector<std::int64_t> extents = {1, 2, 31, 32, 33, 63, 65, 96, 127, 128, 129, 160, 255, 257, 384};
  std::vector<Problem> all;
  int turn = 0;
  for_each_recipe([&](const problem::Recipe& recipe) {
    if (recipe.format != DType::e4m3 ||
        recipe.rounding != (recipe.scaling == Scaling::mx ? Rounding::rceil : Rounding::none))
      return;
    for (const Axes axes : axes_choices)
      for (const std::int64_t m : extents)
        for (const std::int64_t n : extents) {
          Quantize quantize;
          quantize.input.shape = {m, n};
          // An expert gets the tiles of large matrices.
          if (++turn % 2 == 0) quantize.input.shape.insert(quantize.input.shape.begin(), 1);
          quantize.recipe = recipe;
          quantize.axes = axes;
          const Problem problem = whole(quantize);
          if (is_valid(problem)) all.push_back(problem);
        }
  });
  return all;
}

std::vector<Problem> row_lengths() {
  // Around what a warp, a thread block and registers hold, of 16-bit and of 32-bit elements.
  const std::vector<std::int64_t> extents = {1,    7,    8,    256,  257,  511,   1023,  1025,  2047,  2048,
                                             2049, 4096, 4099, 8192, 8200, 16384, 16391, 32768, 32769, 40003};
  std::vector<Problem> all;
  for (const DType input : input_types)
    for (const std::int64_t n : extents)
      for (const InputLayout layout : {InputLayout::row, InputLayout::col}) {
        Quantize quantize = float_rows();
        quantize.input.dtype = input;
        quantize.input_layout = layout;
        const bool turned = layout == InputLayout::col;
        quantize.input.shape = turned ? problem::Shape{n, 9} : problem::Shape{9, n};
        quantize.axes = {!turned, turned};
        all.push_back(whole(quantize));
      }
  return all;
}

std::vector<Problem> groupings() {
  std::vector<Problem> all;
  for_each_recipe([&](const problem::Recipe& recipe) {
    if (recipe.format != DType::e4m3 ||
        (recipe.rounding != Rounding::rceil && recipe.rounding != Rounding::none))
      return;
    for (const Axes axes : axes_choices)
      for (const int alignment : {128, 32, 1})
        for (const std::int64_t count : {1, 3, 40}) {
          Quantize quantize;
          quantize.input.shape = {771, 200};
          quantize.input.dtype = input_types[all.size() % input_types.size()];
          quantize.recipe = recipe;
          quantize.axes = axes;
          quantize.groups = problem::MGroups{.count = count, .alignment = alignment};
          const Problem problem = whole(quantize);
          if (is_valid(problem)) all.push_back(problem);
        }
  });
  return all;
}

Problem random_quantization(Random& random) {
  for (;;) {
    const auto choices = all_choices();
    const Choices& of_scaling = choices[random() % choices.size()];
    Quantize quantize;
    quantize.input.dtype = pick(input_types, random);
    quantize.input.shape = {1, 1};
    if (random() % 4 == 0) quantize.input.shape.insert(quantize.input.shape.begin(), 1);
    quantize.input_layout = random() % 4 == 0 ? InputLayout::col : InputLayout::row;
    quantize.recipe.format = pick(formats, random);
    quantize.recipe.scaling = of_scaling.scaling;
    quantize.recipe.block = pick(of_scaling.blocks, random);
    quantize.recipe.rounding = pick(of_scaling.roundings, random);
    quantize.recipe.scale_layout = pick(of_scaling.layouts, random);
    quantize.axes = pick(axes_choices, random);
    if (of_scaling.scaling == Scaling::fp32 && random() % 4 == 0) quantize.recipe.amax_cap = 1.0;
    if (random() % 3 == 0)
      quantize.groups = problem::MGroups{.count = 1, .alignment = pick(alignments, random)};
    if (random() % 4 == 0) {
      problem::Swiglu swiglu;
      swiglu.interleave = random() % 2 == 0;
      if (random() % 2 == 0) swiglu.alpha = 1.702, swiglu.limit = 7.0;
      quantize.pre = swiglu;
    }
    if (random() % 8 == 0) {
      quantize.pre = problem::RmsNorm{.eps = 1e-5};
      if (random() % 2 == 0) {  // rows alone, which a kernel holds on chip
        quantize.input_layout = InputLayout::row;
        quantize.axes = {.row = true, .col = false};
        quantize.groups.reset();
      }
    }
    quantize.emit_high = random() % 4 == 0;
    const Problem problem = with_other_extents(whole(quantize), random);
    if (is_valid(problem) && is_supported(problem)) return problem;
  }
}

Problem with_other_extents(const Problem& like, Random& random) {
  auto quantize = std::get<Quantize>(like.op);
  for (problem::Extent& e : quantize.input.shape) e = random_extent(random);
  if (quantize.input.shape.size() == 3) quantize.input.shape[0] = static_cast<std::int64_t>(1 + random() % 5);
  if (quantize.recipe.amax_cap) quantize.recipe.amax_cap = 0.01 * static_cast<double>(1 + random() % 100000);
  if (quantize.groups) {
    if (random() % 2 == 0) quantize.input.shape[0] = static_cast<std::int64_t>(random() % 2000);
    quantize.groups->count = static_cast<std::int64_t>(1 + random() % (random() % 16 == 0 ? 1024 : 70));
  }
  if (std::holds_alternative<problem::Swiglu>(quantize.pre)) {
    problem::Extent& columns = quantize.input.shape.back();
    columns = columns.max + columns.max % 2;
  }
  quantize.input.ld.reset();
  quantize.input.align.reset();
  return whole(std::move(quantize));
}

std::vector<Problem> supported(std::vector<Problem> problems) {
  std::erase_if(problems, [](const Problem& problem) { return !is_supported(problem); });
  return problems;
}

std::vector<Problem> thinned(const std::vector<Problem>& problems, std::size_t stride) {
  if (!small()) return problems;
  std::vector<Problem> kept;
  for (std::size_t i = 0; i < problems.size(); i += stride) kept.push_back(problems[i]);
  return kept;
}

void prewarm(const std::vector<Problem>& problems) {
  const Machine& machine = Machine::get();
  const configure::Profile& profile = dispatch::ContextAccess::state(machine.context()).profile;
  std::set<codegen::KernelDescriptor> kernels;
  for (const Problem& problem : problems)
    for (const configure::Configuration& configuration : configure::configure(problem, profile))
      kernels.insert({configuration, std::string(profile.target)});
  prewarm_kernels({kernels.begin(), kernels.end()});
}

void prewarm_kernels(const std::vector<codegen::KernelDescriptor>& kernels) {
  const Machine& machine = Machine::get();
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < kernels.size(); at = next++) {
        try {
          machine.cache().get(kernels[at]);
        } catch (const Error&) {
          // The test that needs it reports it.
        }
      }
    });
}

HostTensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Random& random, bool alike) {
  HostTensor tensor{.dtype = dtype, .shape = shape, .bytes = {}};
  const Bits bits = bits_of(dtype);
  const std::size_t element = size_of(dtype);
  const auto count = static_cast<std::size_t>(tensor.elements());
  tensor.bytes.resize(count * element);
  std::size_t left = 0;
  int regime = 0;
  int exponent = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (left == 0) {
      left = 1 + random() % 200;
      regime = static_cast<int>(random() % 9);  // 7 and 8: as 0, the ordinary case
      if (regime > 6 || alike) regime = 0;
      exponent =
          alike ? bits.bias : static_cast<int>(below(random, static_cast<std::uint32_t>(bits.exponents())));
    }
    --left;
    const std::uint32_t pattern = pattern_of(regime, exponent, bits, random);
    for (std::size_t byte = 0; byte < element; ++byte)
      tensor.bytes[i * element + byte] = static_cast<std::uint8_t>(pattern >> (8 * byte));
  }
  return tensor;
}

std::int64_t random_extent(Random& random) {
  switch (random() % 8) {
    case 0:
      return static_cast<std::int64_t>(random() % 4);
    case 1:
      return static_cast<std::int64_t>(128 * (1 + random() % 4));
    case 2:
      return static_cast<std::int64_t>(32 * (1 + random() % 16));
    default:
      return static_cast<std::int64_t>(1 + random() % 500);
  }
}

std::vector<std::int32_t> random_ends(std::int64_t count, std::int64_t limit, std::int64_t alignment,
                                      Random& random) {
  const auto units = static_cast<std::uint32_t>(limit / alignment);
  const auto at = [&](std::uint32_t unit) { return static_cast<std::int32_t>(unit * alignment); };
  std::vector<std::int32_t> ends;
  for (std::int64_t g = 0; g < count; ++g) ends.push_back(at(below(random, units + 1)));
  std::sort(ends.begin(), ends.end());
  if (random() % 2 == 0) ends.back() = at(units);  // no tail
  if (count > 2 && random() % 2 == 0) {            // empty groups side by side, the first one too
    const auto first = ends.begin() + static_cast<std::ptrdiff_t>(random() % (ends.size() - 1));
    const auto many = random() % static_cast<std::size_t>(ends.end() - first);
    std::fill_n(first, many, random() % 4 == 0 ? 0 : *first);
    std::sort(ends.begin(), ends.end());
  }
  if (random() % 8 == 0) std::fill(ends.begin(), ends.end(), 0);  // nothing but tail
  return ends;
}

HostTensor words(const std::vector<std::int32_t>& values) {
  HostTensor tensor{.dtype = DType::i32, .shape = {static_cast<std::int64_t>(values.size())}, .bytes = {}};
  tensor.bytes.resize(values.size() * sizeof(std::int32_t));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

TensorMap make_inputs(const Problem& problem, Random& random) {
  TensorMap made;
  const auto* quantize = std::get_if<Quantize>(&problem.op);
  // Where one element makes a sum of squares all but alone, the order of the others decides ties.
  const bool normalized = quantize != nullptr && std::holds_alternative<problem::RmsNorm>(quantize->pre);
  for (const problem::TensorDecl& decl : problem::tensors(problem)) {
    if (decl.output || decl.optional) continue;
    const bool offsets = quantize != nullptr && quantize->groups && decl.name == "offsets";
    made[decl.name] = offsets ? words(random_ends(quantize->groups->count, quantize->input.shape[0].max,
                                                  quantize->groups->alignment, random))
                              : random_tensor(decl.dtype, decl.shape, random, normalized && decl.name == "x");
  }
  return made;
}

}  // namespace mxjit::device
