#include "worker/eval/boundary.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/job/evaluation_result.h"
#include "proto/job/fields/label_spec.h"
#include "proto/job/job_plan.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/prediction_names.h"
#include "worker/eval/metrics_text.h"
#include "worker/eval/prediction_file.h"
#include "worker/metrics/example_rate.h"
#include "worker/metrics/line_file.h"

namespace strata {
namespace {

// How long a wait for a checkpoint goes on when training is stopped.
constexpr absl::Duration kLookEvery = absl::Milliseconds(100);

// Names the field where it is the file that failed.
absl::Status OfPredictions(const absl::Status& status, const std::string& path) {
  if (path.empty() || !absl::StrContains(status.message(), path)) return status;
  return absl::Status(status.code(), absl::StrCat("spec.output.predictions: ", status.message()));
}

class Boundary : public EvaluationBoundary {
 public:
  explicit Boundary(const EvaluationBoundaryOptions& options)
      : o_(options),
        bsp_(options.spec.training().mode() == "bsp"),
        by_loss_(!TasksOf(options.spec)[0].binary()) {
    const uint64_t every = o_.spec.evaluation().every_steps();
    if (every == 0) return;
    for (const EvaluationResult& e : o_.history) passed_ = std::max(passed_, e.step() / every);
  }
  absl::Status OpenMetrics() {
    const std::string& path = o_.spec.output().metrics();
    if (path.empty()) return absl::OkStatus();
    metrics_.emplace(path);
    absl::Status s = metrics_->Open();
    if (s.ok() || absl::IsResourceExhausted(s)) return absl::OkStatus();  // lines can wait
    return absl::Status(s.code(), absl::StrCat("spec.output.metrics: ", s.message()));
  }

  // Before the first step: the end of a long job is too late to learn it, and a rename would put a
  // file into the place of a pipe or a device.
  absl::Status CheckPredictions() {
    const std::string& path = o_.spec.output().predictions();
    FileInfo info;
    if (path.empty() || o_.evaluator == nullptr) return absl::OkStatus();
    auto place = PlaceOfPredictions(path);
    if (!place.ok()) return OfPredictions(place.status(), path);
    const int looked = FileSystem::Kernel().Look(path, info);
    const int error = place->device                    ? ESPIPE
                      : looked == -ENOENT              ? 0
                      : looked < 0                     ? -looked
                      : info.kind == FileKind::kFolder ? EISDIR
                      : info.kind == FileKind::kOther  ? ESPIPE
                                                       : 0;
    predictions_ = std::move(place->path);
    return error == 0 ? absl::OkStatus() : OfPredictions(ErrnoStatus(error, "write", path), path);
  }

  void SetCheckpoints(std::vector<uint64_t> steps) override {
    MutexLock lock(&mu_);
    checkpoints_ = std::move(steps);
  }

  absl::StatusOr<Verdict> OnBoundary(Step completed, bool last) override {
    const uint64_t every = o_.spec.evaluation().every_steps();
    reached_ = {o_.timer->Now(), ExamplesAt(completed)};
    if (!rate_from_) {
      rate_from_ = reached_;
      last_metrics_ = reached_.at;  // the first line has a second to tell of
    }
    CountHistory(completed);
    const bool due = last || Due(completed, every);
    if (!due || o_.evaluator == nullptr) {
      WriteMetrics(completed, nullptr, last, last);
      return Verdict::kGoOn;
    }
    // Lanes of an asynchronous job train on meanwhile.
    if (!bsp_ && !last) return Evaluate(completed, last);
    o_.stats->Stand(o_.timer->Now());
    auto verdict = Evaluate(completed, last);
    o_.stats->GoOn(o_.timer->Now());
    return verdict;
  }

