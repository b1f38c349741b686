// The Python function pser._kernel.rmsprop.

#include "../bindings.hpp"
#include "../views.hpp"
#include "rmsprop.hpp"

namespace pser {

namespace {

using namespace nb::literals;

// One float32 array of the update, or none; as long as the parameters.
class Floats {
 public:
  Floats(nb::handle array, bool writable, int64_t count) {
    if (array.is_none()) return;
    view_.emplace_back(array, writable);
    values_ = view_[0].as<float>();
    if (count >= 0) same_length(count, view_[0].count(), "an optimizer's averages");
  }
  float* values() const { return values_; }
  int64_t count() const { return view_[0].count(); }

 private:
  std::vector<View> view_;
  float* values_ = nullptr;
};

}  // namespace

void bind_rmsprop(nb::module_& m) {
  m.def(
      "rmsprop",
      [](nb::handle theta, nb::handle gradient, nb::handle square, nb::handle mean, nb::handle velocity, float learning_rate,
         float decay, float eps, bool eps_in_sqrt, float momentum) {
        const Floats parameters(theta, true, -1);
        const int64_t count = parameters.count();
        const Floats g(gradient, false, count), s(square, true, count), e(mean, true, count), v(velocity, true, count);
        nb::gil_scoped_release released;
        const RmsProp rule{learning_rate, decay, eps_in_sqrt ? eps : 0.0f, eps_in_sqrt ? 0.0f : eps, momentum};
        rmsprop(rule, count, parameters.values(), g.values(), s.values(), e.values(), v.values());
      },
      "theta"_a, "gradient"_a, "square"_a, "mean"_a.none(), "velocity"_a.none(), nb::kw_only(), "learning_rate"_a, "decay"_a,
      "eps"_a, "eps_in_sqrt"_a, "momentum"_a);
}

}  // namespace pser
