// Frames in few bytes: each is a record, of a key frame by itself (runs.hpp; as it is if that is smaller) or of what changed since
// its stream's key frame (delta.hpp).
//
// Records are written in the order of frame ids into chunks of equal size. A delta's key is at most `key_age` frames older
// than it, so a chunk may be used again once its newest frame is `key_age` older than every frame in use: key frames
// outlive all that refers to them, and nothing is counted. The lowest free chunk is taken first, so as few as possible
// are ever touched.
//
// Reading is safe whatever the bytes are: a file may say anything.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "delta.hpp"
#include "runs.hpp"

namespace pser {

struct RecordArrays {
  uint8_t* chunks;      // (limit + 1, chunk_bytes): the last is never written, so that no read leaves the array
  int64_t* last_frame;  // (limit,): id of the newest frame in each chunk, −1 if it is free
  int64_t* used;        // (1,): no chunk from here on was ever written
  int64_t* filled;      // (1,): bytes written of the newest chunk
  int64_t* at;          // (ring,): where the record of each place begins
  int64_t* keys;        // (streams, 5): of each stream's key frame: record (−1: none), id; then see `is_worth`
  int64_t frame_bytes, ring, streams;
  int64_t limit, chunk_bytes;
  int64_t key_age;
  int64_t reserve;  // chunks that stay free for frames that must be moved
};

class Records {
 public:
  explicit Records(const RecordArrays& arrays)
      : a_(arrays),
        delta_(a_.frame_bytes),
        runs_(a_.frame_bytes),
        changed_(static_cast<size_t>(delta_.longest())),
        alone_(static_cast<size_t>(runs_.longest())),
        viewed_(static_cast<size_t>(a_.frame_bytes)),
        moved_(viewed_.size()),
        key_frame_(viewed_.size()) {}

  int64_t frame_bytes() const { return a_.frame_bytes; }
  int64_t ring() const { return a_.ring; }

  // The frame at a place, until the next call.
  const uint8_t* view(int64_t place) const {
    read(a_.at[place], viewed_.data());
    return viewed_.data();
  }

  void copy(const int32_t* places, int64_t count, uint8_t* out) const {
    for (int64_t k = 0; k < count; ++k, out += a_.frame_bytes) {
      if (k > 0 && places[k] == places[k - 1])
        std::memcpy(out, out - a_.frame_bytes, static_cast<size_t>(a_.frame_bytes));  // padding
      else
        read(a_.at[places[k]], out);
    }
  }

  // Where the records of the frames at these places begin will soon be read, and which keys they have.
  void find(const int32_t* places, int64_t count) const {
    for (int64_t k = 0; k < count; ++k) fetch_from_afar(a_.chunks + a_.at[places[k]]);
  }

  // What reading these frames will touch next.
  void prefetch(const int32_t* places, int64_t count) const {
    for (int64_t k = 0; k < count; ++k) {
      const uint8_t* record = a_.chunks + a_.at[places[k]];
      for (int64_t line = 1; line <= kLines; ++line) fetch_from_afar(record + 64 * line);
    }
    int64_t key;
    std::memcpy(&key, a_.chunks + a_.at[places[0]], kHeader);
    if (is_record(key) && key != key_read_)
      for (int64_t line = 0; line <= 2 * kLines; ++line) fetch_from_afar(a_.chunks + key + 64 * line);
  }

  void write(int64_t stream, int64_t id, const uint8_t* frame) {
    begin(id);
    int64_t* key = key_of(stream);
    int64_t alone = 0;  // bytes of the frame by itself, once they are asked for
    if (key[kRecord] >= 0 && key[kId] + a_.key_age >= id) {
      const int64_t size = delta_.write(frame_of_key(key[kRecord]), frame, changed_.data());
      const bool little = kLittle * size <= a_.frame_bytes && kLittle * key[kExcess] <= a_.frame_bytes;
      alone = little ? a_.frame_bytes : write_alone(frame);
      if (is_worth(key, size, alone)) {
        a_.at[id % a_.ring] = append(id, key[kRecord], changed_.data(), size);
        return;
      }
    }
    if (alone == 0) alone = write_alone(frame);
    a_.at[id % a_.ring] = key[kRecord] = append_alone(id, frame, alone);
    key[kId] = id;
    key[kDeltas] = key[kExcess] = 0;
  }

