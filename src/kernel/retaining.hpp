// A transition's own update: its fresh priority, or what η keeps of the one it held (Brittain et al. 2019, Eqs. 4 and 10).
//
// The rows of a batch are read, computed many at once, and written: nobody could guess which way the comparisons of a single one
// go, and a processor that guesses wrong loses more time than all of its arithmetic takes.
#pragma once

#include <algorithm>
#include <cstdint>

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

class Retaining : public Decaying {
 public:
  using Decaying::Decaying;

  Counters& counters() { return counters_; }

  // How much of a transition's mass came by decay.
  static double decayed_mass(double mass, const Record& r) { return decayed_mass(mass, r.own_mass); }
  static PSER_INLINE double decayed_mass(double mass, float own_mass) {
    const double above = mass - own_mass;
    return static_cast<float>(mass) > own_mass ? above : 0.0;
  }

 protected:
  // Every walker's transition takes its update, from the priorities held before the call.
  void update_each() {
    for (size_t begin = 0; begin < walkers_.size(); begin += kRows)
      update_some(walkers_.data() + begin, static_cast<int>(std::min<size_t>(kRows, walkers_.size() - begin)));
  }

  // The transition is about to take this priority.
  void move_in_ranks(const Walker& w, double p) {
    ranks_->erase(record(w.cell).priority, w.id);
    ranks_->insert(p, w.id);
  }

  Counters counters_;

 private:
  static constexpr int kRows = 64;  // taken together: they stay in the nearest cache

  struct Rows {
    double fresh[kRows];     // |δ| + ε
    double held[kRows];      // what η keeps a share of
    double before[kRows];    // mass
    float own_mass[kRows];
    double priority[kRows];  // the new one
    double after[kRows];     // its mass
    double decaying_mass[kRows];
    double decayed[kRows];   // mass that came by decay
    double lost[kRows];      // how much of it the update takes away
  };

  void update_some(Walker* walkers, int count) {
    if (rules_.kind == Kind::kUniform) {
      for (int i = 0; i < count; ++i) {
        mark(walkers[i].cell);
        record(walkers[i].cell).count_replay();
      }
      return;
    }
    Rows rows;
    read(walkers, count, rows);
#if PSER_HAS_AVX2_BUILD
    if (have_avx2())
      compute_avx2(rows, count);
    else
#endif
      compute_portable(rows, count);
    write(walkers, count, rows);
  }

  void read(const Walker* walkers, int count, Rows& rows) const {
    for (int i = 0; i < count; ++i) {
      const int64_t cell = walkers[i].cell;
      const Record& r = record(cell);
      rows.fresh[i] = walkers[i].decaying;
      rows.held[i] = rules_.retain_decayed ? decayed_parts_[cell] : r.priority;
      rows.before[i] = mass(cell);
      rows.own_mass[i] = r.own_mass;
    }
  }

  PSER_INLINE void compute_body(Rows& rows, int count) const {
    const double eta = rules_.eta;
    for (int i = 0; i < count; ++i) rows.priority[i] = retained_priority(rows.fresh[i], eta, rows.held[i]);
    if (rules_.kind == Kind::kProportional)
      with_power(rules_.alpha, [&](const auto& powered) PSER_INLINED {
        for (int i = 0; i < count; ++i) rows.after[i] = powered(rows.priority[i]);
        if (rules_.window > 0) decaying_masses(rows, count, powered);
      });
    else
      std::fill(rows.after, rows.after + count, 1.0);
    for (int i = 0; i < count; ++i) rows.decayed[i] = decayed_mass(rows.before[i], rows.own_mass[i]);
    for (int i = 0; i < count; ++i) rows.lost[i] = std::min(std::max(rows.before[i] - rows.after[i], 0.0), rows.decayed[i]);
  }

  template <class Powered>
  PSER_INLINE void decaying_masses(Rows& rows, int count, const Powered& powered) const {
    const double* const decaying = rules_.decay_from_priority ? rows.priority : rows.fresh;
    if (is_cheap_power(rules_.alpha))
      for (int i = 0; i < count; ++i) rows.decaying_mass[i] = powered(decaying[i]);
    else
      for (int i = 0; i < count; ++i) rows.decaying_mass[i] = decaying[i] == rows.priority[i] ? rows.after[i] : powered(decaying[i]);
  }

  void compute_portable(Rows& rows, int count) const { compute_body(rows, count); }
#if PSER_HAS_AVX2_BUILD
  PSER_AVX2 void compute_avx2(Rows& rows, int count) const { compute_body(rows, count); }
#endif

  void write(Walker* walkers, int count, const Rows& rows) {
    // What η keeps of a decayed part is still the decay's.
    const auto of_kept = static_cast<uint32_t>(rules_.retain_decayed ? Source::kDecayed : Source::kRetained);
    double largest = p_max_, least = p_min_;
    Counters counters = counters_;
    for (int i = 0; i < count; ++i) {
      Walker& w = walkers[i];
      mark(w.cell);
      record(w.cell).count_replay();
      if (rules_.retain_decayed) decayed_parts_[w.cell] *= rules_.eta;
      if (ranks_) move_in_ranks(w, rows.priority[i]);
      // Source::kOwn is 0; a product where a choice would be a branch that nobody could guess.
      const auto source = static_cast<Source>(of_kept * (rows.priority[i] != rows.fresh[i]));
      set_own(w.cell, rows.priority[i], rows.after[i], source);
      w.decaying = rules_.decay_from_priority ? rows.priority[i] : rows.fresh[i];
      if (rules_.window > 0) w.decaying_mass = rows.decaying_mass[i];
      largest = std::max(largest, rows.fresh[i]);
      least = std::min(least, rows.fresh[i]);
      counters.decayed_mass_seen += rows.decayed[i];
      counters.decayed_mass_lost += rows.lost[i];
    }
    p_max_ = largest;
    p_min_ = least;
    counters_ = counters;
  }
};

}  // namespace pser
