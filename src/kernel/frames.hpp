// Frame stacks with each frame stored once: a ring of frames, and for every transition the places of its frames.
//
// Nothing is assumed of how an environment pads a stack: a frame is shared only after its bytes were compared, so the
// observations come back bit for bit. Arrays belong to Python (which saves them); this class only writes through them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "column.hpp"
#include "index.hpp"

namespace pser {

struct FrameArrays {
  uint8_t* frames;        // (ring, frame_bytes)
  int32_t* places;        // (capacity, places_per_row): a transition's frames, oldest first
  int64_t* stream_stack;  // (streams, stack): frame ids of each stream's newest observation, −1 if none
  int64_t* pending;       // (streams, n_step, stack): frame ids of the observations of unfinished n-step transitions
  int64_t* next_frame;    // (1,): id of the next frame; frame i lies at i % ring
  int64_t frame_bytes;
  int64_t ring;
  int64_t stack;
  int64_t lag;  // a transition's frames are at most this old when it is written
};

class FrameColumn final : public Column {
 public:
  FrameColumn(const FrameArrays& arrays, const Pending& pending, Index& index) : a_(arrays), pending_(pending), index_(index) {}

  int64_t row_bytes() const override { return a_.stack * a_.frame_bytes; }

  const char* refusal(const uint8_t* now, const uint8_t* next) const override {
    if (follows(now, next)) return nullptr;
    return "with Frames, next_observation must be observation moved on by one frame";
  }

  void remember(int64_t stream, int64_t entry, const uint8_t* now) override {
    store_stack(stream, now);
    const int64_t* ids = stream_stack(stream);
    std::memcpy(pending(stream, entry), ids, static_cast<size_t>(a_.stack) * sizeof(int64_t));
    for (int64_t k = 0; k < a_.stack; ++k) needed_from_ = std::min(needed_from_, ids[k]);
  }

  // The stack moves on by the newest frame of its next observation.
  void advance(int64_t stream, const uint8_t* next) override {
    int64_t* held = stream_stack(stream);
    const int64_t id = store(next + (a_.stack - 1) * a_.frame_bytes);
    std::memmove(held, held + 1, static_cast<size_t>(a_.stack - 1) * sizeof(int64_t));
    held[a_.stack - 1] = id;
  }

  void commit(int64_t stream, int64_t entry, int64_t slot) override {
    make_young(stream, entry);
    int32_t* places = a_.places + slot * places_per_row();
    const int64_t *now = pending(stream, entry), *next = stream_stack(stream);
    for (int64_t k = 0; k < a_.stack; ++k) places[k] = place(now[k]);
    if (one_step())
      places[a_.stack] = place(next[a_.stack - 1]);
    else
      for (int64_t k = 0; k < a_.stack; ++k) places[a_.stack + k] = place(next[k]);
  }

  // (stack + 1) frames a row, or the observation's and the next one's stacks apart.
  void gather(int64_t count, const int64_t* slots, uint8_t* now, uint8_t* next) const override {
    const int64_t first = one_step() ? a_.stack + 1 : a_.stack;
    for (int64_t i = 0; i < count; ++i) {
      const int32_t* places = a_.places + slots[i] * places_per_row();
      copy_frames(places, first, now + i * first * a_.frame_bytes);
      if (!one_step()) copy_frames(places + a_.stack, a_.stack, next + i * row_bytes());
    }
  }

  const char* damage(int64_t rows) const override {
    const int64_t next = *a_.next_frame, oldest = std::max<int64_t>(0, next - a_.ring);
    if (next < 0 || next > kLargestId) return "the number of frames is out of range";
    const auto stored = std::min(next, a_.ring);
    for (int64_t i = 0; i < rows * places_per_row(); ++i)
      if (a_.places[i] < 0 || a_.places[i] >= stored) return "a frame's place is out of range";
    for (int64_t i = 0; i < pending_.streams * a_.stack; ++i)
      if (a_.stream_stack[i] < -1 || a_.stream_stack[i] >= next) return "a stream's frame is out of range";
    bool whole = true;
    for_each_needed([&](const int64_t& id) { whole = whole && id >= oldest && id < next; });
    return whole ? nullptr : "a frame of an unfinished transition is out of range";
  }

 private:
  // Is `next` the stack `now` moved on by one frame?
  bool follows(const uint8_t* now, const uint8_t* next) const {
    return std::memcmp(now + a_.frame_bytes, next, static_cast<size_t>((a_.stack - 1) * a_.frame_bytes)) == 0;
  }

  // The stack's frame ids, storing what the stream does not hold already.
  void store_stack(int64_t stream, const uint8_t* observation) {
    int64_t* held = stream_stack(stream);
    bool same = true;
    for (int64_t k = 0; k < a_.stack && same; ++k) same = fresh(held[k]) && equal(held[k], observation + k * a_.frame_bytes);
    if (same) return;
    for (int64_t k = 0; k < a_.stack; ++k) {
      const uint8_t* frame = observation + k * a_.frame_bytes;
      if (k > 0 && equal(held[k - 1], frame))
        held[k] = held[k - 1];  // padding repeats a frame: share it with the neighbour
      else if (!(fresh(held[k]) && equal(held[k], frame)))
        held[k] = store(frame);
    }
  }

