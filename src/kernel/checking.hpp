// Does an index contradict itself? And may a saved one be believed?
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "updating.hpp"

namespace pser {

class Checking : public Updating {
 public:
  using Updating::Updating;

  // Empty if all is well, else the rule that is broken.
  std::string broken_invariant() {
    if (size() < 0 || size() > capacity()) return "size is within capacity";
    if (rules_.kind == Kind::kProportional && !sums_.consistent()) return "every parent equals the sum of its children";
    if (minima_ && !minima_->consistent()) return "every parent equals the least of its children";
    if (ranks_ && (!ranks_->consistent() || ranks_->size() != size())) return "the rank list is sorted and complete";
    return broken_record();
  }

  // The same of what a cell holds.
  std::string broken_record() const {
    for (int64_t cell = 0; cell < used_blocks() * kFan; ++cell) {
      const Record& r = record(cell);
      if (cell >= capacity() || !is_live(cell)) {
        if (mass(cell) != 0.0) return "an empty slot has no mass";
        continue;
      }
      if (!(r.priority <= p_max_ && r.priority >= p_min_))
        return "a priority lies between the least and the largest ever recorded";
      if (back(cell) < 0 || back(cell) >= capacity() || back(cell) > id_in(cell))
        return "a predecessor lies less than a capacity back";
      const double right = rules_.kind == Kind::kProportional ? power(r.priority, rules_.alpha) : 1.0;
      if (!(std::fabs(mass(cell) - right) <= 1e-12 * right)) return "mass is priority to the power alpha";
      if (!(r.own_mass >= 0.0f)) return "a transition's own mass is not negative";
      if (r.source() > Source::kDecayed) return "a priority has a source";
      if (rules_.retain_decayed && !(decayed_parts_[cell] >= 0.0 && decayed_parts_[cell] <= r.priority))
        return "what came by decay is no more than the priority";
    }
    return "";
  }

  // Refuse numbers that no history could have left behind: a file may come from anywhere.
  void check_restored() const {
    if (!(p_min_ >= 0.0 && p_min_ <= 1.0 && p_max_ >= 1.0 && p_max_ <= kLargestPriority))
      throw Error("the saved priorities have no order");
    if (!counters_.sensible()) throw Error("the saved counts are not counts");
    const std::string broken = broken_record();
    if (!broken.empty()) throw Error("the saved state breaks a rule: " + broken);
  }
};

}  // namespace pser
