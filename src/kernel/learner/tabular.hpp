// Tabular Q-learning on a fixed memory, one replayed transition an iteration: the loop that the Blind Cliffwalk study
// runs millions of times. Which transition comes next is decided by the priority index itself, so the rules of
// prioritization exist once; the uniform draws come from outside, so that any other program can follow step by step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "../index.hpp"

namespace pser {

// A stored transition as Q-learning needs it.
struct TabularStep {
  int64_t entry;       // of the flattened (state, action) table
  int64_t next_state;  // any, if discount is 0
  double reward;
  double discount;  // γ, or 0 at the end of an episode
};

// The value table and how far it is from the truth.
class QTable {
 public:
  QTable(int64_t actions, std::vector<double> truth, double step_size)
      : actions_(actions), step_size_(step_size), truth_(std::move(truth)), values_(truth_.size(), 0.0) {
    measure();
  }

  double mse() const { return mse_; }
  const std::vector<double>& values() const { return values_; }

  // δ = r + γ·max_a Q(s', a) − Q(s, a).
  double td_error(const TabularStep& step) const {
    double target = step.reward;
    if (step.discount != 0.0) {
      const double* next = &values_[static_cast<size_t>(step.next_state * actions_)];
      target += step.discount * *std::max_element(next, next + actions_);
    }
    return target - values_[static_cast<size_t>(step.entry)];
  }

  // Q(s, a) ← Q(s, a) + step size · δ. One entry changes; the error is summed afresh, so that it cannot drift.
  void learn(const TabularStep& step, double td_error) {
    if (td_error == 0.0) return;
    values_[static_cast<size_t>(step.entry)] += step_size_ * td_error;
    measure();
  }

  void reset() {
    std::fill(values_.begin(), values_.end(), 0.0);
    measure();
  }

 private:
  void measure() {
    double sum = 0.0;
    for (size_t k = 0; k < values_.size(); ++k) {
      const double error = truth_[k] - values_[k];
      sum += error * error;
    }
    mse_ = sum / static_cast<double>(values_.size());
  }

  int64_t actions_;
  double step_size_;
  std::vector<double> truth_, values_;
  double mse_ = 0.0;
};

// Uniform over transitions; by the index; or whole episodes, uniformly drawn, each from its end to its start.
enum class Replay { kUniform, kPrioritized, kBackward };

// What a replayed transition reports to the index.
enum class Report {
  kFound,    // δ as found, before the update of Q (Algorithm 1)
  kSettled,  // δ as left by the update (the proof of Theorem 1: with learning rate 1 it is 0)
  kBoth,     // the found δ decays backward, then the transition itself takes the settled one
  kLearned,  // the settled δ, but only if the update changed anything: early draws cost nothing
};

class TabularLoop {
 public:
  // index may be null unless replay is kPrioritized; it must hold exactly the steps, in order.
  TabularLoop(std::vector<TabularStep> steps, std::vector<int64_t> episode_starts, QTable table, Index* index, Replay replay,
              Report report, std::vector<double> thresholds, int64_t record_every, int64_t max_iterations)
      : steps_(std::move(steps)),
        episode_starts_(std::move(episode_starts)),
        table_(std::move(table)),
        index_(index),
        replay_(replay),
        report_(report),
        thresholds_(std::move(thresholds)),
        record_every_(record_every),
        max_iterations_(max_iterations),
        crossings_(thresholds_.size(), -1),
        masses_(thresholds_.size(), 0.0) {
    episode_starts_.push_back(static_cast<int64_t>(steps_.size()));
    curve_.push_back(table_.mse());
  }

  Index* index() { return index_; }
  int64_t iterations() const { return iterations_; }
  int64_t first_reward() const { return first_reward_; }                // the iteration that first replayed a reward, or −1
  const std::vector<int64_t>& crossings() const { return crossings_; }  // −1: not crossed yet
  const std::vector<double>& masses() const { return masses_; }         // the index's whole mass at each crossing
  const std::vector<double>& curve() const { return curve_; }           // the MSE after 0, record_every, … iterations
  const QTable& table() const { return table_; }
  bool converged() const { return crossed_ == thresholds_.size(); }
  bool done() const { return converged() || iterations_ >= max_iterations_; }

  // Go on until the draws are used up or the loop is done. Returns how many draws were used.
  int64_t advance(int64_t count, const double* draws) {
    int64_t used = 0;
    while (!done()) {
      if (needs_draw()) {
        if (used == count) break;
        choose(draws[used++]);
      }
      iterate();
    }
    return used;
  }