  // The frame of one id becomes that of another, as a record that needs no key.
  void move(int64_t id, int64_t to) {
    read(a_.at[id % a_.ring], moved_.data());
    begin(to);
    a_.at[to % a_.ring] = append_alone(to, moved_.data(), write_alone(moved_.data()));
  }

  // Must the oldest chunk go before another frame is written?
  bool is_short() {
    prepare();
    return static_cast<int64_t>(free_.size()) < a_.reserve;
  }

  // No frame up to this id can be read once the oldest chunk is gone.
  int64_t gone_with_oldest() const { return a_.last_frame[live_.front()] + a_.key_age; }

  void drop_oldest() {
    a_.last_frame[live_.front()] = -1;
    free_.push(live_.front());
    live_.pop_front();
  }

  const char* damage(int64_t next_frame) const {
    if (*a_.used < 0 || *a_.used > a_.limit) return "a number of chunks is out of range";
    if (*a_.filled < 0 || *a_.filled > a_.chunk_bytes) return "the end of a chunk is out of range";
    for (int64_t place = 0; place < std::min(next_frame, a_.ring); ++place)
      if (!is_record(a_.at[place])) return "the place of a frame's record is out of range";
    for (int64_t e = 0; e < a_.streams; ++e) {
      const int64_t* key = key_of(e);
      if (key[kRecord] != -1 && !is_record(key[kRecord])) return "the place of a key frame is out of range";
      if (key[kId] < 0 || key[kId] > next_frame || key[kDeltas] < 0 || key[kDeltas] > a_.key_age)
        return "what is told of a key frame is out of range";
      if (key[kExcess] < 0 || key[kExcess] > 2 * a_.frame_bytes || key[kUsual] < 0 || key[kUsual] > a_.frame_bytes)
        return "what is told of a key frame is out of range";
    }
    std::vector<int64_t> newest;
    for (int64_t c = 0; c < a_.limit; ++c) {
      if (a_.last_frame[c] < -1 || a_.last_frame[c] >= next_frame || (a_.last_frame[c] >= 0 && c >= *a_.used))
        return "the newest frame of a chunk is out of range";
      if (a_.last_frame[c] >= 0) newest.push_back(a_.last_frame[c]);
    }
    std::sort(newest.begin(), newest.end());
    for (size_t i = 1; i < newest.size(); ++i)  // a chunk is left when the next record does not fit: it holds as many at least
      if (newest[i] <= newest[i - 1] || (i + 1 < newest.size() && newest[i] - newest[i - 1] < kLeastRecords))
        return "a chunk holds too few frames";
    return (next_frame > 0) == !newest.empty() ? nullptr : "there are frames and no chunks";
  }

 private:
  enum { kRecord, kId, kDeltas, kExcess, kUsual, kNumbers };  // of a key frame
  static constexpr int64_t kJustAfter = 4;
  static constexpr int64_t kLittle = 32;  // no key is worth it while deltas take less than such a part of a frame
  static constexpr int64_t kLines = 8;   // of a record, fetched ahead: the processor follows from there by itself
  static constexpr int64_t kHeader = 8;  // of a record: where its key's is, or what it is by itself:
  static constexpr int64_t kAsItIs = -1, kRuns = -2;
  static constexpr int64_t kLeastRecords = 16;

  bool is_record(int64_t at) const { return at >= 0 && at < a_.limit * a_.chunk_bytes; }
  int64_t* key_of(int64_t stream) const { return a_.keys + kNumbers * stream; }

