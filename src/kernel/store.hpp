// Steps in, transitions out: n-step accumulation per stream, rows in a ring beside the priority index, and gathering.
//
// All arrays belong to Python, which allocates and saves them; the store writes and reads them through pointers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "column.hpp"
#include "index.hpp"
#include "steps.hpp"

namespace pser {

// One call of `add`: rows of E environments.
struct StepRows {
  int64_t count;
  std::vector<const uint8_t*> observation, next_observation;  // per column
  const uint8_t* action;
  const double* reward;
  const bool* terminated;
  const bool* truncated;
  const double* priority;  // null for MaxPrio
  const int64_t* stream;   // null: row r is stream r

  int64_t stream_of(int64_t r) const { return stream != nullptr ? stream[r] : r; }
  bool ends(int64_t r) const { return terminated[r] || truncated[r]; }
};

// One batch.
struct BatchArrays {
  std::vector<uint8_t*> now, next;  // per column
  uint8_t* action;
  uint8_t* reward;
  uint8_t* discount;
  uint8_t* terminated;
};

class Store {
 public:
  using Columns = std::vector<std::unique_ptr<Column>>;

  Store(Index& index, double gamma, const Steps& steps, Columns columns)
      : index_(index), n_(steps.pending.n_step), gamma_(gamma), s_(steps), pending_(steps.pending), columns_(std::move(columns)) {}
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Index& index() { return index_; }
  const Columns& columns() const { return columns_; }
  int64_t action_bytes() const { return s_.action_bytes; }

  void check(const StepRows& rows) const {
    if (rows.priority != nullptr) index_.check_priorities(rows.count, rows.priority);
    if (rows.stream != nullptr) index_.check_streams(rows.count, rows.stream);
    for (int64_t r = 0; r < rows.count; ++r) {
      if (!std::isfinite(rows.reward[r]))
        throw Error("a reward must be finite, row " + std::to_string(r) + " has " + std::to_string(rows.reward[r]) +
                    ": check the environment");
      for (size_t c = 0; c < columns_.size(); ++c) {
        const int64_t at = r * columns_[c]->row_bytes();
        if (const char* rule = columns_[c]->refusal(rows.observation[c] + at, rows.next_observation[c] + at))
          throw Error(std::string(rule) + ", row " + std::to_string(r) +
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
    while (pending_.count[stream] > 0) emit_oldest(stream, false, emitted);
    s_.at_start[stream] = true;
    index_.refresh();
  }

  // Forget every transition, and what is unfinished. Ids go on, so that those of earlier batches are known to be gone.
  void clear() {
    while (index_.size() > 0) index_.evict_oldest();
    for (int64_t e = 0; e < pending_.streams; ++e) {
      pending_.count[e] = 0;
      s_.at_start[e] = true;
      index_.cut(e);
    }
    index_.refresh();
  }

  // After a crash: transitions before this id leave the memory, and those that show a frame up to this one.
  void forget(int64_t before, const int64_t* shown) {
    while (index_.size() > 0 && index_.oldest_id() < before) index_.evict_oldest();
    for (size_t c = 0; c < columns_.size(); ++c) columns_[c]->forget(shown[c]);
    index_.refresh();
  }

  void gather(int64_t count, const int64_t* ids, const BatchArrays& out) {
    slots_.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) slots_[i] = index_.slot_of(ids[i]);
    copy_rows(count, slots_.data(), s_.action, s_.action_bytes, out.action);
    copy_rows(count, slots_.data(), s_.reward.raw(), s_.reward.bytes(), out.reward);
    copy_rows(count, slots_.data(), s_.discount.raw(), s_.discount.bytes(), out.discount);
    copy_rows(count, slots_.data(), reinterpret_cast<const uint8_t*>(s_.terminated), 1, out.terminated);
    for (size_t c = 0; c < columns_.size(); ++c) columns_[c]->gather(count, slots_.data(), out.now[c], out.next[c]);
  }

  // The same of windows: consecutive steps of a stream, whose slots lie side by side if it is the only one.
  void gather_windows(int64_t count, const int64_t* ids, const BatchArrays& out) {
    windows_.slots.clear();
    windows_.runs.clear();
    for (int64_t i = 0; i < count; ++i) windows_.take(i, index_.slot_of(ids[i]));
    copy_runs(windows_, s_.action, s_.action_bytes, out.action);
    copy_runs(windows_, s_.reward.raw(), s_.reward.bytes(), out.reward);
    copy_runs(windows_, s_.discount.raw(), s_.discount.bytes(), out.discount);
    copy_runs(windows_, reinterpret_cast<const uint8_t*>(s_.terminated), 1, out.terminated);
    for (size_t c = 0; c < columns_.size(); ++c) columns_[c]->gather_runs(windows_, out.now[c], out.next[c]);
  }

  // Null if the arrays, just read from a file that filled `rows` slots, make sense; else what does not.
  const char* damage(int64_t rows) const {
    for (int64_t slot = 0; slot < rows; ++slot) {
      if (!std::isfinite(s_.reward.read(slot))) return "a return is not finite";
      if (!(s_.discount.read(slot) >= 0.0 && s_.discount.read(slot) <= 1.0)) return "a discount is out of range";
    }
    for (int64_t e = 0; e < pending_.streams; ++e) {
      if (pending_.count[e] < 0 || pending_.count[e] >= n_) return "a number of unfinished transitions is out of range";
      if (pending_.start[e] < 0 || pending_.start[e] >= n_) return "the place of an unfinished transition is out of range";
      for (int64_t k = 0; k < pending_.count[e]; ++k) {
        const double p = s_.pending_priority[pending_.at(e, pending_.entry(e, k))];
        if (!std::isnan(p) && !(p >= 0.0 && p <= kLargestPriority)) return "a priority is out of range";
      }
      if (!fits(pending_rewards(e))) return "an unfinished return is not finite";
    }
    for (const auto& column : columns_)
      if (const char* wrong = column->damage(rows)) return wrong;
    return nullptr;
  }

 private:
  template <class Emitted>
  void add_row(const StepRows& rows, int64_t r, const Emitted& emitted) {
    const int64_t e = rows.stream_of(r);
    remember(rows, r, e);
    for (size_t c = 0; c < columns_.size(); ++c)
      columns_[c]->advance(e, rows.next_observation[c] + r * columns_[c]->row_bytes());
    if (pending_.count[e] == n_) emit_oldest(e, rows.terminated[r], emitted);
    // The tail of an episode is flushed: its last transitions sum fewer than n rewards.
    while (rows.ends(r) && pending_.count[e] > 0) emit_oldest(e, rows.terminated[r], emitted);
    s_.at_start[e] = rows.ends(r);
  }

  void remember(const StepRows& rows, int64_t r, int64_t e) {
    const int64_t entry = pending_.entry(e, pending_.count[e]);
    const int64_t at = pending_.at(e, entry);
    for (size_t c = 0; c < columns_.size(); ++c)
      columns_[c]->remember(e, entry, rows.observation[c] + r * columns_[c]->row_bytes());
    ++pending_.count[e];
    s_.pending_reward[at] = rows.reward[r];
    s_.pending_priority[at] = rows.priority != nullptr ? rows.priority[r] : kMaxPrio;
    s_.pending_first[at] = s_.at_start[e];
    std::memcpy(s_.pending_action + at * s_.action_bytes, rows.action + r * s_.action_bytes, static_cast<size_t>(s_.action_bytes));
  }

  // Every return that the rows complete, or that ending an episode after them would complete, fits its column.
  void check_returns(const StepRows& rows) const {
    const double safe = s_.reward.largest() / static_cast<double>(n_ + 1);
    bool large = false;
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t e = rows.stream_of(r);
      large = large || std::fabs(rows.reward[r]) > safe;
      for (int64_t k = 0; k < pending_.count[e]; ++k) large = large || std::fabs(pending_reward(e, k)) > safe;
    }
    if (!large) return;  // n such rewards cannot add up to more than the column holds
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t e = rows.stream_of(r);
      std::vector<double> rewards = pending_rewards(e);
      for (int64_t before = 0; before < r; ++before) {
        if (rows.stream_of(before) != e) continue;
        rewards.push_back(rows.reward[before]);
        if (static_cast<int64_t>(rewards.size()) == n_) rewards.erase(rewards.begin());
        if (rows.ends(before)) rewards.clear();
      }
      rewards.push_back(rows.reward[r]);
      if (!fits(rewards))
        throw Error("a return must fit its column of " + std::string(s_.reward.is_wide() ? "float64" : "float32") + ", row " +
                    std::to_string(r) + " with reward " + shortest(rows.reward[r]) + " adds up to more: scale the rewards" +
                    (s_.reward.is_wide() ? "" : ", or take reward_dtype=float64"));
    }
  }

