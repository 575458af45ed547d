#include "bench/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "reference/reference.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::bench {
namespace {

std::vector<std::uint8_t> bytes_of_words(const std::vector<std::int32_t>& words) {
  std::vector<std::uint8_t> bytes(words.size() * sizeof(std::int32_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

/// `expected`: packed bytes of the region, or more.
std::string compare(const std::string& name, const Region& region, const std::vector<std::uint8_t>& got,
                    const std::vector<std::uint8_t>& expected) {
  if (static_cast<std::int64_t>(got.size()) != region.bytes() || got.size() > expected.size())
    return fmt::format("{}: {} bytes of {}, the reference has {}", name, got.size(), region.bytes(),
                       expected.size());
  const auto [was, want] = std::mismatch(got.begin(), got.end(), expected.begin());
  if (was == got.end()) return {};
  const std::int64_t at = was - got.begin();
  return fmt::format("{}: byte {} is {:#04x}, the reference has {:#04x}", name,
                     region.offset + at / region.width * region.pitch + at % region.width, *was, *want);
}

std::string difference_of(const Part& part, std::mutex& mutex, const ReadRegion& read) {
  TensorMap inputs;
  for (const problem::TensorDecl& decl : problem::tensors(part.problem)) {
    if (decl.output) continue;
    HostTensor& tensor = inputs[decl.name];
    tensor = {decl.dtype, decl.shape, {}};
    if (const auto words = part.words.find(decl.name); words != part.words.end()) {
      tensor.bytes = bytes_of_words(words->second);
      continue;
    }
    {
      const std::scoped_lock lock(mutex);
      tensor.bytes = read(decl.name, part.inputs.at(decl.name));
    }
    if (decl.name == "x") tensor.bytes.insert(tensor.bytes.end(), part.last_row.begin(), part.last_row.end());
  }
  const TensorMap expected = reference::run(part.problem, inputs);
  for (const auto& [name, region] : part.outputs) {
    std::vector<std::uint8_t> got;
    {
      const std::scoped_lock lock(mutex);
      got = read(name, region);
    }
    if (std::string found = compare(name, region, got, expected.at(name).bytes); !found.empty()) return found;
  }
  return {};
}

}  // namespace

std::string difference_from_reference(const OpCase& one, std::int64_t budget, const ReadRegion& read) {
  const Parts all = parts_of(one, budget, read);
  std::mutex read_mutex, mutex;
  std::string difference;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < all.parts.size(); i = next++) {
      std::string found;
      try {
        found = difference_of(all.parts[i], read_mutex, read);
      } catch (const std::exception& error) {
        found = error.what();
      }
      if (found.empty()) continue;
      const std::scoped_lock lock(mutex);
      if (difference.empty()) difference = std::move(found);
      next = all.parts.size();
    }
  };
  const std::size_t workers =
      std::min<std::size_t>(all.parts.size(), std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < workers; ++i) threads.emplace_back(work);
  threads.clear();  // joins
  if (!difference.empty()) return difference;
  for (const auto& [name, region] : all.zeros) {
    difference = compare(name, region, read(name, region),
                         std::vector<std::uint8_t>(static_cast<std::size_t>(region.bytes())));
    if (!difference.empty()) return difference;
  }
  return {};
}

}  // namespace mxjit::bench
