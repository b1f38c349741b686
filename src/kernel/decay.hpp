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

// p ← min(ρ^l·p_n + p, p_max) (Eq. 7).
PSER_INLINE double decay_add(double decayed, double held, double p_max) {
  const double sum = decayed + held;
  return sum < p_max ? sum : p_max;
}

// ρ^l for l = 0..W, and the same to the power α: (ρ^l·p)^α = (ρ^l)^α·p^α spares a power per predecessor.
struct DecayPowers {
  explicit DecayPowers(const Rules& rules) {
    for (int32_t l = 0; l <= rules.window; ++l) {
      rho.push_back(std::pow(rules.rho, l));
      rho_alpha.push_back(power(rho.back(), rules.alpha));
    }
  }

  // The largest l ≤ W with ρ^l·p > stop: how many steps back a priority still counts.
  int32_t reach(double p, double stop) const {
    const auto counts = [&](double power) { return power * p > stop; };
    if (counts(rho.back())) return static_cast<int32_t>(rho.size()) - 1;
    const auto end = std::partition_point(rho.begin() + 1, rho.end() - 1, counts);
    return static_cast<int32_t>(end - rho.begin()) - 1;
  }

  std::vector<double> rho, rho_alpha;
};

}  // namespace pser