 private:
  absl::StatusOr<Verdict> Evaluate(Step completed, bool last) {
    const uint32_t patience = o_.spec.evaluation().patience();
    // Where the best counts, predictions of a worse one must not replace the best one's.
    const std::string& path = predictions_;
    PredictionFile file;
    if (absl::Status s = file.Open(path); !s.ok()) return OfPredictions(s, path);
    auto result = o_.evaluator->Run(bsp_ ? completed.Next() : Step(0), file);
    if (!result.ok()) return OfPredictions(result.status(), path);
    result->set_step(completed.value);
    const bool better = Count(*result);
    if (!path.empty() && (better || patience == 0)) {
      if (absl::Status s = file.Finish(); !s.ok()) return OfPredictions(s, path);
      o_.stats->SetPredictions(o_.spec.output().predictions());
    }
    o_.stats->OnEvaluation(*result);
    WriteMetrics(completed, &*result, true, last);
    if (patience == 0) return Verdict::kGoOn;
    return Judge(completed, better, last, patience);
  }

  // Bsp: at each multiple. Async: when the count of windows has passed one since the last call.
  bool Due(Step completed, uint64_t every) {
    if (every == 0) return false;
    if (bsp_) return completed.value % every == 0;
    const uint64_t before = std::exchange(passed_, completed.value / every);
    return completed.value / every > before;
  }

  // What earlier hosts of lane 0 found before this step; what they found later is to be found
  // again.
  void CountHistory(Step completed) {
    if (std::exchange(history_counted_, true)) return;
    for (const EvaluationResult& e : o_.history) {
      if (e.step() < completed.value) Count(e);
    }
  }

  // True when it is the best so far: the first one, as a run ends at one of its evaluations,
  // whatever they say; of later ones those whose quality is defined, and greater or the first to
  // be.
  bool Count(const EvaluationResult& result) {
    const std::optional<double> quality = QualityOf(result);
    const bool better = !best_ || (quality && (!*best_ || *quality > **best_));
    if (better) best_ = quality;
    worse_in_a_row_ = better ? 0 : worse_in_a_row_ + 1;
    return better;
  }

  // More is better; none where it is not defined.
  std::optional<double> QualityOf(const EvaluationResult& result) const {
    if (!by_loss_) return AucOf(result);
    const std::optional<double> loss = LossOf(result);
    return loss ? std::optional<double>(-*loss) : std::nullopt;
  }

  absl::StatusOr<Verdict> Judge(Step completed, bool better, bool last, uint32_t patience) {
    // Told with the wish for its checkpoint: from then on no younger one may push it out.
    if (better) o_.stats->OnBest(completed.value);
    if (better && !last && !o_.spec.checkpoint().directory().empty()) {
      if (!AwaitCheckpoint(completed.value)) return absl::CancelledError("training was stopped");
    }
    const bool stop = !last && worse_in_a_row_ >= patience;
    if (stop || last) o_.stats->OnStopDecision(completed.value);
    return stop ? Verdict::kStop : Verdict::kGoOn;
  }

  // Holds the step open until its checkpoint is complete. False when training is stopped meanwhile.
  bool AwaitCheckpoint(uint64_t step) {
    o_.stats->WantCut(step);
    while (!o_.cancelled->load(std::memory_order_relaxed)) {
      MutexLock lock(&mu_);
      const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return std::find(checkpoints_.begin(), checkpoints_.end(), step) != checkpoints_.end();
      };
      const absl::Time look = o_.timer->Now() + kLookEvery;
      if (AwaitUntil(o_.timer, &mu_, absl::Condition(&there), look)) {
        o_.stats->WantCut(0);
        return true;
      }
    }
    return false;
  }

  // What the rate counts: bsp, lines of the whole job; else what the lanes of this worker have.
  uint64_t ExamplesAt(Step completed) const {
    return bsp_ ? JobLinesAt(completed) : o_.stats->examples();
  }

