#include "worker/metrics/training_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/job/fields/task_spec.h"

namespace strata {

void TrainingStats::OnBatch(const Batch& batch) {
  absl::MutexLock lock(&mu_);
  examples_ += batch.examples;
  bad_lines_ += batch.bad_lines;
  Recent& half = half_[0];
  half.weight += batch.weight;
  half.loss += batch.loss;
  if (!binary_) return;
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    const float label = batch.labels[i], prediction = batch.predictions[i];
    if (std::isnan(label)) continue;
    half.first_label_weight += batch.weights.empty() ? 1 : double{batch.weights[i]};
    const uint64_t units =
        batch.weights.empty()
            ? 1
            : static_cast<uint64_t>(double{batch.weights[i]} / double{kWeightUnit});
    if (std::isnan(prediction)) {
      half.numbers &= units == 0;
      continue;
    }
    const float p = prediction > 0 ? std::min(prediction, 1.0f) : 0.0f;
    const size_t bin = std::min(kBins - 1, static_cast<size_t>(p * kBins));
    (label > 0.5f ? half.positive : half.negative)[bin] += units;
  }
}

void TrainingStats::SetBinary(bool binary) {
  absl::MutexLock lock(&mu_);
  binary_ = binary;
}

void TrainingStats::OnStep(uint64_t step, absl::Time now) {
  absl::MutexLock lock(&mu_);
  step_ = std::max(step_, step);
  if (++steps_in_half_ >= kRecentSteps) {
    steps_in_half_ = 0;
    half_[1] = std::move(half_[0]);
    half_[0] = Recent();
  }
  if (!not_finite_.empty() && !not_finite_trouble_) {
    not_finite_trouble_ = NotFiniteTrouble(step, now);
  }
  last_step_ = {TimeOfTraining(now), examples_};
  if (!older_mark_) {
    first_step_ = last_step_;
    newer_mark_ = last_step_;
    older_mark_ = last_step_;
  } else if (last_step_.at - newer_mark_.at >= kRateSpan) {
    older_mark_ = std::exchange(newer_mark_, last_step_);
  }
}

void TrainingStats::Stand(absl::Time now) {
  absl::MutexLock lock(&mu_);
  if (!standing_since_) standing_since_ = now;
}

void TrainingStats::GoOn(absl::Time now) {
  absl::MutexLock lock(&mu_);
  if (standing_since_) stood_ += now - *standing_since_;
  standing_since_.reset();
}

void TrainingStats::OnTrained() {
  absl::MutexLock lock(&mu_);
  trained_ = true;
}

void TrainingStats::OnLocalRows(uint64_t refused, uint64_t clipped) {
  absl::MutexLock lock(&mu_);
  refused_rows_ += refused;
  clipped_rows_ += clipped;
}

void TrainingStats::NameFields(std::vector<std::string> names) {
  absl::MutexLock lock(&mu_);
  fields_ = std::move(names);
}

void TrainingStats::OnNotFinite(const std::vector<Feature>& features) {
  absl::MutexLock lock(&mu_);
  for (const Feature& f : features) {
    const auto same = [&f](const Feature& known) {
      return known.table == f.table && known.key == f.key;
    };
    if (not_finite_.size() == kMostNotFinite) break;
    if (std::none_of(not_finite_.begin(), not_finite_.end(), same)) not_finite_.push_back(f);
  }
  knows_not_finite_ = not_finite_.size() == kMostNotFinite;
}

std::string TrainingStats::FieldOf(const Feature& feature) const {
  if (feature.field < fields_.size()) return fields_[feature.field];
  return absl::StrCat("field ", feature.field);
}

