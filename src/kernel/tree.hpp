// A tree of fan-out 16 over leaves that live elsewhere: sums (to sample by mass) or minima (for the largest weight).
// A parent is always recomputed from its children, never adjusted by a difference, so nothing drifts.
#pragma once

#include <cstdint>
#include <vector>

#include "memory.hpp"
#include "simd.hpp"

namespace pser {

enum class Reduce { kSum, kMin };

class Tree {
 public:
  // Leaf node i is the sixteen float64 at leaves + i·stride (stride counted in float64).
  Tree(Reduce reduce, const double* leaves, int64_t stride, int64_t leaf_nodes) : reduce_(reduce) {
    levels_.push_back({leaves, nullptr, stride, leaf_nodes});
    for (int64_t nodes = leaf_nodes; nodes > 1;) {
      const int64_t parents = (nodes + kFan - 1) / kFan;
      storage_.emplace_back(parents * kFan);
      double* values = storage_.back().data();
      levels_.push_back({values, values, kFan, parents});
      nodes = parents;
    }
    for (const Level& level : levels_) dirty_bits_.emplace_back((level.nodes + 63) / 64);
  }

  // Its levels point into its own storage: it may move, but a copy would point into the original.
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  Tree(Tree&&) = default;
  Tree& operator=(Tree&&) = default;

  double root() const { return root_; }  // 0 if nothing has any mass

  // Tell that leaf node `node` changed; `refresh` then recomputes all that lies above.
  void touch(int64_t node) {
    uint64_t& word = dirty_bits_[0][node >> 6];
    const uint64_t bit = uint64_t{1} << (node & 63);
    if (word & bit) return;
    word |= bit;
    dirty_.push_back(node);
    if (levels_.size() > 1) __builtin_prefetch(&levels_[1].values[node], 1);  // for `refresh`
  }

  // The same of the first leaf nodes; the others hold nothing.
  void touch_first(int64_t nodes) {
    for (int64_t node = 0; node < nodes; ++node) touch(node);
  }

  void refresh() {
#if PSER_HAS_AVX2_BUILD
    if (have_avx2()) return refresh_avx2();
#endif
    refresh_portable();
  }

  // offsets[i] in [0, root) → leaf[i] (= 16·node + child), all draws going down together, level by level,
  // so that the memory fetches of one draw overlap the arithmetic of the others.
  void descend(int64_t count, double* offsets, int64_t* leaf) const {
#if PSER_HAS_AVX2_BUILD
    if (have_avx2()) return descend_avx2(count, offsets, leaf);
#endif
    descend_portable(count, offsets, leaf);
  }

  // Every parent equals its recomputed value, bit for bit.
  bool consistent() const {
    for (size_t k = 0; k + 1 < levels_.size(); ++k)
      for (int64_t node = 0; node < levels_[k].nodes; ++node)
        if (levels_[k + 1].values[node] != reduced(levels_[k].node(node))) return false;
    return root_ == reduced(levels_.back().node(0));
  }

 private:
  struct Level {
    const double* values;
    double* writable;  // null for the leaves, which belong to somebody else
    int64_t stride;
    int64_t nodes;
    PSER_INLINE const double* node(int64_t i) const { return values + i * stride; }
  };

  // Nothing is 0 in both trees, so that a tree of zeros, which costs no memory yet, is an empty one.
  PSER_INLINE double reduced(const double* node) const {
    if (reduce_ == Reduce::kSum) return sum16(node);
    const double least = min16(node);
    return least < __builtin_inf() ? least : 0.0;
  }

  PSER_INLINE void refresh_body() {
    for (size_t k = 0; k + 1 < levels_.size(); ++k) {
      double* parent_values = levels_[k + 1].writable;
      ZeroedArray<uint64_t>& here = dirty_bits_[k];
      ZeroedArray<uint64_t>& above = dirty_bits_[k + 1];
      parents_.clear();
      for (int64_t node : dirty_) {
        here[node >> 6] = 0;
        parent_values[node] = reduced(levels_[k].node(node));
        const int64_t parent = node / kFan;
        const uint64_t bit = uint64_t{1} << (parent & 63);
        if (!(above[parent >> 6] & bit)) {
          above[parent >> 6] |= bit;
          parents_.push_back(parent);
        }
      }
      dirty_.swap(parents_);
    }
    dirty_bits_.back()[0] = 0;
    dirty_.clear();
    root_ = reduced(levels_.back().node(0));
  }

  PSER_INLINE void descend_body(int64_t count, double* offsets, int64_t* leaf) const {
    for (int64_t i = 0; i < count; ++i) leaf[i] = 0;
    for (size_t k = levels_.size(); k-- > 0;) {
      const Level& level = levels_[k];
      const Level* below = k > 0 ? &levels_[k - 1] : nullptr;
      for (int64_t i = 0; i < count; ++i) {
        leaf[i] = leaf[i] * kFan + pick16(level.node(leaf[i]), offsets[i]);
        if (below != nullptr) {
          const double* next = below->node(leaf[i]);
          __builtin_prefetch(next);
          __builtin_prefetch(next + 8);
        }
      }
    }
  }

  void refresh_portable() { refresh_body(); }
  void descend_portable(int64_t count, double* offsets, int64_t* leaf) const { descend_body(count, offsets, leaf); }
#if PSER_HAS_AVX2_BUILD
  PSER_AVX2 void refresh_avx2() { refresh_body(); }
  PSER_AVX2 void descend_avx2(int64_t count, double* offsets, int64_t* leaf) const { descend_body(count, offsets, leaf); }
#endif

  Reduce reduce_;
  std::vector<Level> levels_;  // leaves first
  std::vector<ZeroedArray<double>> storage_;
  std::vector<ZeroedArray<uint64_t>> dirty_bits_;  // per level, one bit a node: is it in the list already?
  std::vector<int64_t> dirty_, parents_;
  double root_ = 0.0;
};

}  // namespace pser
