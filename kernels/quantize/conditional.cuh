// Members that only some configurations have, and what configurations choose between.
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

template <bool condition, class T, class Otherwise>
struct Either {
  using type = T;
};
template <class T, class Otherwise>
struct Either<false, T, Otherwise> {
  using type = Otherwise;
};

}  // namespace mxjit
