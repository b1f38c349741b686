// Store and its output buffers for Python.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include "bindings.hpp"
#include "bound_store.hpp"
#include "draws.hpp"
#include "sequences.hpp"
#include "views.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pser {

namespace {

// Where a batch is written: taken once, used for every sample of that size.
class Outputs {
 public:
  Outputs(const Outputs&) = delete;
  Outputs(nb::handle ids, nb::handle weights, nb::handle probabilities, nb::handle action, nb::handle reward,
          nb::handle discount, nb::handle terminated, nb::list now, nb::list next)
      : ids(arrays_.as<int64_t>(ids)),
        count(arrays_.last().count()),
        weights(arrays_.as<float>(weights)),
        probabilities(arrays_.as<double>(probabilities)),
        wide_weights(static_cast<size_t>(count)) {
    batch.action = arrays_.bytes(action);
    batch.reward = arrays_.bytes(reward);
    batch.discount = arrays_.bytes(discount);
    batch.terminated = arrays_.bytes(terminated);
    for (nb::handle a : now) batch.now.push_back(arrays_.bytes(a));
    for (nb::handle a : next) batch.next.push_back(a.is_none() ? nullptr : arrays_.bytes(a));
  }

 private:
  PinnedArrays arrays_;

 public:
  int64_t* ids;
  int64_t count;
  float* weights;
  double* probabilities;
  std::vector<double> wide_weights;
  BatchArrays batch{};
};

void gather_sampled(Store& store, Outputs& outputs) {
  for (int64_t i = 0; i < outputs.count; ++i) outputs.weights[i] = static_cast<float>(outputs.wide_weights[static_cast<size_t>(i)]);
  store.gather(outputs.count, outputs.ids, outputs.batch);
}

void store_sample(BoundStore& self, Draws& draws, double beta, Outputs& outputs) {
  Store& store = self.store();
  Locked locked(store.index());
  store.index().require_not_empty(outputs.count);
  store.index().sample(outputs.count, draws.next(outputs.count), beta, outputs.ids, outputs.wide_weights.data(), outputs.probabilities);
  gather_sampled(store, outputs);
}

// The same at given shares of the mass.
void store_sample_at(BoundStore& self, nb::handle positions, double beta, Outputs& outputs) {
  Store& store = self.store();
  const View positions_view(positions, false);
  same_length(outputs.count, positions_view.count(), "positions");
  const double* at = positions_view.as<double>();
  Locked locked(store.index());
  store.index().check_positions(outputs.count, at);
  store.index().sample_at(outputs.count, at, beta, outputs.ids, outputs.wide_weights.data(), outputs.probabilities);
  gather_sampled(store, outputs);
}

// What is told of each sequence beside its rows.
class SequenceOutputs {
 public:
  SequenceOutputs(const SequenceOutputs&) = delete;
  SequenceOutputs(nb::handle chosen, nb::handle weights, nb::handle probabilities, nb::handle from_start, nb::handle mask,
                  nb::handle learn)
      : chosen(arrays_.as<int64_t>(chosen)),
        count(arrays_.last().count()),
        weights(arrays_.as<float>(weights)),
        probabilities(arrays_.as<double>(probabilities)),
        from_start(arrays_.as<bool>(from_start)),
        mask(arrays_.as<bool>(mask)),
        rows(arrays_.last().count()),
        learn(arrays_.as<bool>(learn)),
        wide_weights(static_cast<size_t>(count)) {}

 private:
  PinnedArrays arrays_;

