// Which cells changed since the last saves, and a snapshot of cells that is read while the index is used on.
//
// A snapshot copies nothing: it notes which cells are wanted. They are read afterwards, some at a time; what a wanted cell held is
// put aside when it is about to change before it was read. Nothing is noted until the first save.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "slots.hpp"

namespace pser {

// All that is known of one cell, as files hold it; `decayed` only under retain="decayed".
struct CellState {
  uint32_t cell;
  int32_t back;
  double mass;
  Record record;
  double decayed;
};
static_assert(sizeof(CellState) == 40 && offsetof(CellState, decayed) == 32, "saved files hold cells of 32 or 40 bytes");

class Tracking : public Slots {
 public:
  Tracking(int64_t capacity, int64_t streams, bool retain_decayed) : Slots(capacity, streams) {
    if (retain_decayed) decayed_parts_ = ZeroedArray<double>(capacity);
  }

  // With retain="decayed" the part d of each cell's priority that came by decay; else empty.
  ZeroedArray<double>& decayed_parts() { return decayed_parts_; }
  // Of a cell and of a block in a file.
  int64_t cell_bytes() const { return keeps_parts() ? sizeof(CellState) : offsetof(CellState, decayed); }
  int64_t block_bytes() const { return static_cast<int64_t>(sizeof(Block)) + (keeps_parts() ? kFan * 8 : 0); }

  int64_t moment() const { return moment_; }  // the newest; read under the lock

  // Note changes from here on. Returns the number of this moment.
  int64_t track() {
    if (!is_tracking_) {
      const int64_t words = (blocks().size() * kFan + 63) / 64;
      for (ZeroedArray<uint64_t>* bits : {&changed_, &changed_before_, &wanted_}) *bits = ZeroedArray<uint64_t>(words);
      is_tracking_ = true;
    } else {
      std::swap(changed_before_, changed_);
      std::fill(changed_.data(), changed_.data() + changed_.size(), uint64_t{0});
    }
    return ++moment_;
  }

  // What is noted may no longer be built on.
  void lose_track() {
    end_snapshot();
    is_tracking_ = false;
    ++moment_;
  }

  // How many cells changed since that moment: one of the last two, else −1.
  int64_t changed_since(int64_t moment) const {
    if (!knows(moment)) return -1;
    int64_t count = 0;
    for (int64_t word = 0; word < changed_.size(); ++word) count += __builtin_popcountll(bits_since(moment, word));
    return count;
  }

  // Those changed since a moment are wanted (none if it is −1), and all of the blocks from first to before last. Returns how many
  // cells outside of these blocks there are; this is the newest moment now.
  int64_t begin_snapshot(int64_t since, int64_t first, int64_t last) {
    end_snapshot();
    const bool known = knows(since);
    int64_t count = 0;
    if (known)
      for (int64_t word = 0; word < changed_.size(); ++word) wanted_[word] = bits_since(since, word);
    track();
    if (known) {
      for (int64_t block = first; block < last; ++block) wanted_[block / 4] &= ~(uint64_t{0xffff} << (block & 3) * kFan);
      for (int64_t word = 0; word < wanted_.size(); ++word) count += __builtin_popcountll(wanted_[word]);
    } else {
      std::fill(wanted_.data(), wanted_.data() + wanted_.size(), uint64_t{0});
    }
    first_ = next_block_ = first;
    last_ = last;
    next_cell_ = 0;
    is_reading_ = true;
    return count;
  }

  // Is a save under way, which may still have to write what new rows would overwrite? Certain under the lock alone.
  bool is_in_snapshot() const { return is_reading_; }

  void end_snapshot() {
    is_reading_ = false;
    kept_.clear();
  }

  // The next blocks of the snapshot.
  void read_blocks(int64_t count, uint8_t* out) {
    if (!is_reading_ || count > last_ - next_block_) throw Error("a snapshot holds as many blocks as were asked for");
    for (; count > 0; --count, out += block_bytes(), ++next_block_) {
      Block block = blocks()[next_block_];
      double parts[kFan] = {};
      const int64_t cell = next_block_ * kFan;
      if (keeps_parts()) std::copy_n(&decayed_parts_[cell], std::min<int64_t>(kFan, capacity() - cell), parts);
      for (uint64_t since = changed_[cell >> 6] >> (cell & 63) & 0xffff; since != 0; since &= since - 1) {
        const int i = __builtin_ctzll(since);
        const CellState held = state_then(cell + i);
        block.mass[i] = held.mass;
        block.back[i] = held.back;
        block.record[i] = held.record;
        parts[i] = held.decayed;
      }
      std::memcpy(out, &block, sizeof(Block));
      if (keeps_parts()) std::memcpy(out + sizeof(Block), parts, sizeof(parts));
    }
  }

