// Transitions in order of decreasing priority, for rank-based sampling: P(i) ∝ 1/rank(i)^α (Schaul et al. 2016, Sec. 3.3).
// Equal priorities share the mean of their ranks' mass, so that the order of insertion never matters.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace pser {

class RankList {
 public:
  explicit RankList(double alpha) : alpha_(alpha) {}

  void insert(double priority, int64_t id) {
    const Key key{priority, id};
    if (chunks_.empty()) chunks_.emplace_back();
    const size_t c = chunk_of(key);
    std::vector<Key>& chunk = chunks_[c];
    chunk.insert(std::upper_bound(chunk.begin(), chunk.end(), key), key);
    if (chunk.size() > kChunk) {
      std::vector<Key> tail(chunk.begin() + kChunk / 2, chunk.end());
      chunk.resize(kChunk / 2);
      chunks_.insert(chunks_.begin() + static_cast<int64_t>(c) + 1, std::move(tail));
      if (c < firsts_.size()) firsts_[c] = chunks_[c].front();
      firsts_.insert(firsts_.begin() + static_cast<int64_t>(c) + 1, chunks_[c + 1].front());
    } else if (c < firsts_.size()) {
      firsts_[c] = chunk.front();
    } else {
      firsts_.push_back(chunk.front());
    }
    ++size_;
    while (static_cast<int64_t>(harmonic_.size()) <= size_)
      harmonic_.push_back(harmonic_.back() + std::pow(static_cast<double>(harmonic_.size()), -alpha_));
    stale_ = true;
  }

  void erase(double priority, int64_t id) {
    const Key key{priority, id};
    const size_t c = chunk_of(key);
    std::vector<Key>& chunk = chunks_[c];
    chunk.erase(std::lower_bound(chunk.begin(), chunk.end(), key));
    if (chunk.empty()) {
      chunks_.erase(chunks_.begin() + static_cast<int64_t>(c));
      firsts_.erase(firsts_.begin() + static_cast<int64_t>(c));
    } else {
      firsts_[c] = chunk.front();
    }
    --size_;
    stale_ = true;
  }

  int64_t size() const { return size_; }
  double total() const { return harmonic_[size_]; }

  // The transition that covers `offset` in [0, total).
  int64_t at(double offset) {
    const auto end = std::upper_bound(harmonic_.begin() + 1, harmonic_.begin() + size_ + 1, offset);
    const int64_t rank = std::min<int64_t>(end - harmonic_.begin(), size_);
    const auto [before, upto] = tied(key_at(rank - 1).priority);
    const double share = (offset - harmonic_[before]) / (harmonic_[upto] - harmonic_[before]);
    const auto nth = static_cast<int64_t>(share * static_cast<double>(upto - before));
    return key_at(std::clamp<int64_t>(before + nth, before, upto - 1)).id;
  }

  // The mass (not yet divided by the total) of each transition that holds this priority.
  double mass(double priority) {
    const auto [before, upto] = tied(priority);
    return (harmonic_[upto] - harmonic_[before]) / static_cast<double>(upto - before);
  }

  double least_mass() { return mass(chunks_.back().back().priority); }

  // visit(id, mass) for every transition, by decreasing priority.
  template <class Visit>
  void for_each(const Visit& visit) {
    double priority = -1.0, shared = 0.0;
    for (const std::vector<Key>& chunk : chunks_)
      for (const Key& key : chunk) {
        if (key.priority != priority) {
          priority = key.priority;
          shared = mass(priority);
        }
        visit(key.id, shared);
      }
  }

  // In order, and as many as counted.
  bool consistent() const {
    int64_t count = 0;
    const Key* last = nullptr;
    for (size_t c = 0; c < chunks_.size(); ++c)
      for (const Key& key : chunks_[c]) {
        if (last != nullptr && !(*last < key)) return false;
        last = &key;
        ++count;
      }
    return count == size_;
  }

 private:
  struct Key {
    double priority;
    int64_t id;
    bool operator<(const Key& other) const { return priority != other.priority ? priority > other.priority : id < other.id; }
  };
  static constexpr size_t kChunk = 512;

  size_t chunk_of(const Key& key) const {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), key);
    return after == firsts_.begin() ? 0 : static_cast<size_t>(after - firsts_.begin()) - 1;
  }

  void recount() {
    if (!stale_) return;
    before_.resize(chunks_.size() + 1);
    before_[0] = 0;
    for (size_t c = 0; c < chunks_.size(); ++c) before_[c + 1] = before_[c] + static_cast<int64_t>(chunks_[c].size());
    stale_ = false;
  }

  const Key& key_at(int64_t position) {
    recount();
    const auto after = std::upper_bound(before_.begin(), before_.end(), position);
    const auto c = static_cast<size_t>(after - before_.begin()) - 1;
    return chunks_[c][static_cast<size_t>(position - before_[c])];
  }

  // How many hold a larger priority, and how many a larger or equal one.
  std::pair<int64_t, int64_t> tied(double priority) {
    return {count_below({priority, INT64_MIN}), count_below({priority, INT64_MAX})};
  }

  int64_t count_below(const Key& key) {
    recount();
    const size_t c = chunk_of(key);
    const std::vector<Key>& chunk = chunks_[c];
    return before_[c] + (std::lower_bound(chunk.begin(), chunk.end(), key) - chunk.begin());
  }

  double alpha_;
  int64_t size_ = 0;
  bool stale_ = true;
  std::vector<std::vector<Key>> chunks_;  // sorted, none empty
  std::vector<Key> firsts_;               // of each chunk, to find it by binary search
  std::vector<int64_t> before_;           // how many keys lie before each chunk
  std::vector<double> harmonic_{0.0};     // Σ_{k ≤ r} k^−α
};

}  // namespace pser