 public:
  int64_t* chosen;
  int64_t count;
  float* weights;
  double* probabilities;
  bool* from_start;
  bool* mask;
  int64_t rows;
  bool* learn;
  std::vector<double> wide_weights;
};

// Windows around steps drawn by priority. Rows beyond a window's end repeat its last step; returns how many there are.
int64_t store_sample_sequences(BoundStore& self, Draws& draws, double beta, Outputs& rows, SequenceOutputs& out, int64_t length,
                               int64_t burn_in, int64_t stride) {
  Store& store = self.store();
  const WindowShape shape{length, burn_in, stride};
  same_length(out.count * shape.rows(), rows.count, "rows");
  same_length(out.count * shape.rows(), out.rows, "flags");
  Locked locked(store.index());
  store.index().require_not_empty(out.count);
  store.index().sample(out.count, draws.next(out.count), beta, out.chosen, out.wide_weights.data(), out.probabilities);
  const double* places = draws.next(out.count);
  Windows windows(store.index(), shape);
  int64_t beyond = 0;
  for (int64_t i = 0; i < out.count; ++i) {
    out.weights[i] = static_cast<float>(out.wide_weights[static_cast<size_t>(i)]);
    int64_t* ids = rows.ids + i * shape.rows();
    const Window window = windows.lay(out.chosen[i], places[i], ids);
    out.from_start[i] = window.from_start;
    std::fill(ids + window.steps, ids + shape.rows(), ids[window.steps - 1]);
    bool* const mask = out.mask + i * shape.rows();
    std::fill(mask, mask + window.steps, true);
    std::fill(mask + window.steps, mask + shape.rows(), false);
    bool* const learn = out.learn + i * shape.rows();
    std::fill(learn, learn + window.learn, false);
    std::copy(mask + window.learn, mask + shape.rows(), learn + window.learn);
    beyond += shape.rows() - window.steps;
  }
  store.gather_windows(rows.count, rows.ids, rows.batch);
  return beyond;
}

// The transitions whose ids the outputs hold already.
void store_read(BoundStore& self, Outputs& outputs) {
  Store& store = self.store();
  Locked locked(store.index());
  store.index().check_retained(outputs.count, outputs.ids);
  for (int64_t i = 0; i < outputs.count; ++i) outputs.probabilities[i] = store.index().probability_of(outputs.ids[i]);
  store.gather(outputs.count, outputs.ids, outputs.batch);
}

// The ids of the transitions that one step of the environments completed. None, with nothing changed, if a save is under way and
// the caller, under the lock, has not made sure that there is room: nothing is overwritten that has still to be written.
nb::object store_add(BoundStore& self, nb::list observation, nb::handle action, nb::handle reward, nb::list next_observation,
                    nb::handle terminated, nb::handle truncated, nb::handle priority, nb::handle stream, bool has_room) {
  Store& store = self.store();
  const View action_view(action, false), reward_view(reward, false), term_view(terminated, false), trunc_view(truncated, false);
  const std::vector<View> priority_view = optional_view(priority), stream_view = optional_view(stream);
  StepRows rows{};
  rows.count = reward_view.count();
  const size_t fields = store.columns().size();
  std::vector<View> observations;
  observations.reserve(2 * fields);
  if (nb::len(observation) != fields || nb::len(next_observation) != fields) throw Error("observation fields are missing");
  for (size_t f = 0; f < fields; ++f) {
    const int64_t bytes = store.columns()[f]->row_bytes();
    observations.emplace_back(observation[f], false);
    observations.emplace_back(next_observation[f], false);
    for (size_t side = 0; side < 2; ++side)
      same_length(rows.count * bytes, observations[2 * f + side].bytes(), "bytes of observations");
    rows.observation.push_back(observations[2 * f].raw());
    rows.next_observation.push_back(observations[2 * f + 1].raw());
  }
  same_length(rows.count * store.action_bytes(), action_view.bytes(), "bytes of actions");
  same_length(rows.count, term_view.count(), "terminated flags");
  same_length(rows.count, trunc_view.count(), "truncated flags");
  if (!priority_view.empty()) same_length(rows.count, priority_view[0].count(), "priorities");
  if (!stream_view.empty()) same_length(rows.count, stream_view[0].count(), "streams");
  if (stream_view.empty()) same_length(store.index().streams(), rows.count, "environments");
  rows.action = action_view.raw();
  rows.reward = reward_view.as<double>();
  rows.terminated = term_view.as<bool>();
  rows.truncated = trunc_view.as<bool>();
  rows.priority = optional<double>(priority_view);
  rows.stream = optional<int64_t>(stream_view);
  std::vector<int64_t> ids;
  bool waits = false;
  {
    Locked locked(store.index());
    waits = store.index().is_in_snapshot() && !has_room;
    if (!waits) {
      store.check(rows);
      store.add(rows, [&](int64_t id) { ids.push_back(id); });
    }
  }
  return waits ? nb::none() : as_bytes(ids);
}

void store_forget(BoundStore& self, int64_t before, nb::handle shown) {
  const View shown_view(shown, false);
  same_length(static_cast<int64_t>(self.store().columns().size()), shown_view.count(), "frames");
  const int64_t* frames = shown_view.as<int64_t>();
  Locked locked(self.store().index());
  self.store().forget(before, frames);
}

// Likewise of the episodes that end.
nb::object store_end_episodes(BoundStore& self, nb::handle stream, bool has_room) {
  const View stream_view(stream, false);
  const int64_t* streams = stream_view.as<int64_t>();
  const int64_t count = stream_view.count();
  Store& store = self.store();
  std::vector<int64_t> ids;
  bool waits = false;
  {
    Locked locked(store.index());
    waits = store.index().is_in_snapshot() && !has_room;
    if (!waits) {
      store.index().check_streams(count, streams);
      for (int64_t i = 0; i < count; ++i) store.end_episode(streams[i], [&](int64_t id) { ids.push_back(id); });
    }
  }
  return waits ? nb::none() : as_bytes(ids);
}

}  // namespace

void bind_store(nb::module_& m) {
  nb::class_<Outputs>(m, "Outputs")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::list, nb::list>(),
           "ids"_a, "weights"_a, "probabilities"_a, "action"_a, "reward"_a, "discount"_a, "terminated"_a, "now"_a, "next"_a);

  nb::class_<SequenceOutputs>(m, "SequenceOutputs")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(), "chosen"_a, "weights"_a,
           "probabilities"_a, "from_start"_a, "mask"_a, "learn"_a);

  nb::class_<BoundStore>(m, "Store")
      .def(nb::init<Index&, int64_t, double, nb::dict, nb::list>(), "index"_a, "n_step"_a, "gamma"_a, "steps"_a, "columns"_a,
           nb::keep_alive<1, 2>())
      .def("add", &store_add, "observation"_a, "action"_a, "reward"_a, "next_observation"_a, "terminated"_a, "truncated"_a,
           "priority"_a.none(), "stream"_a.none(), "has_room"_a)
      .def("sample", &store_sample)
      .def("sample_sequences", &store_sample_sequences)
      .def("sample_at", &store_sample_at)
      .def("clear", [](BoundStore& self) {
             Locked locked(self.store().index());
             self.store().clear();
           })
      .def("forget", &store_forget, "before"_a, "shown"_a)
      .def("read", &store_read)
      .def("end_episodes", &store_end_episodes)
      .def("damage", [](BoundStore& self, int64_t rows) {
             const char* wrong = self.store().damage(rows);
             return std::string(wrong != nullptr ? wrong : "");
           });
}

}  // namespace pser
