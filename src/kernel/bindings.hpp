// What the binding files share. Python checks shapes and types; the kernel checks values and ids.
// Every call that does work releases the interpreter lock and takes the index's own.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "index.hpp"

namespace pser {

// The interpreter lock is given up before the index's is taken, so the two can never wait for each other.
struct Locked {
  explicit Locked(Index& index) : lock(index.lock()) {}
  nanobind::gil_scoped_release released;
  std::lock_guard<Lock> lock;
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

}  // namespace pser
