#include "emulation/emulator.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "emulation/device/services.hpp"

namespace mxjit::emulation {
namespace {

class Allocations {
 public:
  void add(void* memory, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    ends_[address(memory)] = address(memory) + bytes;
  }
  bool remove(void* memory) {
    const std::scoped_lock lock(mutex_);
    return ends_.erase(address(memory)) > 0;
  }
  bool contains(const void* from, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    const auto after = ends_.upper_bound(address(from));
    return after != ends_.begin() && address(from) + bytes <= std::prev(after)->second;
  }

 private:
  static std::uintptr_t address(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }
  std::mutex mutex_;
  std::map<std::uintptr_t, std::uintptr_t> ends_;
};

Allocations& allocations() {
  static Allocations instance;
  return instance;
}

}  // namespace

struct Program::Symbols {
  void (*entry)(const void* parameters);
  const Services** services;
  Index *thread, *block, *threads, *blocks;
  const unsigned long* parameter_bytes;
};

namespace {

namespace context = boost::context;

constexpr unsigned lanes = 32;

// Guarded stacks, used again: a thread's ends long before the last block's.
class Stacks {
 public:
  context::stack_context allocate() {
    if (free().empty()) return context::protected_fixedsize_stack(256 * 1024).allocate();
    const context::stack_context stack = free().back();
    free().pop_back();
    return stack;
  }
  void deallocate(context::stack_context& stack) { free().push_back(stack); }

 private:
  // For the life of the process, as the emulated memory they are part of. One launch runs at a time.
  static std::vector<context::stack_context>& free() {
    static auto* const all = new std::vector<context::stack_context>;
    return *all;
  }
};

// A block's threads. They run one at a time, each until it waits.
class Block {
 public:
  Block(const Program::Symbols& symbols, const Grid& grid, const void* parameters, unsigned char* shared)
      : symbols_(symbols), parameters_(parameters), threads_(grid.threads), warps_((grid.threads + 31) / 32) {
    services_ = {exchange, barrier, wait, check, fail, shared};
    *symbols_.services = &services_;
    *symbols_.threads = {grid.threads, 1, 1};
    *symbols_.blocks = {grid.blocks[0], grid.blocks[1], grid.blocks[2]};
  }

  void run(Index index, std::minstd_rand& random) {
    running_block_ = this;
    block_ = index;
    *symbols_.block = index;
    // Warps run in an order of chance: what a missing barrier leaves to chance shows.
    std::vector<unsigned> order(warps_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), random);
    alive_ = static_cast<unsigned>(threads_.size());
    for (unsigned i = 0; i < threads_.size(); ++i) start(threads_[i], i);
    while (alive_ > 0) {
      bool moved = false;
      for (const unsigned warp : order)
        for (unsigned i = warp * lanes; i < std::min<std::size_t>((warp + 1) * lanes, threads_.size()); ++i)
          moved |= resume(i);
      if (!error_.empty()) throw std::runtime_error(error_);
      if (!moved) throw std::runtime_error(stuck());
    }
  }

 private:
  struct Thread {
    context::fiber fiber;
    bool (*ready)(const void* state, unsigned argument) = nullptr;  // null: nothing is waited for
    const void* state = nullptr;
    unsigned argument = 0;
    const char* what = "";
  };
  struct Warp {
    const char* what = nullptr;  // the collective instruction under way
    unsigned bytes = 0, arrived = 0, generation = 0;
    std::vector<unsigned char> deposits[2];  // of this generation and of the one before
  };
  struct Barrier {
    int threads = 0;
    unsigned arrived = 0, generation = 0;
  };

  void start(Thread& thread, unsigned) {
    thread.ready = nullptr;
    thread.fiber = context::fiber(std::allocator_arg, Stacks(), [this](context::fiber&& scheduler) {
      scheduler_ = std::move(scheduler);
      try {
        symbols_.entry(parameters_);
      } catch (const std::runtime_error& error) {
        if (error_.empty()) error_ = error.what();
      }
      return std::move(scheduler_);
    });
  }

  bool resume(unsigned index) {
    Thread& thread = threads_[index];
    if (!thread.fiber || !error_.empty()) return false;
    if (thread.ready != nullptr && !thread.ready(thread.state, thread.argument)) return false;
    thread.ready = nullptr;
    running_ = index;
    *symbols_.thread = {index, 0, 0};
    thread.fiber = std::move(thread.fiber).resume();
    if (!thread.fiber) {
      --alive_;
      leave(index);
    }
    return true;
  }

  // What waits for every thread that still runs must not wait for one that left.
  void leave(unsigned index) {
    const Warp& warp = warps_[index / lanes];
    if (warp.arrived > 0 && error_.empty())
      error_ = fmt::format("{} left while lanes of its warp wait in {}", name(index), warp.what);
    for (Barrier& b : barriers_)
      if (b.threads == 0 && b.arrived > 0 && b.arrived == alive_) release(b);
  }

  static void release(Barrier& barrier) {
    barrier.arrived = 0;
    ++barrier.generation;
  }

  std::string name(unsigned thread) const {
    return fmt::format("thread {} of block ({}, {}, {})", thread, block_.x, block_.y, block_.z);
  }

