// The batches of lanes that are at one step, and the weights that were pulled for them.
#ifndef STRATA_WORKER_COHORT_H_
#define STRATA_WORKER_COHORT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "worker/exchange.h"
#include "worker/lane_preparer.h"
#include "worker/router.h"
#include "worker/stage_times.h"

namespace strata {

struct CohortData {
  Step step;
  std::vector<uint32_t> lanes;                                // ascending
  std::vector<std::shared_ptr<const PreparedLane>> prepared;  // as lanes
  UnionKeys all;                                              // of all lanes
  ParameterBlock weights;                                     // of `all`

  KeyList keys() const { return {all.keys, all.positions}; }

  // The rows of lane number i of the cohort, by its own distinct keys: in place where it is alone,
  // else copied to `scratch`.
  const float* LaneRows(size_t i, size_t dim, std::vector<float>* scratch) const;
};

// Waits for the lanes' batches; `clock` is that of the calling thread. Errors are the source's. No
// lanes: only the step (to await its clock).
absl::StatusOr<std::shared_ptr<CohortData>> PrepareCohort(LanePreparer* preparer,
                                                          const Exchange* exchange, Step step,
                                                          const std::vector<uint32_t>& lanes,
                                                          StageClock* clock);

// The cohorts that a trainer is at, by step. One thread, whose clock is given.
class Cohorts {
 public:
  Cohorts(LanePreparer* preparer, const Exchange* exchange, StageClock* clock)
      : preparer_(preparer), exchange_(exchange), clock_(clock) {}

  // That of exactly these lanes, prepared if it is not here.
  absl::StatusOr<std::shared_ptr<CohortData>> Get(Step step, const std::vector<uint32_t>& lanes);
  void Drop(Step step) { by_step_.erase(step); }
  void DropBelow(Step step) { by_step_.erase(by_step_.begin(), by_step_.lower_bound(step)); }

 private:
  LanePreparer* const preparer_;
  const Exchange* const exchange_;
  StageClock* const clock_;
  std::map<Step, std::shared_ptr<CohortData>> by_step_;
};

}  // namespace strata

#endif  // STRATA_WORKER_COHORT_H_
