// Uniform draws from a numpy.random.Generator without a trip through Python: its bit generator's C interface
// (numpy/random/bitgen.h) gives the same numbers as Generator.random.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>
#include <utility>
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
  // Of a NumPy bit generator, which lives as long as this: its capsule alone keeps nothing alive.
  explicit Draws(nanobind::object generator) : generator_(std::move(generator)) {
    const auto capsule = nanobind::cast<nanobind::capsule>(generator_.attr("capsule"));
    if (std::strcmp(capsule.name(), "BitGenerator") != 0) throw nanobind::type_error("expected a NumPy bit generator");
    bits_ = static_cast<BitGenerator*>(capsule.data());
  }

  // `count` numbers in [0, 1), valid until the next call.
  const double* next(int64_t count) {
    if (static_cast<int64_t>(values_.size()) < count) values_.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values_[static_cast<size_t>(i)] = bits_->next_double(bits_->state);
    return values_.data();
  }

 private:
  nanobind::object generator_;
  BitGenerator* bits_;
  std::vector<double> values_;
};

}  // namespace pser
