// The Python module pser._kernel: thin bindings. Python checks shapes and types; the kernel checks values and ids.
// Every call that does work releases the interpreter lock and takes the index's own.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "draws.hpp"
#include "index.hpp"
#include "stats.hpp"
#include "store.hpp"
#include "tabular.hpp"
#include "views.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pser;

namespace {

// The interpreter lock is given up before the index's is taken, so the two can never wait for each other.
struct Locked {
  explicit Locked(Index& index) : lock(index.mutex()) {}
  nb::gil_scoped_release released;
  std::lock_guard<std::mutex> lock;
};

void same_length(int64_t a, int64_t b, const char* what) {
  if (a != b)
    throw Error(std::string(what) + " must be one for each row, got " + std::to_string(b) + " for " + std::to_string(a) +
                ": pass arrays of the same length");
}

Rules make_rules(const std::string& kind, double alpha, double eps, double eta, double rho, int32_t window, double decay_floor,
                 bool add, bool decay_from_priority, bool decay_on_insert, bool stratified, bool weights_by_memory) {
  Rules r;
  r.kind = kind == "uniform" ? Kind::kUniform : kind == "rank" ? Kind::kRank : Kind::kProportional;
  r.alpha = alpha;
  r.eps = eps;
  r.eta = eta;
  r.rho = rho;
  r.window = window;
  r.decay_floor = decay_floor;
  r.add = add;
  r.decay_from_priority = decay_from_priority;
  r.decay_on_insert = decay_on_insert;
  r.stratified = stratified;
  r.weights_by_memory = weights_by_memory;
  return r;
}

void index_append(Index& self, nb::handle first, nb::handle priority, nb::handle stream, nb::handle ids) {
  const View first_view(first, false), ids_view(ids, true);
  const std::vector<View> priority_view = optional_view(priority), stream_view = optional_view(stream);
  const int64_t count = first_view.count();
  same_length(count, ids_view.count(), "ids");
  if (!priority_view.empty()) same_length(count, priority_view[0].count(), "priorities");
  if (!stream_view.empty()) same_length(count, stream_view[0].count(), "streams");
  const bool* first_of = first_view.as<bool>();
  const double* priority_of = optional<double>(priority_view);
  const int64_t* stream_of = optional<int64_t>(stream_view);
  int64_t* ids_out = ids_view.as<int64_t>();
  Locked locked(self);
  if (priority_of != nullptr) self.check_priorities(count, priority_of);
  if (stream_of != nullptr) self.check_streams(count, stream_of);
  self.append(count, first_of, priority_of, stream_of, ids_out);
}

void index_sample(Index& self, Draws& draws, double beta, nb::handle ids, nb::handle weights) {
  const View ids_view(ids, true), weights_view(weights, true);
  const int64_t count = ids_view.count();
  same_length(count, weights_view.count(), "weights");
  int64_t* ids_out = ids_view.as<int64_t>();
  double* weights_out = weights_view.as<double>();
  Locked locked(self);
  self.require_not_empty(count);
  self.sample(count, draws.next(count), beta, ids_out, weights_out, nullptr);
}

template <class Real>
int64_t update_as(Index& self, int64_t count, const int64_t* ids, const Real* td_errors) {
  Locked locked(self);
  self.check_update(count, ids, td_errors);
  return self.update(count, ids, td_errors);
}

int64_t index_update(Index& self, nb::handle ids, nb::handle td_errors) {
  const View ids_view(ids, false), td_view(td_errors, false);
  const int64_t count = ids_view.count();
  if (ids_view.axes() != 1 || td_view.axes() != 1)
    throw Error("ids and TD errors must have one axis, got " + std::to_string(ids_view.axes()) + " and " +
                std::to_string(td_view.axes()) + ": flatten them");
  same_length(count, td_view.count(), "TD errors");
  const int64_t* id = ids_view.as<int64_t>();
  if (td_view.is("f", 4)) return update_as(self, count, id, td_view.as<float>());
  return update_as(self, count, id, td_view.as<double>());
}

// read(id) for each id still in memory, NaN for those overwritten.
template <class Read>
void read_ids(Index& self, nb::handle ids, nb::handle out, const Read& read) {
  const View ids_view(ids, false), out_view(out, true);
  const int64_t count = ids_view.count();
  same_length(count, out_view.count(), "outputs");
  const int64_t* id = ids_view.as<int64_t>();
  double* value = out_view.as<double>();
  Locked locked(self);
  self.check_ids(count, id);
  for (int64_t i = 0; i < count; ++i) value[i] = id[i] >= self.oldest_id() ? read(id[i]) : kMaxPrio;
}

nb::dict index_stats(Index& self) {
  Stats s;
  Counters c;
  double total = 0.0, p_max = 0.0;
  int64_t size = 0, added = 0;
  {
    Locked locked(self);
    s = summarize(self);
    c = self.counters();
    total = self.total_mass();
    p_max = self.max_priority();
    size = self.size();
    added = self.next_id();
  }
  nb::dict d;
  d["size"] = size;
  d["capacity"] = self.capacity();
  d["added"] = added;
  d["total_mass"] = total;
  d["max_priority"] = p_max;
  d["effective_sample_size"] = s.effective_sample_size;
  d["decayed_share"] = s.decayed_share;
  d["decayed_mass_seen"] = c.decayed_mass_seen;
  d["decayed_mass_lost"] = c.decayed_mass_lost;
  d["collapse"] = c.decayed_mass_seen > 0.0 ? c.decayed_mass_lost / c.decayed_mass_seen : 0.0;
  d["age_mean"] = s.age_mean;
  d["age_median"] = s.age_median;
  d["replays_mean"] = s.replays_mean;
  d["replays_max"] = s.replays_max;
  d["never_replayed_share"] = s.never_replayed_share;
  d["updates_applied"] = c.updates_applied;
  d["updates_skipped_stale"] = c.updates_skipped_stale;
  return d;
}

// The part of a memory's state that is not an array.
nb::dict index_get_state(Index& self) {
  nb::dict d;
  d["next_id"] = self.next_id();
  d["oldest_id"] = self.oldest_id();
  d["max_priority"] = self.max_priority();
  nb::list last;
  for (int64_t id : self.last_id()) last.append(id);
  d["last_id"] = last;
  const Counters& c = self.counters();
  d["updates_applied"] = c.updates_applied;
  d["updates_skipped_stale"] = c.updates_skipped_stale;
  d["decayed_mass_seen"] = c.decayed_mass_seen;
  d["decayed_mass_lost"] = c.decayed_mass_lost;
  return d;
}

void index_set_state(Index& self, nb::dict d) {
  nb::list last = nb::cast<nb::list>(d["last_id"]);
  if (nb::len(last) != self.last_id().size()) throw Error("the saved state has another number of streams");
  for (size_t s = 0; s < self.last_id().size(); ++s) self.last_id()[s] = nb::cast<int64_t>(last[s]);
  Counters& c = self.counters();
  c.updates_applied = nb::cast<int64_t>(d["updates_applied"]);
  c.updates_skipped_stale = nb::cast<int64_t>(d["updates_skipped_stale"]);
  c.decayed_mass_seen = nb::cast<double>(d["decayed_mass_seen"]);
  c.decayed_mass_lost = nb::cast<double>(d["decayed_mass_lost"]);
  const auto next_id = nb::cast<int64_t>(d["next_id"]);
  const auto oldest_id = nb::cast<int64_t>(d["oldest_id"]);
  if (oldest_id < 0 || next_id < oldest_id || next_id - oldest_id > self.capacity()) throw Error("the saved ids contradict each other");
  self.restore(next_id, oldest_id, nb::cast<double>(d["max_priority"]));
}

// The blocks as bytes, without a copy: what saving writes and loading fills.
nb::object index_blocks(Index& self) {
  return nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(self.blocks().data()),
                                           self.blocks().size() * static_cast<int64_t>(sizeof(Block)), PyBUF_WRITE));
}

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
      : store_(index, n_step, gamma, step_columns(steps), columns(arrays), rings(frames, n_step == 1)) {}

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

  std::vector<FrameRing> rings(nb::list list, bool one_step) {
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
      out.emplace_back(a, one_step);
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

NB_MODULE(_kernel, m) {
  m.doc() = "Compiled rules of the replay memory.";
  nb::set_leak_warnings(false);
  static nb::object error_type = nb::module_::import_("pser.errors").attr("PserError");
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      PyErr_SetString(error_type.ptr(), e.what());
    }
  });

  m.def("has_avx2", &have_avx2);
  m.attr("BLOCK_BYTES") = sizeof(Block);
  m.attr("FAN_OUT") = kFan;
