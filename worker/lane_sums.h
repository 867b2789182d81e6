// The gradients that a worker keeps in synchronous training, by step and lane, and their sums.
#ifndef STRATA_WORKER_LANE_SUMS_H_
#define STRATA_WORKER_LANE_SUMS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/core/table_spec.h"
#include "worker/gradient.h"

namespace strata {

// One thread at a time.
class LaneSums {
 public:
  using GradientPtr = std::shared_ptr<const Gradient>;

  // `features`: the table of the rows; outlives this.
  explicit LaneSums(const TableSpec* features) : features_(features) {}

  void Put(Step step, uint32_t lane, GradientPtr gradient) {
    lanes_[step][lane] = std::move(gradient);
    sums_.erase(step);
  }
  // Of a node of the lane tree. REQUIRES: its lanes were put.
  GradientPtr Sum(Step step, LaneNode node) {
    auto [it, fresh] = sums_[step].try_emplace(node);
    if (fresh) {
      const auto& lanes = lanes_.at(step);
      it->second = SumNode(*features_, node, [&](uint32_t lane) { return lanes.at(lane); });
    }
    return it->second;
  }
  void Drop(Step step) {
    lanes_.erase(step);
    sums_.erase(step);
  }

 private:
  const TableSpec* const features_;
  std::map<Step, std::map<uint32_t, GradientPtr>> lanes_;
  std::map<Step, std::map<LaneNode, GradientPtr>> sums_;
};

}  // namespace strata

#endif  // STRATA_WORKER_LANE_SUMS_H_
