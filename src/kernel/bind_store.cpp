// Store and its output buffers for Python.

#include <nanobind/nanobind.h>

#include "bindings.hpp"
#include "draws.hpp"
#include "store.hpp"
#include "views.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pser {

namespace {

int64_t field_int(nb::dict d, const char* key) { return nb::cast<int64_t>(d[key]); }

uint8_t* pinned(std::vector<View>& keep, nb::dict d, const char* key) {
  keep.emplace_back(nb::handle(d[key]), true);
  return keep.back().raw();
}

// A store and the arrays it writes to, held for as long as it lives.
class BoundStore {
 public:
  BoundStore(const BoundStore&) = delete;
  BoundStore(Index& index, int64_t n_step, double gamma, nb::dict steps, nb::list arrays, nb::list frames)
      : store_(index, n_step, gamma, step_columns(steps), columns(arrays), rings(frames, pending_range(index, n_step, steps))) {}

  Store& store() { return store_; }

 private:
  StepColumns step_columns(nb::dict d) {
    StepColumns s{};
    s.action = pinned(keep_, d, "action");
    s.pending_action = pinned(keep_, d, "pending_action");
    s.action_bytes = field_int(d, "action_bytes");
    s.reward = pinned(keep_, d, "reward");
    s.wide = keep_.back().is("d", 8);
    s.discount = pinned(keep_, d, "discount");
    s.terminated = reinterpret_cast<bool*>(pinned(keep_, d, "terminated"));
    s.pending_reward = reinterpret_cast<double*>(pinned(keep_, d, "pending_reward"));
    s.pending_priority = reinterpret_cast<double*>(pinned(keep_, d, "pending_priority"));
    s.pending_first = reinterpret_cast<bool*>(pinned(keep_, d, "pending_first"));
    s.pending_count = reinterpret_cast<int64_t*>(pinned(keep_, d, "pending_count"));
    s.pending_start = reinterpret_cast<int64_t*>(pinned(keep_, d, "pending_start"));
    s.at_start = reinterpret_cast<bool*>(pinned(keep_, d, "at_start"));
    return s;
  }

  std::vector<ObservationColumn> columns(nb::list list) {
    std::vector<ObservationColumn> out;
    for (nb::handle item : list) {
      nb::dict d = nb::cast<nb::dict>(item);
      out.push_back({pinned(keep_, d, "now"), pinned(keep_, d, "next"), pinned(keep_, d, "pending"),
                     pinned(keep_, d, "newest"), field_int(d, "bytes")});
    }
    return out;
  }

  PendingRange pending_range(Index& index, int64_t n_step, nb::dict d) {
    return {index.streams(), n_step, reinterpret_cast<int64_t*>(pinned(keep_, d, "pending_count")),
            reinterpret_cast<int64_t*>(pinned(keep_, d, "pending_start"))};
  }

  std::vector<FrameRing> rings(nb::list list, const PendingRange& range) {
    std::vector<FrameRing> out;
    for (nb::handle item : list) {
      nb::dict d = nb::cast<nb::dict>(item);
      FrameArrays a{};
      a.frames = pinned(keep_, d, "frames");
      a.places = reinterpret_cast<int32_t*>(pinned(keep_, d, "places"));
      a.stream_stack = reinterpret_cast<int64_t*>(pinned(keep_, d, "stream_stack"));
      a.pending = reinterpret_cast<int64_t*>(pinned(keep_, d, "pending"));
      a.next_frame = reinterpret_cast<int64_t*>(pinned(keep_, d, "next_frame"));
      a.frame_bytes = field_int(d, "frame_bytes");
      a.ring = field_int(d, "ring");
      a.stack = field_int(d, "stack");
      a.lag = field_int(d, "lag");
      out.emplace_back(a, range);
    }
    return out;
  }

  std::vector<View> keep_;
  Store store_;
};

// Where a batch is written: taken once, used for every sample of that size.
class Outputs {
 public:
  Outputs(const Outputs&) = delete;
  Outputs(nb::handle ids, nb::handle weights, nb::handle probabilities, nb::handle action, nb::handle reward,
          nb::handle discount, nb::handle terminated, nb::list now, nb::list next) {
    ids_ = take(ids);
    weights_ = take(weights);
    probabilities_ = take(probabilities);
    out.action = take(action);
    out.reward = take(reward);
    out.discount = take(discount);
    out.terminated = reinterpret_cast<bool*>(take(terminated));
    for (nb::handle a : now) out.now.push_back(take(a));
    for (nb::handle a : next) out.next.push_back(a.is_none() ? nullptr : take(a));
    count = keep_[0].count();
    wide_weights.resize(static_cast<size_t>(count));
  }
  int64_t* ids() { return reinterpret_cast<int64_t*>(ids_); }
  float* weights() { return reinterpret_cast<float*>(weights_); }
  double* probabilities() { return reinterpret_cast<double*>(probabilities_); }

