// Short ways to write problems and tensors down.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "problem/problem.hpp"
#include "reference/reference.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::contract {

template <typename T>
HostTensor tensor_of(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& elements) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.bytes.resize(elements.size() * sizeof(T));
  if (!elements.empty()) std::memcpy(tensor.bytes.data(), elements.data(), tensor.bytes.size());
  return tensor;
}

template <typename T>
std::vector<T> elements_of(const HostTensor& tensor) {
  std::vector<T> elements(tensor.bytes.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), tensor.bytes.data(), tensor.bytes.size());
  return elements;
}

/// Rows of 32 bit patterns, each row filled from its `content`: the first elements, then zeros.
template <typename T>
HostTensor rows_of_32(DType dtype, const std::vector<std::vector<T>>& contents) {
  std::vector<T> all;
  for (std::vector<T> row : contents) {
    row.resize(32, T{0});
    all.insert(all.end(), row.begin(), row.end());
  }
  return tensor_of(dtype, {static_cast<std::int64_t>(contents.size()), 32}, all);
}

inline TensorMap run(const std::string& fields, const TensorMap& inputs) {
  return reference::run(problem::parse(R"({"schema":1,)" + fields + "}"), inputs);
}

}  // namespace mxjit::contract
