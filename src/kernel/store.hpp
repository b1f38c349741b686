// Steps in, transitions out: n-step accumulation per stream, rows in a ring beside the priority index, and gathering.
//
// All arrays belong to Python, which allocates and saves them; the store writes and reads them through pointers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "frames.hpp"
#include "index.hpp"

namespace pser {

// One array field of the observation: stored for now and for next, and kept for unfinished n-step transitions.
struct ObservationColumn {
  uint8_t* now;      // (capacity, bytes)
  uint8_t* next;     // (capacity, bytes)
  uint8_t* pending;  // (streams, n_step, bytes)
  uint8_t* newest;   // (streams, bytes): the stream's last next observation, kept if n_step > 1
  int64_t bytes;
};

struct StepColumns {
  uint8_t* action;          // (capacity, action_bytes)
  uint8_t* pending_action;  // (streams, n_step, action_bytes)
  int64_t action_bytes;
  void* reward;    // (capacity,) float32 or float64
  void* discount;  // likewise
  bool wide;       // float64?
  bool* terminated;            // (capacity,)
  double* pending_reward;      // (streams, n_step)
  double* pending_priority;    // (streams, n_step), NaN for MaxPrio
  bool* pending_first;         // (streams, n_step)
  int64_t* pending_count;      // (streams,)
  int64_t* pending_start;      // (streams,): where the oldest unfinished one lies
  bool* at_start;              // (streams,): does the stream's next step begin an episode?
};

// One call of `add`: rows of E environments.
struct StepRows {
  int64_t count;
  std::vector<const uint8_t*> observation, next_observation;  // per array field, then per frame field
  const uint8_t* action;
  const double* reward;
  const bool* terminated;
  const bool* truncated;
  const double* priority;  // null for MaxPrio
  const int64_t* stream;   // null: row r is stream r
};

class Store {
 public:
  Store(Index& index, int64_t n_step, double gamma, const StepColumns& steps, std::vector<ObservationColumn> arrays,
        std::vector<FrameRing> frames)
      : index_(index), n_(n_step), gamma_(gamma), s_(steps), arrays_(std::move(arrays)), frames_(std::move(frames)) {}

  Index& index() { return index_; }
  const std::vector<ObservationColumn>& arrays() const { return arrays_; }
  const std::vector<FrameRing>& frames() const { return frames_; }
  int64_t action_bytes() const { return s_.action_bytes; }

  void check(const StepRows& rows) const {
    if (rows.priority != nullptr) index_.check_priorities(rows.count, rows.priority);
    if (rows.stream != nullptr) index_.check_streams(rows.count, rows.stream);
    for (int64_t r = 0; r < rows.count; ++r) {
      if (!std::isfinite(rows.reward[r]))
        throw Error("a reward must be finite, row " + std::to_string(r) + " has " + std::to_string(rows.reward[r]) +
                    ": check the environment");
      for (size_t f = 0; f < frames_.size(); ++f) {
        const size_t field = arrays_.size() + f;
        const int64_t bytes = frames_[f].row_bytes();
        if (!frames_[f].follows(rows.observation[field] + r * bytes, rows.next_observation[field] + r * bytes))
          throw Error("with Frames, next_observation must be observation moved on by one frame, row " + std::to_string(r) +
                      " is not: pass the true next (at an episode's end the final) observation, or declare an Array");
      }
    }
    check_returns(rows);
  }

  // Input already checked. Calls emitted(id) for each transition that the rows complete.
  template <class Emitted>
  void add(const StepRows& rows, const Emitted& emitted) {
    for (int64_t r = 0; r < rows.count; ++r) add_row(rows, r, emitted);
    index_.refresh();
  }

  // The stream's running episode ends here, as if truncated.
  template <class Emitted>
  void end_episode(int64_t stream, const Emitted& emitted) {
    while (s_.pending_count[stream] > 0) emit_oldest(stream, false, newest_of(stream), emitted);
    s_.at_start[stream] = true;
    index_.refresh();
  }

  struct Outputs {
    std::vector<uint8_t*> now, next;  // per array field, then per frame field (next null there if one-step)
    uint8_t* action;
    void* reward;
    void* discount;
    bool* terminated;
  };

