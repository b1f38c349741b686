// The Python functions pser._kernel.convolve and convolve_gradient.

#include "../bindings.hpp"
#include "../views.hpp"
#include "planes.hpp"

namespace pser {

namespace {

using namespace nb::literals;

// The cells of a batch: numbers of one byte (truth values among them) or float32.
bool has_bytes(const View& cells) { return cells.is("?B", 1); }

Planes planes_of(const View& cells, int64_t channels, int64_t rows, int64_t columns) {
  if (channels < 1 || rows < kSide || columns < kSide)
    throw Error("planes must have 3 rows and 3 columns at least, got fewer: take another layer");
  const int64_t one = channels * rows * columns;
  if (cells.count() % one != 0) throw Error("the cells must be whole planes, got a part of one: check their shape");
  return {cells.count() / one, channels, rows, columns};
}

void need(int64_t count, int64_t got, const char* what) {
  if (got != count)
    throw Error(std::string(what) + " must have " + std::to_string(count) + " values, got " + std::to_string(got) +
                ": match the planes");
}

}  // namespace

void bind_planes(nb::module_& m) {
  m.def(
      "convolve",
      [](nb::handle cells, nb::handle weight, nb::handle bias, nb::handle out, int64_t channels, int64_t rows, int64_t columns) {
        const View x(cells, false), w(weight, false), b(bias, false), y(out, true);
        const Planes shape = planes_of(x, channels, rows, columns);
        need(shape.taps() * kFilters, w.count(), "the weights of a convolution");
        need(kFilters, b.count(), "the bias of a convolution");
        need(shape.batch * shape.positions() * kFilters, y.count(), "the output of a convolution");
        const float *weights = w.as<float>(), *biases = b.as<float>();
        float* result = y.as<float>();
        if (has_bytes(x)) {
          convolve(shape, x.raw(), weights, biases, result);
        } else {
          convolve(shape, x.as<float>(), weights, biases, result);
        }
      },
      "cells"_a, "weight"_a, "bias"_a, "out"_a, "channels"_a, "rows"_a, "columns"_a);
  m.def(
      "convolve_gradient",
      [](nb::handle cells, nb::handle slope, nb::handle gradient, int64_t channels, int64_t rows, int64_t columns) {
        const View x(cells, false), s(slope, false), g(gradient, true);
        const Planes shape = planes_of(x, channels, rows, columns);
        need(shape.batch * shape.positions() * kFilters, s.count(), "the slopes of a convolution");
        need(shape.taps() * kFilters, g.count(), "the gradient of a convolution");
        if (has_bytes(x)) {
          convolve_gradient(shape, x.raw(), s.as<float>(), g.as<float>());
        } else {
          convolve_gradient(shape, x.as<float>(), s.as<float>(), g.as<float>());
        }
      },
      "cells"_a, "slope"_a, "gradient"_a, "channels"_a, "rows"_a, "columns"_a);
}

}  // namespace pser
