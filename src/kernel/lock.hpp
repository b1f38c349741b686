// The lock of an index: its holder may take it again, so that no call made under `locked()` waits for itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "rules.hpp"

namespace pser {

class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() {
    if (!is_mine()) {
      require_not_lost();
      mutex_.lock();
      holder_.store(me(), std::memory_order_relaxed);
    }
    ++depth_;
  }

  bool try_lock() {
    if (!is_mine()) {
      if (lost_.load(std::memory_order_relaxed) || !mutex_.try_lock()) return false;
      holder_.store(me(), std::memory_order_relaxed);
    }
    ++depth_;
    return true;
  }

  void unlock() {
    if (--depth_ > 0) return;
    holder_.store(nullptr, std::memory_order_relaxed);
    mutex_.unlock();
  }

  // In the child of a fork: a thread that is no more was in the middle of a call, so nobody can take this again.
  void lose() { lost_.store(true, std::memory_order_relaxed); }

  // Only the holder itself can find itself here.
  bool is_mine() const { return holder_.load(std::memory_order_relaxed) == me(); }

 private:
  // An address that no other thread has, and that the child of a fork keeps.
  static const void* me() {
    static thread_local const char mark = 0;
    return &mark;
  }

  void require_not_lost() const {
    if (lost_.load(std::memory_order_relaxed))
      throw Error("another thread was using this index when the process forked: load or create one in the child");
  }

  std::mutex mutex_;  // not a recursive one: a child of a fork could not release what its parent's thread took
  std::atomic<const void*> holder_{nullptr};
  std::atomic<bool> lost_{false};
  int depth_ = 0;  // how often the holder took it
};

// Take all of them, before a fork. Holding none while waiting for another, two threads cannot wait for each other; a thread
// that comes with one in hand waits a limited time for the rest. Returns which were taken.
inline std::vector<bool> lock_all(const std::vector<Lock*>& locks, std::chrono::milliseconds patience) {
  std::vector<bool> taken(locks.size(), true);
  if (std::any_of(locks.begin(), locks.end(), [](const Lock* lock) { return lock->is_mine(); })) {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (size_t k = 0; k < locks.size(); ++k)
      while (!(taken[k] = locks[k]->try_lock()) && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return taken;
  }
  for (size_t awaited = 0; !locks.empty();) {
    locks[awaited]->lock();
    size_t k = 0;
    while (k < locks.size() && (k == awaited || locks[k]->try_lock())) ++k;
    if (k == locks.size()) break;
    for (size_t i = 0; i < k; ++i)
      if (i != awaited) locks[i]->unlock();
    locks[awaited]->unlock();
    awaited = k;
  }
  return taken;
}

}  // namespace pser
