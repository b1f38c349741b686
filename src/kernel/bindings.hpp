// What the binding files share. Python checks shapes and types; the kernel checks values and ids.
// Every call that does work takes the index's lock, and releases the interpreter's unless it is over sooner than that would be.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>

#include "index.hpp"

namespace pser {

constexpr int64_t kFewRows = 64;  // a few microseconds

// The interpreter lock is given up before the index's is waited for, so the two can never wait for each other. A call of few rows
// keeps it if the index is free: to get it back from a thread that took it meanwhile could take a thousand times as long.
class Locked {
 public:
  explicit Locked(Index& index) : lock_(index.lock()) { wait(); }
  Locked(Index& index, int64_t rows) : lock_(index.lock()) {
    if (rows > kFewRows || !lock_.try_lock()) wait();
  }
  ~Locked() {
    lock_.unlock();
    if (released_ != nullptr) PyEval_RestoreThread(released_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  void wait() {
    released_ = PyEval_SaveThread();
    try {
      lock_.lock();
    } catch (...) {
      PyEval_RestoreThread(released_);
      throw;
    }
  }

  Lock& lock_;
  PyThreadState* released_ = nullptr;
};

inline void same_length(int64_t a, int64_t b, const char* what) {
  if (a != b)
    throw Error(std::string(what) + " must be one for each row, got " + std::to_string(b) + " for " + std::to_string(a) +
                ": pass arrays of the same length");
}

class Column;
class PinnedArrays;
struct Pending;

// A column of this kind, over the arrays that Python allocated for it (`description` names them, and its sizes).
std::unique_ptr<Column> make_column(nanobind::dict description, PinnedArrays& arrays, const Pending& pending, Index& index);

void bind_index(nanobind::module_& m);
void bind_store(nanobind::module_& m);
void bind_intake(nanobind::module_& m);
void bind_tabular(nanobind::module_& m);
void bind_rmsprop(nanobind::module_& m);
void bind_planes(nanobind::module_& m);
void bind_noise(nanobind::module_& m);
void bind_huber(nanobind::module_& m);

}  // namespace pser
