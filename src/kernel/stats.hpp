// What people who train want to know of a memory; one pass over it, meant for every few thousand steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "index.hpp"

namespace pser {

struct Stats {
  double effective_sample_size = 0.0;  // (Σm)² / Σm²
  double decayed_share = 0.0;          // of the mass: what transitions hold above their own last update or insertion
  double age_mean = 0.0;               // of a sampled transition, in ids
  double age_median = 0.0;
  double replays_mean = 0.0;
  int64_t replays_max = 0;
  double never_replayed_share = 0.0;
};

inline Stats summarize(Index& index) {
  Stats s;
  const int64_t size = index.size();
  if (size == 0) return s;
  const std::vector<double> masses = index.masses();
  // Squares of tiny masses would vanish: measure them by the largest.
  const double largest = *std::max_element(masses.begin(), masses.end());
  const double unit = largest > 0.0 ? largest : 1.0;
  double total = 0.0, squares = 0.0, decayed = 0.0, aged = 0.0, replays = 0.0;
  int64_t never = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double mass = masses[static_cast<size_t>(i)];
    const Record& r = index.record(index.slot_of(index.oldest_id() + i));
    total += mass;
    squares += (mass / unit) * (mass / unit);
    aged += mass * static_cast<double>(size - 1 - i);
    if (index.rules().kind == Kind::kProportional) decayed += Index::decayed_mass(mass, r);
    replays += r.replays;
    never += r.replays == 0;
    s.replays_max = std::max(s.replays_max, static_cast<int64_t>(r.replays));
  }
  const auto n = static_cast<double>(size);
  s.replays_mean = replays / n;
  s.never_replayed_share = static_cast<double>(never) / n;
  if (!(total > 0.0)) {  // zero mass is sampled uniformly
    s.effective_sample_size = n;
    s.age_mean = s.age_median = (n - 1.0) / 2.0;
    return s;
  }
  s.effective_sample_size = (total / unit) * (total / unit) / squares;
  s.decayed_share = decayed / total;
  s.age_mean = aged / total;
  double newer = 0.0;
  for (int64_t age = 0; age < size; ++age) {
    newer += masses[static_cast<size_t>(size - 1 - age)];
    s.age_median = static_cast<double>(age);
    if (newer >= total / 2.0) break;
  }
  return s;
}

}  // namespace pser
