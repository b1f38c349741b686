// Rules, Draws and Index for Python.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <vector>

#include "bindings.hpp"
#include "draws.hpp"
#include "index.hpp"
#include "new_array.hpp"
#include "stats.hpp"
#include "views.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pser {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

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

nb::tuple index_sample(Index& self, Draws& draws, int64_t count, double beta) {
  int64_t* ids_out = nullptr;
  double* weights_out = nullptr;
  nb::object ids = new_array(count, &ids_out), weights = new_array(count, &weights_out);
  {
    Locked locked(self, count);
    self.require_not_empty(count);
    self.sample(count, draws.next(count), beta, ids_out, weights_out, nullptr);
  }
  return nb::steal<nb::tuple>(PyTuple_Pack(2, ids.ptr(), weights.ptr()));
}

void index_sample_at(Index& self, nb::handle positions, double beta, nb::handle ids, nb::handle weights) {
  const View positions_view(positions, false), ids_view(ids, true), weights_view(weights, true);
  const int64_t count = positions_view.count();
  same_length(count, ids_view.count(), "ids");
  same_length(count, weights_view.count(), "weights");
  const double* at = positions_view.as<double>();
  int64_t* ids_out = ids_view.as<int64_t>();
  double* weights_out = weights_view.as<double>();
  Locked locked(self);
  self.check_positions(count, at);
  self.sample_at(count, at, beta, ids_out, weights_out, nullptr);
}

int64_t index_set_priorities(Index& self, nb::handle ids, nb::handle priorities) {
  const View ids_view(ids, false), priority_view(priorities, false);
  const int64_t count = ids_view.count();
  same_length(count, priority_view.count(), "priorities");
  const int64_t* id = ids_view.as<int64_t>();
  const double* priority = priority_view.as<double>();
  Locked locked(self);
  self.check_ids(count, id);
  self.check_priorities(count, priority);
  return self.set_priorities(count, id, priority);
}

void index_predecessors(Index& self, nb::handle ids, nb::handle out) {
  const View ids_view(ids, false), out_view(out, true);
  const int64_t count = ids_view.count(), steps = count > 0 ? out_view.count() / count : 0;
  same_length(count * steps, out_view.count(), "outputs");
  const int64_t* id = ids_view.as<int64_t>();
  int64_t* earlier = out_view.as<int64_t>();
  Locked locked(self);
  self.check_ids(count, id);
  for (int64_t i = 0; i < count; ++i) self.predecessors(id[i], steps, earlier + i * steps);
}

void index_raise_max_priority(Index& self, double priority) {
  Locked locked(self);
  self.check_priorities(1, &priority);
  self.raise_max_priority(priority);
}

