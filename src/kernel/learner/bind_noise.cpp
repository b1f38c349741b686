// The Python functions pser._kernel.mix_noise and noise_gradient.

#include "../bindings.hpp"
#include "../views.hpp"
#include "noise.hpp"

namespace pser {

namespace {

using namespace nb::literals;

void need(int64_t count, const View& array) {
  if (array.count() != count)
    throw Error("noise needs arrays of its layer's shape, got " + std::to_string(array.count()) + " values for " +
                std::to_string(count) + ": match them");
}

}  // namespace

void bind_noise(nb::module_& m) {
  m.def(
      "mix_noise",
      [](nb::handle mean, nb::handle sigma, nb::handle out, nb::handle in, nb::handle mixed) {
        const View a(mean, false), b(sigma, false), o(out, false), i(in, false), c(mixed, true);
        const int64_t count = o.count() * i.count();
        need(count, a), need(count, b), need(count, c);
        mix_noise(o.count(), i.count(), a.as<float>(), b.as<float>(), o.as<float>(), i.as<float>(), c.as<float>());
      },
      "mean"_a, "sigma"_a, "out"_a, "in_"_a, "mixed"_a);
  m.def(
      "noise_gradient",
      [](nb::handle gradient, nb::handle out, nb::handle in, nb::handle to_sigma) {
        const View g(gradient, false), o(out, false), i(in, false), s(to_sigma, true);
        const int64_t count = o.count() * i.count();
        need(count, g), need(count, s);
        noise_gradient(o.count(), i.count(), g.as<float>(), o.as<float>(), i.as<float>(), s.as<float>());
      },
      "gradient"_a, "out"_a, "in_"_a, "to_sigma"_a);
}

}  // namespace pser
