// The priority index: what priority each retained transition holds, how it is sampled, updated, and decayed backward.
//
// One class in layers, a file each: the ring (slots), what each of them holds (priorities), drawing (sampling), the walk of a
// decay (decaying), a transition's own update (retaining), new priorities (updating), consistency (checking). Here: insertion,
// the lock, and taking over a saved state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "checking.hpp"
#include "lock.hpp"

namespace pser {

// In place of a row's priority: the largest ever recorded (MaxPrio), and no decay on insertion.
constexpr double kMaxPrio = std::numeric_limits<double>::quiet_NaN();

class Index : public Checking {
 public:
  using Checking::Checking;

  Lock& lock() { return lock_; }

  void check_streams(int64_t count, const int64_t* stream) const {
    for (int64_t r = 0; r < count; ++r)
      if (stream[r] < 0 || stream[r] >= streams())
        throw Error("a stream must be from 0 to " + std::to_string(streams() - 1) + ", row " + std::to_string(r) + " has " +
                    std::to_string(stream[r]) + ": raise num_streams (num_envs) or correct the row");
  }

  // Rows in order. priority null: MaxPrio. stream null: row r belongs to stream r. Input already checked.
  void append(int64_t count, const bool* first, const double* priority, const int64_t* stream, int64_t* ids) {
    for (int64_t r = 0; r < count; ++r)
      ids[r] = append_row(stream != nullptr ? stream[r] : r, first[r], priority != nullptr ? priority[r] : kMaxPrio);
    refresh();
  }

  // One row, without the refresh that must follow the last one. Returns its id.
  int64_t append_row(int64_t stream, bool first, double priority) {
    if (rules_.kind == Kind::kUniform) priority = kMaxPrio;
    const bool current_td = !std::isnan(priority);
    const double p = current_td ? priority : p_max_;
    const int64_t id = insert(stream, first, p);
    if (current_td && rules_.decay_on_insert && rules_.window > 0) {
      walkers_.assign(1, {id, cell_of(id), p, power(p, rules_.alpha)});
      decay_backward();
      settle_raised();
    }
    return id;
  }

  // The ids of the `steps` transitions before this one in its episode, nearest first; −1 beyond its start or the oldest.
  void predecessors(int64_t id, int64_t steps, int64_t* out) const {
    std::fill(out, out + steps, -1);
    if (id < oldest_id()) return;
    for (int64_t l = 0; l < steps; ++l) {
      const int64_t distance = back(cell_of(id));
      id -= distance;
      if (distance == 0 || id < oldest_id()) return;
      out[l] = id;
    }
  }

  // The first slots were filled in their own order, as files of earlier versions hold them: each goes into its cell.
  void take_slot_order(int64_t slots) {
    if (!tiles().any()) return;
    Block* const held = blocks().data();
    const std::vector<Block> in_slots(held, held + (slots + kFan - 1) / kFan);
    std::fill(held, held + in_slots.size(), Block{});
    for (int64_t slot = 0; slot < slots; ++slot) {
      const Block& from = in_slots[static_cast<size_t>(slot / kFan)];
      Block& to = held[tiles().cell(slot) / kFan];
      const int at = lane(tiles().cell(slot));
      to.mass[at] = from.mass[lane(slot)];
      to.back[at] = from.back[lane(slot)];
      to.record[at] = from.record[lane(slot)];
    }
    if (!rules_.retain_decayed) return;
    double* const parts = decayed_parts_.data();
    const std::vector<double> parts_in_slots(parts, parts + slots);
    std::fill(parts, parts + slots, 0.0);
    for (int64_t slot = 0; slot < slots; ++slot) parts[tiles().cell(slot)] = parts_in_slots[static_cast<size_t>(slot)];
  }

  // Take over a saved state; `blocks` and `last_id` were already filled by the caller.
  // Files of the first version do not tell the least priority ever held (NaN): it is then the least of those held now.
  void restore(int64_t next_id, int64_t oldest_id, double p_max, double p_min) {
    if (oldest_id < 0 || next_id < oldest_id || next_id - oldest_id > capacity() || next_id > kLargestId)
      throw Error("the saved ids contradict each other");
    for (int64_t last : last_id())
      if (last < -1 || last >= next_id) throw Error("a saved stream ends in a transition that was never written");
    lose_track();
    restore_ids(next_id, oldest_id);
    p_max_ = p_max;
    p_min_ = std::isnan(p_min) ? 1.0 : p_min;
    if (std::isnan(p_min)) take_first_version();
  }

  // Build again, from the blocks, what is not saved. Follows `restore`.
  void rebuild() {
    if (ranks_) {
      ranks_ = std::make_unique<RankList>(rules_.alpha);
      for (int64_t id = oldest_id(); id < next_id(); ++id) ranks_->insert(priority_of(id), id);
    }
    if (rules_.kind == Kind::kProportional) {
      sums_.touch_first(used_blocks());
      if (minima_) minima_->touch_first(used_blocks());
    }
    refresh();
  }

  // Another α from here on: every mass is made anew, in one pass over the memory.
  void set_alpha(double alpha) {
    const double ratio = rules_.alpha > 0.0 ? alpha / rules_.alpha : 0.0;
    rules_.alpha = alpha;
    powers_ = DecayPowers(rules_);
    if (rules_.kind == Kind::kProportional)
      for (int64_t id = oldest_id(); id < next_id(); ++id) {
        const int64_t cell = cell_of(id);
        Record& r = record(cell);
        mark(cell);
        const bool decayed = decayed_mass(mass(cell), r) > 0.0;
        mass(cell) = power(r.priority, alpha);
        // (p^α)^(α'/α) = p^α' holds for the own part as well; at α = 0 nobody can tell the parts apart.
        r.own_mass = static_cast<float>(decayed && ratio > 0.0 ? std::pow(static_cast<double>(r.own_mass), ratio) : mass(cell));
      }
    rebuild();
  }

 private:
  // Files of the first version tell neither the least priority ever held, nor where priorities came from.
  void take_first_version() {
    for (int64_t id = oldest_id(); id < next_id(); ++id) {
      const int64_t cell = cell_of(id);
      Record& r = record(cell);
      p_min_ = std::min(p_min_, r.priority);
      if (rules_.kind == Kind::kProportional && decayed_mass(mass(cell), r) > 0.0) r.set_source(Source::kDecayed);
    }
  }

  Lock lock_;
};

}  // namespace pser