  // A delta of this size, or a new key, of the frame alone? A new one when those since the key took as many bytes more than
  // deltas usually take just after their key: what was spent on hoping is then never more than what the new key costs.
  bool is_worth(int64_t* key, int64_t size, int64_t alone) const {
    if (size >= alone || 2 * size > a_.frame_bytes) return false;
    if (key[kDeltas] < kJustAfter) {
      const bool less = key[kUsual] == 0 || size < key[kUsual];
      key[kUsual] = less ? size : key[kUsual] + (size - key[kUsual]) / 4;
    }
    ++key[kDeltas];
    key[kExcess] = std::max<int64_t>(0, key[kExcess] + size - key[kUsual]);
    return key[kExcess] <= alone;
  }

  // Bytes of the frame by itself; less than the frame's if its runs are in `alone_`.
  int64_t write_alone(const uint8_t* frame) { return std::min(runs_.write(frame, alone_.data()), a_.frame_bytes); }

  int64_t append_alone(int64_t id, const uint8_t* frame, int64_t size) {
    return size < a_.frame_bytes ? append(id, kRuns, alone_.data(), size) : append(id, kAsItIs, frame, size);
  }

  // The frame of a key's record. The last one is kept: a stack mostly has one key.
  const uint8_t* frame_of_key(int64_t record) const {
    const uint8_t* from = a_.chunks + record;
    int64_t kind;
    std::memcpy(&kind, from, kHeader);
    if (kind != kRuns) return from + kHeader;
    if (key_read_ != record) runs_.read(from + kHeader, key_frame_.data());
    key_read_ = record;
    return key_frame_.data();
  }

  void read(int64_t record, uint8_t* out) const {
    const uint8_t* from = a_.chunks + record;
    int64_t key;
    std::memcpy(&key, from, kHeader);
    if (is_record(key))
      delta_.read(frame_of_key(key), from + kHeader, out);
    else if (key == kRuns)
      std::memcpy(out, frame_of_key(record), static_cast<size_t>(a_.frame_bytes));  // those after it will want it too
    else
      std::memcpy(out, from + kHeader, static_cast<size_t>(a_.frame_bytes));
  }

  // Chunks that nothing in the ring refers to are free.
  void begin(int64_t id) {
    prepare();
    while (live_.size() > 1 && gone_with_oldest() + a_.ring <= id) drop_oldest();
  }

  int64_t append(int64_t id, int64_t key, const uint8_t* content, int64_t size) {
    if (live_.empty() || *a_.filled + kHeader + size > a_.chunk_bytes) {
      live_.push_back(free_.top());
      free_.pop();
      *a_.filled = 0;
      *a_.used = std::max(*a_.used, live_.back() + 1);
    }
    const int64_t record = live_.back() * a_.chunk_bytes + *a_.filled;
    if (record == key_read_) key_read_ = -1;
    std::memcpy(a_.chunks + record, &key, kHeader);
    std::memcpy(a_.chunks + record + kHeader, content, static_cast<size_t>(size));
    *a_.filled += kHeader + size;
    a_.last_frame[live_.back()] = id;
    return record;
  }

  // Before the first write: by then a file has been read.
  void prepare() {
    if (!live_.empty() || !free_.empty()) return;
    for (int64_t c = 0; c < a_.limit; ++c) {
      if (a_.last_frame[c] >= 0)
        live_.push_back(c);
      else
        free_.push(c);
    }
    std::sort(live_.begin(), live_.end(), [this](int64_t a, int64_t b) { return a_.last_frame[a] < a_.last_frame[b]; });
  }

  RecordArrays a_;
  Delta delta_;
  Runs runs_;
  std::vector<uint8_t> changed_, alone_;
  mutable std::vector<uint8_t> viewed_;
  std::vector<uint8_t> moved_;
  mutable std::vector<uint8_t> key_frame_;
  mutable int64_t key_read_ = -1;  // the record whose frame that is
  std::deque<int64_t> live_;  // chunks in use, oldest first
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<int64_t>> free_;
};

}  // namespace pser
