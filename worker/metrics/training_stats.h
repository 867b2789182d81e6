// What a trainer tells about its work while it runs.
#ifndef STRATA_WORKER_METRICS_TRAINING_STATS_H_
#define STRATA_WORKER_METRICS_TRAINING_STATS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "google/protobuf/repeated_field.h"
#include "proto/strata/control.pb.h"
#include "worker/metrics/example_rate.h"
#include "worker/metrics/stage_times.h"

namespace strata {

// Filled by the trainer's thread, read by the reporting thread. Thread-safe.
class TrainingStats {
 public:
  // Loss and AUC are reported over this many recent steps, and up to as many before.
  static constexpr size_t kRecentSteps = 64;
  // The rate is reported over at least this long, where training has lasted so long.
  static constexpr absl::Duration kRateSpan = absl::Seconds(1);

  // One lane's batch is computed.
  struct Batch {
    uint64_t examples = 0;
    uint64_t bad_lines = 0;
    double loss = 0;    // summed over examples and labels, with their weights
    double weight = 0;  // the sum of the weights of examples that have a label
    // Of the first label: (examples) each; a label that is no number is none. weights: or empty,
    // all 1.
    std::span<const float> labels, predictions, weights;
  };
  void OnBatch(const Batch& batch);
  // Whether the first label is 0 or 1, so that there is an AUC. Before training.
  void SetBinary(bool binary);
  void OnStep(uint64_t step, absl::Time now);
  // Training stands until GoOn, for an evaluation: that time is none of the rate's.
  void Stand(absl::Time now);
  void GoOn(absl::Time now);
  // No step comes any more, though the trainer goes on (async): what follows is none of training's
  // time. OnFinished says so too.
  void OnTrained();
  // Rows of a lane's own copy that refused, or cut, their gradient.
  void OnLocalRows(uint64_t refused, uint64_t clipped);
  // What fields are called, by number; empty: their numbers are. Before training.
  void NameFields(std::vector<std::string> names);
  struct Feature {
    uint64_t key = 0;
    uint32_t field = 0;
    uint32_t table = 0;
    friend bool operator==(const Feature&, const Feature&) = default;
  };
  // Features that are told with their fields; of the first, that many are told to people.
  static constexpr size_t kMostNotFinite = 32;
  static constexpr size_t kMostShown = 8;
  // Features whose gradients are no finite numbers. The first call makes a trouble from the next
  // OnStep on, for good; later ones add keys, until kMostNotFinite are known.
  void OnNotFinite(const std::vector<Feature>& features);
  bool knows_not_finite() const { return knows_not_finite_.load(std::memory_order_relaxed); }
  // Rows of a pull or push that went by the memory of a device (DESIGN.md section 6, "On a GPU").
  void OnRowsThere(uint64_t rows) { rows_there_.fetch_add(rows, std::memory_order_relaxed); }
  void OnEvaluation(const EvaluationResult& result);
  void OnFinished();
  void OnFatal(const absl::Status& status);
  // What was read of a task, from its beginning. What another lane had read, that goes no further,
  // changes nothing.
  void OnTaskRead(const TaskCounts& counts);
  void OnDoneTask(const TaskCounts& counts);
  // Forgets the evaluations that the scheduler has: they are in what it says.
  void ForgetEvaluations(const google::protobuf::RepeatedPtrField<EvaluationResult>& known);
  // Forgets tasks that the scheduler no longer asks for: it has heard of those that are done.
  void KeepTasks(const std::function<bool(uint64_t)>& keep);
  // Patience: the evaluation after this step is the best so far; its checkpoint must stay.
  void OnBest(uint64_t step);
  void OnStopDecision(uint64_t stop_at_step);
  void WantCut(uint64_t step);
  void SetPredictions(const std::string& path);
  void SetMarkedCut(uint64_t cut);
  // A line was left out, the first of this worker: "file:line:column: reason".
  void OnFirstBadLine(const std::string& line, absl::Time now);
  // What is told of troubles from now on: this one; none.
  void SetTrouble(const Trouble& trouble);
  void EndTrouble();

