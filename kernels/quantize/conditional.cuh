// Members that only some configurations have.
#pragma once

namespace mxjit {

/// Nothing but its address.
struct Absent {};

template <bool condition, class T>
struct If {
  using type = T;
};
template <class T>
struct If<false, T> {
  using type = Absent;
};

}  // namespace mxjit
