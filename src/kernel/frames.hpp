// Frame stacks with each frame stored once: a ring of frames, and for every transition the places of its frames.
// The frames at these places are kept as they are (PlainFrames) or in fewer bytes (records.hpp).
//
// Nothing is assumed of how an environment pads a stack: a frame is shared only after its bytes were compared, so the
// observations come back bit for bit. Arrays belong to Python (which saves them); this class only writes through them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "column.hpp"
#include "index.hpp"

namespace pser {

struct FrameArrays {
  int32_t* places;        // (capacity, places_per_row): a transition's frames, oldest first
  int64_t* stream_stack;  // (streams, stack): frame ids of each stream's newest observation, −1 if none
  int64_t* pending;       // (streams, n_step, stack): frame ids of the observations of unfinished n-step transitions
  int64_t* next_frame;    // (1,): id of the next frame; frame i lies at place i % ring
  int64_t stack;
  int64_t lag;  // a transition's frames are at most this old when it is written
};

// The frames as they are, one at each place.
class PlainFrames {
 public:
  PlainFrames(uint8_t* frames, int64_t frame_bytes, int64_t ring) : frames_(frames), frame_bytes_(frame_bytes), ring_(ring) {}

  int64_t frame_bytes() const { return frame_bytes_; }
  int64_t ring() const { return ring_; }
  const uint8_t* view(int64_t place) const { return frames_ + place * frame_bytes_; }

  void find(const int32_t*, int64_t) const {}  // they lie where their places say

  // A copy fetches ahead by itself, but not across a page, and not before it begins.
  void prefetch(const int32_t* places, int64_t count) const {
    constexpr int64_t kApart = 2048;
    for (int64_t k = 0; k < count; ++k)
      for (int64_t at = 0; at < frame_bytes_; at += kApart) fetch_from_afar(view(places[k]) + at);
  }

  void copy(const int32_t* places, int64_t count, uint8_t* out) const {
    for (int64_t k = 0; k < count;) {
      int64_t run = 1;  // frames that lie side by side are one copy
      while (k + run < count && places[k + run] == places[k] + run) ++run;
      std::memcpy(out + k * frame_bytes_, view(places[k]), static_cast<size_t>(run * frame_bytes_));
      k += run;
    }
  }

  void write(int64_t, int64_t id, const uint8_t* frame) {
    std::memmove(frames_ + (id % ring_) * frame_bytes_, frame, static_cast<size_t>(frame_bytes_));
  }
  void move(int64_t, int64_t) {}  // by whole turns of the ring only: it lies there already

  // There is room for every place.
  bool is_short() const { return false; }
  int64_t gone_with_oldest() const { return -1; }
  void drop_oldest() {}
  const char* damage(int64_t) const { return nullptr; }

 private:
  uint8_t* frames_;  // (ring, frame_bytes)
  int64_t frame_bytes_, ring_;
};

template <class Kept>
class FrameColumn final : public Column {
 public:
  FrameColumn(Kept frames, const FrameArrays& arrays, const Pending& pending, Index& index)
      : frames_(std::move(frames)), frame_bytes_(frames_.frame_bytes()), ring_(frames_.ring()), a_(arrays), pending_(pending), index_(index) {}

  int64_t row_bytes() const override { return a_.stack * frame_bytes_; }

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
    const int64_t id = store(stream, next + (a_.stack - 1) * frame_bytes_);
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
    constexpr int64_t kAhead = 4;
    const int64_t first = one_step() ? a_.stack + 1 : a_.stack;
    const auto places_of = [&](int64_t i) { return a_.places + slots[i] * places_per_row(); };
    for (int64_t i = 0; i < std::min(kAhead, count); ++i) fetch_from_afar(places_of(i));
    for (int64_t i = 0; i < count; ++i) {
      const int32_t* places = places_of(i);
      if (i + kAhead < count) fetch_from_afar(places_of(i + kAhead));
      if (i + 2 < count) frames_.find(places_of(i + 2), places_per_row());
      if (i + 1 < count) frames_.prefetch(places_of(i + 1), places_per_row());
      frames_.copy(places, first, now + i * first * frame_bytes_);
      if (!one_step()) frames_.copy(places + a_.stack, a_.stack, next + i * row_bytes());
    }
  }

  void forget(int64_t frame) override { evict_up_to(frame); }

  const char* damage(int64_t rows) const override {
    const int64_t next = *a_.next_frame, oldest = std::max<int64_t>(0, next - ring_);
    if (next < 0 || next > kLargestId) return "the number of frames is out of range";
    const auto stored = std::min(next, ring_);
    for (int64_t i = 0; i < rows * places_per_row(); ++i)
      if (a_.places[i] < 0 || a_.places[i] >= stored) return "a frame's place is out of range";
    for (int64_t i = 0; i < pending_.streams * a_.stack; ++i)
      if (a_.stream_stack[i] < -1 || a_.stream_stack[i] >= next) return "a stream's frame is out of range";
    bool whole = true;
    for_each_needed([&](const int64_t& id) { whole = whole && id >= oldest && id < next; });
    return whole ? frames_.damage(next) : "a frame of an unfinished transition is out of range";
  }

 private:
  // Is `next` the stack `now` moved on by one frame?
  bool follows(const uint8_t* now, const uint8_t* next) const {
    return std::memcmp(now + frame_bytes_, next, static_cast<size_t>((a_.stack - 1) * frame_bytes_)) == 0;
  }

