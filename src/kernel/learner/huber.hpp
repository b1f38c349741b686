// The gradient of Q-learning's Huber loss, which is zero but for the action taken.
#pragma once

#include <cstdint>

namespace pser {

// out[b, a] = ∂/∂Q(s, a) of mean(w·Huber(y − Q)) = −w·clip(y − Q, −1, 1)/B at the action taken, 0 elsewhere. Every action must be one
// of `actions`. Rounds as the same operations one after the other do.
inline void huber_gradient(int64_t batch, int64_t actions, const float* values, const int64_t* action, const float* targets,
                           const float* weights, float* out) {
  const float share = static_cast<float>(-1.0 / static_cast<double>(batch));
  for (int64_t i = 0; i < batch * actions; ++i) out[i] = 0.0f;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t taken = b * actions + action[b];
    const float delta = targets[b] - values[taken];
    const float clipped = delta < -1.0f ? -1.0f : delta > 1.0f ? 1.0f : delta;  // what is no number stays none
    out[taken] = clipped * weights[b] * share;
  }
}

}  // namespace pser
