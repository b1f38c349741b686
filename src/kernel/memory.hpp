// Zeroed, cache-line-aligned arrays that the system commits page by page, as they are first written.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "simd.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pser {

// Fetch a line that may have to come from main memory, into the second cache: it has far more fetches under way at a time than
// the first, which a batch's lines would fill (measured: 32 · 3 random lines of 280 MB in 0.47 µs instead of 0.81).
PSER_INLINE void fetch_from_afar(const void* line) { __builtin_prefetch(line, 0, 2); }

template <class T>
class ZeroedArray {
 public:
  ZeroedArray() = default;
  explicit ZeroedArray(int64_t count) : count_(count) {
    const size_t bytes = sizeof(T) * static_cast<size_t>(count) + kAlign;
    raw_ = std::calloc(bytes, 1);
    if (raw_ == nullptr) throw std::bad_alloc();
    const uintptr_t start = (reinterpret_cast<uintptr_t>(raw_) + kAlign - 1) / kAlign * kAlign;
    data_ = reinterpret_cast<T*>(start);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr size_t kPage = 4096;
    // Random access over many small pages is bound by address translation: ask for large ones.
    if (bytes > (size_t{2} << 20)) madvise(reinterpret_cast<void*>((start + kPage - 1) / kPage * kPage), bytes - 2 * kPage, MADV_HUGEPAGE);
#endif
  }
  ~ZeroedArray() { std::free(raw_); }
  ZeroedArray(ZeroedArray&& other) noexcept { swap(other); }
  ZeroedArray& operator=(ZeroedArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ZeroedArray(const ZeroedArray&) = delete;
  ZeroedArray& operator=(const ZeroedArray&) = delete;

  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t size() const { return count_; }

 private:
  static constexpr size_t kAlign = 64;
  void swap(ZeroedArray& other) {
    std::swap(raw_, other.raw_);
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
  }
  void* raw_ = nullptr;
  T* data_ = nullptr;
  int64_t count_ = 0;
};

}  // namespace pser
