// The check of timed results: it accepts the reference's own bytes and sees one wrong byte anywhere it looks.
#include "bench/check.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "bench/op_table.hpp"
#include "loops.hpp"
#include "reference/reference.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::bench {
namespace {

constexpr std::int64_t everything = 1 << 30;

TEST(BenchCheck, PartsIncludeFirstAndLast) {
  EXPECT_EQ(spread(1, 7168, 1), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(spread(3, 64, everything), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(spread(1024, 128 * 5120, 1), (std::vector<std::int64_t>{0, 1023}));
  const auto some = spread(1024, 128 * 5120, std::int64_t{8} * 128 * 5120);
  ASSERT_EQ(some.size(), 8U);
  EXPECT_EQ(some.front(), 0);
  EXPECT_EQ(some.back(), 1023);
}

HostTensor ordinary(const problem::TensorDecl& decl) {
  std::mt19937 random(5);
  HostTensor tensor{decl.dtype, decl.shape, {}};
  for (std::int64_t i = 0; i < bytes_of(decl); ++i)
    tensor.bytes.push_back(static_cast<std::uint8_t>(random()));
  if (decl.dtype == DType::bf16)
    for (std::size_t i = 1; i < tensor.bytes.size(); i += 2)
      tensor.bytes[i] = static_cast<std::uint8_t>(0x3C + random() % 7);
  if (decl.dtype == DType::fp32)
    for (std::size_t i = 3; i < tensor.bytes.size(); i += 4) tensor.bytes[i] = 0x3F;
  return tensor;
}

/// A case with tensors in host memory, its outputs as the reference makes them.
struct Held {
  explicit Held(const OpCase& held) : one(held) {
    TensorMap inputs;
    for (const problem::TensorDecl& decl : tensors_of(one)) {
      if (decl.output) continue;
      HostTensor& tensor = inputs[decl.name] = ordinary(decl);
      if (!one.words.contains(decl.name)) continue;
      const std::vector<std::int32_t>& words = one.words.at(decl.name);
      EXPECT_EQ(tensor.bytes.size(), words.size() * sizeof(std::int32_t));
      std::memcpy(tensor.bytes.data(), words.data(), tensor.bytes.size());
    }
    outputs = reference::run(one.problem, inputs);
    tensors = inputs;
    tensors.insert(outputs.begin(), outputs.end());
  }
  std::string difference(std::int64_t budget) {
    return difference_from_reference(one, budget, [&](const std::string& name, const Region& region) {
      return packed(tensors.at(name).bytes, region);
    });
  }
  std::string difference_at(const std::string& name, std::size_t byte, std::int64_t budget = everything) {
    std::uint8_t& at = tensors.at(name).bytes[byte];
    at = static_cast<std::uint8_t>(at ^ 1U);
    const std::string found = difference(budget);
    at = static_cast<std::uint8_t>(at ^ 1U);
    return found;
  }

  const OpCase& one;
  TensorMap outputs, tensors;
};

// No difference as it is; any byte changed, a difference.
void sees_every_output(const OpCase& one) {
  SCOPED_TRACE(one.name);
  Held held(one);
  EXPECT_EQ(held.difference(everything), "");
  EXPECT_EQ(held.difference(1), "");
  std::mt19937 random(6);
  for (const auto& [name, tensor] : held.outputs) {
    const std::size_t size = tensor.bytes.size();
    for (const std::size_t at : {std::size_t{0}, size - 1, random() % size})
      EXPECT_NE(held.difference_at(name, at), "") << name << " byte " << at;
  }
}

TEST(BenchCheck, SeesEveryOutputOfEveryCase) {
  int cases = 0;
  for (const Sizes& shape : {Sizes{1280, 96}, Sizes{300, 200}, Sizes{3, 200}, Sizes{2, 300, 160}})
    for (const Contest& contest : family_of(shape).contests)
      if (cases++ % test::stride(5) == 0) sees_every_output(contest.one);
  EXPECT_GE(cases, 60);
}

// Cut or whole, the tensor's largest magnitude decides; a value past it changes the scale.
TEST(BenchCheck, OneScaleOfATensorTooLargeToCompareWhole) {
  const OpCase one =
      fp32_case({1280, 64}, {true, false}, {.kind = Block::Kind::tensor, .rows = 1, .cols = 1});
  Held held(one);
  EXPECT_EQ(held.difference(1), "");
  EXPECT_NE(held.difference_at("s_row", 0, 1), "");
  EXPECT_NE(held.difference_at("q_row", 0, 1), "");
  EXPECT_NE(held.difference_at("q_row", 1280 * 64 - 1, 1), "");
  EXPECT_EQ(held.difference_at("q_row", 640 * 64, 1), "") << "nobody looks there";
}

TEST(BenchCheck, GroupsOfUnevenSizes) {
  const auto ends = uneven_ends(64, 131072, 128);
  ASSERT_EQ(ends.size(), 64U);
  EXPECT_LT(ends.back(), 131072);
  EXPECT_GT(ends.back(), 131072 * 98 / 100);
  EXPECT_EQ(ends[31], ends[32]);
  for (const std::int32_t end : ends) EXPECT_EQ(end % 128, 0);
}

// What a peer leaves is what the fused call leaves: run on the reference, in the places that they share.
TEST(BenchTable, PeersLeaveTheSameOutputs) {
  int peers = 0;
  for (const Sizes& shape : {Sizes{1280, 160}, Sizes{128, 96}})
    for (const Contest& contest : family_of(shape).contests) {
      if (contest.peer.empty() || peers++ % test::stride(3) != 0) continue;
      SCOPED_TRACE(contest.one.name);
      Held held(contest.one);
      std::map<std::string, HostTensor> places;
      for (const problem::TensorDecl& decl : tensors_of(contest.one))
        if (!decl.output) places[place_of(contest.one, decl)] = held.tensors.at(decl.name);
      for (const OpCase& piece : contest.peer) {
        TensorMap inputs;
        for (const problem::TensorDecl& decl : tensors_of(piece)) {
          if (decl.output) continue;
          HostTensor& tensor = inputs[decl.name] = {decl.dtype, decl.shape, {}};
          if (piece.words.contains(decl.name)) {
            tensor.bytes.resize(static_cast<std::size_t>(bytes_of(decl)));
            std::memcpy(tensor.bytes.data(), piece.words.at(decl.name).data(), tensor.bytes.size());
          } else {
            tensor.bytes = places.at(place_of(piece, decl)).bytes;
          }
        }
        TensorMap made = reference::run(piece.problem, inputs);
        for (const problem::TensorDecl& decl : tensors_of(piece))
          if (decl.output) places[place_of(piece, decl)] = std::move(made.at(decl.name));
      }
      for (const auto& [name, tensor] : held.outputs)
        EXPECT_EQ(places.at("out " + name).bytes, tensor.bytes) << name;
    }
  EXPECT_GE(peers, 13);
}

TEST(BenchTable, EveryRowHasANameOfItsOwn) {
  std::map<std::string, std::size_t> seen;
  for (const bool quick : {false, true}) {
    seen.clear();
    for (const Family& family : op_table(quick))
      for (const Contest& contest : family.contests) {
        std::string title = contest.one.name;
        for (const std::int64_t extent : contest.one.shape) title += " " + std::to_string(extent);
        EXPECT_EQ(++seen[title], 1U) << title;
      }
  }
}

}  // namespace
}  // namespace mxjit::bench
