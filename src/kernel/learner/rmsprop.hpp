// RMSProp (Graves 2013, Eqs. 38–41) in one pass over the parameters.
#pragma once

#include <cstdint>

namespace pser {

struct RmsProp {
  float learning_rate;
  float decay;
  float eps;         // added inside the square root, as DQN's authors have it
  float eps_beside;  // added to the root, as PyTorch has it; one of the two is 0
  float momentum;
};

// θ ← θ − v with v = momentum·v + lr·g / (√(E[g²] − E[g]² + ε) + ε'). All arrays have `count` values and do not overlap.
// mean may be null (not centered: E[g]² is left out), velocity may be null (no momentum).
void rmsprop(const RmsProp& rule, int64_t count, float* theta, const float* gradient, float* square, float* mean,
             float* velocity);

}  // namespace pser
