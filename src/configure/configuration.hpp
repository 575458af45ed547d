// A configuration: the template of kernels/ and the constants chosen for a problem. Everything a generated
// kernel depends on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace mxjit::configure {

/// An integer, a flag, or the name of an enumerator of the template (never a float: values are launch
/// arguments).
using Constant = std::variant<bool, std::int64_t, std::string>;

struct Configuration {
  std::string kernel;  // template under kernels/ without ".cuh", such as "quantize/mx_dual"
  std::map<std::string, Constant> constants;  // members of the template's Config struct
  int threads = 0;                            // a block
  int min_blocks = 1;                         // a multiprocessor, for __launch_bounds__
  int shared_bytes = 0;                       // dynamic shared memory a block
  int cluster = 1;
  friend auto operator<=>(const Configuration&, const Configuration&) = default;
};

}  // namespace mxjit::configure
