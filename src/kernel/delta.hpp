// One frame as what differs from another of the same size: which segments of 16 bytes do, and their changed bytes.
//
//   marks   a bit for each word that is not zero, in whole bytes
//   words   64 bits each, a bit for each segment that differs; words that are zero are left out
//   bodies  for each such segment: 16 bits that mark its changed bytes, then these bytes
//
// Written once for every processor; reading has a second build that expands eight bytes with one shuffle. Same bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "simd.hpp"
#if PSER_HAS_AVX2_BUILD
#include <immintrin.h>
#endif

namespace pser {

class Delta {
 public:
  explicit Delta(int64_t frame_bytes)
      : bytes_(frame_bytes), segments_((frame_bytes + kSegment - 1) / kSegment), words_((segments_ + 63) / 64), mark_bytes_((words_ + 7) / 8),
        changed_(static_cast<size_t>(words_)), bodies_(static_cast<size_t>(segments_ * (kSegment + 2))) {}

  // No delta is longer, and reading one never goes further, whatever its bytes are.
  int64_t longest() const { return mark_bytes_ + 8 * words_ + segments_ * (kSegment + 2) + 8; }

  // The frame as it differs from the key, in `out` (of longest() bytes); returns how many bytes it takes.
  int64_t write(const uint8_t* key, const uint8_t* frame, uint8_t* out) {
    std::fill(changed_.begin(), changed_.end(), uint64_t{0});
    uint8_t* body = bodies_.data();
    const int64_t whole = bytes_ / kSegment;
    for (int64_t s = 0; s < whole; ++s) body = write_segment(s, key + s * kSegment, frame + s * kSegment, body);
    if (whole < segments_) {
      const Segment a(key + whole * kSegment, rest()), b(frame + whole * kSegment, rest());
      body = write_segment(whole, a.bytes, b.bytes, body);
    }
    uint8_t* to = out + mark_bytes_;
    std::memset(out, 0, static_cast<size_t>(mark_bytes_));
    for (int64_t w = 0; w < words_; ++w) {
      if (changed_[static_cast<size_t>(w)] == 0) continue;
      out[w / 8] = static_cast<uint8_t>(out[w / 8] | 1 << w % 8);
      std::memcpy(to, &changed_[static_cast<size_t>(w)], 8);
      to += 8;
    }
    const auto size = static_cast<size_t>(body - bodies_.data());
    std::memcpy(to, bodies_.data(), size);
    return to - out + static_cast<int64_t>(size);
  }

  // The frame again, from the key and what `write` made of it.
  void read(const uint8_t* key, const uint8_t* delta, uint8_t* frame) const {
    std::memcpy(frame, key, static_cast<size_t>(bytes_));
#if PSER_HAS_AVX2_BUILD
    if (have_avx2()) return read_avx2(delta, frame);
#endif
    read_with(delta, frame, [](const uint8_t* body, uint8_t* to) { return expand(body, to); });
  }

 private:
  static constexpr int64_t kSegment = 16;

  // The last few bytes of a frame, made up to a segment.
  struct Segment {
    uint8_t bytes[kSegment] = {};
    Segment(const uint8_t* from, int64_t count) { std::memcpy(bytes, from, static_cast<size_t>(count)); }
  };

  int64_t rest() const { return bytes_ % kSegment; }

  uint8_t* write_segment(int64_t s, const uint8_t* key, const uint8_t* frame, uint8_t* body) {
    const unsigned mask = differing8(key, frame) | differing8(key + 8, frame + 8) << 8;
    if (mask == 0) return body;
    changed_[static_cast<size_t>(s / 64)] |= uint64_t{1} << s % 64;
    *body++ = static_cast<uint8_t>(mask);
    *body++ = static_cast<uint8_t>(mask >> 8);
    for (unsigned left = mask; left != 0; left &= left - 1) *body++ = frame[__builtin_ctz(left)];
    return body;
  }

  // One changed segment; returns where the next one's body begins.
  static const uint8_t* expand(const uint8_t* body, uint8_t* to) {
    unsigned mask = body[0] | static_cast<unsigned>(body[1]) << 8;
    for (body += 2; mask != 0; mask &= mask - 1) to[__builtin_ctz(mask)] = *body++;
    return body;
  }

  template <class Expand>
  PSER_INLINE void read_with(const uint8_t* delta, uint8_t* frame, const Expand& expand_one) const {
    const uint8_t* word = delta + mark_bytes_;
    int64_t marked = 0;
    for (int64_t m = 0; m < mark_bytes_; ++m) marked += __builtin_popcount(marks(delta, m));
    const uint8_t* body = word + 8 * marked;
    const int64_t whole = bytes_ / kSegment;
    for (int64_t w = 0; w < words_; ++w) {
      if (!(marks(delta, w / 8) >> w % 8 & 1)) continue;
      uint64_t left;
      std::memcpy(&left, word, 8);
      word += 8;
      if (w == words_ - 1 && segments_ % 64 != 0) left &= (uint64_t{1} << segments_ % 64) - 1;  // nothing lies beyond
      for (; left != 0; left &= left - 1) {
        const int64_t s = 64 * w + __builtin_ctzll(left);
        if (s < whole) {
          body = expand_one(body, frame + s * kSegment);
          continue;
        }
        Segment last(frame + s * kSegment, rest());
        body = expand_one(body, last.bytes);
        std::memcpy(frame + s * kSegment, last.bytes, static_cast<size_t>(rest()));
      }
    }
  }

  // Marks of words that there are.
  unsigned marks(const uint8_t* delta, int64_t m) const {
    return m == words_ / 8 ? delta[m] & ((1u << words_ % 8) - 1) : delta[m];
  }

#if PSER_HAS_AVX2_BUILD
  struct Shuffles {  // for every mask of eight bytes: which of the given ones goes where; 0x80 for none
    alignas(64) uint8_t of[256][8];
    Shuffles() {
      for (int mask = 0; mask < 256; ++mask)
        for (int bit = 0, next = 0; bit < 8; ++bit) of[mask][bit] = mask >> bit & 1 ? static_cast<uint8_t>(next++) : 0x80;
    }
  };

  PSER_AVX2 static const uint8_t* expand_eight(const Shuffles& shuffles, unsigned mask, const uint8_t* body, uint8_t* to) {
    const __m128i from = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(body));
    const __m128i where = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(shuffles.of[mask]));
    const __m128i old = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(to));
    const __m128i made = _mm_blendv_epi8(_mm_shuffle_epi8(from, where), old, where);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), made);
    return body + __builtin_popcount(mask);
  }

  PSER_AVX2 void read_avx2(const uint8_t* delta, uint8_t* frame) const {
    static const Shuffles shuffles;
    read_with(delta, frame, [](const uint8_t* body, uint8_t* to) PSER_AVX2 {
      const unsigned low = body[0], high = body[1];
      body = expand_eight(shuffles, low, body + 2, to);
      return expand_eight(shuffles, high, body, to + 8);
    });
  }
#endif

  int64_t bytes_, segments_, words_, mark_bytes_;
  std::vector<uint64_t> changed_;
  std::vector<uint8_t> bodies_;
};

}  // namespace pser
