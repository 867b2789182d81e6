#include "worker/eval/quality.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ops/nn/loss/auc.h"

namespace strata {

Quality::Quality(const ModelTables* tables, const MetricsPlan& metrics,
                 std::optional<uint32_t> gauc_field)
    : tables_(tables), by_task_(metrics.by_task), tasks_(tables->tasks, metrics, gauc_field) {}

void Quality::Add(const Batch& batch, const std::vector<float>& scores) {
  if (by_task_) tasks_.Add(batch, scores);
  const size_t tasks = tables_->tasks.size();
  for (size_t i = 0; i < scores.size(); i += tasks) {
    const auto first = batch.labels.begin() + static_cast<std::ptrdiff_t>(i);
    const bool none = std::all_of(first, first + static_cast<std::ptrdiff_t>(tasks),
                                  [](float label) { return std::isnan(label); });
    if (none) continue;
    ++labelled_;
    if (!tables_->plain()) continue;
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
