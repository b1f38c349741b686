// Sums and comparisons of many values at once, written once with vector types and compiled twice (portable and AVX2).
// The order of the additions is fixed, so both builds, and every machine, give the same bits.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#define PSER_INLINE inline __attribute__((always_inline))
#define PSER_INLINED __attribute__((always_inline))  // the same of a lambda
#if defined(__x86_64__)
#define PSER_HAS_AVX2_BUILD 1
#define PSER_AVX2 __attribute__((target("avx2")))
#else
#define PSER_HAS_AVX2_BUILD 0
#define PSER_AVX2
#endif

namespace pser {

constexpr int kFan = 16;  // children of a node: two cache lines of float64

typedef double Four __attribute__((vector_size(32)));
typedef int64_t FourLanes __attribute__((vector_size(32)));

// Four of the eight numbers of two vectors, by their places 0 to 7: one instruction, spelled as the compiler knows it.
#if defined(__clang__) || __GNUC__ >= 12
#define PSER_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PSER_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, FourLanes{i, j, k, l})
#endif

// Where `chosen` the first, else the second.
PSER_INLINE Four select(FourLanes chosen, Four a, Four b) {
  return reinterpret_cast<Four>((chosen & reinterpret_cast<FourLanes>(a)) | (~chosen & reinterpret_cast<FourLanes>(b)));
}

PSER_INLINE double sum16(const double* a) {
  const Four* v = reinterpret_cast<const Four*>(a);
  Four s = (v[0] + v[1]) + (v[2] + v[3]);
  return (s[0] + s[1]) + (s[2] + s[3]);
}

// The smallest value above zero, +infinity if there is none.
PSER_INLINE double min16(const double* a) {
  double least = __builtin_inf();
  for (int i = 0; i < kFan; ++i) least = (a[i] > 0.0 && a[i] < least) ? a[i] : least;
  return least;
}

// The least of many, infinity of none; four at a time, for one after the other each would wait for the last.
PSER_INLINE double least_of(int64_t count, const double* a) {
  double least[4] = {__builtin_inf(), __builtin_inf(), __builtin_inf(), __builtin_inf()};
  const double* const end = a + count;
  for (; end - a >= 4; a += 4)
    for (int k = 0; k < 4; ++k) least[k] = a[k] < least[k] ? a[k] : least[k];
  for (; a != end; ++a) least[0] = *a < least[0] ? *a : least[0];
  for (int k = 1; k < 4; ++k) least[0] = least[k] < least[0] ? least[k] : least[0];
  return least[0];
}

// Bit i is set where factor·a[i] exceeds the i-th of 32 numbers: those of `low`, then those of `high`. The first eight are left
// out if nobody asks for them. One comparison after the other, for the bits are gathered only once.
PSER_INLINE uint32_t exceeding32(const double* a, double factor, const double* low, const double* high, bool first_eight) {
  FourLanes bits = {};
  const auto compare = [&](int begin, int end) PSER_INLINED {
    for (int i = begin; i < end; i += 4) {
      Four product;
      std::memcpy(&product, a + i, sizeof product);  // not aligned
      product *= factor;
      const Four held = *reinterpret_cast<const Four*>(i < 16 ? low + i : high + (i - 16));
      bits |= (product > held) & (FourLanes{1, 2, 4, 8} << i);
    }
  };
  if (first_eight) compare(0, 8);
  compare(8, 32);
  bits |= PSER_SHUFFLE(bits, bits, 2, 3, 0, 1);
  return static_cast<uint32_t>(bits[0] | bits[1]);
}

// A bit for each byte in which two times eight bytes differ.
inline unsigned differing8(const uint8_t* a, const uint8_t* b) {
  uint64_t x, y;
  std::memcpy(&x, a, 8);
  std::memcpy(&y, b, 8);
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  const uint64_t d = x ^ y, top = (d | ((d & kLow) + kLow)) & ~kLow;  // the top bit of every byte that is not zero
  return static_cast<unsigned>((top >> 7) * 0x0102040810204080 >> 56);
}

// For each of four draws, lane by lane: which of the shares that end at `first`, at first + second, … covers x?
// x becomes the offset within that share. The ends grow, so those at or below x are the first ones.
PSER_INLINE FourLanes covering(Four first, Four second, Four third, Four& x) {
  const Four two = first + second, three = two + third;
  const FourLanes past1 = first <= x, past2 = two <= x, past3 = three <= x;
  x -= select(past3, three, select(past2, two, reinterpret_cast<Four>(past1 & reinterpret_cast<FourLanes>(first))));
  return -(past1 + past2 + past3);
}

// Four draws at once, each of a node of its own: the child whose share of the node's sum covers x; x becomes the offset within
// that child. A child of zero mass is never picked as long as one child is positive, whatever x rounds to.
PSER_INLINE FourLanes pick16(const double* const (&nodes)[4], Four& x) {
  // The sums of each node's groups of four: first of neighbours, then of pairs of neighbours.
  Four pairs[4][2];
  for (int i = 0; i < 4; ++i) {
    const Four* v = reinterpret_cast<const Four*>(nodes[i]);
    pairs[i][0] = PSER_SHUFFLE(v[0], v[1], 0, 4, 2, 6) + PSER_SHUFFLE(v[0], v[1], 1, 5, 3, 7);
    pairs[i][1] = PSER_SHUFFLE(v[2], v[3], 0, 4, 2, 6) + PSER_SHUFFLE(v[2], v[3], 1, 5, 3, 7);
  }
  Four even[2], odd[2];  // of draws 0 and 2, of draws 1 and 3: two groups each
  for (int half = 0; half < 2; ++half) {
    even[half] = PSER_SHUFFLE(pairs[0][half], pairs[2][half], 0, 1, 4, 5) + PSER_SHUFFLE(pairs[0][half], pairs[2][half], 2, 3, 6, 7);
    odd[half] = PSER_SHUFFLE(pairs[1][half], pairs[3][half], 0, 1, 4, 5) + PSER_SHUFFLE(pairs[1][half], pairs[3][half], 2, 3, 6, 7);
  }
  const FourLanes group = covering(PSER_SHUFFLE(even[0], odd[0], 0, 4, 2, 6), PSER_SHUFFLE(even[0], odd[0], 1, 5, 3, 7),
                                   PSER_SHUFFLE(even[1], odd[1], 0, 4, 2, 6), x);

  Four rows[4];
  for (int i = 0; i < 4; ++i) rows[i] = *reinterpret_cast<const Four*>(nodes[i] + 4 * group[i]);
  const Four low01 = PSER_SHUFFLE(rows[0], rows[1], 0, 4, 2, 6), high01 = PSER_SHUFFLE(rows[0], rows[1], 1, 5, 3, 7);
  const Four low23 = PSER_SHUFFLE(rows[2], rows[3], 0, 4, 2, 6), high23 = PSER_SHUFFLE(rows[2], rows[3], 1, 5, 3, 7);
  const Four first = PSER_SHUFFLE(low01, low23, 0, 1, 4, 5), second = PSER_SHUFFLE(high01, high23, 0, 1, 4, 5);
  const Four third = PSER_SHUFFLE(low01, low23, 2, 3, 6, 7), fourth = PSER_SHUFFLE(high01, high23, 2, 3, 6, 7);
  const FourLanes within = covering(first, second, third, x);
  FourLanes child = 4 * group + within;

  const Four held = select(within > 1, select(within > 2, fourth, third), select(within > 0, second, first));
  const FourLanes empty = ~(held > Four{});
  if (__builtin_expect((empty[0] | empty[1] | empty[2] | empty[3]) != 0, 0)) {
    // x fell on or past the end through rounding: take the last child that has any mass.
    for (int i = 0; i < 4; ++i) {
      if (!empty[i]) continue;
      const double* a = nodes[i];
      int64_t c = child[i];
      while (c > 0 && !(a[c] > 0.0)) --c;
      while (c < kFan - 1 && !(a[c] > 0.0)) ++c;
      child[i] = c;
      x[i] = a[c];
    }
  }
  return child;
}

inline bool have_avx2() {
#if PSER_HAS_AVX2_BUILD
  // PSER_PORTABLE=1 switches to the portable build, to compare the two.
  static const bool yes = __builtin_cpu_supports("avx2") && std::getenv("PSER_PORTABLE") == nullptr;
  return yes;
#else
  return false;
#endif
}

}  // namespace pser
