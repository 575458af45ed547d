#include "device/guarded.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "device/machine.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

std::atomic<std::uint64_t> compared{0};

std::uint8_t pattern(std::size_t at) { return static_cast<std::uint8_t>(0x5C ^ (at * 37)); }

}  // namespace

Guarded::Guarded(const problem::TensorDecl& decl, const Placement& placement, const HostTensor* content)
    : name_(decl.name), output_(content == nullptr) {
  shape_.dtype = content != nullptr ? content->dtype : decl.dtype;
  shape_.shape = content != nullptr ? content->shape : decl.shape;
  const std::size_t element = size_of(shape_.dtype);
  const std::int64_t columns = shape_.shape.back();
  for (std::size_t i = 0; i + 1 < shape_.shape.size(); ++i) rows_ *= shape_.shape[i];
  // "s" of u8 is the matrix that pack_scales and unpack_scales move, at any pitch.
  const bool scales = name_.starts_with("s_") || name_.ends_with("_scale") || name_.ends_with("_scales") ||
                      (name_ == "s" && shape_.dtype != DType::u8);
  const bool pitched = shape_.shape.size() >= 2 && !scales;
  pitch_ = columns + (pitched ? placement.extra_pitch : 0);
  row_bytes_ = static_cast<std::size_t>(columns) * element;
  pitch_bytes_ = static_cast<std::size_t>(pitch_) * element;
  const std::size_t guard = small() ? 0 : 4096;
  begin_ = guard + static_cast<std::size_t>(placement.shift) * element;
  const std::size_t gap = pitch_bytes_ - row_bytes_;
  image_.resize(begin_ + static_cast<std::size_t>(rows_) * pitch_bytes_ + guard -
                (small() && rows_ > 0 ? gap : 0));
  for (std::size_t i = 0; i < image_.size(); ++i) image_[i] = pattern(i);
  if (content != nullptr) {
    place(*content);
  } else {
    for (std::int64_t row = 0; row < rows_; ++row)
      std::fill_n(image_.begin() + static_cast<std::ptrdiff_t>(row_at(row)), row_bytes_, placement.dirt);
  }
  buffer_ = driver::DeviceBuffer(Machine::get().api(), image_.size());
  restore();
}

void Guarded::place(const HostTensor& content) {
  ASSERT_EQ(content.bytes.size(), static_cast<std::size_t>(rows_) * row_bytes_) << name_;
  auto from = content.bytes.begin();
  for (std::int64_t row = 0; row < rows_; ++row) {
    std::copy_n(from, row_bytes_, image_.begin() + static_cast<std::ptrdiff_t>(row_at(row)));
    from += static_cast<std::ptrdiff_t>(row_bytes_);
  }
}

Tensor Guarded::tensor() const {
  Tensor tensor{.data = static_cast<std::uint8_t*>(buffer_.data()) + begin_,
                .dtype = shape_.dtype,
                .rank = static_cast<int>(shape_.shape.size()),
                .pitch = pitch_ == shape_.shape.back() ? 0 : pitch_};
  std::ranges::copy(shape_.shape, tensor.shape.begin());
  return tensor;
}

void Guarded::restore(const HostTensor* content) {
  if (content != nullptr) place(*content);
  const Machine& machine = Machine::get();
  buffer_.write(image_.data(), image_.size(), machine.stream());
  machine.synchronize();
}

HostTensor Guarded::read() const {
  const Machine& machine = Machine::get();
  std::vector<std::uint8_t> now(image_.size());
  buffer_.read(now.data(), now.size(), machine.stream());
  machine.synchronize();

  HostTensor tensor = shape_;
  tensor.bytes.reserve(static_cast<std::size_t>(rows_) * row_bytes_);
  std::vector<std::uint8_t> expected = image_;
  for (std::int64_t row = 0; row < rows_; ++row) {
    const auto from = now.begin() + static_cast<std::ptrdiff_t>(row_at(row));
    tensor.bytes.insert(tensor.bytes.end(), from, from + static_cast<std::ptrdiff_t>(row_bytes_));
    if (output_) std::copy_n(from, row_bytes_, expected.begin() + static_cast<std::ptrdiff_t>(row_at(row)));
  }
  const auto [was, is] = std::ranges::mismatch(expected, now);
  if (was != expected.end()) {
    ADD_FAILURE() << fmt::format(
        "{}: byte {} of its buffer of {} was {:#04x} and is {:#04x}; the tensor starts at {}, {} rows of {} "
        "bytes "
        "every {}",
        name_, was - expected.begin(), now.size(), *was, *is, begin_, rows_, row_bytes_, pitch_bytes_);
  }
  return tensor;
}

