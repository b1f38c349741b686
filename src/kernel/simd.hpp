// Sums and comparisons of many values at once, written once with vector types and compiled twice (portable and AVX2).
// The order of the additions is fixed, so both builds, and every machine, give the same bits.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#define PSER_INLINE inline __attribute__((always_inline))
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

// Bit i is set where factor·a[i] exceeds b[i], for i = 0..7.
PSER_INLINE uint32_t exceeding8(const double* a, double factor, const double* b) {
  const Four* held = reinterpret_cast<const Four*>(b);
  FourLanes bits = {};
  for (int half = 0; half < 2; ++half) {
    Four product;
    std::memcpy(&product, a + 4 * half, sizeof product);  // not aligned
    product *= factor;
    bits |= (product > held[half]) & (FourLanes{1, 2, 4, 8} << 4 * half);
  }
  return static_cast<uint32_t>((bits[0] | bits[1]) | (bits[2] | bits[3]));
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

// The child whose share of the node's sum covers x; x becomes the offset within that child.
// A child of zero mass is never picked as long as one child is positive, whatever x rounds to.
PSER_INLINE int pick16(const double* a, double& x) {
  const Four* v = reinterpret_cast<const Four*>(a);
  // Sums of the four groups of four: first neighbours, then pairs of neighbours.
  Four t0 = PSER_SHUFFLE(v[0], v[1], 0, 4, 2, 6) + PSER_SHUFFLE(v[0], v[1], 1, 5, 3, 7);
  Four t1 = PSER_SHUFFLE(v[2], v[3], 0, 4, 2, 6) + PSER_SHUFFLE(v[2], v[3], 1, 5, 3, 7);
  Four s = PSER_SHUFFLE(t0, t1, 0, 1, 4, 5) + PSER_SHUFFLE(t0, t1, 2, 3, 6, 7);

  const double group_end[4] = {0.0, s[0], s[0] + s[1], (s[0] + s[1]) + s[2]};
  const int g = (group_end[1] <= x) + (group_end[2] <= x) + (group_end[3] <= x);
  x -= group_end[g];

  const double* b = a + 4 * g;
  const double child_end[4] = {0.0, b[0], b[0] + b[1], (b[0] + b[1]) + b[2]};
  const int c = (child_end[1] <= x) + (child_end[2] <= x) + (child_end[3] <= x);
  x -= child_end[c];

  int child = 4 * g + c;
  if (__builtin_expect(!(a[child] > 0.0), 0)) {
    // x fell on or past the end through rounding: take the last child that has any mass.
    while (child > 0 && !(a[child] > 0.0)) --child;
    while (child < kFan - 1 && !(a[child] > 0.0)) ++child;
    x = a[child];
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