  // The next cells of the snapshot that lie outside of its blocks. Returns how many there were, at most so many.
  int64_t read_cells(int64_t most, uint8_t* out) {
    if (!is_reading_) throw Error("a snapshot is read before it has ended");
    int64_t count = 0;
    const int64_t cells = blocks().size() * kFan;
    while (count < most && next_cell_ < cells) {
      const uint64_t left = wanted_[next_cell_ >> 6] >> (next_cell_ & 63);
      if (left == 0) {
        next_cell_ = (next_cell_ / 64 + 1) * 64;
        continue;
      }
      next_cell_ += __builtin_ctzll(left);
      const CellState held = state_then(next_cell_++);
      std::memcpy(out + count++ * cell_bytes(), &held, static_cast<size_t>(cell_bytes()));
    }
    return count;
  }

  // What was read, put back.
  void put_blocks(int64_t first, int64_t count, const uint8_t* in) {
    if (first < 0 || count > blocks().size() - first) throw Error("the saved blocks are more than there are");
    for (int64_t block = first; block < first + count; ++block, in += block_bytes()) {
      std::memcpy(static_cast<void*>(&blocks()[block]), in, sizeof(Block));
      const int64_t parts = keeps_parts() ? std::min<int64_t>(kFan, capacity() - block * kFan) : 0;
      if (parts > 0) std::memcpy(&decayed_parts_[block * kFan], in + sizeof(Block), static_cast<size_t>(parts) * 8);
    }
  }

  // Cells of the first so many blocks.
  void put_cells(int64_t used, int64_t count, const uint8_t* in) {
    for (; count > 0; --count, in += cell_bytes()) {
      CellState held{};
      std::memcpy(&held, in, static_cast<size_t>(cell_bytes()));
      if (held.cell >= std::min(capacity(), used * kFan)) throw Error("a saved cell lies where nothing was written");
      Block& block = blocks()[block_of(held.cell)];
      block.mass[lane(held.cell)] = held.mass;
      block.back[lane(held.cell)] = held.back;
      block.record[lane(held.cell)] = held.record;
      if (keeps_parts()) decayed_parts_[held.cell] = held.decayed;
    }
  }

 protected:
  // Whoever changes anything of a cell tells it first.
  PSER_INLINE void mark(int64_t cell) {
    if (!is_tracking_) return;
    uint64_t& word = changed_[cell >> 6];
    const uint64_t bit = uint64_t{1} << (cell & 63);
    if (is_reading_ && !(word & bit)) keep(cell);  // asked in this order, no branch is a surprise
    word |= bit;
  }

  ZeroedArray<double> decayed_parts_;

 private:
  bool keeps_parts() const { return decayed_parts_.size() > 0; }
  bool knows(int64_t moment) const { return is_tracking_ && moment > 0 && (moment == moment_ || moment == moment_ - 1); }
  uint64_t bits_since(int64_t moment, int64_t word) const {
    return changed_[word] | (moment == moment_ ? 0 : changed_before_[word]);
  }
  static bool has(const ZeroedArray<uint64_t>& bits, int64_t cell) { return bits[cell >> 6] >> (cell & 63) & 1; }

  CellState state_now(int64_t cell) const {
    const double decayed = keeps_parts() && cell < capacity() ? decayed_parts_[cell] : 0.0;
    return {static_cast<uint32_t>(cell), back(cell), mass(cell), record(cell), decayed};
  }

  // What a wanted cell held when the snapshot was taken.
  CellState state_then(int64_t cell) {
    if (!has(changed_, cell)) return state_now(cell);
    const auto kept = kept_.find(cell);
    if (kept == kept_.end()) throw Error("a cell changed before it was read, and was not kept");
    const CellState held = kept->second;
    kept_.erase(kept);
    return held;
  }

  void keep(int64_t cell) {
    const int64_t block = block_of(cell);
    const bool in_blocks = block >= first_ && block < last_;
    if (in_blocks ? block >= next_block_ : cell >= next_cell_ && has(wanted_, cell)) kept_.emplace(cell, state_now(cell));
  }

  bool is_tracking_ = false;
  bool is_reading_ = false;
  int64_t moment_ = 0;
  ZeroedArray<uint64_t> changed_;         // since the newest moment, a bit for each cell
  ZeroedArray<uint64_t> changed_before_;  // from the moment before it to the newest
  ZeroedArray<uint64_t> wanted_;          // by the snapshot, outside of its blocks
  int64_t first_ = 0, last_ = 0;          // its blocks
  int64_t next_block_ = 0, next_cell_ = 0;
  std::unordered_map<int64_t, CellState> kept_;
};

}  // namespace pser
