// The Python function pser._kernel.huber_gradient.

#include "../bindings.hpp"
#include "../views.hpp"
#include "huber.hpp"

namespace pser {

using namespace nb::literals;

void bind_huber(nb::module_& m) {
  m.def(
      "huber_gradient",
      [](nb::handle values, nb::handle action, nb::handle targets, nb::handle weights, nb::handle out) {
        const View q(values, false), a(action, false), y(targets, false), w(weights, false), o(out, true);
        const int64_t batch = a.count(), actions = batch == 0 ? 0 : q.count() / batch;
        if (q.count() != batch * actions || o.count() != q.count() || y.count() != batch || w.count() != batch)
          throw Error("a loss needs an action, a target and a weight for each row of values, got other counts: match them");
        const int64_t* taken = a.as<int64_t>();
        for (int64_t b = 0; b < batch; ++b) {
          if (taken[b] < 0 || taken[b] >= actions)
            throw Error("an action must be one of " + std::to_string(actions) + ", got " + std::to_string(taken[b]) +
                        ": check what the memory was given");
        }
        huber_gradient(batch, actions, q.as<float>(), taken, y.as<float>(), w.as<float>(), o.as<float>());
      },
      "values"_a, "action"_a, "targets"_a, "weights"_a, "out"_a);
}

}  // namespace pser
