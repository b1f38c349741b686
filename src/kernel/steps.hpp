// What a transition holds beside its observations: action, return, discount, termination.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "column.hpp"

namespace pser {

// A column of real numbers, in single or double precision.
class RealColumn {
 public:
  explicit RealColumn(float* values) : narrow_(values) {}
  explicit RealColumn(double* values) : wide_(values) {}

  bool is_wide() const { return wide_ != nullptr; }
  double largest() const { return is_wide() ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max(); }
  bool fits(double value) const { return std::isfinite(is_wide() ? value : static_cast<double>(static_cast<float>(value))); }
  double read(int64_t slot) const { return is_wide() ? wide_[slot] : static_cast<double>(narrow_[slot]); }
  void write(int64_t slot, double value) {
    if (is_wide())
      wide_[slot] = value;
    else
      narrow_[slot] = static_cast<float>(value);
  }
  // How they are kept: bytes of a row, and all rows.
  int64_t bytes() const { return is_wide() ? sizeof(double) : sizeof(float); }
  const uint8_t* raw() const { return is_wide() ? reinterpret_cast<const uint8_t*>(wide_) : reinterpret_cast<const uint8_t*>(narrow_); }

 private:
  float* narrow_ = nullptr;
  double* wide_ = nullptr;
};

struct Steps {
  uint8_t* action;          // (capacity, action_bytes)
  uint8_t* pending_action;  // (streams, n_step, action_bytes)
  int64_t action_bytes;
  RealColumn reward;         // (capacity,)
  RealColumn discount;       // (capacity,)
  bool* terminated;          // (capacity,)
  double* pending_reward;    // (streams, n_step)
  double* pending_priority;  // (streams, n_step), NaN for MaxPrio
  bool* pending_first;       // (streams, n_step)
  bool* at_start;            // (streams,): does the stream's next step begin an episode?
  int64_t* written;          // (1,): no row of this id or later was ever begun; told before the row is, should the process die
  Pending pending;
};

}  // namespace pser
