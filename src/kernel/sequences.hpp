// Windows of consecutive steps, each inside one episode of one stream, laid around a step that was chosen by priority.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "slots.hpp"

namespace pser {

struct WindowShape {
  int64_t length;   // steps to learn from
  int64_t burn_in;  // steps before them, to warm up a recurrent state
  int64_t stride;   // windows begin at multiples of it, counted from the episode's first retained step; 0: anywhere

  int64_t rows() const { return burn_in + length; }
};

// One window: rows 0 … steps − 1 are steps of the episode, of which those from `learn` on are to be learned from.
struct Window {
  int64_t steps;
  int64_t learn;
  bool from_start;  // is row 0 the first step of its episode?
};

class Windows {
 public:
  Windows(Slots& slots, const WindowShape& shape) : slots_(slots), shape_(shape) { slots_.link_ahead(); }

  // The window around `chosen`, its ids written to `ids` in order; `uniform` in [0, 1) decides where it lies.
  Window lay(int64_t chosen, double uniform, int64_t* ids) {
    walk_back(chosen, shape_.stride > 0 ? slots_.capacity() : shape_.length - 1 + shape_.burn_in);
    walk_ahead(chosen, shape_.length - 1);
    const auto before = static_cast<int64_t>(before_.size()), after = static_cast<int64_t>(after_.size());
    const int64_t inside = shape_.stride > 0 ? on_grid(before, uniform) : anywhere(before, after, uniform);
    const int64_t warm = std::min(shape_.burn_in, before - inside);
    const int64_t following = std::min(after, shape_.length - 1 - inside);
    int64_t row = 0;
    for (int64_t k = inside + warm; k >= 1; --k) ids[row++] = before_[static_cast<size_t>(k - 1)];
    ids[row++] = chosen;
    for (int64_t k = 0; k < following; ++k) ids[row++] = after_[static_cast<size_t>(k)];
    const int64_t first = slots_.cell_of(ids[0]);
    return {row, warm, slots_.lockstep_back(first, 1) == 0 && slots_.back(first) == 0};
  }

 private:
  // Steps of the learned part before the chosen one, such that it lies inside the episode: each possible place is as
  // likely. In an episode that is too short for it, all of them.
  int64_t anywhere(int64_t before, int64_t after, double uniform) const {
    const int64_t most = std::min(before, shape_.length - 1);
    const int64_t least = std::min(most, std::max<int64_t>(0, shape_.length - 1 - after));
    return least + pick(most - least + 1, uniform);
  }

  // The same for windows on the grid: of those that hold the chosen step each is as likely.
  int64_t on_grid(int64_t before, double uniform) const {
    const int64_t last = before / shape_.stride;
    const int64_t out = before - shape_.length + 1;  // a window that begins before this has ended
    const int64_t first = out > 0 ? (out + shape_.stride - 1) / shape_.stride : 0;
    return before - (first + pick(last - first + 1, uniform)) * shape_.stride;
  }

  static int64_t pick(int64_t count, double uniform) {
    return std::min(static_cast<int64_t>(uniform * static_cast<double>(count)), count - 1);
  }

  void walk_back(int64_t id, int64_t most) {
    before_.clear();
    while (left(before_, most) > 0) {
      const int64_t sought = std::min(left(before_, most), (id - slots_.oldest_id()) / slots_.streams());
      id = append(before_, id, -slots_.streams(), std::min(sought, slots_.lockstep_back(slots_.cell_of(id), sought)));
      if (left(before_, most) == 0) return;
      const int32_t distance = slots_.back(slots_.cell_of(id));
      if (distance == 0 || id - distance < slots_.oldest_id()) return;
      before_.push_back(id -= distance);
    }
  }

  void walk_ahead(int64_t id, int64_t most) {
    after_.clear();
    while (left(after_, most) > 0) {
      const int64_t sought = std::min(left(after_, most), (slots_.next_id() - 1 - id) / slots_.streams());
      id = append(after_, id, slots_.streams(), std::min(sought, slots_.lockstep_ahead(slots_.cell_of(id), sought)));
      if (left(after_, most) == 0) return;
      const int32_t distance = slots_.ahead(slots_.cell_of(id));
      if (distance == 0) return;
      after_.push_back(id += distance);
    }
  }

  static int64_t left(const std::vector<int64_t>& ids, int64_t most) { return most - static_cast<int64_t>(ids.size()); }

  // So many ids, each one step after another; returns the last.
  static int64_t append(std::vector<int64_t>& ids, int64_t id, int64_t step, int64_t count) {
    const size_t held = ids.size();
    ids.resize(held + static_cast<size_t>(count));
    for (int64_t k = 0; k < count; ++k) ids[held + static_cast<size_t>(k)] = id + (k + 1) * step;
    return id + count * step;
  }

  Slots& slots_;
  WindowShape shape_;
  std::vector<int64_t> before_, after_;  // nearest first
};

}  // namespace pser
