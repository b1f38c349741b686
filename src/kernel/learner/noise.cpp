#include "noise.hpp"

#include "../simd.hpp"

namespace pser {

namespace {

PSER_INLINE void mix(int64_t rows, int64_t columns, const float* __restrict mean, const float* __restrict sigma,
                     const float* __restrict out, const float* __restrict in, float* __restrict mixed) {
  for (int64_t i = 0; i < rows; ++i) {
    const float o = out[i];
    for (int64_t j = 0; j < columns; ++j) mixed[j] = mean[j] + sigma[j] * (o * in[j]);
    mean += columns, sigma += columns, mixed += columns;
  }
}

PSER_INLINE void scale(int64_t rows, int64_t columns, const float* __restrict gradient, const float* __restrict out,
                       const float* __restrict in, float* __restrict to_sigma) {
  for (int64_t i = 0; i < rows; ++i) {
    const float o = out[i];
    for (int64_t j = 0; j < columns; ++j) to_sigma[j] = gradient[j] * (o * in[j]);
    gradient += columns, to_sigma += columns;
  }
}

PSER_AVX2 void mix_avx2(int64_t rows, int64_t columns, const float* mean, const float* sigma, const float* out, const float* in,
                        float* mixed) {
  mix(rows, columns, mean, sigma, out, in, mixed);
}

PSER_AVX2 void scale_avx2(int64_t rows, int64_t columns, const float* gradient, const float* out, const float* in,
                          float* to_sigma) {
  scale(rows, columns, gradient, out, in, to_sigma);
}

}  // namespace

void mix_noise(int64_t rows, int64_t columns, const float* mean, const float* sigma, const float* out, const float* in,
               float* mixed) {
  if (have_avx2()) return mix_avx2(rows, columns, mean, sigma, out, in, mixed);
  mix(rows, columns, mean, sigma, out, in, mixed);
}

void noise_gradient(int64_t rows, int64_t columns, const float* gradient, const float* out, const float* in, float* to_sigma) {
  if (have_avx2()) return scale_avx2(rows, columns, gradient, out, in, to_sigma);
  scale(rows, columns, gradient, out, in, to_sigma);
}

}  // namespace pser
