// A kind of storage of one's own, in one file: every byte kept upside down, and only once if next equals now.
// Prints what a store made with it gives back, one line per transition: id, now, next.

#include <cstdio>
#include <map>

#include "store.hpp"

using namespace pser;

class InvertedColumn final : public Column {
 public:
  explicit InvertedColumn(const Pending& pending) : pending_(pending) {}
  int64_t row_bytes() const override { return 1; }
  const char* refusal(const uint8_t* now, const uint8_t*) const override { return *now == 13 ? "13 cannot be kept" : nullptr; }
  void remember(int64_t stream, int64_t entry, const uint8_t* now) override { began_[pending_.at(stream, entry)] = ~*now; }
  void advance(int64_t stream, const uint8_t* next) override { newest_[stream] = ~*next; }
  void commit(int64_t stream, int64_t entry, int64_t slot) override {
    kept_[slot] = {began_[pending_.at(stream, entry)], newest_[stream]};
  }
  void gather(int64_t count, const int64_t* slots, uint8_t* now, uint8_t* next) const override {
    for (int64_t i = 0; i < count; ++i) {
      now[i] = ~kept_.at(slots[i]).first;
      next[i] = ~kept_.at(slots[i]).second;
    }
  }
  const char* damage(int64_t) const override { return nullptr; }

 private:
  Pending pending_;
  std::map<int64_t, uint8_t> began_, newest_;
  std::map<int64_t, std::pair<uint8_t, uint8_t>> kept_;
};

int main() {
  constexpr int64_t kCapacity = 4, kStreams = 2, kSteps = 2;
  Index index(kCapacity, kStreams, Rules{});
  int64_t count[kStreams] = {}, start[kStreams] = {}, written = 0;
  const Pending pending{kStreams, kSteps, count, start};
  uint8_t action[kCapacity], pending_action[kStreams * kSteps];
  float reward[kCapacity], discount[kCapacity];
  bool terminated[kCapacity], first[kStreams * kSteps], at_start[kStreams] = {true, true};
  double pending_reward[kStreams * kSteps], priority[kStreams * kSteps];
  Store::Columns columns;
  columns.push_back(std::make_unique<InvertedColumn>(pending));
  Store store(index, 0.5,
              {action, pending_action, 1, RealColumn(reward), RealColumn(discount), terminated, pending_reward, priority, first, at_start,
               &written, pending},
              std::move(columns));

  for (uint8_t t = 0; t < 4; ++t) {
    const uint8_t now[] = {t, static_cast<uint8_t>(100 + t)}, next[] = {static_cast<uint8_t>(t + 1), static_cast<uint8_t>(101 + t)};
    const uint8_t actions[] = {0, 0};
    const double rewards[] = {1.0, 2.0};
    const bool no[] = {false, false}, last[] = {t == 3, false};
    const StepRows rows{kStreams, {now}, {next}, actions, rewards, no, last, nullptr, nullptr};
    store.check(rows);
    store.add(rows, [&](int64_t id) {
      uint8_t out_now, out_next, out[4 * sizeof(float)];
      store.gather(1, &id, {{&out_now}, {&out_next}, out, out + 4, out + 8, out + 12});
      std::printf("%d %d %d\n", static_cast<int>(id), out_now, out_next);
    });
  }
  const uint8_t bad = 13;
  const bool no = false;
  const double zero = 0.0;
  const int64_t stream = 0;
  try {
    store.check({1, {&bad}, {&bad}, &bad, &zero, &no, &no, nullptr, &stream});
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
}
