// One frame by itself, as the bytes that differ from the byte before them.
//
//   marks     a bit for each eight bytes of which any does, in whole bytes
//   masks     for each of these: eight bits that tell which
//   a zero    what the first byte is compared with
//   literals  these bytes
//
// Between two of them all is alike: pictures of few colours get several times smaller. Reading has a second build that
// lays out eight bytes with one shuffle. Same bytes.
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

class Runs {
 public:
  explicit Runs(int64_t frame_bytes)
      : bytes_(frame_bytes), eights_((frame_bytes + 7) / 8), mark_bytes_((eights_ + 7) / 8), literals_(static_cast<size_t>(8 * eights_)) {}

  // None is longer, and reading one never goes further, whatever its bytes are.
  int64_t longest() const { return mark_bytes_ + eights_ + 1 + 8 * eights_ + 16; }

  // The frame in `out` (of longest() bytes); returns how many bytes it takes.
  int64_t write(const uint8_t* frame, uint8_t* out) {
    std::memset(out, 0, static_cast<size_t>(mark_bytes_));
    uint8_t* mask = out + mark_bytes_;
    uint8_t* literal = literals_.data();
    Edge edge;
    for (int64_t e = 0; e < eights_; ++e) {
      const bool inside = e > 0 && 8 * e + 8 <= bytes_;
      if (!inside) edge = Edge(frame, e, bytes_);
      const uint8_t* here = inside ? frame + 8 * e : edge.bytes + 1;
      const unsigned differ = differing8(here, here - 1);
      if (differ == 0) continue;
      out[e / 8] = static_cast<uint8_t>(out[e / 8] | 1 << e % 8);
      *mask++ = static_cast<uint8_t>(differ);
      for (unsigned left = differ; left != 0; left &= left - 1) *literal++ = here[__builtin_ctz(left)];
    }
    *mask++ = 0;
    const auto size = static_cast<size_t>(literal - literals_.data());
    std::memcpy(mask, literals_.data(), size);
    return mask - out + static_cast<int64_t>(size);
  }

  // The frame again, from what `write` made of it.
  void read(const uint8_t* from, uint8_t* frame) const {
#if PSER_HAS_AVX2_BUILD
    if (have_avx2()) return read_avx2(from, frame);
#endif
    read_with(
        from, frame, [](unsigned marked, const uint8_t* masks) { return spread(marked, masks); },
        [](unsigned mask, const uint8_t* literal, uint8_t* to) { expand(mask, literal, to); },
        [](uint8_t value, uint8_t* to) { std::memset(to, value, 64); });
  }

 private:
  // The first eight bytes of a frame or its last ones, and the one before: a zero before the first; beyond the end the last one
  // again, which costs nothing.
  struct Edge {
    uint8_t bytes[9] = {};
    Edge() = default;
    Edge(const uint8_t* frame, int64_t e, int64_t frame_bytes) {
      for (int64_t i = 0; i < 9; ++i) {
        const int64_t at = std::min(8 * e + i - 1, frame_bytes - 1);
        bytes[i] = at >= 0 ? frame[at] : 0;
      }
    }
  };

  // Eight masks, the first in the lowest bits: of each marked eight bytes the next one of these, of the others nothing.
  static uint64_t spread(unsigned marked, const uint8_t* masks) {
    uint64_t all = 0;
    for (unsigned left = marked; left != 0; left &= left - 1) all |= uint64_t{*masks++} << 8 * __builtin_ctz(left);
    return all;
  }

  // literal[0] is the byte before; each mark takes the next one.
  static void expand(unsigned mask, const uint8_t* literal, uint8_t* to) {
    for (int i = 0; i < 8; ++i) {
      literal += mask >> i & 1;
      to[i] = *literal;
    }
  }

  template <class Spread, class Expand, class Fill>
  PSER_INLINE void read_with(const uint8_t* from, uint8_t* frame, const Spread& spread_eight, const Expand& expand_eight,
                             const Fill& fill_64) const {
    const uint8_t* mask = from + mark_bytes_;
    const uint8_t* last = mask;  // the literal before the next one
    for (int64_t m = 0; m < mark_bytes_; ++m) last += __builtin_popcount(marks(from, m));
    const int64_t whole = bytes_ / 8;  // in full
    for (int64_t e = 0; e < eights_; e += 8) {
      const unsigned marked = marks(from, e / 8);
      if (marked == 0 && e + 8 <= whole) {
        fill_64(*last, frame + 8 * e);
        continue;
      }
      uint64_t differ = spread_eight(marked, mask);
      mask += __builtin_popcount(marked);
      const auto next_eight = [&](uint8_t* to) __attribute__((always_inline)) {
        expand_eight(differ & 0xff, last, to);
        last += __builtin_popcount(differ & 0xff);
        differ >>= 8;
      };
      if (e + 8 <= whole) {
        for (int i = 0; i < 8; ++i) next_eight(frame + 8 * (e + i));
      } else {
        uint8_t rest[64];
        for (int i = 0; i < 8; ++i) next_eight(rest + 8 * i);
        std::memcpy(frame + 8 * e, rest, static_cast<size_t>(bytes_ - 8 * e));
      }
    }
  }

  // Marks of bytes that there are.
  unsigned marks(const uint8_t* from, int64_t m) const {
    return m == eights_ / 8 ? from[m] & ((1u << eights_ % 8) - 1) : from[m];
  }

#if PSER_HAS_AVX2_BUILD
  // For every mask of eight: how many marks there are up to each; which of the given masks goes where, 0x80 for none.
  struct Shuffles {
    alignas(64) uint8_t of[256][8], spread[256][8];
    Shuffles() {
      for (int mask = 0; mask < 256; ++mask)
        for (int bit = 0, marks = 0; bit < 8; ++bit) {
          const bool marked = mask >> bit & 1;
          spread[mask][bit] = marked ? static_cast<uint8_t>(marks) : 0x80;
          of[mask][bit] = static_cast<uint8_t>(marks += marked);
        }
    }
  };

  PSER_AVX2 void read_avx2(const uint8_t* from, uint8_t* frame) const {
    static const Shuffles shuffles;
    read_with(
        from, frame,
        [](unsigned marked, const uint8_t* masks) PSER_AVX2 {
          const __m128i given = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(masks));
          const __m128i where = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(shuffles.spread[marked]));
          return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_shuffle_epi8(given, where)));
        },
        [](unsigned mask, const uint8_t* literal, uint8_t* to) PSER_AVX2 {
          const __m128i given = _mm_loadu_si128(reinterpret_cast<const __m128i*>(literal));
          const __m128i which = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(shuffles.of[mask]));
          _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(given, which));
        },
        [](uint8_t value, uint8_t* to) PSER_AVX2 {
          const __m256i all = _mm256_set1_epi8(static_cast<char>(value));
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), all);
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), all);
        });
  }
#endif

  int64_t bytes_, eights_, mark_bytes_;
  std::vector<uint8_t> literals_;
};

}  // namespace pser
