#include "bench/pair_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/check.hpp"
#include "bench/statistics.hpp"
#include "dispatch/context_state.hpp"
#include "problem/layout.hpp"

namespace mxjit::bench {
namespace {

constexpr std::uint8_t pair_poison = 0xA5;

OpCase with_layout(OpCase one, ScaleLayout layout) {
  problem::Quantize quantize = quantize_of(one);
  quantize.recipe.scale_layout = layout;
  one.problem = problem::with_defaults({"", std::move(quantize)});
  return one;
}

}  // namespace

std::vector<Pair> pairs(std::int64_t m, std::int64_t n, std::int64_t k) {
  const Axes rows{.row = true, .col = false};
  std::vector<Pair> all;
  for (const GemmCase& gemm : gemm_cases(m, n, k)) {
    if (gemm.name.starts_with("rowwise_promote"))
      all.push_back({"quantize_gemm rowwise", fp32_case({m, k}, rows, {.kind = Block::Kind::row}), gemm});
    if (gemm.name.starts_with("block"))
      all.push_back({"quantize_gemm block",
                     with_layout(fp32_case({m, k}, rows, {.rows = 1, .cols = 128}), ScaleLayout::mn_major),
                     gemm});
  }
  return all;
}

PairBench::PairBench(const driver::DeviceContext& device, const DeviceProgram* program,
                     const PairContexts& contexts, const Pair& pair,
                     const std::function<void(driver::DeviceBuffer&, CUstream)>& fill)
    : device_(device),
      contexts_(contexts),
      pair_(pair),
      timer_(device.api()),
      pool_(device, program, timer_.stream()) {
  pool_.add(pair.quantize, 2);
  pool_.make([&](driver::DeviceBuffer& buffer) { fill(buffer, timer_.stream()); });
  const driver::Api& api = device.api();
  for (const problem::TensorDecl& decl : problem::tensors({"", pair.gemm.gemm})) {
    const auto bytes = static_cast<std::size_t>(bytes_of(decl));
    if (decl.name == "b") b_ = driver::DeviceBuffer(api, bytes);
    if (decl.name == "b_scale") b_scale_ = driver::DeviceBuffer(api, bytes);
    if (decl.name != "d") continue;
    for (driver::DeviceBuffer& d : d_) d = driver::DeviceBuffer(api, bytes);
  }
  // Weights are codes of small numbers of either sign, no NaN among them.
  std::vector<std::uint8_t> codes(b_.bytes());
  std::uint32_t state = 1;
  for (std::uint8_t& code : codes) {
    state = state * 1664525U + 1013904223U;
    code = static_cast<std::uint8_t>(state >> 24 & 0xB7);
  }
  const std::vector<float> factors(b_scale_.bytes() / sizeof(float), 0.5F);
  b_.write(codes.data(), b_.bytes(), timer_.stream());
  b_scale_.write(factors.data(), b_scale_.bytes(), timer_.stream());
  driver::check(api, api.stream_synchronize(timer_.stream()), "cuStreamSynchronize");
}

void PairBench::quantize(Context& context, int launch, CUstream stream) const {
  dispatch::DeviceTensors tensors = pool_.tensors(pair_.quantize, 0);
  tensors["x"] = pool_.tensors(pair_.quantize, launch % 2)["x"];
  const dispatch::QuantizeCall call = dispatch::quantize_call(quantize_of(pair_.quantize), tensors);
  context.quantize(call.options, call.args, stream);
}

void PairBench::multiply(Context& context, int launch, CUstream stream) const {
  const dispatch::DeviceTensors made = pool_.tensors(pair_.quantize, 0);
  dispatch::DeviceTensors tensors;
  for (const problem::TensorDecl& decl : problem::tensors({"", pair_.gemm.gemm})) {
    Tensor& tensor = tensors[decl.name];
    tensor = {.data = decl.name == "a"         ? made.at("q_row").data
                      : decl.name == "a_scale" ? made.at("s_row").data
                      : decl.name == "b"       ? b_.data()
                      : decl.name == "b_scale" ? b_scale_.data()
                                               : d_[launch % 2].data(),
              .dtype = decl.dtype,
              .rank = static_cast<int>(decl.shape.size())};
    std::ranges::copy(decl.shape, tensor.shape.begin());
  }
  const dispatch::GemmCall call = dispatch::gemm_call(pair_.gemm.gemm, tensors);
  context.gemm(call.options, call.args, stream);
}

void PairBench::prepare(int launches) {
  for (Context* context : {&contexts_.in_order, &contexts_.early}) {  // loaded before the captures
    quantize(*context, 0, timer_.stream());
    multiply(*context, 0, timer_.stream());
  }
  const auto both = [this](Context& context) {
    return [this, &context](int launch, CUstream stream) {
      quantize(context, launch, stream);
      multiply(context, launch, stream);
    };
  };
  quantize_job_ =
      timer_.add(launches, [this](int i, CUstream stream) { quantize(contexts_.in_order, i, stream); });
  gemm_job_ =
      timer_.add(launches, [this](int i, CUstream stream) { multiply(contexts_.in_order, i, stream); });
  in_order_job_ = timer_.add(launches, both(contexts_.in_order));
  early_job_ = timer_.add(launches, both(contexts_.early));
}

std::vector<std::uint8_t> PairBench::results(std::size_t job) {
  pool_.poison(pair_poison);
  for (driver::DeviceBuffer& d : d_) d.fill(pair_poison, timer_.stream());
  timer_.replay(job);
  std::vector<std::uint8_t> bytes(2 * d_[0].bytes());
  for (std::size_t i = 0; i < 2; ++i)
    d_[i].read(bytes.data() + i * d_[i].bytes(), d_[i].bytes(), timer_.stream());
  driver::check(device_.api(), device_.api().stream_synchronize(timer_.stream()), "cuStreamSynchronize");
  return bytes;
}

std::string PairBench::difference() {
  const std::vector<std::uint8_t> in_order = results(in_order_job_), early = results(early_job_);
  if (in_order != early) return "an early start changes the result";
  // What the last launch, of the second x and d, left.
  const ReadRegion first = pool_.reader(pair_.quantize, 0), second = pool_.reader(pair_.quantize, 1);
  constexpr std::int64_t budget = std::int64_t{32} << 20;  // all of it: mn_major scales have no parts
  std::string found =
      difference_from_reference(pair_.quantize, budget, [&](const std::string& tensor, const Region& region) {
        return tensor == "x" ? second(tensor, region) : first(tensor, region);
      });
  if (!found.empty()) return "quantize: " + found;
  return difference_from_reference(pair_.gemm, [&](const std::string& tensor, std::int64_t offset,
                                                   std::int64_t bytes) {
    const Region region{offset, 1, bytes, bytes};
    if (tensor == "a") return first("q_row", region);
    if (tensor == "a_scale") return first("s_row", region);
    std::vector<std::uint8_t> to(static_cast<std::size_t>(bytes));
    const driver::DeviceBuffer& buffer = tensor == "b" ? b_ : tensor == "b_scale" ? b_scale_ : d_[1];
    buffer.read(to.data(), to.size(), timer_.stream(), static_cast<std::size_t>(offset));
    driver::check(device_.api(), device_.api().stream_synchronize(timer_.stream()), "cuStreamSynchronize");
    return to;
  });
}

Row PairBench::row(double empty_node_us) {
  const auto median = [this](std::size_t job) { return summarize(timer_.samples(job)).median; };
  const configure::Profile& profile = dispatch::ContextAccess::state(contexts_.in_order).profile;
  nlohmann::ordered_json kernels = nlohmann::ordered_json::parse(configuration_json(pair_.quantize, profile));
  for (auto& kernel :
       nlohmann::ordered_json::parse(configuration_json(pair_.gemm, std::string(profile.name))))
    kernels.push_back(kernel);
  Row row;
  row.name = pair_.name;
  row.problem = problem::print({"", pair_.gemm.gemm});
  const problem::GemmExtents extents = problem::gemm_extents(pair_.gemm.gemm);
  row.shape = {extents.m.max, extents.n.max, extents.k.max};
  row.samples = timer_.samples(early_job_);
  row.peer = Peer{"in order", median(in_order_job_)};
  row.configuration = kernels.dump();
  // Each of the two by itself includes the way from one node to the next.
  const double alone = median(quantize_job_) + median(gemm_job_);
  const auto gap = [&](double pair_us) { return (pair_us - alone) / 2 + empty_node_us; };
  row.extra = {{"quantize_us", median(quantize_job_)},
               {"gemm_us", median(gemm_job_)},
               {"gap_us", gap(median(early_job_))},
               {"gap_in_order_us", gap(median(in_order_job_))},
               {"empty_node_us", empty_node_us}};
  row.difference = difference();
  row.correct = row.difference.empty();
  return row;
}

}  // namespace mxjit::bench
