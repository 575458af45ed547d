// Values of the process that are never destroyed: threads that outlive main, and exit handlers, may still use
// them.
#pragma once

#include <utility>

namespace mxjit {

/// In place, not on the heap: a library that is unloaded leaves nothing behind.
template <typename T>
class Immortal {
 public:
  template <typename... Args>
  explicit Immortal(Args&&... args) : value_(std::forward<Args>(args)...) {}
  ~Immortal() {}  // NOLINT: that is the point
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }

 private:
  union {
    T value_;
  };
};

}  // namespace mxjit
