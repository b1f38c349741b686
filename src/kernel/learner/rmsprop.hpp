// RMSProp with ε inside the square root (Graves 2013, Eqs. 38–41) in one pass over the parameters.
#pragma once

#include <cstdint>

namespace pser {

struct RmsProp {
  float learning_rate;
  float decay;
  float eps;
  float momentum;
};

// θ ← θ − v with v = momentum·v + lr·g / √(E[g²] − E[g]² + ε). All arrays have `count` values and do not overlap.
// mean may be null (not centered: E[g]² is left out), velocity may be null (no momentum).
void rmsprop(const RmsProp& rule, int64_t count, float* theta, const float* gradient, float* square, float* mean,
             float* velocity);

}  // namespace pser