GuardedProblem::GuardedProblem(const problem::Problem& problem, const TensorMap& inputs,
                               const Placement& placement)
    : problem_(problem) {
  for (const problem::TensorDecl& decl : problem::tensors(problem)) {
    if (decl.optional && (decl.output || !inputs.contains(decl.name))) continue;
    const HostTensor* content = decl.output ? nullptr : &inputs.at(decl.name);
    const Guarded& made = guarded_.try_emplace(decl.name, decl, placement, content).first->second;
    tensors_[decl.name] = made.tensor();
    is_output_[decl.name] = decl.output;
  }
  const auto bytes = static_cast<std::int64_t>(dispatch::workspace_size(problem));
  if (bytes == 0) return;
  // Its contents are anybody's, before and after.
  problem::TensorDecl workspace;
  workspace.name = dispatch::workspace_name;
  workspace.shape = {bytes};
  const Placement whole{.extra_pitch = 0, .shift = 0, .dirt = placement.dirt};
  is_output_[workspace.name] = false;
  tensors_[workspace.name] =
      guarded_.try_emplace(workspace.name, workspace, whole, nullptr).first->second.tensor();
}

void GuardedProblem::launch(Context& context, CUstream stream) {
  dispatch::launch_problem(context, problem_, tensors_, stream);
}

TensorMap GuardedProblem::read() const {
  TensorMap outputs;
  for (const auto& [name, guarded] : guarded_) {
    HostTensor tensor = guarded.read();
    if (is_output_.at(name)) outputs[name] = std::move(tensor);
  }
  return outputs;
}

void GuardedProblem::dirty() {
  for (auto& [name, guarded] : guarded_)
    if (is_output_.at(name) || name == dispatch::workspace_name) guarded.restore();
}

void GuardedProblem::refill(const TensorMap& inputs) {
  for (auto& [name, guarded] : guarded_)
    if (inputs.contains(name)) guarded.restore(&inputs.at(name));
}

TensorMap run_guarded(const problem::Problem& problem, const TensorMap& inputs, const Placement& placement) {
  const Machine& machine = Machine::get();
  GuardedProblem guarded(problem, inputs, placement);
  guarded.launch(machine.context(), machine.stream());
  machine.synchronize();
  return guarded.read();
}

void expect_equal(const TensorMap& got, const TensorMap& expected) {
  ++compared;
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, want] : expected) {
    const auto found = got.find(name);
    ASSERT_NE(found, got.end()) << "no output " << name;
    const HostTensor& have = found->second;
    ASSERT_EQ(have.shape, want.shape) << name;
    ASSERT_EQ(have.bytes.size(), want.bytes.size()) << name;
    if (have.bytes == want.bytes) continue;
    std::size_t differing = 0;
    std::size_t first = have.bytes.size();
    for (std::size_t i = 0; i < have.bytes.size(); ++i) {
      if (have.bytes[i] == want.bytes[i]) continue;
      ++differing;
      first = std::min(first, i);
    }
    ADD_FAILURE() << fmt::format(
        "{} ({}): {} of {} bytes differ, the first at {}: got {:#04x}, expected {:#04x}", name,
        fmt::join(want.shape, ", "), differing, have.bytes.size(), first, have.bytes[first],
        want.bytes[first]);
  }
}

void expect_reference(const problem::Problem& problem, const TensorMap& inputs, const Placement& placement) {
  SCOPED_TRACE(problem::print(problem));
  const TensorMap expected = reference::run(problem, inputs);
  expect_equal(run_guarded(problem, inputs, placement), expected);
}

std::uint64_t comparisons() { return compared; }

}  // namespace mxjit::device