Trouble TrainingStats::NotFiniteTrouble(uint64_t step, absl::Time now) const {
  std::string features;
  const size_t shown = std::min(kMostShown, not_finite_.size());
  for (size_t i = 0; i < shown; ++i) {
    const Feature& f = not_finite_[i];
    absl::StrAppend(&features, i == 0 ? "" : ", ", FieldOf(f), " (key ", f.key, ")");
  }
  Trouble trouble;
  trouble.set_reason("GradientsNotFinite");
  trouble.set_message(
      absl::StrCat("a batch's loss is no finite number, first at step ", step,
                   "; gradients that are none are not ", "applied, of ", features,
                   not_finite_.size() < kMostShown ? "" : " and perhaps others",
                   "; look at the data of these, or lower spec.optimizer.sparse.learningRate"));
  trouble.set_since_unix_ms(absl::ToUnixMillis(now));
  return trouble;
}

void TrainingStats::OnEvaluation(const EvaluationResult& result) {
  absl::MutexLock lock(&mu_);
  evaluations_.push_back(result);
}

void TrainingStats::ForgetEvaluations(
    const google::protobuf::RepeatedPtrField<EvaluationResult>& known) {
  absl::MutexLock lock(&mu_);
  std::erase_if(evaluations_, [&known](const EvaluationResult& mine) {
    return std::any_of(known.begin(), known.end(), [&mine](const EvaluationResult& theirs) {
      return theirs.step() == mine.step() && theirs.SerializeAsString() == mine.SerializeAsString();
    });
  });
}

void TrainingStats::OnFinished() {
  absl::MutexLock lock(&mu_);
  finished_ = true;
  trained_ = true;
}

void TrainingStats::OnFatal(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (fatal_.empty()) fatal_ = std::string(status.message());
}

void TrainingStats::OnTaskRead(const TaskCounts& counts) {
  absl::MutexLock lock(&mu_);
  TaskCounts& known = task_counts_[counts.task()];
  const auto lines = [](const TaskCounts& c) { return c.examples() + c.bad_lines(); };
  if (lines(counts) >= lines(known)) known = counts;
}

void TrainingStats::OnDoneTask(const TaskCounts& counts) {
  absl::MutexLock lock(&mu_);
  done_tasks_.push_back(counts.task());
  task_counts_[counts.task()] = counts;  // perhaps forgotten while it was in work
}

void TrainingStats::KeepTasks(const std::function<bool(uint64_t)>& keep) {
  absl::MutexLock lock(&mu_);
  std::erase_if(done_tasks_, [&](uint64_t task) { return !keep(task); });
  std::erase_if(task_counts_, [&](const auto& counts) { return !keep(counts.first); });
}

void TrainingStats::OnBest(uint64_t step) {
  absl::MutexLock lock(&mu_);
  best_step_ = step;
}

void TrainingStats::OnStopDecision(uint64_t stop_at_step) {
  absl::MutexLock lock(&mu_);
  stop_at_step_ = stop_at_step;
}

void TrainingStats::WantCut(uint64_t step) {
  absl::MutexLock lock(&mu_);
  wants_cut_at_ = step;
}

void TrainingStats::SetPredictions(const std::string& path) {
  absl::MutexLock lock(&mu_);
  predictions_ = path;
}

void TrainingStats::SetMarkedCut(uint64_t cut) {
  absl::MutexLock lock(&mu_);
  marked_cut_ = std::max(marked_cut_, cut);
}

void TrainingStats::OnFirstBadLine(const std::string& line, absl::Time now) {
  absl::MutexLock lock(&mu_);
  bad_lines_trouble_.emplace();
  bad_lines_trouble_->set_reason("LinesAreBad");
  bad_lines_trouble_->set_message(absl::StrCat("the first bad line is ", line));
  bad_lines_trouble_->set_since_unix_ms(absl::ToUnixMillis(now));
}

void TrainingStats::SetTrouble(const Trouble& trouble) {
  absl::MutexLock lock(&mu_);
  trouble_ = trouble;
}

void TrainingStats::EndTrouble() {
  absl::MutexLock lock(&mu_);
  trouble_.reset();
}

