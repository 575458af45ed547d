// Plans by key: readers never wait and never write; misses on one key build once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "mxjit/error.hpp"

namespace mxjit::dispatch {

/// `Key` is plain data with operator<=> and a member hash(). A value, once there, stays for the table's life.
template <typename Key, typename Value>
class PlanTable {
 public:
  PlanTable() { publish(std::make_unique<Slots>(64)); }
  PlanTable(const PlanTable&) = delete;
  PlanTable& operator=(const PlanTable&) = delete;

  /// The value at `key`, or null. Lock-free.
  const std::shared_ptr<const Value>* find(const Key& key) const noexcept {
    const std::uint64_t hash = key.hash();
    const Slots& slots = *current_.load(std::memory_order_acquire);
    for (std::size_t at = hash & slots.mask;; at = (at + 1) & slots.mask) {
      const Node* node = slots.nodes[at].load(std::memory_order_acquire);
      if (node == nullptr) return nullptr;
      if (node->hash == hash && node->key == key) return &node->value;
    }
  }

  /// The value at `key`, made by `make()` where there is none. Of concurrent callers with one key one makes
  /// it, outside every lock, and the others wait for it or for its error; other keys are not held up. An
  /// error is not kept: the next call tries again.
  template <typename Make>
  std::shared_ptr<const Value> get(const Key& key, Make&& make) {
    if (const auto* found = find(key)) return *found;
    std::shared_ptr<Flight> flight;
    bool mine = false;
    {
      const std::scoped_lock lock(mutex_);
      if (const auto* found = find(key)) return *found;
      auto& slot = flights_[key];
      mine = slot == nullptr;
      if (mine) slot = std::make_shared<Flight>();
      flight = slot;
    }
    if (!mine) return flight->wait();
    const HeldLog held;
    try {
      std::shared_ptr<const Value> value = make();
      {
        const std::scoped_lock lock(mutex_);
        if (const auto* found = find(key))
          value = *found;  // adopted meanwhile
        else
          insert(key, value);
        flights_.erase(key);
      }
      flight->land(value);
      return value;
    } catch (const Error& error) {
      fail(key, *flight, {error.code(), error.what(), error.argument()});
      throw;
    } catch (const std::exception& error) {
      fail(key, *flight, {ErrorCode::internal, error.what(), {}});
      throw;
    }
  }

  /// Puts `value` at `key` where there is none; returns what is there. Waits for no build.
  std::shared_ptr<const Value> adopt(const Key& key, std::shared_ptr<const Value> value) {
    const std::scoped_lock lock(mutex_);
    if (const auto* found = find(key)) return *found;
    insert(key, value);
    return value;
  }

  std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return owned_.size();
  }

 private:
  struct Node {
    Key key;
    std::uint64_t hash;
    std::shared_ptr<const Value> value;
  };
  struct Slots {
    explicit Slots(std::size_t count) : mask(count - 1), nodes(count) {}
    std::size_t mask;  // count - 1, the count a power of two
    std::vector<std::atomic<const Node*>> nodes;
  };
  struct Failure {
    ErrorCode code;
    std::string message;
    std::string argument;
  };

  // A build in progress. Each waiter throws an Error of its own: nothing mutable is shared after landing.
  class Flight {
   public:
    std::shared_ptr<const Value> wait() {
      std::unique_lock lock(mutex_);
      landed_.wait(lock, [&] { return value_ != nullptr || failure_.has_value(); });
      if (value_ != nullptr) return value_;
      throw Error(failure_->code, failure_->message, failure_->argument);
    }
    void land(std::shared_ptr<const Value> value) {
      const std::scoped_lock lock(mutex_);
      value_ = std::move(value);
      landed_.notify_all();
    }
    void crash(Failure failure) {
      const std::scoped_lock lock(mutex_);
      failure_ = std::move(failure);
      landed_.notify_all();
    }

   private:
    std::mutex mutex_;
    std::condition_variable landed_;
    std::shared_ptr<const Value> value_;
    std::optional<Failure> failure_;
  };

  void fail(const Key& key, Flight& flight, Failure failure) {
    {
      const std::scoped_lock lock(mutex_);
      flights_.erase(key);
    }
    flight.crash(std::move(failure));
  }

  // A slot array is only ever added to; readers of an older one miss at worst the newest keys, which get()
  // looks up again under the lock.
  void publish(std::unique_ptr<Slots> slots) {
    current_.store(slots.get(), std::memory_order_release);
    published_.push_back(std::move(slots));
  }

  static void place(Slots& slots, const Node* node) {
    std::size_t at = node->hash & slots.mask;
    while (slots.nodes[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & slots.mask;
    slots.nodes[at].store(node, std::memory_order_release);
  }

  void insert(const Key& key, std::shared_ptr<const Value> value) {
    owned_.push_back(std::make_unique<const Node>(Node{key, key.hash(), std::move(value)}));
    Slots& slots = *published_.back();
    if (owned_.size() * 2 <= slots.mask + 1) return place(slots, owned_.back().get());
    auto larger = std::make_unique<Slots>((slots.mask + 1) * 2);
    for (const auto& node : owned_) place(*larger, node.get());
    publish(std::move(larger));
  }

  std::atomic<const Slots*> current_{nullptr};
  mutable std::mutex mutex_;                       // guards what follows
  std::vector<std::unique_ptr<Slots>> published_;  // older ones stay: a reader may be in one
  std::vector<std::unique_ptr<const Node>> owned_;
  std::map<Key, std::shared_ptr<Flight>> flights_;
};

}  // namespace mxjit::dispatch