#ifdef __SANITIZE_ADDRESS__
  m.attr("SANITIZED") = true;
#else
  m.attr("SANITIZED") = false;
#endif

  nb::class_<Rules>(m, "Rules")
      .def("__init__",
           [](Rules* r, const std::string& kind, double alpha, double eps, double eta, double rho, int32_t window, double decay_floor,
              bool add, bool decay_from_priority, bool decay_on_insert, bool stratified, bool weights_by_memory) {
             new (r) Rules(make_rules(kind, alpha, eps, eta, rho, window, decay_floor, add, decay_from_priority, decay_on_insert,
                                      stratified, weights_by_memory));
           },
           nb::kw_only(), "kind"_a, "alpha"_a, "eps"_a, "eta"_a, "rho"_a, "window"_a, "decay_floor"_a, "add"_a,
           "decay_from_priority"_a, "decay_on_insert"_a, "stratified"_a, "weights_by_memory"_a);

  nb::class_<Draws>(m, "Draws")
      .def("__init__",
           [](Draws* d, nb::capsule bits) {
             if (std::string(bits.name()) != "BitGenerator") throw nb::type_error("expected a NumPy bit generator's capsule");
             new (d) Draws(static_cast<BitGenerator*>(bits.data()));
           },
           "bits"_a)
      // A bit generator must outlive what draws from it; its capsule keeps nothing alive.
      .def("fill", [](Draws& d, nb::handle out) {
        const View view(out, true);
        const double* values = d.next(view.count());
        std::copy(values, values + view.count(), view.as<double>());
      });

  nb::class_<Index>(m, "Index")
      .def(nb::init<int64_t, int64_t, const Rules&>(), "capacity"_a, "streams"_a, "rules"_a)
      .def("append", &index_append, "first"_a, "priority"_a.none(), "stream"_a.none(), "ids"_a)
      .def("sample", &index_sample)
      .def("update", &index_update)
      .def("priority", [](Index& i, nb::handle ids, nb::handle out) { read_ids(i, ids, out, [&](int64_t id) { return i.priority_of(id); }); })
      .def("probability", [](Index& i, nb::handle ids, nb::handle out) { read_ids(i, ids, out, [&](int64_t id) { return i.probability_of(id); }); })
      .def("cut", [](Index& i, int64_t stream) {
             Locked locked(i);
             i.check_streams(1, &stream);
             i.cut(stream);
           })
      .def("stats", &index_stats)
      .def("broken_invariant", [](Index& i) { Locked locked(i); return i.broken_invariant(); })
      .def("get_state", &index_get_state)
      .def("set_state", &index_set_state)
      .def("blocks", &index_blocks)
      .def("lock", [](Index& i) { nb::gil_scoped_release released; i.mutex().lock(); })
      .def("unlock", [](Index& i) { i.mutex().unlock(); })
      .def_prop_ro("next_id", &Index::next_id)
      .def_prop_ro("oldest_id", &Index::oldest_id)
      .def_prop_ro("size", &Index::size)
      .def_prop_ro("max_priority", &Index::max_priority);

  nb::class_<Outputs>(m, "Outputs")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::list, nb::list>(),
           "ids"_a, "weights"_a, "probabilities"_a, "action"_a, "reward"_a, "discount"_a, "terminated"_a, "now"_a, "next"_a);

  nb::class_<BoundStore>(m, "Store")
      .def(nb::init<Index&, int64_t, double, nb::dict, nb::list, nb::list>(), "index"_a, "n_step"_a, "gamma"_a, "steps"_a,
           "arrays"_a, "frames"_a, nb::keep_alive<1, 2>())
      .def("add", &store_add, "observation"_a, "action"_a, "reward"_a, "next_observation"_a, "terminated"_a, "truncated"_a,
           "priority"_a.none(), "stream"_a.none())
      .def("sample", &store_sample)
      .def("end_episodes", &store_end_episodes);

  bind_tabular(m);
}
