// Uniform draws from a numpy.random.Generator without a trip through Python: its bit generator's C interface
// (numpy/random/bitgen.h) gives the same numbers as Generator.random.
#pragma once

#include <cstdint>
#include <vector>

namespace pser {

struct BitGenerator {
  void* state;
  uint64_t (*next_uint64)(void*);
  uint32_t (*next_uint32)(void*);
  double (*next_double)(void*);
  uint64_t (*next_raw)(void*);
};

class Draws {
 public:
  explicit Draws(BitGenerator* bits) : bits_(bits) {}

  // `count` numbers in [0, 1), valid until the next call.
  const double* next(int64_t count) {
    if (static_cast<int64_t>(values_.size()) < count) values_.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values_[static_cast<size_t>(i)] = bits_->next_double(bits_->state);
    return values_.data();
  }

 private:
  BitGenerator* bits_;
  std::vector<double> values_;
};

}  // namespace pser
