// The gradients that a worker keeps in synchronous training, by step and lane, and their sums.
// Tested by tests/worker/bsp/row_exchange_test.cc
#ifndef STRATA_WORKER_BSP_LANE_SUMS_H_
#define STRATA_WORKER_BSP_LANE_SUMS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/core/table_spec.h"
#include "worker/device/row_memory.h"
#include "worker/step/gradient.h"

namespace strata {

// One thread at a time.
class LaneSums {
 public:
  // The job's, by number; they outlive this.
  explicit LaneSums(std::span<const TableSpec> tables) : tables_(tables) {}

  // From now on rows are in this memory, which outlives this.
  void Use(device::RowMemory* memory) { memory_ = memory; }

  void Put(Step step, uint32_t lane, GradientPtr gradient) {
    lanes_[step][lane] = std::move(gradient);
    sums_.erase(step);
  }
  // Of a node of the lane tree. REQUIRES: its lanes were put. Errors: a device's.
  absl::StatusOr<GradientPtr> Sum(Step step, LaneNode node);
  void Drop(Step step) {
    lanes_.erase(step);
    sums_.erase(step);
  }

 private:
  absl::StatusOr<GradientPtr> Add(const Gradient& left, const Gradient& right) const;

  const std::span<const TableSpec> tables_;
  device::RowMemory* memory_ = nullptr;  // null: rows are on the host
  std::map<Step, std::map<uint32_t, GradientPtr>> lanes_;
  std::map<Step, std::map<LaneNode, GradientPtr>> sums_;
};

}  // namespace strata

#endif  // STRATA_WORKER_BSP_LANE_SUMS_H_
