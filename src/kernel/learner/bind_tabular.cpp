// The Python class pser._kernel.TabularLoop.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "../bindings.hpp"
#include "../views.hpp"
#include "tabular.hpp"

namespace pser {

namespace {

using namespace nb::literals;

Replay replay_named(const std::string& name) {
  if (name == "uniform") return Replay::kUniform;
  if (name == "prioritized") return Replay::kPrioritized;
  if (name == "backward") return Replay::kBackward;
  throw Error("a replay is uniform, prioritized or backward, got " + name + ": choose one of them");
}

Report report_named(const std::string& name) {
  if (name == "found") return Report::kFound;
  if (name == "settled") return Report::kSettled;
  if (name == "both") return Report::kBoth;
  if (name == "learned") return Report::kLearned;
  throw Error("a report is found, settled, both or learned, got " + name + ": choose one of them");
}

template <class T>
std::vector<T> copied(nb::handle array) {
  const View view(array, false);
  const T* data = view.as<T>();
  return std::vector<T>(data, data + view.count());
}

// Every number that the loop later uses as a place is checked here, once.
TabularLoop make_loop(nb::handle entry, nb::handle next_state, nb::handle reward, nb::handle discount, nb::handle episode_starts,
                      nb::handle truth, int64_t actions, double step_size, Index* index, const std::string& replay,
                      const std::string& report, const std::vector<double>& thresholds, int64_t record_every,
                      int64_t max_iterations) {
  const auto entries = copied<int64_t>(entry), next_states = copied<int64_t>(next_state);
  const auto rewards = copied<double>(reward), discounts = copied<double>(discount);
  const auto starts = copied<int64_t>(episode_starts);
  const auto values = copied<double>(truth);
  const auto count = static_cast<int64_t>(entries.size()), cells = static_cast<int64_t>(values.size());
  if (count == 0 || next_states.size() != entries.size() || rewards.size() != entries.size() ||
      discounts.size() != entries.size())
    throw Error("every transition needs an entry, a next state, a reward and a discount: give arrays of one length, not empty");
  if (actions < 1 || cells % actions != 0)
    throw Error("the table has a row of actions for each state: give its true values whole");
  std::vector<TabularStep> steps;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] < 0 || entries[i] >= cells || next_states[i] < 0 || next_states[i] >= cells / actions)
      throw Error("transition " + std::to_string(i) + " names a state or action outside the table: correct it");
    steps.push_back({entries[i], next_states[i], rewards[i], discounts[i]});
  }
  for (size_t e = 0; e < starts.size(); ++e)
    if (starts[e] < (e == 0 ? 0 : starts[e - 1] + 1) || starts[e] >= count)
      throw Error("episode starts rise and lie among the transitions, number " + std::to_string(e) + " does not: sort them");
  if (starts.empty() || starts[0] != 0) throw Error("the first episode starts at transition 0: begin episode_starts with 0");
  const Replay chosen = replay_named(replay);
  if (chosen == Replay::kPrioritized && (index == nullptr || index->oldest_id() != 0 || index->size() != count))
    throw Error("prioritized replay needs an index that holds exactly the transitions: append each of them once");
  return TabularLoop(std::move(steps), starts, QTable(actions, values, step_size),
                     chosen == Replay::kPrioritized ? index : nullptr, chosen, report_named(report), thresholds, record_every,
                     max_iterations);
}

// The lock of the loop's index, if it has one.
std::unique_lock<Lock> locked(TabularLoop& loop) {
  return loop.index() != nullptr ? std::unique_lock<Lock>(loop.index()->lock()) : std::unique_lock<Lock>();
}

}  // namespace

void bind_tabular(nb::module_& m) {
  nb::class_<TabularLoop>(m, "TabularLoop")
      .def(
          "__init__",
          [](TabularLoop* self, nb::handle entry, nb::handle next_state, nb::handle reward, nb::handle discount,
             nb::handle episode_starts, nb::handle truth, int64_t actions, double step_size, Index* index,
             const std::string& replay, const std::string& report, const std::vector<double>& thresholds, int64_t record_every,
             int64_t max_iterations) {
            new (self) TabularLoop(make_loop(entry, next_state, reward, discount, episode_starts, truth, actions, step_size,
                                             index, replay, report, thresholds, record_every, max_iterations));
          },
          nb::kw_only(), "entry"_a, "next_state"_a, "reward"_a, "discount"_a, "episode_starts"_a, "truth"_a, "actions"_a,
          "step_size"_a, "index"_a.none(), "replay"_a, "report"_a, "thresholds"_a, "record_every"_a, "max_iterations"_a,
          nb::keep_alive<1, 10>())
      .def("advance",
           [](TabularLoop& self, nb::handle draws) {
             const View view(draws, false);
             const double* values = view.as<double>();
             const int64_t count = view.count();
             nb::gil_scoped_release released;
             const auto lock = locked(self);
             return self.advance(count, values);
           })
      .def("repeat",
           [](TabularLoop& self, nb::handle draws, int64_t repetitions) {
             const View view(draws, false);
             const double* values = view.as<double>();
             const int64_t count = view.count();
             std::vector<int64_t> lengths;
             {
               nb::gil_scoped_release released;
               const auto lock = locked(self);
               self.repeat(count, values, repetitions, lengths);
             }
             return lengths;
           })
      .def_prop_ro("iterations", &TabularLoop::iterations)
      .def_prop_ro("first_reward", &TabularLoop::first_reward)
      .def_prop_ro("done", &TabularLoop::done)
      .def_prop_ro("mse", [](const TabularLoop& self) { return self.table().mse(); })
      .def_prop_ro("values", [](const TabularLoop& self) { return self.table().values(); })
      .def_prop_ro("crossings", [](const TabularLoop& self) { return self.crossings(); })
      .def_prop_ro("masses", [](const TabularLoop& self) { return self.masses(); })
      .def_prop_ro("curve", [](const TabularLoop& self) { return self.curve(); });
}

}  // namespace pser
