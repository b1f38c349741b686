// Decay along a chain: updated transitions of which each led to the next, as those of a window.
//
// Walker by walker, a step would be compared with each of the W that follow it and noted as often as one exceeds it. Along a
// chain the largest that reaches it is found first, for four steps at a time; it is the same one, down to the last bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "decay.hpp"

namespace pser {

// The steps that a chain's decay can reach, in order: those that lead to it, then its own. Kept between calls.
class Chain {
 public:
  // A chain of so many walkers, and so many steps that lead to it.
  void begin(size_t leading, size_t walkers) {
    leading_ = leading;
    steps_ = leading + walkers;
    if (held_.size() < steps_ + kRoom) {
      cells_.resize(steps_ + kRoom);
      for (auto* values : {&held_, &decaying_, &decaying_mass_}) values->resize(steps_ + kRoom);
    }
    // Nothing decays from the steps before it, nor from beyond its end, and there nobody is raised.
    for (auto* values : {&decaying_, &decaying_mass_}) {
      std::fill_n(values->data(), leading, 0.0);
      std::fill_n(values->data() + steps_, kRoom, 0.0);
    }
    std::fill_n(held_.data() + steps_, kRoom, std::numeric_limits<double>::infinity());
  }

  // The i-th step: where it lies, and its mass.
  PSER_INLINE void step(size_t i, int64_t cell, double mass) {
    cells_[i] = cell;
    held_[i] = mass;
  }

  // What decays from it, if it is one of the walkers.
  PSER_INLINE void walker(size_t i, double decaying, double decaying_mass) {
    decaying_[i] = decaying;
    decaying_mass_[i] = decaying_mass;
  }

  // raised(yes, cell, mass, priority) for every step: is it raised by Eq. 6, and to what? Only ρ^l·p above `stop` counts.
  template <class Raised>
  PSER_INLINE void decay(const DecayPowers& powers, double stop, const Raised& raised) const {
    const size_t window = powers.rho.size() - 1;
    const double* const rho = powers.rho.data();
    const double* const rho_alpha = powers.rho_alpha.data();
    for (size_t i = 0; i + 1 < steps_; i += kLanes) {
      Four best = load(&held_[i]);
      FourLanes from = {};
      const size_t nearest = leading_ > i + kLanes ? leading_ - i - kLanes + 1 : 1, furthest = std::min(window, steps_ - 1 - i);
      for (size_t l = nearest; l <= furthest; ++l) {
        const Four mass = rho_alpha[l] * load(&decaying_mass_[i + l]);
        const FourLanes larger = raised4(mass, best) & (rho[l] * load(&decaying_[i + l]) > stop);
        best = larger ? mass : best;
        from = larger ? FourLanes{} + static_cast<int64_t>(l) : from;
      }
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const auto l = static_cast<size_t>(from[lane]);
        raised(l > 0, cells_[i + lane], best[lane], rho[l] * decaying_[i + lane + l]);
      }
    }
  }

 private:
  static constexpr size_t kLanes = 4, kRoom = 2 * kLanes;

  static PSER_INLINE Four load(const double* at) {
    Four values;
    std::memcpy(&values, at, sizeof values);  // not aligned
    return values;
  }

  size_t leading_ = 0, steps_ = 0;
  std::vector<int64_t> cells_;
  std::vector<double> held_, decaying_, decaying_mass_;
};

}  // namespace pser
