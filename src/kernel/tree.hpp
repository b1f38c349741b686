// A tree of fan-out 16 over leaves that live elsewhere: sums (to sample by mass) or minima (for the largest weight).
// A parent is always recomputed from its children, never adjusted by a difference, so nothing drifts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
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
    above_leaves_ = levels_[levels_.size() > 1 ? 1 : 0].values;
  }

  // Its levels point into its own storage: it may move, but a copy would point into the original.
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  Tree(Tree&&) = default;
  Tree& operator=(Tree&&) = default;

  double root() const { return root_; }  // 0 if nothing has any mass

  // Tell that leaf node `node` changed; `refresh` then recomputes all that lies above.
  PSER_INLINE void touch(int64_t node) {
    if (__builtin_expect(dirty_count_ == dirty_.size(), 0)) dirty_.resize(2 * dirty_.size());
    dirty_count_ += list(node, dirty_bits_[0].data(), dirty_.data() + dirty_count_);
    __builtin_prefetch(above_leaves_ + node, 1);  // for `refresh`
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

  // Put the node at the list's end, where it stays (1) unless its bit tells that it is in the list already (0). Without a branch:
  // nobody could guess which way it goes.
  static PSER_INLINE size_t list(int64_t node, uint64_t* bits, int64_t* end) {
    uint64_t& word = bits[node >> 6];
    const uint64_t listed = word >> (node & 63) & 1;
    word |= uint64_t{1} << (node & 63);
    *end = node;
    return 1 - listed;
  }

  PSER_INLINE void refresh_body() {
    size_t count = dirty_count_;
    if (parents_.size() < dirty_.size()) parents_.resize(dirty_.size());
    int64_t* nodes = dirty_.data();
    int64_t* parents = parents_.data();
    for (size_t k = 0; k + 1 < levels_.size(); ++k) {
      const Level level = levels_[k];
      double* const values = levels_[k + 1].writable;
      uint64_t* const here = dirty_bits_[k].data();
      uint64_t* const above = dirty_bits_[k + 1].data();
      size_t kept = 0;
      for (size_t i = 0; i < count; ++i) {
        const int64_t node = nodes[i];
        here[node >> 6] = 0;
        values[node] = reduced(level.node(node));
        kept += list(node / kFan, above, parents + kept);
      }
      std::swap(nodes, parents);
      count = kept;
    }
    dirty_bits_.back()[0] = 0;
    dirty_count_ = 0;
    root_ = reduced(levels_.back().node(0));
  }

  // The higher nodes are in near caches; a leaf must be fetched, and in a large memory the node above it, too. So some draws at a
  // time go down to there, and pick on once others have come as far: fetching and picking overlap.
  PSER_INLINE void descend_body(int64_t count, double* offsets, int64_t* leaf) const {
    constexpr int64_t kTogether = 16, kNearCacheNodes = 1 << 13;  // nodes of a megabyte
    const int64_t behind_above_leaves = levels_.size() > 1 && levels_[1].nodes > kNearCacheNodes ? kTogether : 0;
    const int64_t behind_at_leaves = 2 * kTogether;
    std::fill(leaf, leaf + count, 0);
    for (int64_t begin = 0; begin < count + behind_at_leaves; begin += kTogether)
      for (size_t k = levels_.size(); k-- > 0;) {
        const int64_t from = begin - (k == 0 ? behind_at_leaves : k == 1 ? behind_above_leaves : 0);
        if (from >= 0) descend_level(k, from, std::min(from + kTogether, count), offsets, leaf);
      }
  }

  // One level of the draws from begin to end.
  PSER_INLINE void descend_level(size_t k, int64_t begin, int64_t end, double* offsets, int64_t* leaf) const {
    int64_t i = begin;
    for (; i + 4 <= end; i += 4) descend_four(k, offsets + i, leaf + i);
    if (i >= end) return;
    // The last ones are fewer than four: fill up with the same again.
    double last_offsets[4];
    int64_t last_leaf[4];
    for (int64_t j = 0; j < 4; ++j) {
      last_offsets[j] = offsets[std::min(i + j, end - 1)];
      last_leaf[j] = leaf[std::min(i + j, end - 1)];
    }
    descend_four(k, last_offsets, last_leaf);
    std::copy(last_offsets, last_offsets + (end - i), offsets + i);
    std::copy(last_leaf, last_leaf + (end - i), leaf + i);
  }

  // One level of four draws.
  PSER_INLINE void descend_four(size_t k, double* offsets, int64_t* leaf) const {
    const Level& level = levels_[k];
    FourLanes node;
    Four x;
    std::memcpy(&node, leaf, sizeof node);
    std::memcpy(&x, offsets, sizeof x);
    const double* const nodes[4] = {level.node(node[0]), level.node(node[1]), level.node(node[2]), level.node(node[3])};
    node = node * kFan + pick16(nodes, x);
    std::memcpy(leaf, &node, sizeof node);
    std::memcpy(offsets, &x, sizeof x);
    if (k == 0) return;
    const Level& below = levels_[k - 1];
    for (int i = 0; i < 4; ++i) {
      // Written out twice: the hint must be a constant.
      if (k == 1) {
        fetch_from_afar(below.node(node[i]));
        fetch_from_afar(below.node(node[i]) + kFan / 2);
      } else {
        __builtin_prefetch(below.node(node[i]));
        __builtin_prefetch(below.node(node[i]) + kFan / 2);
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
  // The nodes that changed, the first `dirty_count_` of the list; what a refresh makes of them, level by level.
  std::vector<int64_t> dirty_ = std::vector<int64_t>(64), parents_;
  size_t dirty_count_ = 0;
  const double* above_leaves_;
  double root_ = 0.0;
};

}  // namespace pser