template <class Real>
int64_t update_as(Index& self, int64_t count, const int64_t* ids, const Real* td_errors) {
  Locked locked(self, count);
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

template <class Real>
int64_t update_masked(Index& self, int64_t count, const int64_t* ids, const Real* td_errors, const bool* mask) {
  if (std::memchr(mask, 0, static_cast<size_t>(count)) == nullptr) return update_as(self, count, ids, td_errors);
  std::vector<int64_t> some;
  std::vector<Real> errors;
  for (int64_t i = 0; i < count; ++i) {
    if (!mask[i]) continue;
    some.push_back(ids[i]);
    errors.push_back(td_errors[i]);
  }
  return update_as(self, static_cast<int64_t>(some.size()), some.data(), errors.data());
}

// The same of windows, (sequences, steps) of each: only rows in the mask count.
int64_t index_update_windows(Index& self, nb::handle ids, nb::handle td_errors, nb::handle mask) {
  const View ids_view(ids, false), td_view(td_errors, false), mask_view(mask, false);
  for (const View* view : {&ids_view, &td_view, &mask_view})
    if (view->axes() != 2 || view->length(0) != ids_view.length(0) || view->length(1) != ids_view.length(1))
      throw nb::type_error("expected arrays of one shape (sequences, steps)");
  const int64_t count = ids_view.count();
  const int64_t* id = ids_view.as<int64_t>();
  const bool* counted = mask_view.as<bool>();
  if (td_view.is("f", 4)) return update_masked(self, count, id, td_view.as<float>(), counted);
  return update_masked(self, count, id, td_view.as<double>(), counted);
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
  d["mass_from_insertion"] = s.from_insertion;
  d["mass_from_retention"] = s.from_retention;
  d["mass_from_td_error"] = s.from_td_error;
  d["mass_from_decay"] = s.from_decay;
  d["updates_applied"] = c.updates_applied;
  d["updates_skipped_stale"] = c.updates_skipped_stale;
  return d;
}

// What each retained transition holds, oldest first: name → bytes of one column.
nb::dict index_columns(Index& self) {
  std::vector<double> priority, mass;
  std::vector<float> own_mass;
  std::vector<uint32_t> replays;
  std::vector<int32_t> back;
  std::vector<uint8_t> source;
  int64_t oldest = 0;
  {
    Locked locked(self);
    oldest = self.oldest_id();
    mass = self.masses();
    for (int64_t id = oldest; id < self.next_id(); ++id) {
      const int64_t cell = self.cell_of(id);
      const Record& r = self.record(cell);
      priority.push_back(r.priority);
      own_mass.push_back(r.own_mass);
      replays.push_back(r.replays());
      back.push_back(self.back(cell));
      source.push_back(static_cast<uint8_t>(source_of(self.rules(), r)));
    }
  }
  const auto bytes = [](const auto& column) {
    return nb::bytes(reinterpret_cast<const char*>(column.data()), column.size() * sizeof(column[0]));
  };
  nb::dict d;
  d["oldest_id"] = oldest;
  d["priority"] = bytes(priority);
  d["mass"] = bytes(mass);
  d["own_mass"] = bytes(own_mass);
  d["replays"] = bytes(replays);
  d["back"] = bytes(back);
  d["source"] = bytes(source);
  return d;
}

// The part of a memory's state that is not an array.
nb::dict index_get_state(Index& self) {
  int64_t next_id = 0, oldest_id = 0;
  double p_max = 0.0, p_min = 0.0;
  std::vector<int64_t> last_ids;
  Counters c;
  {
    Locked locked(self);
    next_id = self.next_id();
    oldest_id = self.oldest_id();
    p_max = self.max_priority();
    p_min = self.min_priority();
    last_ids = self.last_id();
    c = self.counters();
  }
  nb::dict d;
  d["next_id"] = next_id;
  d["oldest_id"] = oldest_id;
  d["max_priority"] = p_max;
  d["min_priority"] = p_min;
  nb::list last;
  for (int64_t id : last_ids) last.append(id);
  d["last_id"] = last;
  d["updates_applied"] = c.updates_applied;
  d["updates_skipped_stale"] = c.updates_skipped_stale;
  d["decayed_mass_seen"] = c.decayed_mass_seen;
  d["decayed_mass_lost"] = c.decayed_mass_lost;
  return d;
}

void index_set_state(Index& self, nb::dict d) {
  nb::list last = nb::cast<nb::list>(d["last_id"]);
  std::vector<int64_t> last_ids;
  for (nb::handle id : last) last_ids.push_back(nb::cast<int64_t>(id));
  Counters c;
  c.updates_applied = nb::cast<int64_t>(d["updates_applied"]);
  c.updates_skipped_stale = nb::cast<int64_t>(d["updates_skipped_stale"]);
  c.decayed_mass_seen = nb::cast<double>(d["decayed_mass_seen"]);
  c.decayed_mass_lost = nb::cast<double>(d["decayed_mass_lost"]);
  const auto next_id = nb::cast<int64_t>(d["next_id"]), oldest_id = nb::cast<int64_t>(d["oldest_id"]);
  const auto p_max = nb::cast<double>(d["max_priority"]);
  const double p_min = d.contains("min_priority") ? nb::cast<double>(d["min_priority"]) : kUnknown;
  Locked locked(self);
  if (last_ids.size() != self.last_id().size()) throw Error("the saved state has another number of streams");
  self.last_id() = last_ids;
  self.counters() = c;
  self.restore(next_id, oldest_id, p_max, p_min);
  self.check_restored();
  self.rebuild();
}

void index_unlock(Index& self) {
  if (!self.lock().is_mine()) throw Error("this thread does not hold the index's lock: leave locked() where it was entered");
  self.lock().unlock();
}

std::vector<Lock*> locks_of(const std::vector<Index*>& indexes) {
  std::vector<Lock*> locks;
  for (Index* index : indexes) locks.push_back(&index->lock());
  return locks;
}

template <class T>
nb::object bytes_in_place(ZeroedArray<T>& array) {
  return nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(array.data()), array.size() * static_cast<int64_t>(sizeof(T)),
                                           PyBUF_WRITE));
}

