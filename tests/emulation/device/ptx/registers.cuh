// As kernels/ptx/registers.cuh: there is nothing to do.
#pragma once

namespace mxjit::ptx {

template <int count>
void raise_registers() {}
template <int count>
void drop_registers() {}
template <class Word>
Word computed_here(Word value) {
  return value;
}
inline int same_in_warp(int value) { return value; }
inline void compiler_barrier() {}

}  // namespace mxjit::ptx
