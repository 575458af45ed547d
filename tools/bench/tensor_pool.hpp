// The device tensors that the cases of one shape share, several sets of each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/check_parts.hpp"
#include "bench/device_program.hpp"
#include "driver/device_buffer.hpp"
#include "driver/device_context.hpp"

namespace mxjit::bench {

class TensorPool {
 public:
  /// `program` holds the kernels of device_source; without it regions are picked on the host.
  TensorPool(const driver::DeviceContext& device, const DeviceProgram* program, CUstream stream);

  /// Makes room for `sets` sets of a case's tensors. Every case comes before make().
  void add(const OpCase& one, int sets);
  /// Allocates, and fills what is read: integers with the case's, all else with `fill(buffer)`, as bf16.
  void make(const std::function<void(driver::DeviceBuffer& buffer)>& fill);

  dispatch::DeviceTensors tensors(const OpCase& one, int set) const;
  /// Fills every tensor that some case writes with `value`.
  void poison(std::uint8_t value);
  /// For difference_from_reference, of one set.
  ReadRegion reader(const OpCase& one, int set);

 private:
  struct Place {
    std::int64_t stride = 0;  // bytes, from one set to the next
    int sets = 1;
    bool written = false;
    std::vector<std::int32_t> words;  // the same in every set: there is one
    driver::DeviceBuffer buffer;
  };
  Place& room(const std::string& name, std::int64_t bytes, int sets);
  std::vector<std::uint8_t> read(const Place& place, int set, const Region& region);
  void synchronize() const;

  const driver::DeviceContext& device_;
  const DeviceProgram* program_;
  CUstream stream_;
  std::map<std::string, Place> places_;
  driver::DeviceBuffer staging_;
};

}  // namespace mxjit::bench
