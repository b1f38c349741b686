// A field kept whole for every transition: its observation and its next one.
#pragma once

#include "column.hpp"

namespace pser {

struct FieldArrays {
  uint8_t* now;      // (capacity, bytes)
  uint8_t* next;     // (capacity, bytes)
  uint8_t* pending;  // (streams, n_step, bytes): where unfinished transitions began
  uint8_t* newest;   // (streams, bytes): where each stream is, kept if n_step > 1
  int64_t bytes;
};

class ArrayColumn final : public Column {
 public:
  ArrayColumn(const FieldArrays& arrays, const Pending& pending) : a_(arrays), pending_(pending) {}

  int64_t row_bytes() const override { return a_.bytes; }
  const char* refusal(const uint8_t*, const uint8_t*) const override { return nullptr; }

  void remember(int64_t stream, int64_t entry, const uint8_t* now) override {
    copy(a_.pending + pending_.at(stream, entry) * a_.bytes, now);
  }

  void advance(int64_t stream, const uint8_t* next) override {
    next_ = next;  // of one step: committed before the caller takes it back
    if (pending_.n_step > 1) copy(a_.newest + stream * a_.bytes, next);
  }

  void commit(int64_t stream, int64_t entry, int64_t slot) override {
    copy(a_.now + slot * a_.bytes, a_.pending + pending_.at(stream, entry) * a_.bytes);
    copy(a_.next + slot * a_.bytes, pending_.n_step > 1 ? a_.newest + stream * a_.bytes : next_);
  }

  void gather(int64_t count, const int64_t* slots, uint8_t* now, uint8_t* next) const override {
    copy_rows(count, slots, a_.now, a_.bytes, now);
    copy_rows(count, slots, a_.next, a_.bytes, next);
  }

  void gather_runs(const RunsOfSlots& of, uint8_t* now, uint8_t* next) const override {
    copy_runs(of, a_.now, a_.bytes, now);
    copy_runs(of, a_.next, a_.bytes, next);
  }

  const char* damage(int64_t) const override { return nullptr; }  // any bytes are a value

 private:
  void copy(uint8_t* to, const uint8_t* from) const { std::memcpy(to, from, static_cast<size_t>(a_.bytes)); }

  FieldArrays a_;
  Pending pending_;
  const uint8_t* next_ = nullptr;
};

}  // namespace pser
