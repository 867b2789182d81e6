// The batches of lanes that are at one step, and the weights that were pulled for them.
// Tested by tests/worker/bsp/row_exchange_test.cc
// Tested by tests/e2e/p3/embedded_test.cc
#ifndef STRATA_WORKER_BSP_COHORT_H_
#define STRATA_WORKER_BSP_COHORT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "worker/bsp/lane_preparer.h"
#include "worker/client/exchange.h"
#include "worker/device/row_memory.h"
#include "worker/metrics/stage_times.h"
#include "worker/step/router.h"
#include "worker/train/batch_step.h"

namespace strata {

struct CohortData {
  Step step;
  std::vector<uint32_t> lanes;                                // ascending
  std::vector<std::shared_ptr<const PreparedLane>> prepared;  // as lanes
  UnionKeys all;                                              // of all lanes; no place of one alone
  ParameterBlock weights;                                     // of `all`
  // Of a pull that is not answered whole yet: the shards whose weights are here. They stay right,
  // as the weights of a step are the same whenever they are asked for.
  std::set<ShardId> served;
  device::RowMemory* memory = nullptr;  // of weights.rows_there

  KeyList keys() const { return {all.keys, all.positions, all.runs}; }

  // The rows of lane number i of the cohort, by its own distinct keys: in place where it is alone
  // or they lie on a device, else copied to `scratch`. dims: of rows, by table.
  BatchRows LaneRows(size_t i, std::span<const uint32_t> dims, std::vector<float>* scratch) const;
};

// Waits for the lanes' batches; `clock` is that of the calling thread. Rows will lie in `memory`
// (null: on the host), whose errors are returned, as the source's. No lanes: only the step (to
// await its clock).
absl::StatusOr<std::shared_ptr<CohortData>> PrepareCohort(LanePreparer* preparer,
                                                          const Exchange* exchange,
                                                          device::RowMemory* memory, Step step,
                                                          const std::vector<uint32_t>& lanes,
                                                          StageClock* clock);

// The cohorts that a trainer is at, by step. One thread, whose clock is given.
class Cohorts {
 public:
  Cohorts(LanePreparer* preparer, const Exchange* exchange, StageClock* clock)
      : preparer_(preparer), exchange_(exchange), clock_(clock) {}

  // Rows of cohorts from now on lie in this memory, which outlives this.
  void Use(device::RowMemory* memory) { memory_ = memory; }

  // That of exactly these lanes, prepared if it is not here.
  absl::StatusOr<std::shared_ptr<CohortData>> Get(Step step, const std::vector<uint32_t>& lanes);
  void Drop(Step step) { by_step_.erase(step); }
  void DropBelow(Step step) { by_step_.erase(by_step_.begin(), by_step_.lower_bound(step)); }

 private:
  LanePreparer* const preparer_;
  const Exchange* const exchange_;
  StageClock* const clock_;
  device::RowMemory* memory_ = nullptr;  // null: the host's
  std::map<Step, std::shared_ptr<CohortData>> by_step_;
};

}  // namespace strata

#endif  // STRATA_WORKER_BSP_COHORT_H_
