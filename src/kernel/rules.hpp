// The settings of a prioritization and its equations, one function each (Brittain et al. 2019; Schaul et al. 2016).
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "simd.hpp"

namespace pser {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Kind { kUniform, kProportional, kRank };

// Larger than any meaningful TD error; small enough that a billion of them still sum to a finite number.
constexpr double kLargestPriority = 1e100;

struct Rules {
  Kind kind = Kind::kProportional;
  double alpha = 0.5;
  double eps = 1e-4;
  double eta = 0.0;
  double rho = 0.0;
  int32_t window = 0;           // W; for an adaptive window its upper limit
  double decay_floor = 0.0;     // decay goes on while ρ^l·p exceeds it (adaptive window only)
  bool add = false;             // ADD instead of MAX
  bool retain_decayed = false;  // η keeps of what came by decay only
  bool decay_from_priority = false;
  bool decay_on_insert = true;
  bool stratified = true;
  bool weights_by_memory = false;
};

// x^a, exact shortcuts for the exponents people use most.
inline double power(double x, double a) {
  if (a == 0.5) return std::sqrt(x);
  if (a == 1.0) return x;
  if (a == 0.0) return 1.0;
  return std::pow(x, a);
}

// For a loop: run(x ↦ x^a). The exponent is looked at once, and what is left of the loop can be done many at once.
template <class Run>
PSER_INLINE void with_power(double a, const Run& run) {
  if (a == 0.5) return run([](double x) { return power(x, 0.5); });
  run([a](double x) { return power(x, a); });
}

// Sooner computed again than remembered?
inline bool is_cheap_power(double a) { return a == 0.5 || a == 1.0 || a == 0.0; }

// p = |δ| + ε (Eq. 4).
inline double fresh_priority(double td_error, double eps) { return std::fabs(td_error) + eps; }

// p ← max(|δ| + ε, η·p) (Eq. 10).
inline double retained_priority(double fresh, double eta, double previous) {
  const double kept = eta * previous;
  return kept > fresh ? kept : fresh;
}

}  // namespace pser
