// The walk of a decay: from each updated transition back along its episode.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "chains.hpp"
#include "sampling.hpp"

namespace pser {

constexpr double kCompareMasses = 0.05;  // the least α at which p^α tells priorities apart to 14 digits
constexpr double kFewDigits = std::numeric_limits<double>::min();
constexpr size_t kLeastChain = 8;  // walkers that are worth it

class Decaying : public Sampling {
 public:
  using Sampling::Sampling;

 protected:
  // One updated transition and what decays from it.
  struct Walker {
    int64_t id;
    int64_t cell;
    double decaying;       // what is multiplied by ρ^l
    double decaying_mass;  // the same to the power α
    bool operator<(const Walker& other) const { return id < other.id; }
  };

  // A predecessor that the decay raises, and to what.
  struct Raise {
    int64_t cell;
    double mass;
    double priority;
  };

  // What a walker raises in a block and the one before it: bit i for cell i of these 32, first − i steps back.
  struct Compared {
    const Walker* walker;
    int64_t block;
    int32_t first;
    uint32_t raised;
  };

  // `settle_raised` must follow.
  void decay_backward() {
    const auto each = [this](const auto& visit) {
      for (const Walker& w : walkers_) walk(w, [&](int64_t cell, double decayed, int32_t) { visit(cell, decayed); });
    };
    if (rules_.retain_decayed)
      each([this](int64_t cell, double decayed) { receive_part(cell, decayed); });
    else if (rules_.add)
      each([this](int64_t cell, double decayed) { receive(cell, decay_add(decayed, record(cell).priority, p_max_)); });
    else if (rules_.alpha < kCompareMasses)
      each([this](int64_t cell, double decayed) { receive(cell, decay_max(decayed, record(cell).priority)); });
    else
      decay_masses();
  }

  // The records of those whose masses a decay has raised. They lie elsewhere and are fetched by then if something else was done in
  // between: `refresh` needs the masses alone.
  void settle_raised() {
    for (const Raise *r = raises_.data(), *end = r + raises_count_; r != end; ++r) {
      record(r->cell).priority = r->priority;
      record(r->cell).set_source(Source::kDecayed);
    }
    raises_count_ = 0;
  }

  // Kept between calls so that no call allocates.
  std::vector<Walker> walkers_;
  std::vector<Raise> raises_;  // the first so many
  size_t raises_count_ = 0;
  std::vector<Compared> compared_ = std::vector<Compared>(64);  // always one more than there are
  size_t compared_count_ = 0;
  Chain chain_;
  std::vector<int64_t> leading_;  // cells of the steps that lead to a chain, nearest first

 private:
  // The transition holds this priority from now on; if it is a larger one, it came by decay.
  void receive(int64_t cell, double p) {
    Record& r = record(cell);
    if (!(p > r.priority)) return;
    mark(cell);
    r.priority = p;
    r.set_source(Source::kDecayed);
    set_mass(cell, power(p, rules_.alpha));
  }

  // retain="decayed": the decayed part d is kept apart, d ← max(d, ρ^l·p_n) or the capped sum, and p ← max(p, d).
  void receive_part(int64_t cell, double decayed) {
    double& d = decayed_parts_[cell];
    mark(cell);
    d = rules_.add ? decay_add(decayed, d, p_max_) : decay_max(decayed, d);
    receive(cell, d);
  }

  // Eq. 6 for all walkers, compared by mass.
  void decay_masses() {
#if PSER_HAS_AVX2_BUILD
    if (have_avx2()) return decay_masses_avx2();
#endif
    decay_masses_portable();
  }

  void decay_masses_portable() { decay_masses_body<false>(); }
  void walk_slowly_portable(size_t& k, double stop) { walk_slowly_body(k, stop); }
#if PSER_HAS_AVX2_BUILD
  PSER_AVX2 void decay_masses_avx2() { decay_masses_body<true>(); }
  PSER_AVX2 __attribute__((noinline)) void walk_slowly_avx2(size_t& k, double stop) { walk_slowly_body(k, stop); }
#endif

  // First whom each walker raises, of the masses held before; then the largest counts. So the records are fetched in time.
  template <bool kAvx2>
  PSER_INLINE void decay_masses_body() {
    const double stop = least_that_counts();
    for (size_t k = compare_alone(0, stop); k < walkers_.size(); k = compare_alone(k, stop)) walk_slowly<kAvx2>(k, stop);
    note_compared();
    raise_noted();
  }

  // All else is kept out of the way of those alone.
  template <bool kAvx2>
  PSER_INLINE void walk_slowly(size_t& k, double stop) {
#if PSER_HAS_AVX2_BUILD
    if (kAvx2) return walk_slowly_avx2(k, stop);
#endif
    walk_slowly_portable(k, stop);
  }

  // One walker, or a chain of them. Those before it are noted first: of equal raises the first counts.
  PSER_INLINE void walk_slowly_body(size_t& k, double stop) {
    const size_t chained = chained_from(k);
    if (chained >= kLeastChain) note_compared();
    if (chained >= kLeastChain && walk_chain(k, chained)) {
      k += chained;
    } else {
      for (const size_t end = k + chained; k < end; ++k) walk_by_mass(walkers_[k], stop);
    }
  }

