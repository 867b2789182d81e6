#include "worker/eval/quality.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ops/nn/loss/auc.h"

namespace strata {
namespace {

bool HasLabel(const Batch& batch, uint32_t line) {
  const auto first = batch.labels.begin() + static_cast<std::ptrdiff_t>(size_t{line} * batch.tasks);
  return !std::all_of(first, first + static_cast<std::ptrdiff_t>(batch.tasks),
                      [](float label) { return std::isnan(label); });
}

}  // namespace

uint64_t LabelledLines(const Batch& batch) {
  uint64_t labelled = 0;
  for (uint32_t i = 0; i < batch.size; ++i) labelled += HasLabel(batch, i) ? 1 : 0;
  return labelled;
}

Quality::Quality(const ModelTables* tables, const MetricsPlan& metrics,
                 std::optional<uint32_t> gauc_field)
    : tables_(tables), by_task_(metrics.by_task), tasks_(tables->tasks, metrics, gauc_field) {}

void Quality::Add(const Batch& batch, const std::vector<float>& scores) {
  if (by_task_) tasks_.Add(batch, scores);
  labelled_ += LabelledLines(batch);
  if (!tables_->plain()) return;
  for (uint32_t i = 0; i < batch.size; ++i) {  // of one task
    if (!HasLabel(batch, i)) continue;
    labels_.push_back(batch.labels[i]);
    scores_.push_back(scores[i]);
  }
}

void Quality::Fill(EvaluationResult* result) const {
  if (by_task_) tasks_.Fill(result);
  if (!tables_->plain()) return;
  result->set_auc(ops::Auc(scores_, labels_));
  result->set_logloss(ops::MeanLogloss(scores_, labels_));
  result->set_calibration(ops::Calibration(scores_, labels_));
  result->set_examples(scores_.size());
  result->set_positives(static_cast<uint64_t>(
      std::count_if(labels_.begin(), labels_.end(), [](float label) { return label > 0.5f; })));
}

}  // namespace strata
