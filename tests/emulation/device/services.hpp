// What the emulator and an emulated kernel know of each other.
#pragma once

namespace mxjit::emulation {

/// What the emulator does for the running thread; see emulator.hpp.
struct Services {
  /// Blocks until the warp's 32 lanes have called it with the same `what`; returns their deposits, lane by
  /// lane.
  const void* (*exchange)(const char* what, const void* deposit, unsigned bytes);
  /// Blocks until `threads` threads of the block (0: all that still run) have come to barrier `id`.
  void (*barrier)(int id, int threads);
  /// Blocks until `done(state)`.
  void (*wait)(const char* what, bool (*done)(const void* state, unsigned argument), const void* state,
               unsigned argument);
  /// Refuses an access of device memory outside every allocation, or not aligned to its size.
  void (*check)(const char* what, const void* address, unsigned bytes);
  /// Ends the launch with an error.
  void (*fail)(const char* what);
  unsigned char* dynamic_shared;
};

struct Index {
  unsigned x, y, z;
};

}  // namespace mxjit::emulation
