// A 3×3 convolution with 16 filters over small planes that are mostly zero, and the gradient of its weights.
//
// Libraries gather every patch into a matrix and multiply. Here each cell that is not zero is added to the nine
// positions that see it: MinAtar's screens have a few dozen such cells of 400 and more.
#pragma once

#include <cstdint>

namespace pser {

constexpr int64_t kFilters = 16;
constexpr int64_t kSide = 3;

// The planes of a batch, and of what the convolution makes of them (rows−2 × columns−2 positions of 16 values each).
struct Planes {
  int64_t batch;
  int64_t channels;
  int64_t rows;
  int64_t columns;

  int64_t cells() const { return rows * columns; }
  int64_t positions() const { return (rows - kSide + 1) * (columns - kSide + 1); }
  int64_t taps() const { return channels * kSide * kSide; }  // weights of one filter
};

// out[b, position, filter] = max(0, bias[filter] + Σ weight[filter, tap]·cell), cells added in the order they lie in.
template <class Cell>
void convolve(const Planes& shape, const Cell* cells, const float* weight, const float* bias, float* out);

// gradient[filter, tap] = Σ over batch and positions of slope[b, position, filter]·cell, in the same order.
template <class Cell>
void convolve_gradient(const Planes& shape, const Cell* cells, const float* slope, float* gradient);

}  // namespace pser
