// The cases of the quantize benchmark, small: the calls that are timed, their peers and their check.
#include <gtest/gtest.h>

#include "bench/check.hpp"
#include "bench/gemm_tuner.hpp"
#include "bench/op_table.hpp"
#include "bench/pair_bench.hpp"
#include "bench/tensor_pool.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"

namespace mxjit::device {
namespace {

class BenchCases : public DeviceTest {};

constexpr int sets = 2;
constexpr std::uint8_t poison = 0xA5;

void expect_correct(bench::TensorPool& pool, const bench::OpCase& one,
                    const std::vector<const bench::OpCase*>& calls) {
  const Machine& machine = Machine::get();
  pool.poison(poison);
  for (int set = 0; set < sets; ++set)
    for (const bench::OpCase* call : calls)
      bench::prepare(machine.context(), *call, pool.tensors(*call, set))(machine.stream());
  machine.synchronize();
  for (int set = 0; set < sets; ++set)
    EXPECT_EQ(bench::difference_from_reference(one, 1 << 30, pool.reader(one, set)), "") << "set " << set;
}

void run(const bench::Family& family) {
  const Machine& machine = Machine::get();
  bench::TensorPool pool(machine.device(), nullptr, machine.stream());
  std::vector<problem::Problem> problems;
  for (const bench::Contest& contest : family.contests) {
    pool.add(contest.one, sets);
    problems.push_back(contest.one.problem);
    for (const bench::OpCase& piece : contest.peer) {
      pool.add(piece, sets);
      problems.push_back(piece.problem);
    }
  }
  prewarm(supported(problems));
  Random random(60);
  pool.make([&](driver::DeviceBuffer& buffer) {
    const auto elements = static_cast<std::int64_t>(buffer.bytes() / 2);
    const HostTensor values = random_tensor(DType::bf16, {elements}, random);
    buffer.write(values.bytes.data(), values.bytes.size(), machine.stream());
    machine.synchronize();
  });
  for (const bench::Contest& contest : family.contests) {
    if (!is_supported(contest.one.problem)) continue;  // left out by the suite, too
    SCOPED_TRACE(contest.one.name);
    expect_correct(pool, contest.one, {&contest.one});
    if (contest.peer.empty()) continue;
    SCOPED_TRACE(contest.peer_name);
    std::vector<const bench::OpCase*> pieces;
    for (const bench::OpCase& piece : contest.peer) pieces.push_back(&piece);
    expect_correct(pool, contest.one, pieces);
  }
}

TEST_F(BenchCases, OfManyRows) { run(bench::family_of({small() ? 1024 : 8192, 160})); }
TEST_F(BenchCases, OfFewRows) { run(bench::family_of({100, 544})); }
TEST_F(BenchCases, OfOneRow) { run(bench::family_of({1, 1024})); }
TEST_F(BenchCases, OfExperts) { run(bench::family_of({3, 96, 160})); }

TEST_F(BenchCases, TilesOfAGemmAgainstEachOther) {
  const Machine& machine = Machine::get();
  problem::Gemm gemm;
  gemm.a.tensor.shape = {100, 256};
  gemm.b.tensor.shape = {192, 256};
  gemm.a.tensor.dtype = gemm.b.tensor.dtype = DType::e4m3;
  gemm = std::get<problem::Gemm>(problem::with_defaults({"", gemm}).op);
  bench::GemmTuner tuner(machine.context(), nullptr,
                         {.sets_bytes = 1,
                          .graph_us = 1,
                          .first_rounds = 1,
                          .last_rounds = 2,
                          .first_settling = 0,
                          .settling = 0});
  const bench::TileContest contest = tuner.contest(gemm, {6, 4, 8}, 4);
  ASSERT_EQ(contest.tiles.size(), 3U);
  EXPECT_EQ(contest.tiles[0].tile, 6);
  EXPECT_TRUE(contest.best.tile == 6 || contest.best.tile == 4 || contest.best.tile == 8);
  EXPECT_LE(contest.best.us, contest.model_us);
  EXPECT_GT(contest.best.us, 0.0);
}

TEST_F(BenchCases, PairsOfAQuantizationAndItsGemm) {
  const Machine& machine = Machine::get();
  const auto in_order = machine.cold_context(), early = machine.cold_context();
  dispatch::ContextAccess::state(*early).start = driver::Start::early;
  Random random(61);
  const std::vector<bench::Pair> pairs = bench::pairs(100, 256, 384);
  ASSERT_EQ(pairs.size(), 2U);
  for (const bench::Pair& pair : pairs) {
    SCOPED_TRACE(pair.name);
    bench::PairBench bench(machine.device(), nullptr, {*in_order, *early}, pair,
                           [&](driver::DeviceBuffer& buffer, CUstream stream) {
                             std::vector<std::uint16_t> values(buffer.bytes() / 2);
                             for (std::uint16_t& value : values)  // 1 to 2, of either sign
                               value = static_cast<std::uint16_t>(0x3F80 | (random() & 0x807F));
                             buffer.write(values.data(), buffer.bytes(), stream);
                             driver::check(machine.api(), machine.api().stream_synchronize(stream), "wait");
                           });
    bench.prepare(4);
    bench.timer().measure(1, [] {});
    const bench::Row row = bench.row(0.5);
    EXPECT_TRUE(row.correct) << row.difference;
    EXPECT_EQ(row.shape, (std::vector<std::int64_t>{100, 256, 384}));
  }
}

}  // namespace
}  // namespace mxjit::device
