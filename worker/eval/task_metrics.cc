#include "worker/eval/task_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "ops/natural_log.h"
#include "ops/nn/loss/weighted_metrics.h"
#include "proto/job/evaluation_result.h"

namespace strata {
namespace {

// The value of a field of example i: its first feature's key. Any number may be one.
std::optional<uint64_t> ValueOfField(const Batch& batch, uint32_t i, uint32_t field) {
  for (uint32_t f = batch.offsets[i]; f < batch.offsets[i + 1]; ++f) {
    const uint32_t of = batch.fields.empty() ? f - batch.offsets[i] : batch.fields[f];
    if (of == field) return batch.keys[f];
  }
  return std::nullopt;
}

double HuberOf(double residual, double delta) {
  const double size = std::fabs(residual);
  return size <= delta ? 0.5 * size * size : delta * (size - 0.5 * delta);
}

// A prediction beyond floats, such as e^z of a line far from all others, is measured as the
// greatest one: a mean that holds it is far too high, but a number that can be compared.
float Bounded(float prediction) {
  constexpr float kGreatest = std::numeric_limits<float>::max();
  if (std::isnan(prediction)) return prediction;
  return std::clamp(prediction, -kGreatest, kGreatest);
}

// Mean of the loss, without the task's weight. Of a label that is not binary it decides when
// training stops, and which step is the best (spec.evaluation.patience): rule 3 of ops/EXACT.md.
double MeanLoss(const TaskSpec& task, const ops::WeightedExamples& x,
                const ops::WeightedSums& sums) {
  if (task.loss == TaskLoss::kLogistic) return sums.logloss / sums.weight;
  if (task.loss == TaskLoss::kSquared) return sums.squared / 2 / sums.weight;
  double sum = 0;
  for (size_t i = 0; i < x.scores.size(); ++i) {
    const double p = x.scores[i], y = x.labels[i], w = static_cast<double>(x.unit(i));
    if (w == 0) continue;
    constexpr double kLeast = 0x1p-149;  // of floats above 0
    sum += w * (task.loss == TaskLoss::kHuber ? HuberOf(p - y, task.delta)
                                              : p - y * ops::NaturalLog(std::max(p, kLeast)));
  }
  return sum / sums.weight;
}

// A model that has diverged predicts what is no number: what that makes of a metric is not defined.
void ClearNotFinite(TaskResult* r) {
  if (!std::isfinite(r->loss())) r->clear_loss();
  if (!std::isfinite(r->auc())) r->clear_auc();
  if (!std::isfinite(r->logloss())) r->clear_logloss();
  if (!std::isfinite(r->normalised_entropy())) r->clear_normalised_entropy();
  if (!std::isfinite(r->calibration())) r->clear_calibration();
  if (!std::isfinite(r->gauc())) r->clear_gauc();
  if (!std::isfinite(r->mse())) r->clear_mse();
  if (!std::isfinite(r->mae())) r->clear_mae();
}

// Of 0 and 1 with this share of ones.
double EntropyOf(double ones) { return -ones * std::log(ones) - (1 - ones) * std::log1p(-ones); }

}  // namespace

TaskMetrics::TaskMetrics(std::vector<TaskSpec> tasks, MetricsPlan plan,
                         std::optional<uint32_t> gauc_field)
    : tasks_(std::move(tasks)), plan_(std::move(plan)), gauc_field_(gauc_field) {}

void TaskMetrics::Add(const Batch& batch, const std::vector<float>& predictions) {
  labels_.insert(labels_.end(), batch.labels.begin(), batch.labels.end());
  predictions_.insert(predictions_.end(), predictions.begin(), predictions.end());
  for (const float weight : batch.weights) {
    units_.push_back(static_cast<uint64_t>(double{weight} / double{kWeightUnit}));
  }
  for (uint32_t i = 0; gauc_field_ && i < batch.size; ++i) {
    const std::optional<uint64_t> group = ValueOfField(batch, i, *gauc_field_);
    groups_.push_back(group.value_or(0));
    without_.push_back(!group);
  }
}

TaskResult TaskMetrics::Of(size_t task, EvaluationResult* first) const {
  const TaskSpec& spec = tasks_[task];
  std::vector<float> labels, scores;
  std::vector<uint64_t> units, groups;
  std::vector<bool> without;
  for (size_t i = 0; i < labels_.size() / tasks_.size(); ++i) {
    const float label = labels_[i * tasks_.size() + task];
    if (std::isnan(label)) continue;
    labels.push_back(label);
    scores.push_back(Bounded(predictions_[i * tasks_.size() + task]));
    if (!units_.empty()) units.push_back(units_[i]);
    if (groups_.empty()) continue;
    groups.push_back(groups_[i]);
    without.push_back(without_[i]);
  }
  const ops::WeightedExamples x = {scores, labels, units};
  const ops::WeightedSums sums = ops::SumExamples(x);
  const bool binary = spec.binary(), count = spec.kind == LabelKind::kCount;
  TaskResult result;
  result.set_label(spec.name);
  result.set_examples(labels.size());
  result.set_weight(units_.empty() ? sums.weight : sums.weight * double{kWeightUnit});
  if (binary) {
    result.set_positives(static_cast<uint64_t>(
        std::count_if(labels.begin(), labels.end(), [](float label) { return label > 0.5f; })));
  }
  if (first != nullptr && binary) {
    first->set_positives(result.positives());
    // Both classes are there, but one of them may weigh nothing.
    const bool one_class = OneClass(result.positives(), result.examples());
    first->set_auc(one_class ? 0.5 : std::numeric_limits<double>::quiet_NaN());
  }
  if (sums.weight == 0) return result;
  const auto wanted = [this](bool given, bool by_kind) { return plan_.given ? given : by_kind; };
  result.set_loss(MeanLoss(spec, x, sums));
  if (first != nullptr) first->set_logloss(result.loss());
  if (binary && (first != nullptr || wanted(plan_.auc, true))) {
    const std::optional<double> auc = ops::WeightedAuc(x);
    if (auc && first != nullptr) first->set_auc(*auc);
    if (auc && wanted(plan_.auc, true)) result.set_auc(*auc);
  }
  if (binary && wanted(plan_.logloss, true)) result.set_logloss(sums.logloss / sums.weight);
  const double ones = sums.label / sums.weight;
  if (binary && wanted(plan_.ne, true) && ones > 0 && ones < 1) {
    result.set_normalised_entropy(sums.logloss / sums.weight / EntropyOf(ones));
  }
  if (sums.label != 0) {
    if (wanted(plan_.calibration, binary || count)) {
      result.set_calibration(sums.prediction / sums.label);
    }
    if (first != nullptr) first->set_calibration(sums.prediction / sums.label);
  }
  if (binary && gauc_field_) {
    if (const auto gauc = ops::GroupedAuc(x, groups, without)) result.set_gauc(*gauc);
  }
  if (wanted(plan_.mse, !binary)) result.set_mse(sums.squared / sums.weight);
  if (wanted(plan_.mae, !binary)) result.set_mae(sums.absolute / sums.weight);
  ClearNotFinite(&result);
  return result;
}

void TaskMetrics::Fill(EvaluationResult* result) const {
  result->set_auc(0.5);
  result->set_examples(labels_.size() / tasks_.size());
  for (size_t t = 0; t < tasks_.size(); ++t) {
    *result->add_tasks() = Of(t, t == 0 ? result : nullptr);
  }
}

}  // namespace strata
