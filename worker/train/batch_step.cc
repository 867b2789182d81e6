#include "worker/train/batch_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "worker/step/batch_weight.h"
#include "worker/step/key_runs.h"
#include "worker/train/not_finite.h"

namespace strata {

absl::StatusOr<std::shared_ptr<const Gradient>> BatchStep::Run(
    const Batch& batch, const RoutedKeys& routed, const BatchRows& rows, const float* dense,
    StageClock* clock, const Beside& beside) {
  // A device's passes are not told apart.
  const InStage passes(clock, model_->waits() ? Stage::kBackward : Stage::kForward);
  auto gradient = std::make_shared<Gradient>();
  gradient->examples = SumOfWeights(batch);
  if (gradient->examples == 0) {  // whatever it predicts, it adds nothing
    TrainingStats::Batch seen;
    seen.examples = batch.size;
    seen.bad_lines = batch.bad_lines;
    stats_->OnBatch(seen);
    if (beside != nullptr) {
      if (absl::Status s = beside(); !s.ok()) return s;
    }
    return gradient;
  }
  gradient->keys = routed.keys;
  gradient->positions = routed.positions;
  gradient->runs = routed.runs;
  const bool counts = exchange_->counts();
  const size_t row_floats = FloatsOf(routed.runs, exchange_->row_dims());
  std::vector<float>& row_sums = counts ? sums_ : gradient->rows;
  ModelInputs in;
  ModelGradients out;
  if (rows.there.rows != nullptr) {
    auto taken = rows.memory->Take(row_floats);
    if (!taken.ok()) return taken.status();
    in.there = rows.there;
    out.rows_there = taken->get();
    gradient->rows_there = *std::move(taken);
  } else {
    row_sums.resize(row_floats);
    in.rows = rows.here;
    out.rows = row_sums.data();
  }
  const std::vector<const float*> tensors = exchange_->TensorsIn(dense);
  std::vector<float*> sums(tensors.size());
  const auto meanwhile = [&] {
    // The padding behind a tensor's last element stays zero.
    gradient->dense.assign(exchange_->dense_rows() * ModelTables::kDenseRowDim, 0.0f);
    const std::vector<float*> places = exchange_->TensorsIn(gradient->dense.data());
    std::copy(places.begin(), places.end(), sums.begin());
    return beside == nullptr ? absl::OkStatus() : beside();
  };
  predictions_.resize(size_t{batch.size} * batch.tasks);
  PassTimes times;
  in.batch = &batch;
  in.routed = &routed;
  in.tensors = tensors;
  in.passes = &times;
  out.tensors = sums;
  if (model_->waits()) {
    in.meanwhile = meanwhile;
  } else if (absl::Status s = meanwhile(); !s.ok()) {
    return s;
  }
  const absl::StatusOr<double> loss = model_->TrainStep(in, out, predictions_.data(), parallel_);
  if (!loss.ok()) return loss.status();
  clock->EndPasses(times.blocks_done, times.forward_ns, times.backward_ns);
  CountBatch(batch, *loss, gradient->examples);
  // Servers refuse such rows by key; which field a key is of is known here alone.
  if (!std::isfinite(*loss) && out.rows != nullptr && !stats_->knows_not_finite()) {
    stats_->OnNotFinite(FirstNotFinite(batch, routed, exchange_->row_dims(), row_sums,
                                       TrainingStats::kMostNotFinite));
  }
  if (counts) AddCounts(batch, routed, gradient->rows);
  return gradient;
}

void BatchStep::CountBatch(const Batch& batch, double loss, uint64_t sum_of_weights) {
  TrainingStats::Batch seen;
  seen.examples = batch.size;
  seen.bad_lines = batch.bad_lines;
  seen.loss = loss;
  seen.weight = static_cast<double>(sum_of_weights);
  if (!batch.weights.empty()) seen.weight *= double{kWeightUnit};
  seen.labels = batch.labels;
  seen.predictions = predictions_;
  seen.weights = batch.weights;
  if (batch.tasks > 1) {  // the first task's
    first_labels_.resize(batch.size);
    first_predictions_.resize(batch.size);
    for (size_t i = 0; i < batch.size; ++i) {
      first_labels_[i] = batch.labels[i * batch.tasks];
      first_predictions_[i] = predictions_[i * batch.tasks];
    }
    seen.labels = first_labels_;
    seen.predictions = first_predictions_;
  }
  stats_->OnBatch(seen);
}

void BatchStep::AddCounts(const Batch& batch, const RoutedKeys& routed,
                          std::vector<float>& rows) const {
  std::vector<uint8_t> clicked(batch.keys.size());  // by feature
  for (uint32_t i = 0; i < batch.size; ++i) {
    for (uint32_t f = batch.offsets[i]; f < batch.offsets[i + 1]; ++f) {
      clicked[f] = batch.labels[size_t{i} * batch.tasks] > 0.5f;
    }
  }
  const std::span<const uint32_t> dims = exchange_->row_dims(), strides = exchange_->push_dims();
  rows.resize(FloatsOf(routed.runs, strides));
  const float* from = sums_.data();
  float* row = rows.data();
  for (const KeyRun& run : routed.runs) {
    const size_t dim = dims[run.table];
    const bool counted = strides[run.table] > dim;
    for (size_t u = run.first; u < run.end(); ++u, from += dim, row += strides[run.table]) {
      std::memcpy(row, from, dim * sizeof(float));
      if (!counted) continue;
      uint32_t clicks = 0;
      for (uint32_t o = routed.first[u]; o < routed.first[u + 1]; ++o) {
        clicks += clicked[routed.occurrences[o]];
      }
      row[dim] = static_cast<float>(routed.first[u + 1] - routed.first[u]);
      row[dim + 1] = static_cast<float>(clicks);
    }
  }
}

}  // namespace strata
