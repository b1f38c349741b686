#include "rmsprop.hpp"

#include <cmath>

#include "../simd.hpp"

namespace pser {

namespace {

// One loop for the four variants; the compiler drops what a variant does not use.
template <bool kCentered, bool kMomentum>
PSER_INLINE void pass(const RmsProp rule, int64_t count, float* __restrict theta, const float* __restrict gradient,
                      float* __restrict square, float* __restrict mean, float* __restrict velocity) {
  const float blend = 1.0f - rule.decay;
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i];
    float spread = square[i] + blend * (g * g - square[i]);
    square[i] = spread;
    if (kCentered) {
      const float m = mean[i] + blend * (g - mean[i]);
      mean[i] = m;
      spread -= m * m;
      spread = spread > 0.0f ? spread : 0.0f;  // rounding could make it negative
    }
    float step = rule.learning_rate * g / (std::sqrt(spread + rule.eps) + rule.eps_beside);
    if (kMomentum) {
      step += rule.momentum * velocity[i];
      velocity[i] = step;
    }
    theta[i] -= step;
  }
}

PSER_INLINE void choose(const RmsProp& rule, int64_t count, float* theta, const float* gradient, float* square, float* mean,
                        float* velocity) {
  if (mean != nullptr && velocity != nullptr) return pass<true, true>(rule, count, theta, gradient, square, mean, velocity);
  if (mean != nullptr) return pass<true, false>(rule, count, theta, gradient, square, mean, velocity);
  if (velocity != nullptr) return pass<false, true>(rule, count, theta, gradient, square, mean, velocity);
  pass<false, false>(rule, count, theta, gradient, square, mean, velocity);
}

PSER_AVX2 void choose_avx2(const RmsProp& rule, int64_t count, float* theta, const float* gradient, float* square, float* mean,
                           float* velocity) {
  choose(rule, count, theta, gradient, square, mean, velocity);
}

}  // namespace

void rmsprop(const RmsProp& rule, int64_t count, float* theta, const float* gradient, float* square, float* mean,
             float* velocity) {
  if (have_avx2()) return choose_avx2(rule, count, theta, gradient, square, mean, velocity);
  choose(rule, count, theta, gradient, square, mean, velocity);
}

}  // namespace pser
