// The walk of a decay: from each updated transition back along its episode.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sampling.hpp"

namespace pser {

constexpr double kCompareMasses = 0.05;  // the least α at which p^α tells priorities apart to 14 digits
constexpr double kFewDigits = std::numeric_limits<double>::min();

class Decaying : public Sampling {
 public:
  using Sampling::Sampling;

 protected:
  // One updated transition and what decays from it.
  struct Walker {
    int64_t id;
    int64_t slot;
    double decaying;       // what is multiplied by ρ^l
    double decaying_mass;  // the same to the power α
    bool operator<(const Walker& other) const { return id < other.id; }
  };

  void decay_backward() {
    const auto each = [this](const auto& visit) {
      for (const Walker& w : walkers_) walk(w, [&](int64_t slot, double decayed, int32_t) { visit(slot, decayed); });
    };
    if (rules_.retain_decayed)
      each([this](int64_t slot, double decayed) { receive_part(slot, decayed); });
    else if (rules_.add)
      each([this](int64_t slot, double decayed) { receive(slot, decay_add(decayed, record(slot).priority, p_max_)); });
    else if (rules_.alpha < kCompareMasses)
      each([this](int64_t slot, double decayed) { receive(slot, decay_max(decayed, record(slot).priority)); });
    else if (streams() == 1)
      for (const Walker& w : walkers_) walk_neighbours(w);
    else
      for (const Walker& w : walkers_) walk_by_mass(w);
  }

  // Kept between calls so that no call allocates.
  std::vector<Walker> walkers_;

 private:
  // The transition holds this priority from now on; if it is a larger one, it came by decay.
  void receive(int64_t slot, double p) {
    Record& r = record(slot);
    if (!(p > r.priority)) return;
    r.priority = p;
    r.set_source(Source::kDecayed);
    set_mass(slot, power(p, rules_.alpha));
  }

  // retain="decayed": the decayed part d is kept apart, d ← max(d, ρ^l·p_n) or the capped sum, and p ← max(p, d).
  void receive_part(int64_t slot, double decayed) {
    double& d = decayed_parts_[slot];
    d = rules_.add ? decay_add(decayed, d, p_max_) : decay_max(decayed, d);
    receive(slot, d);
  }

  // Eq. 6 asked of the masses, which the descent has just read; (ρ^l·p)^α = (ρ^l)^α·p^α spares the power.
  PSER_INLINE void receive_by_mass(int64_t slot, double decayed_mass, double decayed) {
    if (decay_max(decayed_mass, mass(slot)) == mass(slot)) return;
    Record& r = record(slot);
    r.priority = decayed;
    r.set_source(Source::kDecayed);
    // Next to zero a number has few digits left, and the power of the rounded priority is another one.
    set_mass(slot, decayed < kFewDigits ? power(decayed, rules_.alpha) : decayed_mass);
  }

  PSER_INLINE void walk_by_mass(const Walker& w) {
    walk(w, [this, &w](int64_t slot, double decayed, int32_t l) {
      receive_by_mass(slot, powers_.rho_alpha[static_cast<size_t>(l)] * w.decaying_mass, decayed);
    });
  }

  // The same walk where one stream fills the ring: an episode lies in one piece, so it is compared leaf by leaf.
  PSER_INLINE void walk_neighbours(const Walker& w) {
    const int32_t reach = reach_of(w);
    if (w.slot < reach) return walk_by_mass(w);  // around the ring's edge
    const int64_t episode = std::min(run_before(w.slot, reach), w.id - oldest_id());
    const auto last = static_cast<int32_t>(std::min<int64_t>(reach, episode));
    const double* const rho_alpha = powers_.rho_alpha.data();
    for (int32_t l = 1; l <= last;) {
      const int64_t slot = w.slot - l;
      const double* const held = blocks()[slot / kFan].mass;
      int k = lane(slot);
      for (const int32_t leaf_end = std::min(last, l + k); l <= leaf_end; ++l, --k)
        if (decay_max(rho_alpha[l] * w.decaying_mass, held[k]) > held[k])
          receive_by_mass(w.slot - l, rho_alpha[l] * w.decaying_mass, powers_.rho[static_cast<size_t>(l)] * w.decaying);
    }
  }

  // How many steps back the walker's priority still counts.
  int32_t reach_of(const Walker& w) const {
    // MAX: what is no larger than any priority ever held raises nobody, here or further back.
    const bool all_count = rules_.add || rules_.retain_decayed;
    return powers_.reach(w.decaying, all_count ? rules_.decay_floor : std::max(rules_.decay_floor, p_min_));
  }

  // visit(slot, ρ^l·p, l) for the predecessors within reach.
  template <class Visit>
  PSER_INLINE void walk(const Walker& w, const Visit& visit) {
    const int32_t reach = reach_of(w);
    const double* const rho = powers_.rho.data();
    const int64_t capacity = this->capacity();
    int64_t slot = w.slot;
    int64_t retained = w.id - oldest_id();  // how many ids lie between here and the oldest
    for (int32_t l = 1; l <= reach; ++l) {
      const int64_t distance = distance_back(slot);
      retained -= distance;
      // Decay never crosses the start of an episode, nor into transitions that were overwritten.
      if (distance == 0 || retained < 0) break;
      slot -= distance;
      if (slot < 0) slot += capacity;
      visit(slot, rho[l] * w.decaying, l);
    }
  }
};

}  // namespace pser
