// What priority each retained transition holds: the raw p in its cell, its mass p^α in the tree that is sampled by.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "decay.hpp"
#include "rank.hpp"
#include "rules.hpp"
#include "tracking.hpp"
#include "tree.hpp"

namespace pser {

// What may be read without the lock, as of the last call that was completed.
struct Published {
  std::atomic<int64_t> next_id{0}, oldest_id{0}, size{0};
  std::atomic<double> max_priority{1.0}, total_mass{0.0};
};

class Priorities : public Tracking {
 public:
  Priorities(int64_t capacity, int64_t streams, const Rules& rules)
      : Tracking(capacity, streams, rules.retain_decayed), rules_(rules), powers_(rules), sums_(tree(Reduce::kSum)) {
    if (rules.weights_by_memory && rules.kind == Kind::kProportional) minima_ = std::make_unique<Tree>(tree(Reduce::kMin));
    if (rules.kind == Kind::kRank) ranks_ = std::make_unique<RankList>(rules.alpha);
  }
  // The trees point into the slots.
  Priorities(const Priorities&) = delete;
  Priorities& operator=(const Priorities&) = delete;

  const Rules& rules() const { return rules_; }
  double max_priority() const { return p_max_; }
  double min_priority() const { return p_min_; }
  const Published& published() const { return published_; }

  double total_mass() const {
    if (rules_.kind == Kind::kUniform) return static_cast<double>(size());
    return ranks_ ? ranks_->total() : sums_.root();
  }

  double priority_of(int64_t id) const { return record(cell_of(id)).priority; }

  double probability_of(int64_t id) {
    const double total = total_mass();
    if (rules_.kind == Kind::kUniform || !(total > 0.0)) return 1.0 / static_cast<double>(size());
    return (ranks_ ? ranks_->mass(priority_of(id)) : mass(cell_of(id))) / total;
  }

  // Masses of the retained transitions, oldest first.
  std::vector<double> masses() {
    std::vector<double> out(static_cast<size_t>(size()));
    if (ranks_)
      ranks_->for_each([&](int64_t id, double mass) { out[static_cast<size_t>(id - oldest_id())] = mass; });
    else
      for (int64_t id = oldest_id(); id < next_id(); ++id) out[static_cast<size_t>(id - oldest_id())] = mass(cell_of(id));
    return out;
  }

  // What a transition without a priority of its own is given.
  void raise_max_priority(double p) {
    if (rules_.kind != Kind::kUniform) p_max_ = std::max(p_max_, p);
    publish();
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
    const int64_t cell = cell_of(oldest_id());
    if (ranks_) ranks_->erase(record(cell).priority, oldest_id());
    mark(cell);
    set_mass(cell, 0.0);
    drop_oldest();
  }

 protected:
  // A new transition in the slot at the ring's head. Returns its id.
  int64_t insert(int64_t stream, bool first, double p) {
    const int64_t cell = tiles().cell(head());
    Record& r = record(cell);
    mark(cell);
    if (ranks_ && size() == capacity()) ranks_->erase(r.priority, oldest_id());
    r.history = 0;
    const int64_t id = take_slot(stream, first);
    if (ranks_) ranks_->insert(p, id);
    if (rules_.retain_decayed) decayed_parts_[cell] = 0.0;
    note(p);
    set_own(cell, p, Source::kOwn);
    return id;
  }

  // The transition's own insertion or update gives it this priority. A rank list is the caller's business.
  void set_own(int64_t cell, double p, Source source) {
    set_own(cell, p, rules_.kind == Kind::kProportional ? power(p, rules_.alpha) : 1.0, source);
  }
  PSER_INLINE void set_own(int64_t cell, double p, double own, Source source) {
    Record& r = record(cell);
    r.priority = p;
    r.set_source(source);
    r.own_mass = static_cast<float>(own);
    set_mass(cell, own);
  }

  PSER_INLINE void set_mass(int64_t cell, double value) {
    mass(cell) = value;
    if (rules_.kind == Kind::kProportional) touch(block_of(cell));
  }

  // This priority was recorded.
  void note(double p) {
    p_max_ = std::max(p_max_, p);
    p_min_ = std::min(p_min_, p);
  }

  void publish() {
    published_.next_id.store(next_id(), std::memory_order_relaxed);
    published_.oldest_id.store(oldest_id(), std::memory_order_relaxed);
    published_.size.store(size(), std::memory_order_relaxed);
    published_.max_priority.store(p_max_, std::memory_order_relaxed);
    published_.total_mass.store(total_mass(), std::memory_order_relaxed);
  }

  PSER_INLINE void prefetch_record(int64_t cell) { fetch_from_afar(&record(cell)); }

  // A transition is updated soon: have at hand its record and the masses of those that led to it.
  PSER_INLINE void prefetch(int64_t cell) {
    prefetch_record(cell);
    if (rules_.window == 0) return;
    constexpr int kHalf = kFan / 2;  // masses in a cache line
    // Cache line by cache line before the block, as many as the window may reach; if it does not, its own masses again, for a
    // branch that depends on the place within a block is guessed wrong too often.
    const int64_t block = block_of(cell);
    if (block < rules_.window / kFan * streams() + streams()) return;
    const int beyond = rules_.window - lane(cell);
    for (int from = 0, half = 1; from < rules_.window; from += kHalf, half ^= 1)
      fetch_from_afar(&blocks()[block - (from < beyond) * (from / kFan + 1) * streams()].mass[half * kHalf]);
  }

  Rules rules_;
  DecayPowers powers_;
  double p_max_ = 1.0;
  double p_min_ = 1.0;  // no priority ever held was smaller
  Tree sums_;
  std::unique_ptr<Tree> minima_;
  std::unique_ptr<RankList> ranks_;

 private:
  Tree tree(Reduce reduce) { return Tree(reduce, blocks().data()->mass, sizeof(Block) / sizeof(double), blocks().size()); }

  PSER_INLINE void touch(int64_t node) {
    sums_.touch(node);
    if (minima_) minima_->touch(node);
  }

  Published published_;
};

}  // namespace pser
