// New priorities for transitions in memory: from their TD errors (Algorithm 1), or as given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "decaying.hpp"

namespace pser {

constexpr double kLargestMassSum = 1e150;  // of more masses than could ever be seen, each 1e100 at most

struct Counters {
  int64_t updates_applied = 0;
  int64_t updates_skipped_stale = 0;
  double decayed_mass_seen = 0.0;  // decayed mass that transitions held when their own update came
  double decayed_mass_lost = 0.0;  // how much of it that update took away

  bool sensible() const {
    const auto count = [](int64_t n) { return n >= 0 && n <= kLargestId; };
    const auto mass = [](double m) { return m >= 0.0 && m <= kLargestMassSum; };
    return count(updates_applied) && count(updates_skipped_stale) && mass(decayed_mass_seen) && mass(decayed_mass_lost);
  }
};

class Updating : public Decaying {
 public:
  using Decaying::Decaying;

  Counters& counters() { return counters_; }

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
    for (Walker& w : walkers_) update_one(w);
    // … then all decays are applied; sorted by id, they give the same bits whatever the order of the batch.
    if (rules_.window > 0) decay_backward();
    refresh();
    return applied;
  }

  // Raw priorities as given: no η, no decay. Input already checked. Returns how many rows were still in memory.
  int64_t set_priorities(int64_t count, const int64_t* ids, const double* priority) {
    const int64_t applied = take_rows(count, ids, [&](int64_t i) { return priority[i]; });
    if (rules_.kind != Kind::kUniform)
      for (const Walker& w : walkers_) {
        note(w.decaying);
        give(w, w.decaying, Source::kOwn);
        if (rules_.retain_decayed) decayed_parts_[w.cell] = 0.0;
      }
    refresh();
    return applied;
  }

  // How much of a transition's mass came by decay.
  static double decayed_mass(double mass, const Record& r) {
    return static_cast<float>(mass) > r.own_mass ? mass - r.own_mass : 0.0;
  }

 protected:
  Counters counters_;

 private:
  // A walker for each distinct row still in memory, sorted by id. Returns the rows still in memory.
  template <class Value>
  int64_t take_rows(int64_t count, const int64_t* ids, const Value& value) {
    walkers_.clear();
    for (int64_t i = 0; i < count; ++i)
      if (ids[i] >= oldest_id()) walkers_.push_back({ids[i], cell_of(ids[i]), value(i), 0.0});
    // Fetch all first: one's update then runs while the others are on their way.
    for (const Walker& w : walkers_) prefetch(w.cell);
    const auto applied = static_cast<int64_t>(walkers_.size());
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

  void update_one(Walker& w) {
    Record& r = record(w.cell);
    ++r.history;
    if (rules_.kind == Kind::kUniform) return;
    const double fresh = w.decaying;
    double p = 0.0;
    if (rules_.retain_decayed) {
      decayed_parts_[w.cell] *= rules_.eta;
      p = std::max(fresh, decayed_parts_[w.cell]);
    } else {
      p = retained_priority(fresh, rules_.eta, r.priority);
    }
    note(fresh);
    // What η keeps of a decayed part is still the decay's.
    const Source source = p == fresh ? Source::kOwn : rules_.retain_decayed ? Source::kDecayed : Source::kRetained;
    const double before = mass(w.cell);
    const double decayed = rules_.kind == Kind::kProportional ? decayed_mass(before, r) : 0.0;
    give(w, p, source);
    const double after = mass(w.cell);
    if (decayed > 0.0) {
      counters_.decayed_mass_seen += decayed;
      counters_.decayed_mass_lost += std::clamp(before - after, 0.0, decayed);
    }
    if (rules_.window == 0) return;
    if (rules_.decay_from_priority) w.decaying = p;
    w.decaying_mass = !is_cheap_power(rules_.alpha) && w.decaying == p ? after : power(w.decaying, rules_.alpha);
  }

  void give(const Walker& w, double p, Source source) {
    if (ranks_) {
      ranks_->erase(record(w.cell).priority, w.id);
      ranks_->insert(p, w.id);
    }
    set_own(w.cell, p, source);
  }
};

}  // namespace pser