  // Before a transition is written: store anew those of its frames that are too old to live as long as it may.
  void make_young(int64_t stream, int64_t entry) {
    if (one_step()) return;  // its frames were stored or found fresh just now
    int64_t *now = pending(stream, entry), *next = stream_stack(stream);
    while (!(young(now) && young(next))) {
      renew(now);
      renew(next);
    }
  }

  // Would storing one more frame overwrite a frame of the transition in this slot, or of one that came after it?
  // When transition t was written, frame h was the next: its frames are h − lag or younger, and h only grows from one
  // transition to the next. So none of them shows a frame older than (newest frame of t) + 1 − lag.
  bool is_threatened(int64_t slot) const {
    const int32_t* places = a_.places + slot * places_per_row();
    const int64_t last = place(*a_.next_frame - 1);
    int64_t age = a_.ring;  // of its newest frame
    for (int64_t k = 0; k < places_per_row(); ++k)
      age = std::min(age, places[k] <= last ? last - places[k] : last - places[k] + a_.ring);
    return age + a_.lag >= a_.ring;
  }

  // Transitions whose frames the next stored frame would overwrite leave the memory first.
  void make_room() {
    while (index_.size() > 0 && is_threatened(index_.slot_of(index_.oldest_id()))) index_.evict_oldest();
  }

  bool one_step() const { return pending_.n_step == 1; }
  // One step: the next stack is the stack moved by one frame, so stack + 1 places tell both.
  int64_t places_per_row() const { return one_step() ? a_.stack + 1 : 2 * a_.stack; }
  int64_t* stream_stack(int64_t stream) const { return a_.stream_stack + stream * a_.stack; }
  int64_t* pending(int64_t stream, int64_t entry) const { return a_.pending + pending_.at(stream, entry) * a_.stack; }
  int32_t place(int64_t id) const { return static_cast<int32_t>(id % a_.ring); }
  uint8_t* at(int64_t id) const { return a_.frames + (id % a_.ring) * a_.frame_bytes; }
  // Young enough to be shared with a new transition without pulling its age apart.
  bool fresh(int64_t id) const { return id >= 0 && id + a_.lag / 2 >= *a_.next_frame; }
  bool young(const int64_t* ids) const {
    return std::all_of(ids, ids + a_.stack, [this](int64_t id) { return id + a_.lag >= *a_.next_frame; });
  }
  bool equal(int64_t id, const uint8_t* frame) const {
    return std::memcmp(at(id), frame, static_cast<size_t>(a_.frame_bytes)) == 0;
  }

  void renew(int64_t* ids) {
    int64_t before = -1;
    for (int64_t k = 0; k < a_.stack; ++k) {
      if (fresh(ids[k])) continue;
      const bool repeated = ids[k] == before;  // padding stays shared
      before = ids[k];
      ids[k] = repeated ? ids[k - 1] : store(at(ids[k]));
    }
  }

  int64_t store(const uint8_t* frame) {
    make_room();
    while (is_needed(*a_.next_frame - a_.ring)) {
      pass_over(*a_.next_frame - a_.ring);
      make_room();
    }
    const int64_t id = *a_.next_frame;
    std::memmove(at(id), frame, static_cast<size_t>(a_.frame_bytes));
    ++*a_.next_frame;
    return id;
  }

  // Does an unfinished transition need this frame, the oldest in the ring?
  bool is_needed(int64_t oldest) {
    if (one_step() || oldest < needed_from_) return false;
    needed_from_ = std::numeric_limits<int64_t>::max();
    for_each_needed([this](int64_t& id) { needed_from_ = std::min(needed_from_, id); });
    return needed_from_ == oldest;
  }

  // The frame stays where it is, for another turn of the ring.
  void pass_over(int64_t oldest) {
    for_each_needed([&](int64_t& id) { id = id == oldest ? oldest + a_.ring : id; });
    ++*a_.next_frame;
  }

  template <class Visit>
  void for_each_needed(const Visit& visit) const {
    for (int64_t e = 0; e < pending_.streams; ++e) {
      if (pending_.count[e] == 0) continue;
      std::for_each(stream_stack(e), stream_stack(e) + a_.stack, visit);
      for (int64_t k = 0; k < pending_.count[e]; ++k) {
        int64_t* ids = pending(e, pending_.entry(e, k));
        std::for_each(ids, ids + a_.stack, visit);
      }
    }
  }

  void copy_frames(const int32_t* places, int64_t count, uint8_t* out) const {
    for (int64_t k = 0; k < count;) {
      int64_t run = 1;  // frames that lie side by side are one copy
      while (k + run < count && places[k + run] == places[k] + run) ++run;
      std::memcpy(out + k * a_.frame_bytes, a_.frames + places[k] * a_.frame_bytes, static_cast<size_t>(run * a_.frame_bytes));
      k += run;
    }
  }

  FrameArrays a_;
  Pending pending_;
  Index& index_;
  int64_t needed_from_ = 0;  // no unfinished transition needs an older frame
};

}  // namespace pser