  // The masses, which are at hand; only those that still raise their transition stay noted, for `settle_raised`.
  void raise_noted() {
    Raise* kept = raises_.data();
    for (const Raise *r = kept, *end = kept + raises_count_; r != end; ++r)
      if (decay_max(r->mass, mass(r->cell)) > mass(r->cell)) {
        mark(r->cell);
        // Next to zero a number has few digits left, and the power of the rounded priority is another one.
        set_mass(r->cell, r->priority < kFewDigits ? power(r->priority, rules_.alpha) : r->mass);
        *kept++ = *r;
      }
    raises_count_ = static_cast<size_t>(kept - raises_.data());
  }

  // Walkers from the k-th on, as long as each is alone and all its predecessors within reach lie in its block and the one before:
  // as most do. Returns which one is not so.
  PSER_INLINE size_t compare_alone(size_t k, double stop) {
    const size_t count = walkers_.size();
    Compared* noted = room_for_comparisons(count - k);
    for (; k < count && !may_chain(k); ++k) {
      const Walker& w = walkers_[k];
      const int32_t reach = powers_.reach(w.decaying, stop);
      const int64_t block = block_of(w.cell);
      const int top = kFan + lane(w.cell);
      const Lead lead = record(w.cell).lead();
      const int32_t steps = std::min(lead.steps, reach);
      if ((lead.steps < reach && !lead.is_whole) || steps > top) break;
      if (block < streams() || !tiles().in_order(w.cell) || w.id - oldest_id() < reach * streams()) break;
      *noted = compare(w, block, top - steps, top, top);
      noted += noted->raised != 0;
    }
    compared_count_ = static_cast<size_t>(noted - compared_.data());
    return k;
  }

  // Where so many more are noted, and one that raises nobody.
  Compared* room_for_comparisons(size_t count) {
    if (compared_count_ + count >= compared_.size()) compared_.resize(2 * (compared_count_ + count));
    return compared_.data() + compared_count_;
  }

  PSER_INLINE void walk_by_mass(const Walker& w, double stop) {
    const int32_t reach = powers_.reach(w.decaying, stop);
    const int32_t done = tiles().in_order(w.cell) ? compare_in_order(w, reach) : 0;
    if (done == reach) return;
    note_compared();  // of equal raises the first counts: they are noted in the order of the walkers
    walk_on(w, done, reach, [this, &w](int64_t cell, double decayed, int32_t l) {
      const double decayed_mass = powers_.rho_alpha[static_cast<size_t>(l)] * w.decaying_mass;
      if (decay_max(decayed_mass, mass(cell)) > mass(cell)) note_raise(cell, decayed_mass, decayed);
    });
  }

  // The predecessors that lie side by side, two blocks at a time. Returns how many steps back it came.
  PSER_INLINE int32_t compare_in_order(const Walker& w, int32_t reach) {
    const int64_t retained = w.id - oldest_id();
    const auto last = static_cast<int32_t>(retained >= reach * streams() ? reach : retained / streams());
    int64_t block = block_of(w.cell);
    int top = kFan + lane(w.cell);
    int32_t first = top;  // cell i of the two blocks lies first − i steps back
    for (;;) {
      const int64_t before = block - streams();
      const bool is_edge = before < 0;  // of the ring: none lies before
      const int run = run_down(is_edge ? block : before, block, top);
      const int steps = std::min(std::min(run, is_edge ? top - kFan : top), last - (first - top));
      Compared* const noted = room_for_comparisons(1);
      *noted = compare(w, block, top - steps, top, first);
      compared_count_ += noted->raised != 0;
      const int32_t done = first - top + steps;
      // An episode began, or a step came out of turn; far enough; around the ring's edge.
      if (run <= top || done >= last || before < streams()) return done;
      block = before - streams();
      top = 2 * kFan;
      first += 2 * kFan;
    }
  }

  // Cells lowest … top − 1 of the two blocks. The descent has just read the masses of one; half a block is a cache line.
  PSER_INLINE Compared compare(const Walker& w, int64_t block, int lowest, int top, int32_t first) {
    const double* const own = blocks()[block].mass;
    // A line that no step lies in may be far away: one that is at hand takes its place. Not by a branch: nobody could guess it.
    const double* const before = blocks()[block - (lowest < kFan) * streams()].mass;
    const uint32_t exceeded = raised32(powers_.rho_alpha_from(first), w.decaying_mass, before, own, lowest < kFan / 2);
    const auto within = static_cast<uint32_t>((uint64_t{1} << top) - (uint64_t{1} << lowest));
    return {&w, block, first, exceeded & within};
  }