  int64_t count;
  Store::Outputs out;
  std::vector<double> wide_weights;

 private:
  uint8_t* take(nb::handle array) {
    keep_.emplace_back(array, true);
    return keep_.back().raw();
  }
  std::vector<View> keep_;
  uint8_t *ids_, *weights_, *probabilities_;
};

void store_sample(BoundStore& self, Draws& draws, double beta, Outputs& outputs) {
  Store& store = self.store();
  Locked locked(store.index());
  store.index().require_not_empty(outputs.count);
  store.index().sample(outputs.count, draws.next(outputs.count), beta, outputs.ids(), outputs.wide_weights.data(), outputs.probabilities());
  for (int64_t i = 0; i < outputs.count; ++i) outputs.weights()[i] = static_cast<float>(outputs.wide_weights[static_cast<size_t>(i)]);
  store.gather(outputs.count, outputs.ids(), outputs.out);
}

// The transitions whose ids the outputs hold already.
void store_read(BoundStore& self, Outputs& outputs) {
  Store& store = self.store();
  Locked locked(store.index());
  store.index().check_retained(outputs.count, outputs.ids());
  for (int64_t i = 0; i < outputs.count; ++i) outputs.probabilities()[i] = store.index().probability_of(outputs.ids()[i]);
  store.gather(outputs.count, outputs.ids(), outputs.out);
}

// The ids of the transitions that one step of the environments completed, as int64 bytes.
nb::bytes store_add(BoundStore& self, nb::list observation, nb::handle action, nb::handle reward, nb::list next_observation,
                    nb::handle terminated, nb::handle truncated, nb::handle priority, nb::handle stream) {
  Store& store = self.store();
  const View action_view(action, false), reward_view(reward, false), term_view(terminated, false), trunc_view(truncated, false);
  const std::vector<View> priority_view = optional_view(priority), stream_view = optional_view(stream);
  StepRows rows{};
  rows.count = reward_view.count();
  const size_t fields = store.arrays().size() + store.frames().size();
  std::vector<View> observations;
  observations.reserve(2 * fields);
  if (nb::len(observation) != fields || nb::len(next_observation) != fields) throw Error("observation fields are missing");
  for (size_t f = 0; f < fields; ++f) {
    const size_t a = store.arrays().size();
    const int64_t bytes = f < a ? store.arrays()[f].bytes : store.frames()[f - a].row_bytes();
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
  {
    Locked locked(store.index());
    store.check(rows);
    store.add(rows, [&](int64_t id) { ids.push_back(id); });
  }
  return nb::bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int64_t));
}

nb::bytes store_end_episodes(BoundStore& self, nb::handle stream) {
  const View stream_view(stream, false);
  const int64_t* streams = stream_view.as<int64_t>();
  const int64_t count = stream_view.count();
  Store& store = self.store();
  std::vector<int64_t> ids;
  {
    Locked locked(store.index());
    store.index().check_streams(count, streams);
    for (int64_t i = 0; i < count; ++i) store.end_episode(streams[i], [&](int64_t id) { ids.push_back(id); });
  }
  return nb::bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int64_t));
}

}  // namespace

void bind_store(nb::module_& m) {
  nb::class_<Outputs>(m, "Outputs")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::list, nb::list>(),
           "ids"_a, "weights"_a, "probabilities"_a, "action"_a, "reward"_a, "discount"_a, "terminated"_a, "now"_a, "next"_a);

  nb::class_<BoundStore>(m, "Store")
      .def(nb::init<Index&, int64_t, double, nb::dict, nb::list, nb::list>(), "index"_a, "n_step"_a, "gamma"_a, "steps"_a,
           "arrays"_a, "frames"_a, nb::keep_alive<1, 2>())
      .def("add", &store_add, "observation"_a, "action"_a, "reward"_a, "next_observation"_a, "terminated"_a, "truncated"_a,
           "priority"_a.none(), "stream"_a.none())
      .def("sample", &store_sample)
      .def("read", &store_read)
      .def("end_episodes", &store_end_episodes);
}

}  // namespace pser