  void gather(int64_t count, const int64_t* ids, const Outputs& out) {
    slots_.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) slots_[i] = index_.slot_of(ids[i]);
    copy_rows(count, s_.action, s_.action_bytes, out.action);
    copy_rows(count, s_.reward, real_bytes(), out.reward);
    copy_rows(count, s_.discount, real_bytes(), out.discount);
    copy_rows(count, s_.terminated, 1, out.terminated);
    for (size_t f = 0; f < arrays_.size(); ++f) {
      copy_rows(count, arrays_[f].now, arrays_[f].bytes, out.now[f]);
      copy_rows(count, arrays_[f].next, arrays_[f].bytes, out.next[f]);
    }
    for (size_t f = 0; f < frames_.size(); ++f)
      for (int64_t i = 0; i < count; ++i)
        frames_[f].gather(slots_[i], i, out.now[arrays_.size() + f], out.next[arrays_.size() + f]);
  }

  int64_t real_bytes() const { return s_.wide ? 8 : 4; }

 private:
  using Rows = std::vector<const uint8_t*>;

  // Transitions whose frames the next stored frame would overwrite leave the memory first.
  // (Stands before its callers: some compilers deduce a return type only from above.)
  auto room_for(const FrameRing& ring) {
    return [this, &ring] {
      while (index_.size() > 0 && ring.is_threatened(index_.slot_of(index_.oldest_id()))) index_.evict_oldest();
    };
  }

  template <class Emitted>
  void add_row(const StepRows& rows, int64_t r, const Emitted& emitted) {
    const int64_t e = stream_of(rows, r);
    const bool ends = rows.terminated[r] || rows.truncated[r];
    for (size_t f = 0; f < frames_.size(); ++f)
      frames_[f].store_stack(e, row(rows.observation, arrays_.size() + f, r), room_for(frames_[f]));
    remember(rows, r, e);
    for (size_t f = 0; f < frames_.size(); ++f)
      frames_[f].push_newest(e, row(rows.next_observation, arrays_.size() + f, r), room_for(frames_[f]));

    next_.resize(arrays_.size());
    for (size_t f = 0; f < arrays_.size(); ++f) {
      next_[f] = row(rows.next_observation, f, r);
      if (n_ > 1) std::memcpy(arrays_[f].newest + e * arrays_[f].bytes, next_[f], static_cast<size_t>(arrays_[f].bytes));
    }
    if (s_.pending_count[e] == n_) emit_oldest(e, rows.terminated[r], next_, emitted);
    // The tail of an episode is flushed: its last transitions sum fewer than n rewards.
    while (ends && s_.pending_count[e] > 0) emit_oldest(e, rows.terminated[r], next_, emitted);
    s_.at_start[e] = ends;
  }

  const uint8_t* row(const Rows& fields, size_t field, int64_t r) const {
    const int64_t bytes = field < arrays_.size() ? arrays_[field].bytes : frames_[field - arrays_.size()].row_bytes();
    return fields[field] + r * bytes;
  }

  void remember(const StepRows& rows, int64_t r, int64_t e) {
    const int64_t entry = (s_.pending_start[e] + s_.pending_count[e]) % n_;
    const int64_t at = e * n_ + entry;
    ++s_.pending_count[e];
    s_.pending_reward[at] = rows.reward[r];
    s_.pending_priority[at] = rows.priority != nullptr ? rows.priority[r] : kMaxPrio;
    s_.pending_first[at] = s_.at_start[e];
    std::memcpy(s_.pending_action + at * s_.action_bytes, rows.action + r * s_.action_bytes, static_cast<size_t>(s_.action_bytes));
    for (size_t f = 0; f < arrays_.size(); ++f)
      std::memcpy(arrays_[f].pending + at * arrays_[f].bytes, row(rows.observation, f, r), static_cast<size_t>(arrays_[f].bytes));
    for (FrameRing& ring : frames_) ring.remember_pending(e, entry);
  }

