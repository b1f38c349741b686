// The ring of slots: which ids are retained, where each lives, and who led to whom.
//
// A transition has a monotone id; it lives in slot id % capacity, and the index keeps it in that slot's cell (tiles.hpp). A
// cell has the distance (in ids) back to its predecessor: the previous step of the same stream in the same episode, or 0. That
// one number makes episode ends, interleaved or asynchronous streams, the ring's edge and eviction the same simple walk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memory.hpp"
#include "simd.hpp"
#include "tiles.hpp"

namespace pser {

constexpr int64_t kLargestId = int64_t{1} << 62;  // far beyond any run: the most a file may claim

// What last determined a transition's priority.
enum class Source : uint32_t {
  kOwn = 0,       // its insertion, as long as it was never replayed; then its own TD error
  kRetained = 1,  // η's share of the priority it held before
  kDecayed = 2,   // backward decay
};

// The steps that lead to a transition without a gap: each S ids after the one before it.
struct Lead {
  int32_t steps;  // kMost: or more
  bool is_whole;  // the first of them begins the episode
  static constexpr int32_t kMost = 31;
};

// What is known of a transition beside its mass and its predecessor.
struct Record {
  double priority;   // raw p
  float own_mass;    // the mass its own last update or insertion gave; what exceeds it came by decay
  uint32_t history;  // from the lowest bit on: replays (24 bits), the lead (6), the source (2)

  // Own updates since insertion; no more are counted than fit.
  uint32_t replays() const { return history & kReplays; }
  PSER_INLINE void count_replay() { history += replays() != kReplays; }

  Lead lead() const { return {static_cast<int32_t>(history >> kLeadShift & Lead::kMost), (history >> kWholeShift & 1) != 0}; }
  void set_lead(Lead lead) {
    history = (history & ~kLeadBits) | static_cast<uint32_t>(lead.steps) << kLeadShift | static_cast<uint32_t>(lead.is_whole) << kWholeShift;
  }

  // What determined the priority.
  Source source() const { return static_cast<Source>(history >> kSourceShift); }
  PSER_INLINE void set_source(Source source) { history = (history & ~kSourceBits) | static_cast<uint32_t>(source) << kSourceShift; }

  static constexpr int kLeadShift = 24, kWholeShift = 29, kSourceShift = 30;
  static constexpr uint32_t kReplays = (uint32_t{1} << kLeadShift) - 1;
  static constexpr uint32_t kSourceBits = uint32_t{3} << kSourceShift, kLeadBits = ~(kReplays | kSourceBits);
};
static_assert(sizeof(Record) == 16, "saved files hold records of 16 bytes");

// Sixteen neighbouring cells. Most of an update only compares masses along a path: these share three cache lines.
struct alignas(64) Block {
  double mass[kFan];   // p^α, 0 for an empty cell: a leaf node of the tree
  int32_t back[kFan];  // distance to the predecessor, 0 if there is none
  Record record[kFan];
};

class Slots {
 public:
  Slots(int64_t capacity, int64_t streams)
      : capacity_(capacity),
        streams_(streams),
        tiles_(capacity, streams),
        blocks_((capacity + kFan - 1) / kFan),
        lockstep_(capacity / 64 + 1),
        last_id_(static_cast<size_t>(streams), -1) {}
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  int64_t capacity() const { return capacity_; }
  int64_t streams() const { return streams_; }
  int64_t next_id() const { return next_id_; }
  int64_t oldest_id() const { return oldest_id_; }
  int64_t size() const { return next_id_ - oldest_id_; }
  int64_t head() const { return head_; }  // the slot that the next transition will take
  std::vector<int64_t>& last_id() { return last_id_; }
  ZeroedArray<Block>& blocks() { return blocks_; }

  static int64_t block_of(int64_t cell) { return static_cast<int64_t>(static_cast<uint64_t>(cell) / kFan); }  // a shift
  static int lane(int64_t cell) { return static_cast<int>(cell & (kFan - 1)); }
  double& mass(int64_t cell) { return blocks_[block_of(cell)].mass[lane(cell)]; }
  double mass(int64_t cell) const { return blocks_[block_of(cell)].mass[lane(cell)]; }
  Record& record(int64_t cell) { return blocks_[block_of(cell)].record[lane(cell)]; }
  const Record& record(int64_t cell) const { return blocks_[block_of(cell)].record[lane(cell)]; }
  int32_t back(int64_t cell) const { return blocks_[block_of(cell)].back[lane(cell)]; }

  int64_t slot_of(int64_t id) const {
    const int64_t slot = head_ - (next_id_ - id);
    return slot < 0 ? slot + capacity_ : slot;
  }
  int64_t cell_of(int64_t id) const { return tiles_.cell(slot_of(id)); }
  int64_t id_in(int64_t cell) const {
    const int64_t slot = tiles_.slot(cell);
    return next_id_ - head_ + slot - (slot < head_ ? 0 : capacity_);
  }
  bool is_live(int64_t cell) const { return id_in(cell) >= oldest_id_ && id_in(cell) < next_id_; }
  // Those that ever held a transition are the first so many.
  int64_t used_blocks() const { return (tiles_.cells(std::min(next_id_, capacity_)) + kFan - 1) / kFan; }

  // Distance (in ids) to the next step of the same episode, 0 if it has not happened; `link_ahead` must have been called.
  int32_t ahead(int64_t cell) const { return ahead_[static_cast<size_t>(cell)]; }

  // Keep successors from here on. Only sequences need them, so they cost nothing until the first is asked for.
  void link_ahead() {
    if (!ahead_.empty()) return;
    ahead_.assign(static_cast<size_t>(capacity_), 0);
    for (int64_t id = oldest_id_; id < next_id_; ++id) link(id, back(cell_of(id)));
  }

