// The priority index driven by a fixed random history, printed as one digest for each prioritization.
// Every compiler and every processor must print the same lines (compare.py).

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "../../src/kernel/index.hpp"
#include "../../src/kernel/stats.hpp"

namespace {

using namespace pser;

// SplitMix64 (Steele et al. 2014): the same numbers everywhere, without a library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
  double td_error() { return (uniform() - 0.5) / (uniform() + 0.01); }

 private:
  uint64_t state_;
};

// FNV-1a over the bytes of what the index gives back.
class Digest {
 public:
  template <class T>
  void take(const T* values, size_t count) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values);
    for (size_t i = 0; i < count * sizeof(T); ++i) value_ = (value_ ^ bytes[i]) * 0x100000001b3u;
  }
  unsigned long long value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

unsigned long long history(const Rules& rules, int64_t capacity, int64_t streams, bool named) {
  constexpr int64_t kBatch = 32;
  Index index(capacity, streams, rules);
  Random random(7);
  Digest digest;
  std::vector<int64_t> ids(kBatch), rows(static_cast<size_t>(streams)), stream(static_cast<size_t>(streams));
  std::vector<double> uniforms(kBatch), weights(kBatch), probabilities(kBatch), td(kBatch), given(static_cast<size_t>(streams));
  for (int step = 0; step < 3000; ++step) {
    bool first[64] = {};
    for (int64_t e = 0; e < streams; ++e) {
      first[e] = random.uniform() < 0.03;
      given[static_cast<size_t>(e)] = std::fabs(random.td_error());
      stream[static_cast<size_t>(e)] = static_cast<int64_t>(random.bits() % static_cast<uint64_t>(streams));
    }
    index.append(streams, first, step % 2 != 0 ? given.data() : nullptr, named ? stream.data() : nullptr, rows.data());
    for (double& u : uniforms) u = random.uniform();
    index.sample(kBatch, uniforms.data(), 0.4, ids.data(), weights.data(), probabilities.data());
    digest.take(ids.data(), ids.size());
    digest.take(weights.data(), weights.size());
    digest.take(probabilities.data(), probabilities.size());
    for (double& d : td) d = random.td_error();
    index.update(kBatch, ids.data(), td.data());
    const double total = index.total_mass();
    digest.take(&total, 1);
    if (step % 7 == 0) {  // what a rule of one's own does
      index.sample_at(kBatch, uniforms.data(), 1.0, ids.data(), weights.data(), nullptr);
      index.predecessors(ids[0], kBatch, ids.data());
      digest.take(ids.data(), ids.size());
      const int64_t some = index.oldest_id() + static_cast<int64_t>(random.bits() % static_cast<uint64_t>(index.size()));
      index.set_priorities(1, &some, given.data());
    }
  }
  for (int64_t id = index.oldest_id(); id < index.next_id(); ++id) {
    const double p = index.priority_of(id);
    digest.take(&p, 1);
  }
  const Stats s = summarize(index);
  const double watched[] = {s.effective_sample_size, s.decayed_share, s.from_retention, s.from_decay, index.max_priority()};
  digest.take(watched, 5);
  if (!index.broken_invariant().empty()) std::printf("broken invariant: %s\n", index.broken_invariant().c_str());
  return digest.value();
}

}  // namespace

int main() {
  Rules paper;
  paper.eta = 0.7;
  paper.rho = 0.4;
  paper.window = 5;
  std::vector<std::pair<const char*, Rules>> settings;
  settings.emplace_back("pser", paper);
  Rules r = paper;
  r.add = true;
  r.rho = 0.8;
  r.window = 20;
  settings.emplace_back("pser-add", r);
  r = paper;
  r.rho = 0.8;
  r.window = 100;
  r.decay_floor = 0.01;
  r.weights_by_memory = true;
  settings.emplace_back("pser-adaptive", r);
  r = paper;
  r.alpha = 0.6;
  r.decay_from_priority = true;
  r.stratified = false;
  settings.emplace_back("pser-0.6", r);
  r = paper;
  r.retain_decayed = true;
  settings.emplace_back("pser-decayed", r);
  r = paper;
  r.alpha = 0.01;
  settings.emplace_back("pser-0.01", r);
  r = Rules{};
  r.alpha = 0.6;
  settings.emplace_back("per", r);
  r.kind = Kind::kRank;
  settings.emplace_back("rank", r);
  r.kind = Kind::kUniform;
  settings.emplace_back("uniform", r);
  for (const auto& [name, rules] : settings) {
    std::printf("%s one-stream %016llx\n", name, history(rules, 1000, 1, false));
    std::printf("%s lockstep %016llx\n", name, history(rules, 5000, 8, false));
    std::printf("%s asynchronous %016llx\n", name, history(rules, 777, 5, true));
  }
}