  double pending_reward(int64_t e, int64_t k) const { return s_.pending_reward[pending_.at(e, pending_.entry(e, k))]; }

  std::vector<double> pending_rewards(int64_t e) const {
    std::vector<double> rewards;
    for (int64_t k = 0; k < pending_.count[e]; ++k) rewards.push_back(pending_reward(e, k));
    return rewards;
  }

  // Does Σ γ^k·r_k, from any of the rewards to the last, fit its column?
  bool fits(const std::vector<double>& rewards) const {
    for (size_t from = 0; from < rewards.size(); ++from) {
      double total = 0.0, discount = 1.0;
      for (size_t k = from; k < rewards.size(); ++k) {
        total += discount * rewards[k];
        discount *= gamma_;
      }
      if (!s_.reward.fits(total)) return false;
    }
    return true;
  }

  static std::string shortest(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
  }

  // The oldest unfinished transition of the stream is complete: Σ γ^k·r_k, bootstrapped by γ^m unless terminated.
  template <class Emitted>
  void emit_oldest(int64_t e, bool terminated, const Emitted& emitted) {
    const int64_t entry = pending_.start[e];
    const int64_t at = pending_.at(e, entry);
    double total = 0.0, discount = 1.0;
    for (int64_t k = 0; k < pending_.count[e]; ++k) {
      total += discount * pending_reward(e, k);
      discount *= gamma_;
    }
    const int64_t slot = index_.head();
    *s_.written = index_.next_id() + 1;
    for (const auto& column : columns_) column->commit(e, entry, slot);
    std::memcpy(s_.action + slot * s_.action_bytes, s_.pending_action + at * s_.action_bytes, static_cast<size_t>(s_.action_bytes));
    s_.reward.write(slot, total);
    s_.discount.write(slot, terminated ? 0.0 : discount);
    s_.terminated[slot] = terminated;
    pending_.start[e] = (entry + 1) % n_;
    --pending_.count[e];
    emitted(index_.append_row(e, s_.pending_first[at], s_.pending_priority[at]));
  }

  Index& index_;
  int64_t n_;
  double gamma_;
  Steps s_;
  Pending pending_;
  Columns columns_;
  std::vector<int64_t> slots_;
  RunsOfSlots windows_;
};

}  // namespace pser