uint64_t TrainingStats::bad_lines() const {
  absl::MutexLock lock(&mu_);
  return bad_lines_;
}

uint64_t TrainingStats::examples() const {
  absl::MutexLock lock(&mu_);
  return examples_;
}

std::optional<TrainingStats::Quality> TrainingStats::RecentQuality() const {
  absl::MutexLock lock(&mu_);
  return RecentQualityLocked();
}

std::optional<TrainingStats::Quality> TrainingStats::RecentQualityLocked() const {
  const double recent = half_[0].weight + half_[1].weight;
  if (recent == 0) return std::nullopt;
  return Quality{(half_[0].loss + half_[1].loss) / recent, RecentAuc()};
}

std::optional<double> TrainingStats::RecentAuc() const {
  if (!half_[0].numbers || !half_[1].numbers) return std::nullopt;
  double positives = 0, negatives = 0, pairs = 0;
  for (size_t b = 0; b < kBins; ++b) {
    const double p = static_cast<double>(half_[0].positive[b] + half_[1].positive[b]);
    const double n = static_cast<double>(half_[0].negative[b] + half_[1].negative[b]);
    pairs += p * (negatives + n / 2);
    positives += p;
    negatives += n;
  }
  if (positives == 0 || negatives == 0) return std::nullopt;
  return pairs / (positives * negatives);
}

void TrainingStats::Report(absl::Time now, WorkerJobReport* out) const {
  absl::MutexLock lock(&mu_);
  out->set_examples(examples_);
  out->set_bad_lines(bad_lines_);
  out->set_step(step_);
  out->set_refused_rows(refused_rows_);
  out->set_clipped_rows(clipped_rows_);
  out->set_evaluating(standing_since_.has_value());
  const StageSeconds spent = stages_.Seconds();
  double working = 0;
  for (size_t stage = 0; stage < kStages; ++stage) {
    const auto which = static_cast<Stage>(stage);
    if (which != Stage::kPull && which != Stage::kOther) working += spent.path[stage];
  }
  out->set_working_seconds(working);
  if (older_mark_) {
    const bool ended = trained_ && !STRATA_MUTATION("end.rate_counts_checkpoint");
    const auto rate = ended ? ExampleRate(first_step_, last_step_)
                            : ExampleRate(*older_mark_, {TimeOfTraining(now), examples_});
    out->set_examples_per_second(rate.value_or(0));
  }
  const std::optional<Quality> recent = RecentQualityLocked();
  if (recent) out->set_training_loss(recent->loss);
  out->set_training_weight(half_[0].weight + half_[1].weight);
  const std::optional<double> auc = recent ? recent->auc : std::nullopt;
  out->set_training_auc(auc.value_or(std::numeric_limits<double>::quiet_NaN()));
  if (auc) {
    out->set_training_auc_weight(half_[0].first_label_weight + half_[1].first_label_weight);
  }
  for (const EvaluationResult& e : evaluations_) *out->add_evaluations() = e;
  out->set_finished(finished_);
  out->set_fatal(fatal_);
  for (uint64_t task : done_tasks_) out->add_done_tasks(task);
  for (const auto& [task, counts] : task_counts_) *out->add_task_counts() = counts;
  out->set_stop_at_step(stop_at_step_);
  out->set_best_step(best_step_);
  out->set_wants_cut_at(wants_cut_at_);
  out->set_marked_cut(marked_cut_);
  out->set_predictions(predictions_);
  for (const Feature& f : not_finite_) {
    RefusedRow* row = out->add_not_finite();
    row->set_table(f.table);
    row->set_key(f.key);
    row->set_field(FieldOf(f));
  }
  if (trouble_) *out->add_troubles() = *trouble_;
  if (not_finite_trouble_) *out->add_troubles() = *not_finite_trouble_;
  if (bad_lines_trouble_) *out->add_troubles() = *bad_lines_trouble_;
}

}  // namespace strata