  // The stack's frame ids, storing what the stream does not hold already.
  void store_stack(int64_t stream, const uint8_t* observation) {
    int64_t* held = stream_stack(stream);
    bool same = true;
    for (int64_t k = 0; k < a_.stack && same; ++k) same = fresh(held[k]) && equal(held[k], observation + k * frame_bytes_);
    if (same) return;
    for (int64_t k = 0; k < a_.stack; ++k) {
      const uint8_t* frame = observation + k * frame_bytes_;
      if (k > 0 && equal(held[k - 1], frame))
        held[k] = held[k - 1];  // padding repeats a frame: share it with the neighbour
      else if (!(fresh(held[k]) && equal(held[k], frame)))
        held[k] = store(stream, frame);
    }
  }

  // Before a transition is written: store anew those of its frames that are too old to live as long as it may.
  void make_young(int64_t stream, int64_t entry) {
    if (one_step()) return;  // its frames were stored or found fresh just now
    int64_t *now = pending(stream, entry), *next = stream_stack(stream);
    while (!(young(now) && young(next))) {
      renew(stream, now);
      renew(stream, next);
    }
  }

  // When transition t was written, frame h was the next: its frames are h − lag or younger, and h only grows from one
  // transition to the next. So neither the transition in this slot nor a later one shows a frame older than this.
  int64_t oldest_shown(int64_t slot) const {
    const int32_t* places = a_.places + slot * places_per_row();
    const int64_t next = *a_.next_frame, last = place(next - 1);
    int64_t age = ring_;  // of its newest frame
    for (int64_t k = 0; k < places_per_row(); ++k)
      age = std::min(age, places[k] <= last ? last - places[k] : last - places[k] + ring_);
    return next - age - a_.lag;
  }

  // Transitions that show this frame, or older ones, leave the memory.
  void evict_up_to(int64_t frame) {
    while (index_.size() > 0 && oldest_shown(index_.slot_of(index_.oldest_id())) <= frame) index_.evict_oldest();
  }

  // Transitions whose frames the next stored frame would overwrite leave the memory first.
  void make_room() { evict_up_to(*a_.next_frame - ring_); }

  // Bytes for another frame: the oldest go. What unfinished transitions need of them is stored anew.
  void make_bytes() {
    while (frames_.is_short()) {
      const int64_t gone = frames_.gone_with_oldest();
      evict_up_to(gone);
      if (!one_step())
        for_each_needed([&](int64_t& id) {
          if (id <= gone) store_anew(id);
        });
      frames_.drop_oldest();
    }
  }

  // A frame that unfinished transitions need becomes the newest.
  void store_anew(int64_t from) {
    const int64_t to = put([&](int64_t id) { frames_.move(from, id); });
    for_each_needed([&](int64_t& id) { id = id == from ? to : id; });
  }

  bool one_step() const { return pending_.n_step == 1; }
  // One step: the next stack is the stack moved by one frame, so stack + 1 places tell both.
  int64_t places_per_row() const { return one_step() ? a_.stack + 1 : 2 * a_.stack; }
  int64_t* stream_stack(int64_t stream) const { return a_.stream_stack + stream * a_.stack; }
  int64_t* pending(int64_t stream, int64_t entry) const { return a_.pending + pending_.at(stream, entry) * a_.stack; }
  int32_t place(int64_t id) const { return static_cast<int32_t>(id % ring_); }
  const uint8_t* view(int64_t id) const { return frames_.view(place(id)); }
  // Young enough to be shared with a new transition without pulling its age apart.
  bool fresh(int64_t id) const { return id >= 0 && id + a_.lag / 2 >= *a_.next_frame; }
  bool young(const int64_t* ids) const {
    return std::all_of(ids, ids + a_.stack, [this](int64_t id) { return id + a_.lag >= *a_.next_frame; });
  }
  bool equal(int64_t id, const uint8_t* frame) const {
    return std::memcmp(view(id), frame, static_cast<size_t>(frame_bytes_)) == 0;
  }

  void renew(int64_t stream, int64_t* ids) {
    int64_t before = -1;
    for (int64_t k = 0; k < a_.stack; ++k) {
      if (fresh(ids[k])) continue;
      const bool repeated = ids[k] == before;  // padding stays shared
      before = ids[k];
      ids[k] = repeated ? ids[k - 1] : store(stream, view(ids[k]));
    }
  }

  int64_t store(int64_t stream, const uint8_t* frame) {
    make_bytes();
    return put([&](int64_t id) { frames_.write(stream, id, frame); });
  }

  // The next frame, written by write(its id).
  template <class Write>
  int64_t put(const Write& write) {
    make_room();
    while (is_needed(*a_.next_frame - ring_)) {
      pass_over(*a_.next_frame - ring_);
      make_room();
    }
    const int64_t id = *a_.next_frame;
    write(id);
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

  // The frame stays at its place, for another turn of the ring.
  void pass_over(int64_t oldest) {
    frames_.move(oldest, oldest + ring_);
    for_each_needed([&](int64_t& id) { id = id == oldest ? oldest + ring_ : id; });
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

  Kept frames_;
  int64_t frame_bytes_, ring_;
  FrameArrays a_;
  Pending pending_;
  Index& index_;
  int64_t needed_from_ = 0;  // no unfinished transition needs an older frame
};

}  // namespace pser