  // Independent repetitions, each from the same start: how many iterations each took until it converged or gave up
  // (−1). Draws that end in the middle of a repetition are taken up by the next call.
  void repeat(int64_t count, const double* draws, int64_t repetitions, std::vector<int64_t>& lengths) {
    if (start_.empty() && index_ != nullptr) keep_start();
    for (int64_t used = 0; used < count && static_cast<int64_t>(lengths.size()) < repetitions;) {
      used += advance(count - used, draws + used);
      if (!done()) return;
      lengths.push_back(converged() ? iterations_ : -1);
      restart();
    }
  }

 private:
  bool needs_draw() const { return replay_ != Replay::kBackward || next_ < episode_first_; }

  static int64_t scaled(double draw, int64_t size) {
    return std::min(static_cast<int64_t>(draw * static_cast<double>(size)), size - 1);
  }

  void choose(double draw) {
    if (replay_ == Replay::kPrioritized) {
      index_->sample(1, &draw, 0.0, &next_, nullptr, nullptr);
    } else if (replay_ == Replay::kUniform) {
      next_ = scaled(draw, static_cast<int64_t>(steps_.size()));
    } else {
      const auto episode = static_cast<size_t>(scaled(draw, static_cast<int64_t>(episode_starts_.size()) - 1));
      episode_first_ = episode_starts_[episode];
      next_ = episode_starts_[episode + 1] - 1;
    }
  }

  void iterate() {
    const int64_t id = next_;
    const TabularStep& step = steps_[static_cast<size_t>(id)];
    const double found = table_.td_error(step);
    table_.learn(step, found);
    ++iterations_;
    if (replay_ == Replay::kPrioritized)
      tell(id, found, table_.td_error(step));
    else
      --next_;  // backward: the transition before; uniform: drawn afresh anyway
    if (step.reward != 0.0 && first_reward_ < 0) first_reward_ = iterations_;
    while (crossed_ < thresholds_.size() && table_.mse() < thresholds_[crossed_]) {
      if (index_ != nullptr) masses_[crossed_] = index_->total_mass();
      crossings_[crossed_++] = iterations_;
    }
    if (record_every_ > 0 && iterations_ % record_every_ == 0) curve_.push_back(table_.mse());
  }

  void tell(int64_t id, double found, double settled) {
    if (report_ == Report::kFound || report_ == Report::kBoth) index_->update(1, &id, &found);
    if (report_ == Report::kSettled || report_ == Report::kBoth || (report_ == Report::kLearned && found != 0.0))
      index_->update(1, &id, &settled);
  }

  void keep_start() {
    start_.assign(index_->blocks().data(), index_->blocks().data() + index_->blocks().size());
    start_decayed_.assign(index_->decayed_parts().data(), index_->decayed_parts().data() + index_->decayed_parts().size());
    start_max_priority_ = index_->max_priority();
    start_min_priority_ = index_->min_priority();
  }

  void restart() {
    table_.reset();
    iterations_ = 0;
    first_reward_ = -1;
    crossed_ = 0;
    std::fill(crossings_.begin(), crossings_.end(), -1);
    curve_.assign(1, table_.mse());
    next_ = -1;
    episode_first_ = 0;
    if (index_ == nullptr) return;
    std::copy(start_.begin(), start_.end(), index_->blocks().data());
    std::copy(start_decayed_.begin(), start_decayed_.end(), index_->decayed_parts().data());
    index_->restore(index_->next_id(), index_->oldest_id(), start_max_priority_, start_min_priority_);
    index_->rebuild();
  }

  std::vector<TabularStep> steps_;
  std::vector<int64_t> episode_starts_;  // and the number of steps, at the end
  QTable table_;
  Index* index_;
  Replay replay_;
  Report report_;
  std::vector<double> thresholds_;  // falling
  int64_t record_every_;            // 0: no curve
  int64_t max_iterations_;
  std::vector<int64_t> crossings_;
  std::vector<double> masses_;
  size_t crossed_ = 0;
  std::vector<double> curve_;
  int64_t iterations_ = 0;
  int64_t first_reward_ = -1;
  int64_t next_ = -1;          // the transition to replay
  int64_t episode_first_ = 0;  // backward: where the current episode starts
  std::vector<Block> start_;
  std::vector<double> start_decayed_;
  double start_max_priority_ = 1.0;
  double start_min_priority_ = 1.0;
};

}  // namespace pser
