// One frame as what differs from another of the same size: which segments of 16 bytes do, and their changed bytes.
//
//   marks   a bit for each word that is not zero, in whole bytes
//   words   64 bits each, a bit for each segment that differs; words that are zero are left out
//   masks   for each such segment: 16 bits that mark its changed bytes
//   bytes   these bytes
//
// Masks lie apart from bytes, so that where the next segment's bytes begin is known without waiting for a load. Written once for
// every processor; reading has a second build that lays out a segment with one shuffle. Same bytes.
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
        changed_(static_cast<size_t>(words_)), masks_(static_cast<size_t>(segments_)), bytes_changed_(static_cast<size_t>(segments_ * kSegment)) {}

  // No delta is longer, and reading one never goes further, whatever its bytes are.
  int64_t longest() const { return mark_bytes_ + 8 * words_ + segments_ * (kSegment + 2) + 8; }

  // The frame as it differs from the key, in `out` (of longest() bytes); returns how many bytes it takes.
  int64_t write(const uint8_t* key, const uint8_t* frame, uint8_t* out) {
    std::fill(changed_.begin(), changed_.end(), uint64_t{0});
    masks_count_ = bytes_count_ = 0;
    const int64_t whole = bytes_ / kSegment;
    for (int64_t s = 0; s < whole; ++s) write_segment(s, key + s * kSegment, frame + s * kSegment);
    if (whole < segments_) {
      const Segment a(key + whole * kSegment, rest()), b(frame + whole * kSegment, rest());
      write_segment(whole, a.bytes, b.bytes);
    }
    uint8_t* to = out + mark_bytes_;
    std::memset(out, 0, static_cast<size_t>(mark_bytes_));
    for (int64_t w = 0; w < words_; ++w) {
      if (changed_[static_cast<size_t>(w)] == 0) continue;
      out[w / 8] = static_cast<uint8_t>(out[w / 8] | 1 << w % 8);
      std::memcpy(to, &changed_[static_cast<size_t>(w)], 8);
      to += 8;
    }
    std::memcpy(to, masks_.data(), kMaskBytes * masks_count_);
    to += kMaskBytes * masks_count_;
    std::memcpy(to, bytes_changed_.data(), bytes_count_);
    return to - out + static_cast<int64_t>(bytes_count_);
  }

  // The frame again, from the key and what `write` made of it.
  void read(const uint8_t* key, const uint8_t* delta, uint8_t* frame) const {
    std::memcpy(frame, key, static_cast<size_t>(bytes_));
#if PSER_HAS_AVX2_BUILD
    if (have_avx2()) return read_avx2(delta, frame);
#endif
    read_with(delta, frame, [](unsigned mask, const uint8_t* given, uint8_t* to) { expand(mask, given, to); });
  }

 private:
  static constexpr int64_t kSegment = 16, kMaskBytes = 2;

  // The last few bytes of a frame, made up to a segment.
  struct Segment {
    uint8_t bytes[kSegment] = {};
    Segment(const uint8_t* from, int64_t count) { std::memcpy(bytes, from, static_cast<size_t>(count)); }
  };

  int64_t rest() const { return bytes_ % kSegment; }

  void write_segment(int64_t s, const uint8_t* key, const uint8_t* frame) {
    const unsigned mask = differing8(key, frame) | differing8(key + 8, frame + 8) << 8;
    if (mask == 0) return;
    changed_[static_cast<size_t>(s / 64)] |= uint64_t{1} << s % 64;
    masks_[masks_count_++] = static_cast<uint16_t>(mask);
    for (unsigned left = mask; left != 0; left &= left - 1) bytes_changed_[bytes_count_++] = frame[__builtin_ctz(left)];
  }

  // The changed bytes of one segment, put where its mask says.
  static void expand(unsigned mask, const uint8_t* given, uint8_t* to) {
    for (; mask != 0; mask &= mask - 1) to[__builtin_ctz(mask)] = *given++;
  }

  template <class Expand>
  PSER_INLINE void read_with(const uint8_t* delta, uint8_t* frame, const Expand& expand_one) const {
    const uint8_t* const words = delta + mark_bytes_;
    int64_t marked = 0, changed = 0;
    for (int64_t m = 0; m < mark_bytes_; ++m) marked += __builtin_popcount(marks(delta, m));
    for_each_word(delta, words, [&](int64_t, uint64_t segments) { changed += __builtin_popcountll(segments); });
    const uint8_t* mask_at = words + 8 * marked;
    const uint8_t* given = mask_at + kMaskBytes * changed;
    const int64_t whole = bytes_ / kSegment;
    for_each_word(delta, words, [&](int64_t w, uint64_t left) __attribute__((always_inline)) {
      for (; left != 0; left &= left - 1, mask_at += kMaskBytes) {
        const int64_t s = 64 * w + __builtin_ctzll(left);
        uint16_t mask;
        std::memcpy(&mask, mask_at, kMaskBytes);
        if (s < whole) {
          expand_one(mask, given, frame + s * kSegment);
        } else {
          Segment last(frame + s * kSegment, rest());
          expand_one(mask, given, last.bytes);
          std::memcpy(frame + s * kSegment, last.bytes, static_cast<size_t>(rest()));
        }
        given += __builtin_popcount(mask);
      }
    });
  }

  // visit(w, bits of the segments that differ) for the words that are marked; bits beyond the last segment are left out.
  template <class Visit>
  PSER_INLINE void for_each_word(const uint8_t* delta, const uint8_t* word, const Visit& visit) const {
    for (int64_t w = 0; w < words_; ++w) {
      if (!(marks(delta, w / 8) >> w % 8 & 1)) continue;
      uint64_t segments;
      std::memcpy(&segments, word, 8);
      word += 8;
      if (w == words_ - 1 && segments_ % 64 != 0) segments &= (uint64_t{1} << segments_ % 64) - 1;
      visit(w, segments);
    }
  }

  // Marks of words that there are.
  unsigned marks(const uint8_t* delta, int64_t m) const {
    return m == words_ / 8 ? delta[m] & ((1u << words_ % 8) - 1) : delta[m];
  }