  // Every return that the rows complete, or that ending an episode after them would complete, fits its column.
  void check_returns(const StepRows& rows) const {
    const double safe = (s_.wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max()) / static_cast<double>(n_ + 1);
    bool large = false;
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t e = stream_of(rows, r);
      large = large || std::fabs(rows.reward[r]) > safe;
      for (int64_t k = 0; k < s_.pending_count[e]; ++k) large = large || std::fabs(pending_reward(e, k)) > safe;
    }
    if (!large) return;  // n such rewards cannot add up to more than the column holds
    std::vector<double> rewards;
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t e = stream_of(rows, r);
      rewards.clear();
      for (int64_t k = 0; k < s_.pending_count[e]; ++k) rewards.push_back(pending_reward(e, k));
      for (int64_t before = 0; before < r; ++before) {
        if (stream_of(rows, before) != e) continue;
        rewards.push_back(rows.reward[before]);
        if (static_cast<int64_t>(rewards.size()) == n_) rewards.erase(rewards.begin());
        if (rows.terminated[before] || rows.truncated[before]) rewards.clear();
      }
      rewards.push_back(rows.reward[r]);
      for (size_t from = 0; from < rewards.size(); ++from)
        if (!fits(discounted_sum(rewards, from)))
          throw Error("a return must fit its column of " + std::string(s_.wide ? "float64" : "float32") + ", row " + std::to_string(r) +
                      " with reward " + shortest(rows.reward[r]) + " adds up to more: scale the rewards" +
                      (s_.wide ? "" : ", or take reward_dtype=float64"));
    }
  }

  bool fits(double value) const { return std::isfinite(s_.wide ? value : static_cast<double>(static_cast<float>(value))); }
  double pending_reward(int64_t e, int64_t k) const { return s_.pending_reward[e * n_ + (s_.pending_start[e] + k) % n_]; }
  static int64_t stream_of(const StepRows& rows, int64_t r) { return rows.stream != nullptr ? rows.stream[r] : r; }

  // Σ γ^k·r_k from one of the rewards to the last.
  double discounted_sum(const std::vector<double>& rewards, size_t from) const {
    double total = 0.0, discount = 1.0;
    for (size_t k = from; k < rewards.size(); ++k) {
      total += discount * rewards[k];
      discount *= gamma_;
    }
    return total;
  }

  static std::string shortest(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
  }

  // The oldest unfinished transition of the stream is complete: Σ γ^k·r_k, bootstrapped by γ^m unless terminated.
  template <class Emitted>
  void emit_oldest(int64_t e, bool terminated, const Rows& next, const Emitted& emitted) {
    const int64_t entry = s_.pending_start[e];
    const int64_t at = e * n_ + entry;
    double total = 0.0, discount = 1.0;
    for (int64_t k = 0; k < s_.pending_count[e]; ++k) {
      total += discount * s_.pending_reward[e * n_ + (entry + k) % n_];
      discount *= gamma_;
    }
    for (FrameRing& ring : frames_) ring.make_young(e, entry, room_for(ring));
    s_.pending_start[e] = (entry + 1) % n_;
    --s_.pending_count[e];

    const int64_t slot = index_.head();
    std::memcpy(s_.action + slot * s_.action_bytes, s_.pending_action + at * s_.action_bytes, static_cast<size_t>(s_.action_bytes));
    write_real(s_.reward, slot, total);
    write_real(s_.discount, slot, terminated ? 0.0 : discount);
    s_.terminated[slot] = terminated;
    for (size_t f = 0; f < arrays_.size(); ++f) {
      const ObservationColumn& c = arrays_[f];
      std::memcpy(c.now + slot * c.bytes, c.pending + at * c.bytes, static_cast<size_t>(c.bytes));
      std::memcpy(c.next + slot * c.bytes, next[f], static_cast<size_t>(c.bytes));
    }
    for (FrameRing& ring : frames_) ring.write_places(slot, e, entry);
    emitted(index_.append_row(e, s_.pending_first[at], s_.pending_priority[at]));
  }

  const Rows& newest_of(int64_t e) {
    next_.resize(arrays_.size());
    for (size_t f = 0; f < arrays_.size(); ++f) next_[f] = arrays_[f].newest + e * arrays_[f].bytes;
    return next_;
  }

  void write_real(void* column, int64_t slot, double value) {
    if (s_.wide)
      static_cast<double*>(column)[slot] = value;
    else
      static_cast<float*>(column)[slot] = static_cast<float>(value);
  }

  void copy_rows(int64_t count, const void* column, int64_t bytes, void* out) const {
    const auto* from = static_cast<const uint8_t*>(column);
    auto* to = static_cast<uint8_t*>(out);
    switch (bytes) {  // a copy of known size is one move
      case 1: return copy_fixed<1>(count, from, to);
      case 4: return copy_fixed<4>(count, from, to);
      case 8: return copy_fixed<8>(count, from, to);
      case 16: return copy_fixed<16>(count, from, to);
      default:
        for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * bytes, from + slots_[i] * bytes, static_cast<size_t>(bytes));
    }
  }

  template <int64_t kBytes>
  void copy_fixed(int64_t count, const uint8_t* from, uint8_t* to) const {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * kBytes, from + slots_[i] * kBytes, kBytes);
  }

  Index& index_;
  int64_t n_;
  double gamma_;
  StepColumns s_;
  std::vector<ObservationColumn> arrays_;
  std::vector<FrameRing> frames_;
  Rows next_;
  std::vector<int64_t> slots_;
};

}  // namespace pser
