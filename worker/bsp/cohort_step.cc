#include "worker/bsp/cohort_step.h"

#include "absl/status/status.h"

namespace strata {

absl::StatusOr<GradientPtr> CohortStep::Run(const CohortData& data, size_t i, StageClock* clock,
                                            const std::function<void()>& beside) {
  const PreparedLane& lane = *data.prepared[i];
  const BatchRows rows = data.LaneRows(i, exchange_->row_dims(), &lane_rows_);
  return batch_step_.Run(lane.batch, lane.routed, rows, data.weights.dense.data(), clock, [&] {
    beside();
    if (!model_->waits()) return absl::OkStatus();
    const auto next = After(data, i);
    return next == nullptr ? absl::OkStatus()
                           : model_->Stage({&next->batch, &next->routed, next}, parallel_);
  });
}

std::shared_ptr<const PreparedLane> CohortStep::After(const CohortData& data, size_t i) {
  if (i + 1 < data.prepared.size()) return data.prepared[i + 1];
  const Step next = data.step.Next();
  if (next > last_step_ || !preparer_->Ready(next, data.lanes.front())) return nullptr;
  auto prepared = preparer_->Get(next, data.lanes.front());
  return prepared.ok() ? *std::move(prepared) : nullptr;  // the step will tell
}

}  // namespace strata
