// A team of warps that holds rows: which, what of them each thread has, and what it finds out together.
#pragma once

#include "ptx/memory.cuh"
#include "quantize/factors.cuh"
#include "quantize/pairs.cuh"
#include "quantize/params.cuh"

namespace mxjit {

/// Where this thread stands in its team. A thread has units of 16 bytes of each row, as they are quantized.
template <class Config>
struct RowTeam {
  using N = Pairs<Config::input>;
  static constexpr int unit = 16 / N::bytes;  // elements that a thread reads and writes at once
  static constexpr int pairs = unit / 2;
  static constexpr int threads = 32 * Config::warps;
  static constexpr int teams = Config::threads / threads;  // a thread block
  // Where blocks have scales, a warp's units lie side by side, and so do their scales.
  static constexpr bool side_by_side = Config::span == Span::block;
  static constexpr int apart = (side_by_side ? 32 : threads) * unit;  // elements from a unit to the next

  using Unit = typename N::Pair[pairs];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;  // in the thread block
  const int thread = static_cast<int>(threadIdx.x) % threads;
  const i64 row = (i64{blockIdx.x} * teams + static_cast<int>(threadIdx.x) / threads) * Config::rows;

  /// The first element of the first of `units` units.
  __device__ __forceinline__ int first(int units) const {
    return (side_by_side ? thread / 32 * 32 * units + lane : thread) * unit;
  }
};

/// A thread's units: `per_row` of each of the team's rows, those of a row first. Its first element is
/// `element`, and from there a row has `columns` of them.
template <class Config, int per_row_>
struct RowUnits {
  using Team = RowTeam<Config>;
  static constexpr int per_row = per_row_, count = Config::rows * per_row;
  using Values = typename Team::Unit[count];

  const Team& team;
  const i64 element;
  const int rows, columns;  // inside the matrix; at most so many that 31 bits hold them

  __device__ __forceinline__ RowUnits(const QuantizeParams& p, const Team& team_, i64 at)
      : team(team_),
        element(at + team_.first(per_row)),
        rows(clamp(p.m - team_.row)),
        columns(clamp(p.n - element)) {}

  __device__ __forceinline__ i64 row(int i) const { return team.row + i / per_row; }
  __device__ __forceinline__ i64 element_of(int i) const { return element + i % per_row * Team::apart; }
  /// How many elements there are inside the matrix from the start of unit i on; 0 or less: none.
  __device__ __forceinline__ int columns_of(int i) const {
    return i / per_row < rows ? columns - i % per_row * Team::apart : 0;
  }
  __device__ __forceinline__ bool is_whole(int i) const {
    return i / per_row < rows && columns >= i % per_row * Team::apart + Team::unit;
  }

 private:
  static __device__ __forceinline__ int clamp(i64 value) {
    constexpr i64 most = 1 << 30;
    return static_cast<int>(value < 0 ? 0 : value > most ? most : value);
  }
};

/// Where a thread's units lie in memory, in elements of so many bytes: an address a row and distances that
/// the compiler knows. For indices that it knows, too.
template <class Units, int bytes>
struct UnitAddresses {
  u8* first[Units::count / Units::per_row];

  __device__ __forceinline__ UnitAddresses(const void* base, i64 pitch, const Units& units) {
#pragma unroll
    for (int r = 0; r < Units::count / Units::per_row; ++r)
      first[r] =
          static_cast<u8*>(const_cast<void*>(base)) + ((units.team.row + r) * pitch + units.element) * bytes;
  }
  __device__ __forceinline__ u8* operator[](int i) const {
    return first[i / Units::per_row] + i % Units::per_row * Units::Team::apart * bytes;
  }
};

/// Calls visit(i, of[i]) for one unit after the other, all by way of the first one's registers: for what is
/// rare, and must be short.
template <class Word, int words, int count, class Visit>
__device__ __forceinline__ void one_by_one(Word (&of)[count][words], const Visit& visit) {
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    visit(i, of[0]);
#pragma unroll
    for (int w = 0; w < words; ++w) {
      const Word first = of[0][w];
#pragma unroll
      for (int k = 0; k + 1 < count; ++k) of[k][w] = of[k + 1][w];
      of[count - 1][w] = first;
    }
  }
}

/// Of one value a row, what all lanes of a warp make of theirs; lane l has that of row l % rows.
template <int rows, class Value, class Combine>
__device__ __forceinline__ Value over_warp(Value (&values)[rows], const Combine& combine) {
  const u32 lane = threadIdx.x % 32;
#pragma unroll
  for (int half = rows / 2; half > 0; half /= 2) {
    const bool upper = (lane & half) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const Value kept = upper ? values[i + half] : values[i], given = upper ? values[i] : values[i + half];
      values[i] = combine(kept, ptx::shfl_xor(given, static_cast<u32>(half)));
    }
  }
#pragma unroll
  for (u32 mask = rows; mask < 32; mask *= 2) values[0] = combine(values[0], ptx::shfl_xor(values[0], mask));
  return values[0];
}

/// Likewise over a team, by way of shared memory where it has several warps. Uses that once.
template <class Config, class Value, class Combine>
__device__ __forceinline__ Value over_team(Value (&values)[Config::rows],
                                           Value (&shared)[Config::rows][Config::threads / 32],
                                           const Combine& combine) {
  Value value = over_warp(values, combine);
  if constexpr (Config::warps > 1) {
    const int row = static_cast<int>(threadIdx.x) % Config::rows;
    if (threadIdx.x % 32 < Config::rows) shared[row][threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[row][0];
#pragma unroll
    for (int w = 1; w < Config::warps; ++w) value = combine(value, shared[row][w]);
  }
  return value;
}

}  // namespace mxjit
