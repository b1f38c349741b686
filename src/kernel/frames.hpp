// Frame stacks with each frame stored once: a ring of frames, and for every transition the places of its frames.
//
// Nothing is assumed of how an environment pads a stack: a frame is shared only after its bytes were compared, so the
// observations come back bit for bit. Arrays belong to Python (which saves them); this class only writes through them.
#pragma once

#include <cstdint>
#include <cstring>

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
  int64_t lag;  // a transition's frames are at most this much older than its newest one
};

class FrameRing {
 public:
  explicit FrameRing(const FrameArrays& arrays, bool one_step) : a_(arrays), one_step_(one_step) {}

  int64_t stack() const { return a_.stack; }
  int64_t frame_bytes() const { return a_.frame_bytes; }
  int64_t row_bytes() const { return a_.stack * a_.frame_bytes; }
  // One step: the next stack is the stack moved by one frame, so stack + 1 places tell both.
  int64_t places_per_row() const { return one_step_ ? a_.stack + 1 : 2 * a_.stack; }

  // Is `next` the stack `now` moved on by one frame?
  bool follows(const uint8_t* now, const uint8_t* next) const {
    return std::memcmp(now + a_.frame_bytes, next, static_cast<size_t>((a_.stack - 1) * a_.frame_bytes)) == 0;
  }

  // The stack's frame ids, storing what the stream does not hold already. `make_room` is called before each write.
  template <class MakeRoom>
  void store_stack(int64_t stream, const uint8_t* observation, const MakeRoom& make_room) {
    int64_t* held = stream_stack(stream);
    bool same = true;
    for (int64_t k = 0; k < a_.stack && same; ++k) same = fresh(held[k]) && equal(held[k], observation + k * a_.frame_bytes);
    if (same) return;
    for (int64_t k = 0; k < a_.stack; ++k) {
      const uint8_t* frame = observation + k * a_.frame_bytes;
      if (k > 0 && equal(held[k - 1], frame))
        held[k] = held[k - 1];  // padding repeats a frame: share it with the neighbour
      else if (!(fresh(held[k]) && equal(held[k], frame)))
        held[k] = store(frame, make_room);
    }
  }

  // Move the stream's stack on by the newest frame of its next observation.
  template <class MakeRoom>
  void push_newest(int64_t stream, const uint8_t* next_observation, const MakeRoom& make_room) {
    int64_t* held = stream_stack(stream);
    const int64_t id = store(next_observation + (a_.stack - 1) * a_.frame_bytes, make_room);
    std::memmove(held, held + 1, static_cast<size_t>(a_.stack - 1) * sizeof(int64_t));
    held[a_.stack - 1] = id;
  }

  void remember_pending(int64_t stream, int64_t n_step, int64_t entry) {
    std::memcpy(pending(stream, n_step, entry), stream_stack(stream), static_cast<size_t>(a_.stack) * sizeof(int64_t));
  }

  // Are the frames of a pending observation all retained? Those about to be overwritten are stored anew.
  template <class MakeRoom>
  bool revive_pending(int64_t stream, int64_t n_step, int64_t entry, const MakeRoom& make_room) {
    int64_t* ids = pending(stream, n_step, entry);
    for (int64_t k = 0; k < a_.stack; ++k) {
      if (fresh(ids[k])) continue;
      // The place a new frame takes may be the very one to be copied; that copy is still whole.
      if (ids[k] < *a_.next_frame - a_.ring) return false;
      ids[k] = store(at(ids[k]), make_room);
    }
    return true;
  }

  // Write the places of a transition: `now` are the frame ids of its observation, its next one is the stream's newest.
  void write_places(int64_t slot, int64_t stream, const int64_t* now) {
    int32_t* places = a_.places + slot * places_per_row();
    const int64_t* next = stream_stack(stream);
    for (int64_t k = 0; k < a_.stack; ++k) places[k] = place(now[k]);
    if (one_step_)
      places[a_.stack] = place(next[a_.stack - 1]);
    else
      for (int64_t k = 0; k < a_.stack; ++k) places[a_.stack + k] = place(next[k]);
  }

  // Would storing one more frame overwrite a frame of the transition in this slot?
  bool is_threatened(int64_t slot) const {
    const int32_t newest = a_.places[slot * places_per_row() + places_per_row() - 1];
    const int64_t steps_back = *a_.next_frame - 1 - newest;
    const int64_t newest_id = *a_.next_frame - 1 - ((steps_back % a_.ring) + a_.ring) % a_.ring;
    return newest_id - a_.lag <= *a_.next_frame - a_.ring;
  }

  // Copy a transition's frames: (stack + 1) frames, or the observation's and the next one's stacks apart.
  void gather(int64_t slot, int64_t row, uint8_t* out, uint8_t* next_out) const {
    const int32_t* places = a_.places + slot * places_per_row();
    const int64_t first = one_step_ ? a_.stack + 1 : a_.stack;
    copy_frames(places, first, out + row * first * a_.frame_bytes);
    if (!one_step_) copy_frames(places + a_.stack, a_.stack, next_out + row * row_bytes());
  }

  const int64_t* pending_ids(int64_t stream, int64_t n_step, int64_t entry) { return pending(stream, n_step, entry); }
  int64_t* stream_stack(int64_t stream) { return a_.stream_stack + stream * a_.stack; }

 private:
  int64_t* pending(int64_t stream, int64_t n_step, int64_t entry) { return a_.pending + (stream * n_step + entry) * a_.stack; }
  int32_t place(int64_t id) const { return static_cast<int32_t>(id % a_.ring); }
  uint8_t* at(int64_t id) const { return a_.frames + (id % a_.ring) * a_.frame_bytes; }
  // Young enough to be shared with a new transition without pulling its age apart.
  bool fresh(int64_t id) const { return id >= 0 && id + a_.lag / 2 >= *a_.next_frame; }
  bool equal(int64_t id, const uint8_t* frame) const {
    return std::memcmp(at(id), frame, static_cast<size_t>(a_.frame_bytes)) == 0;
  }

  template <class MakeRoom>
  int64_t store(const uint8_t* frame, const MakeRoom& make_room) {
    make_room();
    const int64_t id = *a_.next_frame;
    std::memmove(at(id), frame, static_cast<size_t>(a_.frame_bytes));
    ++*a_.next_frame;
    return id;
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
  bool one_step_;
};

}  // namespace pser