  // Where the time of this training goes; used without this object's lock.
  StageTimes& stages() { return stages_; }
  const StageTimes& stages() const { return stages_; }

  // Adds the counters to a report; loss and AUC are of the recent steps, with the weights of what
  // they are of. Where there are none, the loss is 0; without an AUC it is no number.
  // examples_per_second: of this worker's lanes, in time of training: without what is between Stand
  // and GoOn. While they train, over the time since the last mark but one (marks are steps at least
  // kRateSpan apart), so it falls towards 0 while nothing moves; when they are trained, from the
  // end of the first step to that of the last one. 0 before the second step.
  void Report(absl::Time now, WorkerJobReport* out) const;

  struct Quality {
    double loss = 0;
    // None where one class is missing, or a prediction is no number.
    std::optional<double> auc;
  };
  // Of this worker's lanes over the recent steps; none where nothing was computed.
  std::optional<Quality> RecentQuality() const;
  // Examples that this worker's lanes have computed.
  uint64_t examples() const;
  uint64_t bad_lines() const;
  uint64_t rows_there() const { return rows_there_.load(std::memory_order_relaxed); }

 private:
  StageTimes stages_;
  std::atomic<uint64_t> rows_there_{0};
  std::atomic<bool> knows_not_finite_{false};  // enough of them

  static constexpr size_t kBins = 4096;
  struct Recent {  // a ring of histograms would cost more than it tells: two halves, rotated
    double weight = 0;
    double loss = 0;
    bool numbers = true;            // all predictions are
    double first_label_weight = 0;  // of examples that have it
    // In units of kWeightUnit where examples have weights.
    std::vector<uint64_t> positive = std::vector<uint64_t>(kBins);
    std::vector<uint64_t> negative = std::vector<uint64_t>(kBins);
  };
  absl::Time TimeOfTraining(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return standing_since_.value_or(now) - stood_;
  }
  std::string FieldOf(const Feature& feature) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Trouble NotFiniteTrouble(uint64_t step, absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<double> RecentAuc() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<Quality> RecentQualityLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  uint64_t examples_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t bad_lines_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t step_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t refused_rows_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t clipped_rows_ ABSL_GUARDED_BY(mu_) = 0;
  size_t steps_in_half_ ABSL_GUARDED_BY(mu_) = 0;
  Recent half_[2] ABSL_GUARDED_BY(mu_);
  absl::Duration stood_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Time> standing_since_ ABSL_GUARDED_BY(mu_);
  bool trained_ ABSL_GUARDED_BY(mu_) = false;
  bool binary_ ABSL_GUARDED_BY(mu_) = true;
  // In time of training. The rate counts from the older; both are the first step's end at first.
  std::optional<ExampleMark> older_mark_ ABSL_GUARDED_BY(mu_);
  ExampleMark newer_mark_ ABSL_GUARDED_BY(mu_);
  ExampleMark first_step_ ABSL_GUARDED_BY(mu_);
  ExampleMark last_step_ ABSL_GUARDED_BY(mu_);
  std::vector<EvaluationResult> evaluations_ ABSL_GUARDED_BY(mu_);
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  std::string fatal_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> done_tasks_ ABSL_GUARDED_BY(mu_);
  // By task. One for each that was told and was begun; of others at most one for each lane, whose
  // work at it is just being cancelled.
  std::map<uint64_t, TaskCounts> task_counts_ ABSL_GUARDED_BY(mu_);
  uint64_t stop_at_step_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t best_step_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t wants_cut_at_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t marked_cut_ ABSL_GUARDED_BY(mu_) = 0;
  std::string predictions_ ABSL_GUARDED_BY(mu_);
  std::optional<Trouble> trouble_ ABSL_GUARDED_BY(mu_);
  std::optional<Trouble> bad_lines_trouble_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> fields_ ABSL_GUARDED_BY(mu_);
  std::vector<Feature> not_finite_ ABSL_GUARDED_BY(mu_);
  std::optional<Trouble> not_finite_trouble_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // STRATA_WORKER_METRICS_TRAINING_STATS_H_
