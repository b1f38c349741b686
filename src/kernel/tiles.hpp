// Where the index keeps a slot's transition: sixteen consecutive steps of one stream share a block.
//
// Streams that step together fill the slots in turn, so the predecessors of a step lie S slots apart. A tile of 16·S slots is
// kept transposed, as S blocks of sixteen cells, each with the steps of one stream. What is left at the ring's end is no whole
// tile and stays in the order of the slots, as does a ring of one stream.
#pragma once

#include <cstdint>
#include <limits>

#include "simd.hpp"

namespace pser {

// Quotients of 32-bit numbers by one that is known early: a multiplication each (Lemire et al. 2019). The divisor is above 1.
class Divisor {
 public:
  explicit Divisor(int64_t by) : inverse_(std::numeric_limits<uint64_t>::max() / static_cast<uint64_t>(by) + 1) {}
  PSER_INLINE int64_t quotient(int64_t n) const { return static_cast<int64_t>((static_cast<Wide>(inverse_) * static_cast<Wide>(n)) >> 64); }

 private:
  __extension__ typedef unsigned __int128 Wide;
  uint64_t inverse_;
};

class Tiles {
 public:
  Tiles(int64_t capacity, int64_t streams)
      : streams_(streams),
        tile_(kFan * streams),
        tiled_(streams == 1 ? 0 : capacity / tile_ * tile_),
        ordered_(streams == 1 ? capacity : tiled_),
        tiles_(tile_),
        turns_(streams > 1 ? streams : 2) {}

  bool any() const { return tiled_ > 0; }

  PSER_INLINE int64_t cell(int64_t slot) const {
    if (slot >= tiled_) return slot;
    const int64_t first = tiles_.quotient(slot) * tile_, within = slot - first;
    const int64_t turn = turns_.quotient(within);
    return first + (within - turn * streams_) * kFan + turn;
  }

  PSER_INLINE int64_t slot(int64_t cell) const {
    if (cell >= tiled_) return cell;
    const int64_t first = tiles_.quotient(cell) * tile_, within = cell - first;
    return first + within % kFan * streams_ + within / kFan;
  }

  // Does the step before, S slots back, lie in the cell before, or for a block's first cell in the last one S blocks back?
  PSER_INLINE bool in_order(int64_t cell) const { return cell < ordered_; }

  // The cells of the first `slots` slots are among the first so many.
  int64_t cells(int64_t slots) const { return slots >= tiled_ ? slots : (slots + tile_ - 1) / tile_ * tile_; }

 private:
  int64_t streams_;
  int64_t tile_;   // slots
  int64_t tiled_;  // slots in whole tiles
  int64_t ordered_;
  Divisor tiles_, turns_;
};

}  // namespace pser
