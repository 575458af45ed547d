#include "bench/tensor_pool.hpp"

#include <algorithm>

namespace mxjit::bench {
namespace {

constexpr std::int64_t place_alignment = 256;  // as allocations have

}  // namespace

TensorPool::TensorPool(const driver::DeviceContext& device, const DeviceProgram* program, CUstream stream)
    : device_(device), program_(program), stream_(stream) {}

TensorPool::Place& TensorPool::room(const std::string& name, std::int64_t bytes, int sets) {
  Place& place = places_[name];
  place.stride = std::max(place.stride, (bytes + place_alignment - 1) / place_alignment * place_alignment);
  place.sets = std::max(place.sets, sets);
  return place;
}

void TensorPool::add(const OpCase& one, int sets) {
  for (const problem::TensorDecl& decl : tensors_of(one)) {
    const auto words = one.words.find(decl.name);
    const bool given = words != one.words.end();
    Place& place = room(place_of(one, decl), bytes_of(decl), given ? 1 : sets);
    place.written |= decl.output;
    if (given) place.words = words->second;
  }
  if (const std::int64_t bytes = workspace_bytes(one); bytes > 0)
    room(dispatch::workspace_name, bytes, sets).written = true;
}

void TensorPool::make(const std::function<void(driver::DeviceBuffer& buffer)>& fill) {
  for (auto& [name, place] : places_) {
    place.buffer = driver::DeviceBuffer(device_.api(), static_cast<std::size_t>(place.stride * place.sets));
    if (!place.words.empty())
      place.buffer.write(place.words.data(), place.words.size() * sizeof(std::int32_t), stream_);
    else if (!place.written && place.buffer.bytes() > 0)
      fill(place.buffer);
  }
  synchronize();
}

dispatch::DeviceTensors TensorPool::tensors(const OpCase& one, int set) const {
  return device_tensors(one, [&](const problem::TensorDecl& decl) -> void* {
    const bool workspace = decl.name == dispatch::workspace_name;
    const Place& place = places_.at(workspace ? decl.name : place_of(one, decl));
    const std::int64_t offset = place.words.empty() ? place.stride * set : 0;
    return static_cast<std::uint8_t*>(place.buffer.data()) + offset;
  });
}

void TensorPool::poison(std::uint8_t value) {
  for (auto& [name, place] : places_)
    if (place.written && place.buffer.bytes() > 0) place.buffer.fill(value, stream_);
  synchronize();
}

ReadRegion TensorPool::reader(const OpCase& one, int set) {
  std::map<std::string, const Place*> of_tensor;
  for (const problem::TensorDecl& decl : tensors_of(one))
    of_tensor[decl.name] = &places_.at(place_of(one, decl));
  return [this, set, of_tensor](const std::string& tensor, const Region& region) {
    return read(*of_tensor.at(tensor), set, region);
  };
}

std::vector<std::uint8_t> TensorPool::read(const Place& place, int set, const Region& region) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(region.bytes()));
  if (bytes.empty()) return bytes;
  const driver::ScopedCurrent current(device_);  // the check reads from threads of its own
  const std::int64_t first = place.words.empty() ? place.stride * set : 0;
  const auto offset = static_cast<std::size_t>(first + region.offset);
  if (region.rows == 1 || region.pitch == region.width) {
    place.buffer.read(bytes.data(), bytes.size(), stream_, offset);
    synchronize();
    return bytes;
  }
  if (program_ == nullptr) {
    bytes.resize(static_cast<std::size_t>((region.rows - 1) * region.pitch + region.width));
    place.buffer.read(bytes.data(), bytes.size(), stream_, offset);
    synchronize();
    return packed(bytes, {0, region.rows, region.width, region.pitch});
  }
  if (staging_.bytes() < bytes.size()) staging_ = driver::DeviceBuffer(device_.api(), bytes.size());
  CUdeviceptr from = place.buffer.address() + offset, to = staging_.address();
  auto rows = static_cast<std::uint64_t>(region.rows), width = static_cast<std::uint64_t>(region.width),
       pitch = static_cast<std::uint64_t>(region.pitch);
  constexpr unsigned threads = 256;
  const auto blocks = static_cast<unsigned>((bytes.size() + threads - 1) / threads);
  launch_grid(device_.api(), program_->function("gather"), blocks, threads, stream_,
              {&from, &to, &rows, &width, &pitch});
  staging_.read(bytes.data(), bytes.size(), stream_);
  synchronize();
  return bytes;
}

void TensorPool::synchronize() const {
  driver::check(device_.api(), device_.api().stream_synchronize(stream_), "cuStreamSynchronize");
}

}  // namespace mxjit::bench
