// Work spread over the cores of the machine.
#pragma once

#include <cstdint>
#include <functional>

namespace mxjit::reference {

/// Calls work(i) for i in [0, count), in any order, from several threads; the calls must not depend on each
/// other. Rethrows the first exception.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& work);

}  // namespace mxjit::reference
