// Calls and contexts on the stub driver and a compiler that compiles nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cache/fake_compiler.hpp"
#include "dispatch/context_state.hpp"
#include "driver/stub.hpp"

namespace mxjit::test {

inline Tensor tensor(std::uintptr_t address, DType dtype, const std::vector<std::int64_t>& shape,
                     std::int64_t pitch = 0) {
  Tensor made{.data = reinterpret_cast<void*>(address),
              .dtype = dtype,
              .rank = static_cast<int>(shape.size()),
              .pitch = pitch};
  for (std::size_t i = 0; i < shape.size(); ++i) made.shape[i] = shape[i];
  return made;
}

// Addresses that nothing reads: the stub launches nothing.
inline QuantizeArgs row_args(std::int64_t m, std::int64_t n) {
  return {.x = tensor(0x10000000, DType::bf16, {m, n}),
          .q_row = tensor(0x20000000, DType::e4m3, {m, n}),
          .s_row = tensor(0x30000000, DType::e8m0, {m, (n + 31) / 32})};
}

// Row-wise; aligned, the Hopper kernel's. `off` from an address that is a multiple of 16.
inline GemmOptions rowwise() {
  GemmOptions options;
  options.a_scale = options.b_scale = OperandScale{.block = {.kind = Block::Kind::row}};
  return options;
}
inline GemmArgs gemm_args(std::int64_t m, std::int64_t n, std::int64_t k, std::uintptr_t off = 0) {
  return {.a = tensor(0x10000000 + off, DType::e4m3, {m, k}),
          .a_scale = tensor(0x20000000, DType::fp32, {m}),
          .b = tensor(0x30000000, DType::e4m3, {n, k}),
          .b_scale = tensor(0x40000000, DType::fp32, {n}),
          .d = tensor(0x50000000, DType::bf16, {m, n}),
          .c = {},
          .bias = {}};
}
inline GemmArgs batched_gemm_args(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmArgs args = gemm_args(m, n, k);
  for (Tensor* one : {&args.a, &args.a_scale, &args.b, &args.b_scale, &args.d}) {
    one->shape = {batch, one->shape[0], one->shape[1]};
    ++one->rank;
  }
  return args;
}

/// The stub's table as if the driver had been initialised in this process, whatever it was forked from.
/// Contexts refer to it: it stays.
inline const driver::Api& fresh_api() {
  auto* api = new driver::Api(driver::stub_api());
  api->forks = driver::watch_forks();
  return *api;
}

/// A context on the stub's device, with libraries and a cache of its own.
inline std::unique_ptr<Context> stub_context(
    cache::Options options = {},
    std::shared_ptr<compile::Compiler> compiler = std::make_shared<FakeCompiler>(),
    const driver::Api& api = driver::stub_api(), int device = 0) {
  return dispatch::ContextAccess::make(
      driver::DeviceContext::primary(api, device), std::make_shared<driver::Libraries>(),
      std::make_shared<cache::Cache>(std::move(options), cache::Seams{nullptr, std::move(compiler)}));
}

}  // namespace mxjit::test
