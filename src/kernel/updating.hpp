// New priorities for transitions in memory: from their TD errors (Algorithm 1), or as given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "retaining.hpp"

namespace pser {

class Updating : public Retaining {
 public:
  using Retaining::Retaining;

  template <class Real>
  void check_update(int64_t count, const int64_t* ids, const Real* td_errors) const {
    check_ids(count, ids);
    for (int64_t i = 0; i < count; ++i)
      if (!(std::fabs(static_cast<double>(td_errors[i])) <= kLargestPriority))
        throw Error("a TD error must be finite and at most 1e100 in size, row " + std::to_string(i) + " has " +
                    std::to_string(td_errors[i]) + ": the learner has diverged or its input is bad");
  }

  void check_ids(int64_t count, const int64_t* ids) const {
    for (int64_t i = 0; i < count; ++i)
      if (ids[i] < 0 || ids[i] >= next_id())
        throw Error("id " + std::to_string(ids[i]) + " was never written (ids so far: 0 to " + std::to_string(next_id() - 1) +
                    "): pass the ids that sample returned");
  }

  void check_retained(int64_t count, const int64_t* ids) const {
    check_ids(count, ids);
    for (int64_t i = 0; i < count; ++i)
      if (ids[i] < oldest_id())
        throw Error("id " + std::to_string(ids[i]) + " is no longer in memory (ids now: " + std::to_string(oldest_id()) + " to " +
                    std::to_string(next_id() - 1) + "): read a transition before it is overwritten");
  }

  void check_priorities(int64_t count, const double* priority) const {
    for (int64_t r = 0; r < count; ++r)
      if (!(priority[r] >= 0.0 && priority[r] <= kLargestPriority))
        throw Error("a priority must be a number from 0 to 1e100, row " + std::to_string(r) + " has " +
                    std::to_string(priority[r]) + ": check the TD errors it came from");
  }

  // Input already checked. Returns how many rows were still in memory.
  template <class Real>
  int64_t update(int64_t count, const int64_t* ids, const Real* td_errors) {
    const int64_t applied =
        take_rows(count, ids, [&](int64_t i) { return fresh_priority(static_cast<double>(td_errors[i]), rules_.eps); });
    // First every distinct transition takes its own update, from the priorities held before the call …
    update_each();
    // … then all decays are applied; sorted by id, they give the same bits whatever the order of the batch.
    if (rules_.window > 0) decay_backward();
    refresh();
    settle_raised();
    return applied;
  }

  // Raw priorities as given: no η, no decay. Input already checked. Returns how many rows were still in memory.
  int64_t set_priorities(int64_t count, const int64_t* ids, const double* priority) {
    const int64_t applied = take_rows(count, ids, [&](int64_t i) { return priority[i]; });
    if (rules_.kind != Kind::kUniform)
      for (const Walker& w : walkers_) {
        mark(w.cell);
        note(w.decaying);
        if (ranks_) move_in_ranks(w, w.decaying);
        set_own(w.cell, w.decaying, Source::kOwn);
        if (rules_.retain_decayed) decayed_parts_[w.cell] = 0.0;
      }
    refresh();
    return applied;
  }

 private:
  // A walker for each distinct row still in memory, sorted by id. Returns the rows still in memory.
  template <class Value>
  int64_t take_rows(int64_t count, const int64_t* ids, const Value& value) {
    walkers_.resize(static_cast<size_t>(count));
    Walker* end = walkers_.data();
    for (int64_t i = 0; i < count; ++i) {
      if (ids[i] < oldest_id()) continue;
      *end = {ids[i], cell_of(ids[i]), value(i), 0.0};
      // Fetch all first: one's update then runs while the others are on their way.
      prefetch(end->cell);
      ++end;
    }
    const int64_t applied = end - walkers_.data();
    walkers_.resize(static_cast<size_t>(applied));
    counters_.updates_applied += applied;
    counters_.updates_skipped_stale += count - applied;
    merge_repeated();
    return applied;
  }

  // Sort by id; a transition given more than once takes the larger of its values, once.
  void merge_repeated() {
    if (!std::is_sorted(walkers_.begin(), walkers_.end())) std::sort(walkers_.begin(), walkers_.end());
    size_t kept = 0;
    for (size_t i = 0; i < walkers_.size(); ++i) {
      if (kept > 0 && walkers_[kept - 1].id == walkers_[i].id)
        walkers_[kept - 1].decaying = std::max(walkers_[kept - 1].decaying, walkers_[i].decaying);
      else
        walkers_[kept++] = walkers_[i];
    }
    walkers_.resize(kept);
  }
};

}  // namespace pser