  // Lines that the whole job took for `completed` steps. Asynchronous modes: as if each window were
  // full, and at most what there is. The last window of a task may have fewer lines.
  uint64_t JobLinesAt(Step completed) const {
    const TrainingSpec& training = o_.spec.training();
    const uint64_t own = completed.value - std::min(completed.value, o_.steps_before);
    if (bsp_) return LinesAtStep(training, o_.train_lines, own);
    const uint64_t lines = own * BatchesPerWindow(training) * training.batch_size();
    return std::min(lines, o_.train_lines * std::max(1u, training.epochs()));
  }

  // One line per second of training and one per evaluation. The rate is that of training alone:
  // from where the line before was written to where this boundary was reached.
  void WriteMetrics(Step completed, const EvaluationResult* result, bool always, bool last) {
    const absl::Time now = o_.timer->Now();
    if (!metrics_ || (!always && now - last_metrics_ < absl::Seconds(1))) return;
    last_metrics_ = now;
    std::optional<double> rate;
    if (reached_.examples > rate_from_->examples) rate = ExampleRate(*rate_from_, reached_);
    rate_from_ = {now, reached_.examples};
    const std::optional<TrainingStats::Quality> recent = o_.stats->RecentQuality();
    std::string line = absl::StrCat(
        "{\"step\": ", completed.value,
        ", \"loss\": ", NumberText(recent ? std::optional(recent->loss) : std::nullopt, 6),
        ", \"auc\": ", NumberText(recent ? recent->auc : std::nullopt, 6),
        ", \"examplesPerSecond\": ", NumberText(rate, 1), ", \"examples\": ", JobLinesAt(completed),
        ", \"unixMs\": ", absl::ToUnixMillis(now));
    if (result != nullptr) absl::StrAppend(&line, EvaluationMembers(*result));
    ReportMetrics(metrics_->Append(line + "}"), now, last);
  }

  // Training goes on without its metrics; users are told, and what waits is written later.
  void ReportMetrics(const absl::Status& written, absl::Time now, bool last) {
    if (written.ok() && metrics_->lost_lines() == 0) {
      metrics_trouble_.reset();
      return o_.stats->EndTrouble();
    }
    if (!metrics_trouble_) metrics_trouble_ = now;
    const uint64_t waiting = metrics_->waiting_lines();
    const uint64_t lost = metrics_->lost_lines() + (last ? waiting : 0);
    Trouble trouble;
    trouble.set_reason(lost == 0 ? "MetricsNotWritten" : "MetricsLost");
    trouble.set_message(absl::StrCat(
        "spec.output.metrics: ", written.ok() ? metrics_->path() : written.message(), "; ",
        lost > 0 ? absl::StrCat(lost, " lines are lost")
                 : absl::StrCat(waiting, " lines wait and are tried again")));
    trouble.set_since_unix_ms(absl::ToUnixMillis(*metrics_trouble_));
    o_.stats->SetTrouble(trouble);
  }

  const EvaluationBoundaryOptions o_;
  const bool bsp_;
  const bool by_loss_;       // the first label has no AUC: `logloss` is its mean loss
  uint64_t passed_ = 0;      // async: multiples of everySteps passed
  std::string predictions_;  // where they lie, without a link at the end; "": none are wanted
  std::optional<LineFile> metrics_;
  std::optional<absl::Time> metrics_trouble_;  // since when
  absl::Time last_metrics_;
  std::optional<ExampleMark> rate_from_;  // set by the first boundary
  ExampleMark reached_;                   // the present boundary, before it evaluates
  bool history_counted_ = false;
  std::optional<std::optional<double>> best_;  // quality of the best so far
  uint32_t worse_in_a_row_ = 0;
  Mutex mu_;
  std::vector<uint64_t> checkpoints_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<EvaluationBoundary>> EvaluationBoundary::Make(
    const EvaluationBoundaryOptions& options) {
  auto boundary = std::make_unique<Boundary>(options);
  absl::Status s = boundary->CheckPredictions();
  if (s.ok()) s = boundary->OpenMetrics();
  if (!s.ok()) return s;
  return std::unique_ptr<EvaluationBoundary>(std::move(boundary));
}

}  // namespace strata
