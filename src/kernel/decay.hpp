// Backward decay: what of a surprise reaches the steps that led to it (Brittain et al. 2019, Eqs. 6 to 9).
// Every path that decays calls these functions; none states the rule a second time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "rules.hpp"
#include "simd.hpp"

namespace pser {

// p ← max(ρ^l·p_n, p) (Eq. 6). Powers grow with what they are taken of, so it may be asked of p or of p^α.
PSER_INLINE double decay_max(double decayed, double held) { return decayed > held ? decayed : held; }

// Where Eq. 6 raises one of four.
PSER_INLINE FourLanes raised4(Four decayed, Four held) { return decayed > held; }

// Where Eq. 6 raises one of 32 in two blocks: bit i, of p_n·powers[i] against what the i-th holds.
PSER_INLINE uint32_t raised32(const double* powers, double p, const double* low, const double* high, bool first_eight) {
  return exceeding32(powers, p, low, high, first_eight);
}

// p ← min(ρ^l·p_n + p, p_max) (Eq. 7).
PSER_INLINE double decay_add(double decayed, double held, double p_max) {
  const double sum = decayed + held;
  return sum < p_max ? sum : p_max;
}

// ρ^l for l = 0..W, and the same to the power α: (ρ^l·p)^α = (ρ^l)^α·p^α spares a power per predecessor.
class DecayPowers {
 public:
  explicit DecayPowers(const Rules& rules) {
    for (int32_t l = 0; l <= rules.window; ++l) {
      rho.push_back(std::pow(rules.rho, l));
      rho_alpha.push_back(power(rho.back(), rules.alpha));
    }
    reversed_.assign(static_cast<size_t>(rules.window + 3 * kFan), 0.0);
    double* const steps_back = reversed_.data() + 2 * kFan + rules.window;
    for (int32_t l = 1; l <= rules.window; ++l) steps_back[-l] = rho_alpha[static_cast<size_t>(l)];
    steps_back_ = steps_back;
  }

  // It points into its own numbers: it may move, but a copy would point into the original.
  DecayPowers(const DecayPowers&) = delete;
  DecayPowers& operator=(const DecayPowers&) = delete;
  DecayPowers(DecayPowers&&) = default;
  DecayPowers& operator=(DecayPowers&&) = default;

  // (ρ^l)^α for 32 neighbours of which the i-th lies l = first − i steps back, the last of them within W; 0 where l is none of 1..W.
  PSER_INLINE const double* rho_alpha_from(int32_t first) const { return steps_back_ - first; }

  // The largest l ≤ W with ρ^l·p > stop: how many steps back a priority still counts.
  int32_t reach(double p, double stop) const {
    const auto counts = [&](double power) { return power * p > stop; };
    if (counts(rho.back())) return static_cast<int32_t>(rho.size()) - 1;
    const auto end = std::partition_point(rho.begin() + 1, rho.end() - 1, counts);
    return static_cast<int32_t>(end - rho.begin()) - 1;
  }

  std::vector<double> rho, rho_alpha;

 private:
  std::vector<double> reversed_;  // (ρ^W)^α … (ρ^1)^α, with zeros around
  const double* steps_back_;      // after them: steps_back_[−l] is (ρ^l)^α
};

}  // namespace pser
