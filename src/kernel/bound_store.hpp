// A store over arrays of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "store.hpp"
#include "views.hpp"

namespace pser {

// Ids of transitions, as int64 bytes.
inline nb::object as_bytes(const std::vector<int64_t>& ids) {
  return nb::bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int64_t));
}

// A store and the arrays it writes to, held for as long as it lives.
class BoundStore {
 public:
  BoundStore(const BoundStore&) = delete;
  BoundStore(Index& index, int64_t n_step, double gamma, nb::dict steps, nb::list columns)
      : store_(index, gamma, typed(steps, pending(index, n_step, steps)), made(columns, pending(index, n_step, steps), index)) {}

  Store& store() { return store_; }

 private:
  Pending pending(Index& index, int64_t n_step, nb::dict d) {
    return {index.streams(), n_step, arrays_.as<int64_t>(d["pending_count"]), arrays_.as<int64_t>(d["pending_start"])};
  }

  RealColumn reals(nb::handle array) {
    arrays_.bytes(array);
    const View& view = arrays_.last();
    return view.is("d", 8) ? RealColumn(view.as<double>()) : RealColumn(view.as<float>());
  }

  Steps typed(nb::dict d, const Pending& pending) {
    return {arrays_.bytes(d["action"]),
            arrays_.bytes(d["pending_action"]),
            nb::cast<int64_t>(d["action_bytes"]),
            reals(d["reward"]),
            reals(d["discount"]),
            arrays_.as<bool>(d["terminated"]),
            arrays_.as<double>(d["pending_reward"]),
            arrays_.as<double>(d["pending_priority"]),
            arrays_.as<bool>(d["pending_first"]),
            arrays_.as<bool>(d["at_start"]),
            arrays_.as<int64_t>(d["written"]),
            pending};
  }

  Store::Columns made(nb::list list, const Pending& pending, Index& index) {
    Store::Columns out;
    for (nb::handle item : list) out.push_back(make_column(nb::cast<nb::dict>(item), arrays_, pending, index));
    return out;
  }

  PinnedArrays arrays_;
  Store store_;
};

}  // namespace pser
