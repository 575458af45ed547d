// Values that are computed from what is stored, eight at a time: a piece. Operands of several pieces are on
// their way at once, in registers or in shared memory.
//
// A Source knows them: from(i), where piece i lies; offset(u), how far from there unit u does, of `units` of
// 16 bytes; unpack, operands from such; fast, the values, true where one may not be the nearest; doubtful,
// the bits of those; columns(i), how many elements of a piece lie inside x; element, what one is computed of,
// from memory or, if it finds_elements there, from operands; nearest, its value then.
#pragma once

#include "ptx/async_copy.cuh"
#include "ptx/shared.cuh"
#include "quantize/panel.cuh"

namespace mxjit {

template <class Source>
__device__ __forceinline__ void load_whole(const Source& source, int i, typename Source::Operands& to) {
  Vector4 units[Source::units];
#pragma unroll
  for (int u = 0; u < Source::units; ++u) units[u] = ptx::ld_nc_v4(source.from(i) + source.offset(u));
  source.unpack(units, to);
}

/// Operands on their way to registers.
template <class Source>
struct PiecesInRegisters {
  static constexpr int depth = Source::ahead;
  typename Source::Operands on_way[depth];

  __device__ __forceinline__ void ask(const Source& source, int i, bool whole) {
    on_way[i % depth] = {};
    if (whole) load_whole(source, i, on_way[i % depth]);
  }
  __device__ __forceinline__ void pass() {}
  __device__ __forceinline__ void take(int i, typename Source::Operands& to) { to = on_way[i % depth]; }
  template <int count>
  __device__ __forceinline__ void take_again(const Source& source, int i, typename Source::Operands& to) {
    load_whole(source, i, to);
  }
};

/// Shared memory for the operands of every thread's next pieces, `units` of 16 bytes each, of `most` that it
/// has: at most `kilobytes`.
template <int units_, int threads, int kilobytes, int most>
struct alignas(16) PieceRing {
  static constexpr int units = units_;
  static constexpr int fitting = kilobytes * 1024 / (units * 16 * threads);
  static constexpr int depth = fitting < most ? fitting : most;
  static_assert(depth > 0);
  Vector4 slots[depth][units][threads];
};

/// Operands on their way to shared memory, of pieces that are `pitch` bytes apart. A thread sees what it has
/// asked for itself, without a barrier.
template <class Source, class Ring>
struct PiecesInRing {
  static constexpr int depth = Ring::depth;
  Ring& ring;
  const u8* next;
  i64 pitch;
  ptx::CopyTarget slots{&ring.slots[0][0][threadIdx.x]};

  __device__ __forceinline__ void ask(const Source& source, int i, bool whole) {
    constexpr u32 slot_bytes = sizeof ring.slots[0][0];
#pragma unroll
    for (int u = 0; u < Ring::units; ++u)
      slots.copy_16((i % depth * Ring::units + u) * slot_bytes, next + source.offset(u), whole);
    ptx::copy_async_commit();
    next += pitch;
  }
  /// Stands for a piece after the last, so that as many groups are always pending.
  __device__ __forceinline__ void pass() { ptx::copy_async_commit(); }
  __device__ __forceinline__ void take(int i, typename Source::Operands& to) {
    ptx::copy_async_wait<depth - 1>();
    read(i % depth, to);
  }
  /// Of `count` pieces one that was taken before.
  template <int count>
  __device__ __forceinline__ void take_again(const Source& source, int i, typename Source::Operands& to) {
    if constexpr (count <= depth) {
      read(i, to);
    } else {
      load_whole(source, i, to);
    }
  }

 private:
  __device__ __forceinline__ void read(int slot, typename Source::Operands& to) {
    Vector4 units[Ring::units];
#pragma unroll
    for (int u = 0; u < Ring::units; ++u) units[u] = ring.slots[slot][u][threadIdx.x];
    Source::unpack(units, to);
  }
};

/// Asks for the first of `count` pieces, bits of `whole` standing for them: those lie inside x in wide
/// pieces, the others' operands are zero.
template <int count, class Source, class Pieces>
__device__ __forceinline__ void start_pieces(const Source& source, Pieces& pieces, u32 whole) {
#pragma unroll
  for (int i = 0; i < Pieces::depth; ++i) {
    if (i < count) {
      pieces.ask(source, i, (whole >> i & 1) != 0);
    } else {
      pieces.pass();
    }
  }
}

/// Computes the pieces that start_pieces has begun; those in `some` have an element. A piece that is not
/// whole is found element by element, as are values that may not be the nearest: both are rare, and their way
/// is short.
template <int count, class Source, class Pieces>
__device__ __forceinline__ void compute_pieces(const Source& source, Pieces& pieces, u32 whole, u32 some,
                                               u32 (&x)[count][4]) {
  u32 inexact = 0;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    typename Source::Operands operands;
    pieces.take(i, operands);
    if (source.fast(i, operands, x[i])) inexact |= 1u << i;
    if (i + Pieces::depth < count) {
      pieces.ask(source, i + Pieces::depth, (whole >> (i + Pieces::depth) & 1) != 0);
    } else {
      pieces.pass();
    }
  }
  inexact = (inexact | ~whole) & some;
#pragma unroll 1
  for (; inexact != 0; inexact &= inexact - 1) {
    const int piece = __ffs(static_cast<int>(inexact)) - 1;
    const bool is_whole = (whole >> piece & 1) != 0;
    u32 elements = 0xFF;
    if (is_whole) {
      typename Source::Operands again;
      pieces.template take_again<count>(source, piece, again);
      elements = source.doubtful(piece, again);
    }
#pragma unroll 1
    for (; elements != 0; elements &= elements - 1) {
      const int e = __ffs(static_cast<int>(elements)) - 1;
      u32 value = 0;
      if (e < source.columns(piece)) {
        const auto element = [&]() -> typename Source::Element {
          if constexpr (Source::finds_elements) {
            if (is_whole) {
              typename Source::Operands again;  // anew, to stay in no registers
              pieces.template take_again<count>(source, piece, again);
              return source.element(again, e);
            }
          }
          return source.element(piece, e);
        };
        value = source.nearest(piece, e, element());
      }
      const int word = piece * 4 + e / 2;
      const u32 halves = e % 2 == 0 ? 0x3254 : 0x5410;
#pragma unroll
      for (int i = 0; i < count; ++i)
#pragma unroll
        for (int w = 0; w < 4; ++w)
          if (i * 4 + w == word) x[i][w] = ptx::prmt(x[i][w], value, halves);
    }
  }
}

/// Bits of the lane's rows for compute_pieces.
template <class Config>
struct RowMasks {
  u32 whole, some;
  __device__ __forceinline__ RowMasks(const QuantizeParams& p, const Lane<Config>& lane) {
    some = lane.columns > 0 ? (1u << lane.rows) - 1 : 0;
    whole = (p.wide & wide_x) != 0 && lane.columns == lane_columns ? some : 0;
  }
};

}  // namespace mxjit
