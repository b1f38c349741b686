// The priority index: what priority each retained transition holds, how it is sampled, updated, and decayed backward.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "lock.hpp"
#include "rank.hpp"
#include "rules.hpp"
#include "slots.hpp"
#include "tree.hpp"

namespace pser {

// In place of a row's priority: the largest ever recorded (MaxPrio), and no decay on insertion.
constexpr double kMaxPrio = std::numeric_limits<double>::quiet_NaN();

constexpr double kCompareMasses = 0.05;  // the least α at which p^α tells priorities apart to 14 digits

constexpr double kFewDigits = std::numeric_limits<double>::min();
constexpr int64_t kLargestId = int64_t{1} << 62;

struct Counters {
  int64_t updates_applied = 0;
  int64_t updates_skipped_stale = 0;
  double decayed_mass_seen = 0.0;  // decayed mass that transitions held when their own update came
  double decayed_mass_lost = 0.0;  // how much of it that update took away

  bool sensible() const {
    return updates_applied >= 0 && updates_skipped_stale >= 0 && std::isfinite(decayed_mass_seen) && decayed_mass_seen >= 0.0 &&
           std::isfinite(decayed_mass_lost) && decayed_mass_lost >= 0.0;
  }
};

// What may be read without the lock, as of the last call that was completed.
struct Published {
  std::atomic<int64_t> next_id{0}, oldest_id{0}, size{0};
  std::atomic<double> max_priority{1.0}, total_mass{0.0};
};

class Index : public Slots {
 public:
  Index(int64_t capacity, int64_t streams, const Rules& rules)
      : Slots(capacity, streams), rules_(rules), powers_(rules), sums_(tree(Reduce::kSum)) {
    if (rules.weights_by_memory && rules.kind == Kind::kProportional) minima_ = std::make_unique<Tree>(tree(Reduce::kMin));
    if (rules.kind == Kind::kRank) ranks_ = std::make_unique<RankList>(rules.alpha);
  }

  Lock& lock() { return lock_; }
  const Published& published() const { return published_; }
  const Rules& rules() const { return rules_; }
  double max_priority() const { return p_max_; }
  double min_priority() const { return p_min_; }
  Counters& counters() { return counters_; }

  double total_mass() const {
    if (rules_.kind == Kind::kUniform) return static_cast<double>(size());
    return ranks_ ? ranks_->total() : sums_.root();
  }

  // --- Insertion ---------------------------------------------------------------------------------------------

