// `add` for values that need no conversion: the way that nearly every step takes.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "bound_store.hpp"
#include "intake.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pser {

namespace {

class Intake {
 public:
  // One name, format and shape for each field; an observation that is no dict is one field without a name.
  Intake(BoundStore& store, nb::list names, std::vector<std::string> formats, std::vector<std::vector<int64_t>> shapes,
         std::string action_format, std::vector<int64_t> action_shape)
      : store_(store.store()), names_(names), action_{std::move(action_format), std::move(action_shape)} {
    for (size_t f = 0; f < formats.size(); ++f) forms_.push_back({std::move(formats[f]), std::move(shapes[f])});
    whole_ = forms_.size() == 1 && nb::len(nb::str(names_[0])) == 0;
  }
  Intake(const Intake&) = delete;

  // The ids of the completed transitions as int64 bytes; None, with nothing changed, if Python has to look at the step:
  // to convert it, to say what is wrong, or to wait for a save. `ends_too` false: also if it ends an episode.
  nb::object add(nb::handle observation, nb::handle action, nb::handle reward, nb::handle next_observation, nb::handle terminated,
                 nb::handle truncated, nb::handle priority, nb::handle td_error, nb::handle stream, bool ends_too) {
    GivenStreams streams;
    if (!streams.take(stream, store_.index().streams())) return nb::none();
    StepRows rows{};
    rows.count = streams.rows();
    rows.stream = streams.values();
    GivenAction actions;
    GivenReals rewards, priorities;
    GivenFlags ends, cuts;
    std::vector<GivenField> fields(2 * forms_.size());
    if (!take_fields(observation, rows.count, fields.data(), rows.observation) || !actions.take(action, action_, rows.count) ||
        !rewards.take(reward, rows.count) ||
        !take_fields(next_observation, rows.count, fields.data() + forms_.size(), rows.next_observation) ||
        !ends.take(terminated, rows.count) || !cuts.take(truncated, rows.count) ||
        !take_priorities(priority, td_error, rows.count, priorities))
      return nb::none();
    rows.action = actions.bytes();
    rows.reward = rewards.values();
    rows.terminated = ends.values();
    rows.truncated = cuts.values();
    rows.priority = priorities.values();
    if (!ends_too)
      for (int64_t r = 0; r < rows.count; ++r)
        if (rows.ends(r)) return nb::none();
    std::vector<int64_t> ids;
    ids.reserve(static_cast<size_t>(rows.count));
    bool waits = false;
    try {
      Locked locked(store_.index());
      waits = store_.index().is_in_snapshot();
      if (!waits) {
        store_.check(rows);
        store_.add(rows, [&](int64_t id) { ids.push_back(id); });
      }
    } catch (const Error&) {
      return nb::none();
    }
    return waits ? nb::none() : as_bytes(ids);
  }

 private:
  bool take_fields(nb::handle value, int64_t rows, GivenField* fields, std::vector<const uint8_t*>& bytes) const {
    if (!whole_ && (!PyDict_CheckExact(value.ptr()) || PyDict_Size(value.ptr()) != static_cast<Py_ssize_t>(forms_.size())))
      return false;
    bytes.reserve(forms_.size());
    for (size_t f = 0; f < forms_.size(); ++f) {
      const nb::handle part = whole_ ? value : nb::handle(PyDict_GetItemWithError(value.ptr(), nb::object(names_[f]).ptr()));
      if (!part.is_valid()) return PyErr_Clear(), false;
      if (!fields[f].take(part, forms_[f], rows)) return false;
      bytes.push_back(fields[f].bytes());
    }
    return true;
  }

  bool take_priorities(nb::handle priority, nb::handle td_error, int64_t rows, GivenReals& out) {
    if (priority.is_none() && td_error.is_none()) return true;
    if (td_error.is_none()) return out.take(priority, rows);
    if (!priority.is_none() || !out.take(td_error, rows)) return false;
    const Rules& rules = store_.index().rules();
    out.to_priorities(rules.kind == Kind::kUniform ? 0.0 : rules.eps, rows);
    return true;
  }

  Store& store_;
  nb::list names_;
  std::vector<Form> forms_;
  Form action_;
  bool whole_ = false;
};

}  // namespace

void bind_intake(nb::module_& m) {
  nb::class_<Intake>(m, "Intake")
      .def(nb::init<BoundStore&, nb::list, std::vector<std::string>, std::vector<std::vector<int64_t>>, std::string, std::vector<int64_t>>(),
           "store"_a, "names"_a, "formats"_a, "shapes"_a, "action_format"_a, "action_shape"_a, nb::keep_alive<1, 2>())
      .def("add", &Intake::add, "observation"_a.none(), "action"_a.none(), "reward"_a.none(), "next_observation"_a.none(),
           "terminated"_a.none(), "truncated"_a.none(), "priority"_a.none(), "td_error"_a.none(), "stream"_a.none(), "ends_too"_a);
}

}  // namespace pser