  std::string stuck() const {
    std::string text = "no thread can go on:";
    unsigned told = 0;
    for (unsigned i = 0; i < threads_.size() && told < 8; ++i)
      if (threads_[i].fiber && (i % lanes == 0 || told == 0)) {
        text += fmt::format(" {} waits in {};", name(i), threads_[i].what);
        ++told;
      }
    return text;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error(fmt::format("{}: {}", name(running_), what));
  }

  void suspend(const char* what, bool (*ready)(const void*, unsigned), const void* state, unsigned argument) {
    Thread& thread = threads_[running_];
    thread.what = what;
    thread.ready = ready;
    thread.state = state;
    thread.argument = argument;
    scheduler_ = std::move(scheduler_).resume();
  }

  static bool moved_on(const void* generation, unsigned waited) {
    return *static_cast<const unsigned*>(generation) != waited;
  }

  // ---- services of the running thread

  static const void* exchange(const char* what, const void* deposit, unsigned bytes) {
    Block& block = *running_block_;
    Warp& warp = block.warps_[block.running_ / lanes];
    if (warp.arrived == 0) {
      warp.what = what;
      warp.bytes = bytes;
      warp.deposits[warp.generation % 2].resize(std::size_t{bytes} * lanes);
    } else if (std::strcmp(warp.what, what) != 0 || warp.bytes != bytes) {
      block.refuse(fmt::format("is in {}, others of its warp in {}", what, warp.what));
    }
    std::vector<unsigned char>& deposits = warp.deposits[warp.generation % 2];
    std::memcpy(deposits.data() + std::size_t{block.running_ % lanes} * bytes, deposit, bytes);
    if (++warp.arrived == lanes) {
      warp.arrived = 0;
      ++warp.generation;
    } else {
      block.suspend(what, moved_on, &warp.generation, warp.generation);
    }
    return deposits.data();
  }

  static void barrier(int id, int threads) {
    Block& block = *running_block_;
    if (id < 0 || id >= 16) block.refuse(fmt::format("barrier {}: there are 16", id));
    Barrier& b = block.barriers_[static_cast<std::size_t>(id)];
    if (b.arrived == 0) b.threads = threads;
    if (b.threads != threads)
      block.refuse(fmt::format("barrier {} of {} threads, for others of {}", id, threads, b.threads));
    const unsigned expected = threads == 0 ? block.alive_ : static_cast<unsigned>(threads);
    if (++b.arrived == expected) {
      release(b);
    } else {
      block.suspend("a barrier", moved_on, &b.generation, b.generation);
    }
  }

  static void wait(const char* what, bool (*done)(const void*, unsigned), const void* state,
                   unsigned argument) {
    if (!done(state, argument)) running_block_->suspend(what, done, state, argument);
  }

  static void check(const char* what, const void* address, unsigned bytes) {
    if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0)
      running_block_->refuse(fmt::format("{} at {}: not aligned to {} bytes", what, address, bytes));
    if (!allocations().contains(address, bytes))
      running_block_->refuse(fmt::format("{} at {}: outside every allocation", what, address));
  }

  static void fail(const char* what) { running_block_->refuse(what); }

  static thread_local Block* running_block_;

  const Program::Symbols& symbols_;
  const void* parameters_;
  Services services_{};
  Index block_{};
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::array<Barrier, 16> barriers_{};
  context::fiber scheduler_;
  unsigned running_ = 0, alive_ = 0;
  std::string error_;
};

thread_local Block* Block::running_block_ = nullptr;

}  // namespace

Program::Program(const std::string& file) : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw std::runtime_error(::dlerror());
  const auto find = [&](const char* name) {
    void* symbol = ::dlsym(handle_, name);
    if (symbol == nullptr) throw std::runtime_error(fmt::format("{}: no symbol {}", file, name));
    return symbol;
  };
  symbols_ = new Symbols{reinterpret_cast<void (*)(const void*)>(find("mxjit_entry")),
                         static_cast<const Services**>(find("mxjit_services")),
                         static_cast<Index*>(find("threadIdx")),
                         static_cast<Index*>(find("blockIdx")),
                         static_cast<Index*>(find("blockDim")),
                         static_cast<Index*>(find("gridDim")),
                         static_cast<const unsigned long*>(find("mxjit_params_bytes"))};
}

std::size_t Program::parameter_bytes() const { return *symbols_->parameter_bytes; }

Program::~Program() {
  delete symbols_;
  ::dlclose(handle_);
}

void run(const Program& program, const Grid& grid, const void* parameters) {
  // The kernel's shared and built-in variables are the program's: one launch at a time.
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  static std::minstd_rand random(1);
  std::vector<unsigned char> memory(grid.shared_bytes + 1024);
  void* shared = memory.data();
  std::size_t space = memory.size();
  std::align(1024, grid.shared_bytes, shared, space);
  for (unsigned z = 0; z < grid.blocks[2]; ++z)
    for (unsigned y = 0; y < grid.blocks[1]; ++y)
      for (unsigned x = 0; x < grid.blocks[0]; ++x) {
        std::fill(memory.begin(), memory.end(), static_cast<unsigned char>(0xDB));
        Block(program.symbols(), grid, parameters, static_cast<unsigned char*>(shared))
            .run({x, y, z}, random);
      }
}

void add_allocation(void* memory, std::size_t bytes) { allocations().add(memory, bytes); }
bool is_allocated(const void* memory, std::size_t bytes) { return allocations().contains(memory, bytes); }
bool remove_allocation(void* memory) { return allocations().remove(memory); }

}  // namespace mxjit::emulation
