#include "worker/batch_step.h"

namespace strata {

std::shared_ptr<const Gradient> BatchStep::Run(const Batch& batch, const RoutedKeys& routed,
                                               const float* rows, const float* dense,
                                               StageClock* clock) {
  const InStage forward(clock, Stage::kForward);
  auto gradient = std::make_shared<Gradient>();
  gradient->examples = batch.size;
  if (batch.size == 0) {
    stats_->OnBatch({}, {}, 0, batch.bad_lines);
    return gradient;
  }
  gradient->keys = routed.keys;
  gradient->positions = routed.positions;
  gradient->rows.resize(routed.keys.size() * exchange_->row_dim());
  // The padding behind a tensor's last element stays zero.
  gradient->dense.assign(exchange_->dense_rows() * ModelTables::kDenseRowDim, 0.0f);
  const std::vector<const float*> tensors = exchange_->TensorsIn(dense);
  const std::vector<float*> sums = exchange_->TensorsIn(gradient->dense.data());
  predictions_.resize(batch.size);
  PassTimes passes;
  const double loss =
      model_->TrainStep({&batch, &routed, rows, tensors, &passes}, {gradient->rows.data(), sums},
                        predictions_.data(), parallel_);
  clock->EndPasses(passes.blocks_done, passes.forward_ns, passes.backward_ns);
  stats_->OnBatch(batch.labels, predictions_, loss, batch.bad_lines);
  return gradient;
}

}  // namespace strata
