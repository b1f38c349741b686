#include "planes.hpp"

#include <cstring>
#include <vector>

#include "../simd.hpp"

namespace pser {

namespace {

typedef float Eight __attribute__((vector_size(32), aligned(4)));

// One value for each of the sixteen filters.
struct Sixteen {
  Eight low, high;

  static PSER_INLINE Sixteen at(const float* values) {
    return {*reinterpret_cast<const Eight*>(values), *reinterpret_cast<const Eight*>(values + 8)};
  }
  PSER_INLINE void put(float* values) const {
    *reinterpret_cast<Eight*>(values) = low;
    *reinterpret_cast<Eight*>(values + 8) = high;
  }
};

PSER_INLINE void add_scaled(float* sum, float value, const float* terms) {
  const Sixteen t = Sixteen::at(terms), s = Sixteen::at(sum);
  Sixteen{s.low + value * t.low, s.high + value * t.high}.put(sum);
}

PSER_INLINE bool all_zero(const uint8_t* cells) {
  uint64_t eight;
  std::memcpy(&eight, cells, sizeof eight);
  return eight == 0;
}
PSER_INLINE bool all_zero(const float*) { return false; }

// Positions with a border of two on each side, so that every cell is seen by nine of them.
struct Padded {
  int64_t columns, size;

  explicit Padded(const Planes& shape)
      : columns(shape.columns + kSide - 1), size((shape.rows + kSide - 1) * columns * kFilters) {}
  // The position whose patch has the cell (y, x) in its place (dy, dx).
  PSER_INLINE int64_t of(int64_t y, int64_t x, int64_t dy, int64_t dx) const {
    return ((y + kSide - 1 - dy) * columns + x + kSide - 1 - dx) * kFilters;
  }
};

// visit(value, its channel's first tap, y, x) for each cell that is not zero, in the order they lie in.
template <class Cell, class Visit>
PSER_INLINE void each_cell(const Planes& shape, const Cell* planes, Visit visit) {
  for (int64_t channel = 0; channel < shape.channels; ++channel) {
    const Cell* plane = planes + channel * shape.cells();
    for (int64_t i = 0; i < shape.cells(); ++i) {
      if (i % 8 == 0 && i + 8 <= shape.cells() && all_zero(plane + i)) {
        i += 7;
        continue;
      }
      if (plane[i] == Cell(0)) continue;
      visit(static_cast<float>(plane[i]), channel * kSide * kSide * kFilters, i / shape.columns, i % shape.columns);
    }
  }
}

#define PSER_LAMBDA __attribute__((always_inline))

template <class Cell>
PSER_INLINE void forward(const Planes& shape, const Cell* cells, const float* weight, const float* bias, float* out) {
  const Padded padded(shape);
  std::vector<float> by_tap(shape.taps() * kFilters), sums(padded.size);
  for (int64_t tap = 0; tap < shape.taps(); ++tap) {
    for (int64_t f = 0; f < kFilters; ++f) by_tap[tap * kFilters + f] = weight[f * shape.taps() + tap];
  }
  const Sixteen start = Sixteen::at(bias);
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t i = 0; i < padded.size; i += kFilters) start.put(sums.data() + i);
    each_cell(shape, cells + b * shape.channels * shape.cells(), [&](float value, int64_t tap, int64_t y, int64_t x) PSER_LAMBDA {
      for (int64_t dy = 0; dy < kSide; ++dy) {
        for (int64_t dx = 0; dx < kSide; ++dx) {
          add_scaled(sums.data() + padded.of(y, x, dy, dx), value, by_tap.data() + tap + (dy * kSide + dx) * kFilters);
        }
      }
    });
    for (int64_t y = kSide - 1; y < shape.rows; ++y) {
      for (int64_t x = kSide - 1; x < shape.columns; ++x, out += kFilters) {
        const float* sum = sums.data() + (y * padded.columns + x) * kFilters;
        for (int64_t f = 0; f < kFilters; ++f) out[f] = sum[f] > 0.0f ? sum[f] : 0.0f;
      }
    }
  }
}

template <class Cell>
PSER_INLINE void backward(const Planes& shape, const Cell* cells, const float* slope, float* gradient) {
  const Padded padded(shape);
  std::vector<float> by_tap(shape.taps() * kFilters, 0.0f), slopes(padded.size, 0.0f);
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t y = kSide - 1; y < shape.rows; ++y) {
      const int64_t row = (shape.columns - kSide + 1) * kFilters;
      std::memcpy(slopes.data() + (y * padded.columns + kSide - 1) * kFilters, slope, row * sizeof(float));
      slope += row;
    }
    each_cell(shape, cells + b * shape.channels * shape.cells(), [&](float value, int64_t tap, int64_t y, int64_t x) PSER_LAMBDA {
      for (int64_t dy = 0; dy < kSide; ++dy) {
        for (int64_t dx = 0; dx < kSide; ++dx) {
          add_scaled(by_tap.data() + tap + (dy * kSide + dx) * kFilters, value, slopes.data() + padded.of(y, x, dy, dx));
        }
      }
    });
  }
  for (int64_t tap = 0; tap < shape.taps(); ++tap) {
    for (int64_t f = 0; f < kFilters; ++f) gradient[f * shape.taps() + tap] = by_tap[tap * kFilters + f];
  }
}

template <class Cell>
PSER_AVX2 void forward_avx2(const Planes& shape, const Cell* cells, const float* weight, const float* bias, float* out) {
  forward(shape, cells, weight, bias, out);
}

template <class Cell>
PSER_AVX2 void backward_avx2(const Planes& shape, const Cell* cells, const float* slope, float* gradient) {
  backward(shape, cells, slope, gradient);
}

}  // namespace

template <class Cell>
void convolve(const Planes& shape, const Cell* cells, const float* weight, const float* bias, float* out) {
  if (have_avx2()) return forward_avx2(shape, cells, weight, bias, out);
  forward(shape, cells, weight, bias, out);
}

template <class Cell>
void convolve_gradient(const Planes& shape, const Cell* cells, const float* slope, float* gradient) {
  if (have_avx2()) return backward_avx2(shape, cells, slope, gradient);
  backward(shape, cells, slope, gradient);
}

template void convolve<uint8_t>(const Planes&, const uint8_t*, const float*, const float*, float*);
template void convolve<float>(const Planes&, const float*, const float*, const float*, float*);
template void convolve_gradient<uint8_t>(const Planes&, const uint8_t*, const float*, float*);
template void convolve_gradient<float>(const Planes&, const float*, const float*, float*);

}  // namespace pser