  void check_priorities(int64_t count, const double* priority) const {
    for (int64_t r = 0; r < count; ++r)
      if (!(priority[r] >= 0.0 && priority[r] <= kLargestPriority))
        throw Error("a priority must be a number from 0 to 1e100, row " + std::to_string(r) + " has " +
                    std::to_string(priority[r]) + ": check the TD errors it came from");
  }

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
      walkers_.assign(1, {id, slot_of(id), p, power(p, rules_.alpha)});
      decay_backward();
    }
    return id;
  }

  // Recompute the trees above the leaves that changed. Ends every call that changes anything.
  void refresh() {
    if (rules_.kind == Kind::kProportional) {
      sums_.refresh();
      if (minima_) minima_->refresh();
    }
    publish();
  }

  // Forget the oldest transition: it can no longer be sampled, updated or reached by decay. A refresh must follow.
  void evict_oldest() {
    const int64_t slot = slot_of(oldest_id());
    if (ranks_) ranks_->erase(record(slot).priority, oldest_id());
    set_mass(slot, 0.0);
    drop_oldest();
  }

  // --- Sampling ----------------------------------------------------------------------------------------------

  void require_not_empty(int64_t count) const {
    if (size() == 0)
      throw Error("cannot sample " + std::to_string(count) + " transitions from an empty memory: add some first");
  }

  // uniforms in [0, 1), one a draw. Changes nothing.
  void sample(int64_t count, const double* uniforms, double beta, int64_t* ids, double* weights, double* probabilities) {
    require_not_empty(count);
    const double total = total_mass();
    offsets_.resize(static_cast<size_t>(count));
    masses_.resize(static_cast<size_t>(count));
    const bool flat = rules_.kind == Kind::kUniform || !(total > 0.0);
    const double span = flat ? static_cast<double>(size()) : total;
    for (int64_t i = 0; i < count; ++i)
      offsets_[i] = rules_.stratified ? (static_cast<double>(i) + uniforms[i]) / static_cast<double>(count) * span
                                      : uniforms[i] * span;
    if (flat) {
      for (int64_t i = 0; i < count; ++i) {
        ids[i] = oldest_id() + std::min(static_cast<int64_t>(offsets_[i]), size() - 1);
        masses_[i] = 1.0;
      }
    } else if (ranks_) {
      for (int64_t i = 0; i < count; ++i) {
        ids[i] = ranks_->at(offsets_[i]);
        const int64_t slot = slot_of(ids[i]);
        masses_[i] = ranks_->mass(record(slot).priority);
      }
    } else {
      sums_.descend(count, offsets_.data(), ids);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t slot = ids[i];
        masses_[i] = mass(slot);
        prefetch(slot);
        ids[i] = id_in(slot);
      }
    }
    if (probabilities != nullptr)
      for (int64_t i = 0; i < count; ++i) probabilities[i] = masses_[i] / span;
    if (weights != nullptr) is_weights(count, flat, beta, weights);
  }

  // --- Updates -----------------------------------------------------------------------------------------------

  template <class Real>
  void check_update(int64_t count, const int64_t* ids, const Real* td_errors) const {
    check_ids(count, ids);
    for (int64_t i = 0; i < count; ++i)
      if (!(std::fabs(static_cast<double>(td_errors[i])) <= kLargestPriority))
        throw Error("a TD error must be finite and at most 1e100 in size, row " + std::to_string(i) + " has " +
                    std::to_string(td_errors[i]) + ": the learner has diverged or its input is bad");
  }

  void check_ids(int64_t count, const int64_t* ids) const {
    for (int64_t i = 0; i < count; ++i)
      if (ids[i] < 0 || ids[i] >= next_id())
        throw Error("id " + std::to_string(ids[i]) + " was never written (ids so far: 0 to " + std::to_string(next_id() - 1) +
                    "): pass the ids that sample returned");
  }

  void check_retained(int64_t count, const int64_t* ids) const {
    check_ids(count, ids);
    for (int64_t i = 0; i < count; ++i)
      if (ids[i] < oldest_id())
        throw Error("id " + std::to_string(ids[i]) + " is no longer in memory (ids now: " + std::to_string(oldest_id()) + " to " +
                    std::to_string(next_id() - 1) + "): read a transition before it is overwritten");
  }

  // Input already checked. Returns how many rows were still in memory.
  template <class Real>
  int64_t update(int64_t count, const int64_t* ids, const Real* td_errors) {
    walkers_.clear();
    for (int64_t i = 0; i < count; ++i)
      if (ids[i] >= oldest_id())
        walkers_.push_back({ids[i], slot_of(ids[i]), fresh_priority(static_cast<double>(td_errors[i]), rules_.eps), 0.0});
    // Fetch all first: one's update then runs while the others are on their way.
    for (const Walker& w : walkers_) prefetch(w.slot);
    const auto applied = static_cast<int64_t>(walkers_.size());
    counters_.updates_applied += applied;
    counters_.updates_skipped_stale += count - applied;
    merge_repeated();
    // First every distinct transition takes its own update, from the priorities held before the call …
    for (Walker& w : walkers_) update_one(w);
    // … then all decays are applied; sorted by id, they give the same bits whatever the order of the batch.
    if (rules_.window > 0) decay_backward();
    refresh();
    return applied;
  }

  // --- Reading -----------------------------------------------------------------------------------------------

  double priority_of(int64_t id) const {
    const int64_t slot = slot_of(id);
    return record(slot).priority;
  }

  double probability_of(int64_t id) {
    const double total = total_mass();
    if (rules_.kind == Kind::kUniform || !(total > 0.0)) return 1.0 / static_cast<double>(size());
    if (ranks_) return ranks_->mass(priority_of(id)) / total;
    const int64_t slot = slot_of(id);
    return mass(slot) / total;
  }

  // Masses of the retained transitions, oldest first.
  std::vector<double> masses() {
    std::vector<double> out(static_cast<size_t>(size()));
    if (ranks_) ranks_->for_each([&](int64_t id, double mass) { out[static_cast<size_t>(id - oldest_id())] = mass; });
    else
      for (int64_t id = oldest_id(); id < next_id(); ++id)
        out[static_cast<size_t>(id - oldest_id())] = mass(slot_of(id));
    return out;
  }

  // How much of a transition's mass came by decay.
  static double decayed_mass(double mass, const Record& r) {
    return static_cast<float>(mass) > r.own_mass ? mass - r.own_mass : 0.0;
  }

  // Empty if all is well, else the rule that is broken.
  std::string broken_invariant() {
    if (size() < 0 || size() > capacity()) return "size is within capacity";
    if (rules_.kind == Kind::kProportional && !sums_.consistent()) return "every parent equals the sum of its children";
    if (minima_ && !minima_->consistent()) return "every parent equals the least of its children";
    if (ranks_ && (!ranks_->consistent() || ranks_->size() != size())) return "the rank list is sorted and complete";
    return broken_record();
  }

  // The same of what a slot holds.
  std::string broken_record() const {
    const int64_t used = std::min(next_id(), capacity());
    for (int64_t slot = 0; slot < (used + kFan - 1) / kFan * kFan; ++slot) {  // whole blocks
      const Record& r = record(slot);
      if (slot >= capacity() || !is_live(slot)) {
        if (mass(slot) != 0.0) return "an empty slot has no mass";
        continue;
      }
      if (!(r.priority <= p_max_ && r.priority >= p_min_)) return "a priority lies between the least and the largest ever recorded";
      if (back(slot) < 0 || back(slot) >= capacity() || back(slot) > id_in(slot)) return "a predecessor lies less than a capacity back";
      const double right = rules_.kind == Kind::kProportional ? power(r.priority, rules_.alpha) : 1.0;
      if (!(std::fabs(mass(slot) - right) <= 1e-12 * right)) return "mass is priority to the power alpha";
      if (!(r.own_mass >= 0.0f)) return "a transition's own mass is not negative";
    }
    return "";
  }

  // Take over a saved state; `blocks` and `last_id` were already filled by the caller.
  // Files of the first version do not tell the least priority ever held (NaN): it is then the least of those held now.
  void restore(int64_t next_id, int64_t oldest_id, double p_max, double p_min) {
    if (oldest_id < 0 || next_id < oldest_id || next_id - oldest_id > capacity() || next_id > kLargestId)
      throw Error("the saved ids contradict each other");
    for (int64_t last : last_id())
      if (last < -1 || last >= next_id) throw Error("a saved stream ends in a transition that was never written");
    restore_ids(next_id, oldest_id);
    p_max_ = p_max;
    p_min_ = std::isnan(p_min) ? 1.0 : p_min;
    if (std::isnan(p_min))
      for (int64_t id = oldest_id; id < next_id; ++id) p_min_ = std::min(p_min_, priority_of(id));
  }

  // Build again, from the blocks, what is not saved. Follows `restore`.
  void rebuild() {
    if (ranks_) {
      ranks_ = std::make_unique<RankList>(rules_.alpha);
      for (int64_t id = oldest_id(); id < next_id(); ++id) ranks_->insert(priority_of(id), id);
    }
    if (rules_.kind == Kind::kProportional) {
      sums_.touch_all();
      if (minima_) minima_->touch_all();
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
        const int64_t slot = slot_of(id);
        Record& r = record(slot);
        const bool decayed = decayed_mass(mass(slot), r) > 0.0;
        mass(slot) = power(r.priority, alpha);
        // (p^α)^(α'/α) = p^α' holds for the own part as well; at α = 0 nobody can tell the parts apart.
        r.own_mass = static_cast<float>(decayed && ratio > 0.0 ? std::pow(static_cast<double>(r.own_mass), ratio) : mass(slot));
      }
    rebuild();
  }

  // Refuse numbers that no history could have left behind: a file may come from anywhere.
  void check_restored() const {
    if (!(p_min_ >= 0.0 && p_min_ <= 1.0 && p_max_ >= 1.0 && p_max_ <= kLargestPriority)) throw Error("the saved priorities have no order");
    if (!counters_.sensible()) throw Error("the saved counts are not counts");
    const std::string broken = broken_record();
    if (!broken.empty()) throw Error("the saved state breaks a rule: " + broken);
  }

 private:
  // One sampled transition and, as decay goes back from it, the place it has reached.
  struct Walker {
    int64_t id;
    int64_t slot;
    double decaying;       // what is multiplied by ρ^l
    double decaying_mass;  // the same to the power α
    bool operator<(const Walker& other) const { return id < other.id; }
  };

  Tree tree(Reduce reduce) {
    return Tree(reduce, blocks().data()->mass, sizeof(Block) / sizeof(double), blocks().size());
  }

  void set_mass(int64_t slot, double value) {
    mass(slot) = value;
    if (rules_.kind == Kind::kProportional) touch(slot / kFan);
  }

  void touch(int64_t node) {
    sums_.touch(node);
    if (minima_) minima_->touch(node);
  }

  void publish() {
    published_.next_id.store(next_id(), std::memory_order_relaxed);
    published_.oldest_id.store(oldest_id(), std::memory_order_relaxed);
    published_.size.store(size(), std::memory_order_relaxed);
    published_.max_priority.store(p_max_, std::memory_order_relaxed);
    published_.total_mass.store(total_mass(), std::memory_order_relaxed);
  }

  void note(double p) {
    p_max_ = std::max(p_max_, p);
    p_min_ = std::min(p_min_, p);
  }

  int64_t insert(int64_t stream, bool first, double p) {
    const int64_t slot = head();
    Record& r = record(slot);
    if (ranks_ && size() == capacity()) ranks_->erase(r.priority, oldest_id());
    const int64_t id = take_slot(stream, first);
    r.priority = p;
    r.replays = 0;
    note(p);
    if (ranks_) ranks_->insert(p, id);
    const double own = rules_.kind == Kind::kProportional ? power(p, rules_.alpha) : 1.0;
    r.own_mass = static_cast<float>(own);
    set_mass(slot, own);
    return id;
  }

  void is_weights(int64_t count, bool flat, double beta, double* weights) {
    // w_i / max_j w_j = (N·P(i))^−β / (N·P_min)^−β = (P_min / P(i))^β  (Schaul et al. 2016, Sec. 3.4)
    double least = *std::min_element(masses_.begin(), masses_.begin() + count);
    if (rules_.weights_by_memory && !flat) least = ranks_ ? ranks_->least_mass() : minima_->root();
    for (int64_t i = 0; i < count; ++i) weights[i] = power(least / masses_[i], beta);
  }

  // A transition is updated soon: have at hand its record and the masses of those that led to it.
  PSER_INLINE void prefetch(int64_t slot) {
    __builtin_prefetch(&record(slot), 1);
    prefetch_back(slot);
    constexpr int32_t kFar = 8;  // further ones are reached only while decay is still strong
    const int64_t reach = std::min(rules_.window, kFar);
    if (streams() == 1) {  // neighbours, mostly in the leaf just visited
      if (lane(slot) >= reach || slot < reach) return;
      const double* furthest = &blocks()[(slot - reach) / kFan].mass[lane(slot - reach)];
      __builtin_prefetch(furthest, 1);
      __builtin_prefetch(&blocks()[(slot - reach) / kFan].mass[kFan - 1], 1);
    } else {
      int64_t before = slot;
      for (int64_t l = 1; l <= reach && before >= streams(); ++l) {
        before -= streams();
        __builtin_prefetch(&blocks()[before / kFan].mass[lane(before)], 1);
      }
    }
  }

  // Sort by id; a transition sampled more than once takes the larger of its TD errors, once.
  void merge_repeated() {
    if (!std::is_sorted(walkers_.begin(), walkers_.end())) std::sort(walkers_.begin(), walkers_.end());
    size_t kept = 0;
    for (size_t i = 0; i < walkers_.size(); ++i) {
      if (kept > 0 && walkers_[kept - 1].id == walkers_[i].id)
        walkers_[kept - 1].decaying = std::max(walkers_[kept - 1].decaying, walkers_[i].decaying);
      else
        walkers_[kept++] = walkers_[i];
    }
    walkers_.resize(kept);
  }

  void update_one(Walker& w) {
    Record& r = record(w.slot);
    ++r.replays;
    if (rules_.kind == Kind::kUniform) return;
    const double fresh = w.decaying;
    const double p = retained_priority(fresh, rules_.eta, r.priority);
    if (ranks_) {
      ranks_->erase(r.priority, w.id);
      ranks_->insert(p, w.id);
    }
    r.priority = p;
    note(fresh);
    if (rules_.kind == Kind::kRank) return;

    const double before = mass(w.slot);
    const double after = power(p, rules_.alpha);
    const double decayed = decayed_mass(before, r);
    if (decayed > 0.0) {
      counters_.decayed_mass_seen += decayed;
      counters_.decayed_mass_lost += std::clamp(before - after, 0.0, decayed);
    }
    r.own_mass = static_cast<float>(after);
    set_mass(w.slot, after);
    if (rules_.decay_from_priority) w.decaying = p;
    w.decaying_mass = w.decaying == p ? after : power(w.decaying, rules_.alpha);
  }

  // From each sampled transition back along its episode.
  void decay_backward() {
    if (rules_.add)
      for (const Walker& w : walkers_) walk(w, [this](int64_t slot, double decayed, int32_t) { receive_add(slot, decayed); });
    else if (rules_.alpha < kCompareMasses)
      for (const Walker& w : walkers_) walk(w, [this](int64_t slot, double decayed, int32_t) { receive_max(slot, decayed); });
    else if (streams() == 1)
      for (const Walker& w : walkers_) walk_neighbours(w);
    else
      for (const Walker& w : walkers_) walk_by_mass(w);
  }

  PSER_INLINE void walk_by_mass(const Walker& w) {
    walk(w, [this, &w](int64_t slot, double decayed, int32_t l) {
      receive_mass(slot, powers_.rho_alpha[static_cast<size_t>(l)] * w.decaying_mass, decayed);
    });
  }

  // Eq. 6 told by masses, which the descent has just read; (ρ^l·p)^α = (ρ^l)^α·p^α spares the power.
  PSER_INLINE void receive_mass(int64_t slot, double decayed_mass, double decayed) {
    if (!(decayed_mass > mass(slot))) return;
    record(slot).priority = decayed;
    // Next to zero a number has few digits left, and the power of the rounded priority is another one.
    set_mass(slot, decayed < kFewDigits ? power(decayed, rules_.alpha) : decayed_mass);
  }

  // The same walk where one stream fills the ring: an episode lies in one piece, so it is compared leaf by leaf.
  PSER_INLINE void walk_neighbours(const Walker& w) {
    const int32_t reach = reach_of(w);
    if (w.slot < reach) return walk_by_mass(w);  // around the ring's edge
    const int64_t episode = std::min(run_before(w.slot, reach), w.id - oldest_id());
    const auto last = static_cast<int32_t>(std::min<int64_t>(reach, episode));
    const double* const rho_alpha = powers_.rho_alpha.data();
    for (int32_t l = 1; l <= last;) {
      const int64_t slot = w.slot - l;
      const double* const held = blocks()[slot / kFan].mass;
      int k = lane(slot);
      for (const int32_t leaf_end = std::min(last, l + k); l <= leaf_end; ++l, --k)
        if (rho_alpha[l] * w.decaying_mass > held[k])
          receive_mass(w.slot - l, rho_alpha[l] * w.decaying_mass, powers_.rho[static_cast<size_t>(l)] * w.decaying);
    }
  }

  // How many steps back a priority still counts.
  int32_t reach_of(const Walker& w) const {
    // MAX: what is no larger than any priority ever held raises nobody, here or further back.
    const double stop = rules_.add ? rules_.decay_floor : std::max(rules_.decay_floor, p_min_);
    const double* const rho = powers_.rho.data();
    const auto counts = [&](double power) { return power * w.decaying > stop; };
    if (counts(rho[rules_.window])) return rules_.window;
    const double* const end = std::partition_point(rho + 1, rho + rules_.window, counts);
    const auto reach = static_cast<int32_t>(end - rho) - 1;
    return reach;
  }

  // visit(slot, ρ^l·p, l) for the predecessors within reach.
  template <class Visit>
  PSER_INLINE void walk(const Walker& w, const Visit& visit) {
    const int32_t reach = reach_of(w);
    const double* const rho = powers_.rho.data();
    const int64_t capacity = this->capacity();
    int64_t slot = w.slot;
    int64_t retained = w.id - oldest_id();  // how many ids lie between here and the oldest
    for (int32_t l = 1; l <= reach; ++l) {
      const int64_t distance = distance_back(slot);
      retained -= distance;
      // Decay never crosses the start of an episode, nor into transitions that were overwritten.
      if (distance == 0 || retained < 0) break;
      slot -= distance;
      if (slot < 0) slot += capacity;
      visit(slot, rho[l] * w.decaying, l);
    }
  }

  // Eq. 6.
  void receive_max(int64_t slot, double decayed) {
    Record& r = record(slot);
    if (!(decayed > r.priority)) return;
    r.priority = decay_max(decayed, r.priority);
    set_mass(slot, power(r.priority, rules_.alpha));
  }

  // Eq. 7.
  void receive_add(int64_t slot, double decayed) {
    Record& r = record(slot);
    r.priority = decay_add(decayed, r.priority, p_max_);
    set_mass(slot, power(r.priority, rules_.alpha));
  }

  Lock lock_;
  Published published_;
  Rules rules_;
  DecayPowers powers_;
  double p_max_ = 1.0;
  double p_min_ = 1.0;  // no priority ever held was smaller
  Counters counters_;
  Tree sums_;
  std::unique_ptr<Tree> minima_;
  std::unique_ptr<RankList> ranks_;
  // Kept between calls so that no call allocates.
  std::vector<Walker> walkers_;
  std::vector<double> offsets_, masses_;
};

}  // namespace pser