  // How many steps back (or ahead) from a transition are in lockstep, S ids apart each: told by the bits alone, and there may be
  // more than they tell. It stops after `most` or a few more; ids that are not retained, or not yet given, are not told apart.
  int64_t lockstep_back(int64_t cell, int64_t most) const {
    if (!tiles_.in_order(cell)) return 0;
    int64_t steps = 0, block = block_of(cell);
    for (int from = lane(cell);; from = kFan - 1, block -= streams_) {
      const int run = run_down(block, from);
      steps += run;
      if (run <= from || steps >= most || block < streams_) return steps;
    }
  }
  int64_t lockstep_ahead(int64_t cell, int64_t most) const {
    if (!tiles_.in_order(cell)) return 0;
    int64_t steps = 0, block = block_of(cell);
    for (int from = lane(cell) + 1;; from = 0) {
      const int run = run_up(block, from);
      steps += run;
      block += streams_;
      if (from + run < kFan || steps >= most || block >= blocks_.size() || !tiles_.in_order(block * kFan)) return steps;
    }
  }

  // The stream's next transition has no predecessor.
  void cut(int64_t stream) { last_id_[static_cast<size_t>(stream)] = -1; }

 protected:
  // Take the head's slot for the stream's next transition, in a full ring from the oldest. Returns its id.
  int64_t take_slot(int64_t stream, bool first) {
    const int64_t id = next_id_, cell = tiles_.cell(head_);
    if (size() == capacity_) ++oldest_id_;
    ++next_id_;
    head_ = head_ + 1 == capacity_ ? 0 : head_ + 1;
    int64_t& last = last_id_[static_cast<size_t>(stream)];
    // A predecessor a whole capacity back has just been overwritten.
    set_back(cell, (first || last < 0 || id - last >= capacity_) ? 0 : static_cast<int32_t>(id - last));
    record(cell).set_lead(lead_after(back(cell), last));
    last = id;
    if (!ahead_.empty()) {
      ahead_[static_cast<size_t>(cell)] = 0;
      link(id, back(cell));
    }
    return id;
  }

  void drop_oldest() { ++oldest_id_; }

  // Take over saved ids; the blocks were filled already.
  void restore_ids(int64_t next_id, int64_t oldest_id) {
    next_id_ = next_id;
    oldest_id_ = oldest_id;
    head_ = next_id % capacity_;
    ahead_.clear();
    for (int64_t id = oldest_id; id < next_id; ++id) {
      const int64_t cell = cell_of(id), before = id - back(cell);
      set_back(cell, back(cell));
      // Of steps that are no longer there nobody asks how they led here.
      if (before >= oldest_id) record(cell).set_lead(lead_after(back(cell), before));
    }
  }

  // Is the predecessor exactly `streams` back? Told by a bit, for the bits stay in the cache.
  PSER_INLINE bool in_lockstep(int64_t cell) const { return lockstep_[cell >> 6] >> (cell & 63) & 1; }
  PSER_INLINE int64_t distance_back(int64_t cell) const { return in_lockstep(cell) ? streams() : back(cell); }

  // How many cells of a block are in lockstep without a gap, from this one down: up to cell + 1, all that there are.
  PSER_INLINE int run_down(int64_t block, int from) const { return run_down_bits(lockstep_of(block), from); }
  // The same of two blocks that follow each other, as if they were one of 32 cells; or from the cell after them, cell 32.
  PSER_INLINE int run_down(int64_t before, int64_t block, int from) const {
    return run_down_bits(uint64_t{1} << 2 * kFan | lockstep_of(block) << kFan | lockstep_of(before), from);
  }
  // The same upwards: none if from is beyond the block.
  PSER_INLINE int run_up(int64_t block, int from) const { return __builtin_ctzll(~(lockstep_of(block) >> from)); }
  const Tiles& tiles() const { return tiles_; }

 private:
  PSER_INLINE uint64_t lockstep_of(int64_t block) const {
    return lockstep_[block >> 2] >> (block & 3) * kFan & ((uint64_t{1} << kFan) - 1);
  }
  static PSER_INLINE int run_down_bits(uint64_t bits, int from) { return __builtin_clzll(~(bits << (63 - from))); }

  // The lead of a step at this distance from the one before it in its episode; 0: it is the first.
  Lead lead_after(int32_t distance, int64_t before) const {
    if (distance != streams_) return {0, distance == 0};
    const Lead lead = record(cell_of(before)).lead();
    const bool is_told = lead.steps < Lead::kMost;
    return {lead.steps + is_told, lead.is_whole && is_told};
  }

  void link(int64_t id, int32_t distance) {
    if (distance > 0 && id - distance >= oldest_id_) ahead_[static_cast<size_t>(cell_of(id - distance))] = distance;
  }

  void set_back(int64_t cell, int32_t distance) {
    blocks_[block_of(cell)].back[lane(cell)] = distance;
    const uint64_t bit = uint64_t{1} << (cell & 63);
    uint64_t& word = lockstep_[cell >> 6];
    word = distance == streams() ? word | bit : word & ~bit;
  }

  int64_t capacity_;
  int64_t streams_;
  int64_t next_id_ = 0;
  int64_t oldest_id_ = 0;
  int64_t head_ = 0;  // next_id % capacity
  Tiles tiles_;
  ZeroedArray<Block> blocks_;
  ZeroedArray<uint64_t> lockstep_;  // a bit for each cell
  std::vector<int32_t> ahead_;      // of each cell, empty until `link_ahead`
  std::vector<int64_t> last_id_;    // of each stream, −1 if its next transition has no predecessor
};

}  // namespace pser
