// Drawing transitions by their share of the mass, and the weights that correct for it (Eqs. 5 and 11).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "priorities.hpp"

namespace pser {

// Of more rows than these the nearest caches do not hold all that an update will need until it comes: it fetches that itself.
constexpr int64_t kPreparedRows = 64;

class Sampling : public Priorities {
 public:
  using Priorities::Priorities;

  void require_not_empty(int64_t count) const {
    if (size() == 0) throw Error("cannot sample " + std::to_string(count) + " transitions from an empty memory: add some first");
  }

  void check_positions(int64_t count, const double* positions) const {
    for (int64_t i = 0; i < count; ++i)
      if (!(positions[i] >= 0.0 && positions[i] < 1.0))
        throw Error("a position must be from 0 to below 1, row " + std::to_string(i) + " has " + std::to_string(positions[i]) +
                    ": divide the mass wanted by total_mass");
  }

  // uniforms in [0, 1), one a draw: stratified over the mass if the rules say so. Changes nothing.
  void sample(int64_t count, const double* uniforms, double beta, int64_t* ids, double* weights, double* probabilities) {
    require_not_empty(count);
    const double span = span_of_draws();
    offsets_.resize(static_cast<size_t>(count));
    const auto slices = static_cast<double>(count);
    double* const offset = offsets_.data();
    if (rules_.stratified)
      for (int64_t i = 0; i < count; ++i) offset[i] = (static_cast<double>(i) + uniforms[i]) / slices * span;
    else
      for (int64_t i = 0; i < count; ++i) offset[i] = uniforms[i] * span;
    take(count, span, beta, ids, weights, probabilities);
  }

  // The same at the given positions of the mass, each in [0, 1).
  void sample_at(int64_t count, const double* positions, double beta, int64_t* ids, double* weights, double* probabilities) {
    require_not_empty(count);
    const double span = span_of_draws();
    offsets_.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) offsets_[i] = positions[i] * span;
    take(count, span, beta, ids, weights, probabilities);
  }

 private:
  // Without any mass every transition is as likely as another.
  bool flat() const { return rules_.kind == Kind::kUniform || !(total_mass() > 0.0); }
  double span_of_draws() const { return flat() ? static_cast<double>(size()) : total_mass(); }

  // The transitions that cover the offsets.
  void take(int64_t count, double span, double beta, int64_t* ids, double* weights, double* probabilities) {
    masses_.resize(static_cast<size_t>(count));
    if (flat()) {
      for (int64_t i = 0; i < count; ++i) {
        ids[i] = oldest_id() + std::min(static_cast<int64_t>(offsets_[i]), size() - 1);
        masses_[i] = 1.0;
      }
    } else if (ranks_) {
      for (int64_t i = 0; i < count; ++i) {
        ids[i] = ranks_->at(offsets_[i]);
        masses_[i] = ranks_->mass(priority_of(ids[i]));
      }
    } else {
      sums_.descend(count, offsets_.data(), ids);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t cell = ids[i];
        masses_[i] = mass(cell);
        if (count <= kPreparedRows)
          prefetch(cell);
        else
          prefetch_record(cell);
        ids[i] = id_in(cell);
      }
    }
    if (probabilities != nullptr)
      for (int64_t i = 0; i < count; ++i) probabilities[i] = masses_[i] / span;
    if (weights != nullptr) is_weights(count, beta, weights);
  }

  void is_weights(int64_t count, double beta, double* weights) {
    // w_i / max_j w_j = (N·P(i))^−β / (N·P_min)^−β = (P_min / P(i))^β  (Schaul et al. 2016, Sec. 3.4)
    const bool by_memory = rules_.weights_by_memory && !flat();
    const double least = by_memory ? (ranks_ ? ranks_->least_mass() : minima_->root()) : least_of(count, masses_.data());
#if PSER_HAS_AVX2_BUILD
    if (have_avx2()) return relative_powers_avx2(count, least, masses_.data(), beta, weights);
#endif
    relative_powers_portable(count, least, masses_.data(), beta, weights);
  }

  // out = (least / a)^β
  static PSER_INLINE void relative_powers_body(int64_t count, double least, const double* a, double beta, double* out) {
    with_power(beta, [&](const auto& powered) PSER_INLINED {
      for (int64_t i = 0; i < count; ++i) out[i] = powered(least / a[i]);
    });
  }
  static void relative_powers_portable(int64_t count, double least, const double* a, double beta, double* out) {
    relative_powers_body(count, least, a, beta, out);
  }
#if PSER_HAS_AVX2_BUILD
  static PSER_AVX2 void relative_powers_avx2(int64_t count, double least, const double* a, double beta, double* out) {
    relative_powers_body(count, least, a, beta, out);
  }
#endif

  // Kept between calls so that no call allocates.
  std::vector<double> offsets_, masses_;
};

}  // namespace pser