  // What the comparisons found. One loop over all raises, for nobody could guess how many a single walker has.
  void note_compared() {
    size_t count = 0;
    for (size_t k = 0; k < compared_count_; ++k) count += static_cast<size_t>(__builtin_popcount(compared_[k].raised));
    const Compared* at = compared_.data();
    uint32_t left = at->raised;
    for (Raise* raised = room_for_raises(count); count > 0; --count, ++raised) {
      const int i = __builtin_ctz(left);
      const auto l = static_cast<size_t>(at->first - i);
      const int64_t cell = (at->block - (i < kFan) * streams()) * kFan + lane(i);
      *raised = {cell, powers_.rho_alpha[l] * at->walker->decaying_mass, powers_.rho[l] * at->walker->decaying};
      __builtin_prefetch(&record(cell), 1);
      __builtin_prefetch(blocks()[block_of(cell)].mass);
      left &= left - 1;
      const bool is_last = left == 0;
      at += is_last;
      left = is_last ? at->raised : left;
    }
    compared_count_ = 0;
  }

  // (ρ^l·p)^α = (ρ^l)^α·p^α spares the power.
  PSER_INLINE void note_raise(int64_t cell, double decayed_mass, double decayed) {
    *room_for_raises(1) = {cell, decayed_mass, decayed};
    __builtin_prefetch(&record(cell), 1);
  }

  // Where so many more are noted.
  Raise* room_for_raises(size_t count) {
    const size_t noted = raises_count_;
    raises_count_ += count;
    if (raises_count_ > raises_.size()) raises_.resize(2 * raises_count_);
    return raises_.data() + noted;
  }

  // May as many walkers as are worth it be a chain from this one on? Most are alone, and told so by one comparison.
  PSER_INLINE bool may_chain(size_t k) const {
    constexpr size_t kLast = kLeastChain - 1;
    return k + kLast < walkers_.size() && walkers_[k + kLast].id - walkers_[k].id == static_cast<int64_t>(kLast) * streams();
  }

  // How many walkers from this one on are a chain: each is in lockstep with the one before it.
  PSER_INLINE size_t chained_from(size_t k) const {
    if (!may_chain(k)) return 1;
    size_t count = 1;
    for (; k + count < walkers_.size(); ++count) {
      const Walker& w = walkers_[k + count];
      if (w.id - walkers_[k + count - 1].id != streams() || !in_lockstep(w.cell)) break;
    }
    return count;
  }

  // The decay of a chain of walkers; false if they must walk one by one.
  PSER_INLINE bool walk_chain(size_t first, size_t count) {
    double least = walkers_[first].decaying, largest = least;
    for (size_t k = 1; k < count; ++k) {
      least = std::min(least, walkers_[first + k].decaying);
      largest = std::max(largest, walkers_[first + k].decaying);
    }
    const double stop = least_that_counts();
    if (stop < kFewDigits && powers_.rho.back() * least < kFewDigits) return false;  // a raise may change others: see `raise_noted`
    leading_.clear();
    const int32_t reach = powers_.reach(largest, stop);
    walk_on(walkers_[first], 0, reach, [this](int64_t cell, double, int32_t) { leading_.push_back(cell); });
    const size_t leading = leading_.size();
    chain_.begin(leading, count);
    for (size_t i = 0; i < leading; ++i) chain_.step(i, leading_[leading - 1 - i], mass(leading_[leading - 1 - i]));
    for (size_t k = 0; k < count; ++k) {
      const Walker& w = walkers_[first + k];
      chain_.step(leading + k, w.cell, mass(w.cell));
      chain_.walker(leading + k, w.decaying, w.decaying_mass);
    }
    // One more than there can be, for a step that is not raised is overwritten by the next.
    Raise* end = room_for_raises(leading + count + kFan);
    chain_.decay(powers_, stop, [&](bool yes, int64_t cell, double mass, double priority) {
      *end = {cell, mass, priority};
      end += yes;
    });
    raises_count_ = static_cast<size_t>(end - raises_.data());
    return true;
  }

  // How many steps back the walker's priority still counts.
  int32_t reach_of(const Walker& w) const { return powers_.reach(w.decaying, least_that_counts()); }

  double least_that_counts() const {
    // MAX: what is no larger than any priority ever held raises nobody, here or further back.
    const bool all_count = rules_.add || rules_.retain_decayed;
    return all_count ? rules_.decay_floor : std::max(rules_.decay_floor, p_min_);
  }

  // visit(cell, ρ^l·p, l) for the predecessors within reach.
  template <class Visit>
  PSER_INLINE void walk(const Walker& w, const Visit& visit) {
    walk_on(w, 0, reach_of(w), visit);
  }

  // The same from the l-th predecessor on, l steps of all streams together back.
  template <class Visit>
  PSER_INLINE void walk_on(const Walker& w, int32_t l, int32_t reach, const Visit& visit) {
    int64_t id = w.id - l * streams();
    int64_t cell = l == 0 || l >= reach ? w.cell : cell_of(id);
    while (l < reach) {
      const int64_t distance = distance_back(cell);
      id -= distance;
      // Decay never crosses the start of an episode, nor into transitions that were overwritten.
      if (distance == 0 || id < oldest_id()) return;
      cell = cell_of(id);
      ++l;
      visit(cell, powers_.rho[static_cast<size_t>(l)] * w.decaying, l);
    }
  }
};

}  // namespace pser
