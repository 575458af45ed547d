// Runs a kernel that was compiled for the host, one thread block after the other, every thread a fiber.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace mxjit::emulation {

/// A kernel's shared object, opened. Throws std::runtime_error.
class Program {
 public:
  explicit Program(const std::string& file);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  struct Symbols;
  const Symbols& symbols() const { return *symbols_; }
  std::size_t parameter_bytes() const;

 private:
  void* handle_;
  Symbols* symbols_;
};

struct Grid {
  std::array<unsigned, 3> blocks{1, 1, 1};
  unsigned threads = 1;
  std::size_t shared_bytes = 0;
};

/// Runs the grid to its end. Throws std::runtime_error that says which thread did what: lanes of a warp in
/// different collective instructions, a barrier that not all reach, an access outside every allocation.
void run(const Program& program, const Grid& grid, const void* parameters);

/// What kernels may touch as device memory.
void add_allocation(void* memory, std::size_t bytes);
bool is_allocated(const void* memory, std::size_t bytes);
/// False for what is no allocation.
bool remove_allocation(void* memory);

}  // namespace mxjit::emulation