#if PSER_HAS_AVX2_BUILD
  // For every mask of eight bytes: which of the given ones goes where, 0x80 for none. The given ones are the first eight of a
  // register, for the second half of a segment the next eight.
  struct Shuffles {
    alignas(64) uint8_t first[256][8], second[256][8];
    Shuffles() {
      for (int mask = 0; mask < 256; ++mask)
        for (int bit = 0, next = 0; bit < 8; ++bit) {
          const bool given = mask >> bit & 1;
          first[mask][bit] = given ? static_cast<uint8_t>(next) : 0x80;
          second[mask][bit] = given ? static_cast<uint8_t>(8 + next) : 0x80;
          next += given;
        }
    }
  };

  // Eight bytes each, side by side.
  PSER_AVX2 static __m128i two_eights(const uint8_t* first, const uint8_t* second) {
    int64_t low, high;
    std::memcpy(&low, first, 8);
    std::memcpy(&high, second, 8);
    return _mm_set_epi64x(high, low);
  }

  PSER_AVX2 void read_avx2(const uint8_t* delta, uint8_t* frame) const {
    static const Shuffles shuffles;
    read_with(delta, frame, [](unsigned mask, const uint8_t* given, uint8_t* to) PSER_AVX2 {
      const unsigned low = mask & 0xff, high = mask >> 8;
      const __m128i changed = two_eights(given, given + __builtin_popcount(low));
      const __m128i where = two_eights(shuffles.first[low], shuffles.second[high]);
      const __m128i old = _mm_loadu_si128(reinterpret_cast<const __m128i*>(to));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_blendv_epi8(_mm_shuffle_epi8(changed, where), old, where));
    });
  }
#endif

  int64_t bytes_, segments_, words_, mark_bytes_;
  // What `write` collects.
  std::vector<uint64_t> changed_;
  std::vector<uint16_t> masks_;
  std::vector<uint8_t> bytes_changed_;
  size_t masks_count_ = 0, bytes_count_ = 0;
};

}  // namespace pser
