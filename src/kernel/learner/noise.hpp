// Factorised noise of a linear layer (Fortunato et al. 2018, Eqs. 9–11): ε[i, j] = out[i]·in[j], never written down.
#pragma once

#include <cstdint>

namespace pser {

// mixed = mean + sigma·ε, all of rows × columns values; out has one value a row, in one a column.
void mix_noise(int64_t rows, int64_t columns, const float* mean, const float* sigma, const float* out, const float* in,
               float* mixed);

// to_sigma = gradient·ε: the gradient of sigma from that of the mixed weights.
void noise_gradient(int64_t rows, int64_t columns, const float* gradient, const float* out, const float* in, float* to_sigma);

}  // namespace pser
