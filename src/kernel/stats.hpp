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
  // Shares of the sampling mass by what last determined the transitions' priorities; they sum to 1.
  double from_insertion = 0.0, from_retention = 0.0, from_td_error = 0.0, from_decay = 0.0;
};

// 0 insertion, 1 retention, 2 own TD error, 3 decay. Uniform replay heeds no TD error: all it has came by insertion.
inline int source_of(const Rules& rules, const Record& r) {
  if (r.source() == Source::kDecayed) return 3;
  if (r.source() == Source::kRetained) return 1;
  return r.replays() == 0 || rules.kind == Kind::kUniform ? 0 : 2;
}

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
  double sources[4] = {};  // as in the order above
  for (int64_t i = 0; i < size; ++i) {
    const double mass = masses[static_cast<size_t>(i)];
    const Record& r = index.record(index.cell_of(index.oldest_id() + i));
    total += mass;
    squares += (mass / unit) * (mass / unit);
    aged += mass * static_cast<double>(size - 1 - i);
    if (index.rules().kind == Kind::kProportional) decayed += Index::decayed_mass(mass, r);
    replays += r.replays();
    never += r.replays() == 0;
    sources[source_of(index.rules(), r)] += largest > 0.0 ? mass : 1.0;  // zero mass is sampled uniformly
    s.replays_max = std::max<int64_t>(s.replays_max, r.replays());
  }
  const auto n = static_cast<double>(size);
  s.replays_mean = replays / n;
  s.never_replayed_share = static_cast<double>(never) / n;
  const double counted = (sources[0] + sources[1]) + (sources[2] + sources[3]);
  s.from_insertion = sources[0] / counted;
  s.from_retention = sources[1] / counted;
  s.from_td_error = sources[2] / counted;
  s.from_decay = sources[3] / counted;
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