// The blocks as bytes, without a copy: what saving writes and loading fills.
nb::object index_blocks(Index& self) { return bytes_in_place(self.blocks()); }

// Likewise what came by decay in each cell; None if the rules do not keep it apart.
nb::object index_decayed_parts(Index& self) {
  return self.rules().retain_decayed ? bytes_in_place(self.decayed_parts()) : nb::none();
}

void index_read_blocks(Index& self, nb::handle out) {
  const View view(out, true);
  Locked locked(self);
  self.read_blocks(view.bytes() / self.block_bytes(), view.raw());
}

int64_t index_read_cells(Index& self, nb::handle out) {
  const View view(out, true);
  Locked locked(self);
  return self.read_cells(view.bytes() / self.cell_bytes(), view.raw());
}

void index_put_blocks(Index& self, int64_t first, nb::handle in) {
  const View view(in, false);
  Locked locked(self);
  self.put_blocks(first, view.bytes() / self.block_bytes(), view.raw());
}

void index_put_cells(Index& self, int64_t used, nb::handle in) {
  const View view(in, false);
  Locked locked(self);
  self.put_cells(used, view.bytes() / self.cell_bytes(), view.raw());
}

}  // namespace

void bind_index(nb::module_& m) {
  import_numpy();
  // The one place where settings meet the kernel: a field of Rules, its name, and prioritization.py sets it.
  nb::enum_<Kind>(m, "Kind")
      .value("uniform", Kind::kUniform)
      .value("proportional", Kind::kProportional)
      .value("rank", Kind::kRank);
  nb::class_<Rules>(m, "Rules")
      .def(nb::init<>())
      .def_rw("kind", &Rules::kind)
      .def_rw("alpha", &Rules::alpha)
      .def_rw("eps", &Rules::eps)
      .def_rw("eta", &Rules::eta)
      .def_rw("rho", &Rules::rho)
      .def_rw("window", &Rules::window)
      .def_rw("decay_floor", &Rules::decay_floor)
      .def_rw("add", &Rules::add)
      .def_rw("retain_decayed", &Rules::retain_decayed)
      .def_rw("decay_from_priority", &Rules::decay_from_priority)
      .def_rw("decay_on_insert", &Rules::decay_on_insert)
      .def_rw("stratified", &Rules::stratified)
      .def_rw("weights_by_memory", &Rules::weights_by_memory);

  nb::class_<Draws>(m, "Draws").def(nb::init<nb::object>(), "bit_generator"_a);

  nb::class_<Index>(m, "Index")
      .def(nb::init<int64_t, int64_t, const Rules&>(), "capacity"_a, "streams"_a, "rules"_a)
      .def("append", &index_append, "first"_a, "priority"_a.none(), "stream"_a.none(), "ids"_a)
      .def("sample", &index_sample)
      .def("sample_at", &index_sample_at)
      .def("update", &index_update)
      .def("update_windows", &index_update_windows)
      .def("set_priorities", &index_set_priorities)
      .def("predecessors", &index_predecessors)
      .def("raise_max_priority", &index_raise_max_priority)
      .def("priority",
           [](Index& i, nb::handle ids, nb::handle out) { read_ids(i, ids, out, [&](int64_t id) { return i.priority_of(id); }); })
      .def("probability", [](Index& i, nb::handle ids,
                             nb::handle out) { read_ids(i, ids, out, [&](int64_t id) { return i.probability_of(id); }); })
      .def("cut",
           [](Index& i, int64_t stream) {
             Locked locked(i);
             i.check_streams(1, &stream);
             i.cut(stream);
           })
      .def("set_alpha",
           [](Index& i, double alpha) {
             Locked locked(i);
             i.set_alpha(alpha);
           })
      .def("stats", &index_stats)
      .def("columns", &index_columns)
      .def("broken_invariant",
           [](Index& i) {
             Locked locked(i);
             return i.broken_invariant();
           })
      .def("take_slot_order",
           [](Index& i, int64_t slots) {
             if (slots < 0 || slots > i.capacity()) throw Error("the saved slots are more than there are");
             Locked locked(i);
             i.take_slot_order(slots);
           })
      .def("get_state", &index_get_state)
      .def("set_state", &index_set_state)
      .def("blocks", &index_blocks)
      .def("decayed_parts", &index_decayed_parts)
      .def("track",
           [](Index& i) {
             Locked locked(i);
             return i.track();
           })
      .def("changed_since",
           [](Index& i, int64_t moment) {
             Locked locked(i);
             return i.changed_since(moment);
           })
      .def("begin_snapshot",
           [](Index& i, int64_t since, int64_t first, int64_t last) {
             Locked locked(i);
             return i.begin_snapshot(since, first, last);
           })
      .def("end_snapshot",
           [](Index& i) {
             Locked locked(i);
             i.end_snapshot();
           })
      .def("read_blocks", &index_read_blocks)
      .def("read_cells", &index_read_cells)
      .def("put_blocks", &index_put_blocks)
      .def("put_cells", &index_put_cells)
      .def_prop_ro("moment", [](const Index& i) { return i.moment(); })
      .def_prop_ro("cell_bytes", [](const Index& i) { return i.cell_bytes(); })
      .def_prop_ro("block_bytes", [](const Index& i) { return i.block_bytes(); })
      .def("lock",
           [](Index& i) {
             nb::gil_scoped_release released;
             i.lock().lock();
           })
      .def("unlock", &index_unlock)
      .def("lose", [](Index& i) { i.lock().lose(); })
      .def_prop_ro("next_id", [](const Index& i) { return i.published().next_id.load(); })
      .def_prop_ro("oldest_id", [](const Index& i) { return i.published().oldest_id.load(); })
      .def_prop_ro("size", [](const Index& i) { return i.published().size.load(); })
      .def_prop_ro("max_priority", [](const Index& i) { return i.published().max_priority.load(); })
      .def_prop_ro("total_mass", [](const Index& i) { return i.published().total_mass.load(); });

  // How the slots of so many transitions and streams lie in the blocks.
  m.def("is_tiled", [](int64_t capacity, int64_t streams) { return Tiles(capacity, streams).any(); });
  m.def("used_cells", [](int64_t capacity, int64_t streams, int64_t slots) { return Tiles(capacity, streams).cells(slots); });

  // Before a fork; returns which were taken. The others are lost to the child.
  m.def("lock_all", [](const std::vector<Index*>& indexes, int64_t patience_ms) {
    const std::vector<Lock*> locks = locks_of(indexes);
    nb::gil_scoped_release released;
    return lock_all(locks, std::chrono::milliseconds(patience_ms));
  });
}

}  // namespace pser
