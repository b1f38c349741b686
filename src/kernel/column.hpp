// One field of an observation, however it is kept: what every kind of storage must do.
//
// A kind is one class of this form (arrays.hpp, frames.hpp) and one line in bind_columns.cpp; the Python side is
// pser/memory/columns.py. All arrays belong to Python, which allocates and saves them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace pser {

// The unfinished n-step transitions: those of stream e are the entries start, start + 1, … of its ring of n_step.
struct Pending {
  int64_t streams, n_step;
  int64_t* count;  // (streams,)
  int64_t* start;  // (streams,)

  int64_t entry(int64_t stream, int64_t k) const { return (start[stream] + k) % n_step; }
  int64_t at(int64_t stream, int64_t entry) const { return stream * n_step + entry; }
};

// Slots side by side, for rows side by side of a batch.
struct SlotRun {
  int64_t slot, row, count;
};

// The slots of a batch of windows, one by one and in runs.
struct RunsOfSlots {
  std::vector<int64_t> slots;
  std::vector<SlotRun> runs;

  void take(int64_t row, int64_t slot) {
    slots.push_back(slot);
    if (row > 0 && slot == slots[static_cast<size_t>(row - 1)] + 1)
      ++runs.back().count;
    else
      runs.push_back({slot, row, 1});
  }
};

class Column {
 public:
  virtual ~Column() = default;

  // Bytes of one observation, as it is given and as it is given back.
  virtual int64_t row_bytes() const = 0;

  // Null if the step can be kept, else the rule it breaks. Changes nothing.
  virtual const char* refusal(const uint8_t* now, const uint8_t* next) const = 0;

  // The stream is at `now`, and an unfinished transition begins there.
  virtual void remember(int64_t stream, int64_t entry, const uint8_t* now) = 0;

  // The stream has come to `next`. Valid until the stream's transitions that this step completes were committed.
  virtual void advance(int64_t stream, const uint8_t* next) = 0;

  // The unfinished transition is complete, from where it began to where the stream is: it goes into this slot.
  virtual void commit(int64_t stream, int64_t entry, int64_t slot) = 0;

  // Copy the observations of these slots into a batch, and their next ones.
  virtual void gather(int64_t count, const int64_t* slots, uint8_t* now, uint8_t* next) const = 0;

  // The same of windows; a column that keeps whole rows can copy each run at once.
  virtual void gather_runs(const RunsOfSlots& of, uint8_t* now, uint8_t* next) const {
    gather(static_cast<int64_t>(of.slots.size()), of.slots.data(), now, next);
  }

  // Transitions that show a frame up to this one leave the memory, if the column has frames. A refresh must follow.
  virtual void forget(int64_t) {}

  // Null if the arrays, just read from a file that filled `rows` slots, make sense; else what does not.
  virtual const char* damage(int64_t rows) const = 0;
};

template <int64_t kBytes>
void copy_fixed(int64_t count, const int64_t* slots, const uint8_t* from, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * kBytes, from + slots[i] * kBytes, kBytes);
}

// Rows of an array, in the order of these slots.
inline void copy_rows(int64_t count, const int64_t* slots, const uint8_t* from, int64_t bytes, uint8_t* to) {
  switch (bytes) {  // a copy of known size is one move
    case 1: return copy_fixed<1>(count, slots, from, to);
    case 4: return copy_fixed<4>(count, slots, from, to);
    case 8: return copy_fixed<8>(count, slots, from, to);
    case 16: return copy_fixed<16>(count, slots, from, to);
    default:
      for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * bytes, from + slots[i] * bytes, static_cast<size_t>(bytes));
  }
}

// The same of windows.
inline void copy_runs(const RunsOfSlots& of, const uint8_t* from, int64_t bytes, uint8_t* to) {
  for (const SlotRun& run : of.runs) std::memcpy(to + run.row * bytes, from + run.slot * bytes, static_cast<size_t>(run.count * bytes));
}

}  // namespace pser
