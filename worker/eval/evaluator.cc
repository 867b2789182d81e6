#include "worker/eval/evaluator.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ops/nn/auc.h"
#include "proto/job/task_spec.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/prediction_names.h"
#include "worker/eval/task_metrics.h"
#include "worker/step/router.h"

namespace strata {
namespace {

// Lines of labels and scores in a file that appears whole or not at all.
class PredictionFile {
 public:
  PredictionFile() = default;
  PredictionFile(const PredictionFile&) = delete;
  PredictionFile& operator=(const PredictionFile&) = delete;
  // What was not finished leaves nothing behind.
  ~PredictionFile() {
    Close();
    if (begun_) files_.Remove(TemporaryName());
  }

  absl::Status Open(const std::string& path) {
    path_ = path;
    if (path.empty()) return absl::OkStatus();
    fd_ = files_.Open(TemporaryName(), O_WRONLY | O_CREAT | O_TRUNC);
    begun_ = fd_ >= 0;
    return begun_ ? absl::OkStatus() : Error("open", fd_);
  }

  // Both (examples, tasks).
  absl::Status Append(const std::vector<TaskSpec>& tasks, const std::vector<float>& labels,
                      const std::vector<float>& scores) {
    if (fd_ < 0) return absl::OkStatus();
    std::string text;
    for (size_t i = 0; i < labels.size(); i += tasks.size()) {
      for (size_t t = 0; t < tasks.size(); ++t) AppendLabel(tasks[t], labels[i + t], &text);
      for (size_t t = 0; t < tasks.size(); ++t) {
        AppendNumber(scores[i + t], &text);
        text.push_back(t + 1 < tasks.size() ? ',' : '\n');
      }
    }
    for (absl::string_view left = text; !left.empty();) {
      const iovec part = {const_cast<char*>(left.data()), left.size()};
      const ssize_t n = files_.Write(fd_, {&part, 1}, bytes_);
      if (n < 0) return Error("write", n);
      bytes_ += static_cast<uint64_t>(n);
      left.remove_prefix(static_cast<size_t>(n));
    }
    return absl::OkStatus();
  }

  absl::Status Finish() {
    if (fd_ < 0) return absl::OkStatus();
    Close();
    const int renamed = files_.Rename(TemporaryName(), path_);
    if (renamed < 0) return Error("rename", renamed);
    begun_ = false;
    return absl::OkStatus();
  }

 private:
  static void AppendNumber(float number, std::string* text) {
    char digits[32];
    const int n = std::snprintf(digits, sizeof(digits), "%.9g", static_cast<double>(number));
    text->append(digits, static_cast<size_t>(n));
  }
  static void AppendLabel(const TaskSpec& task, float label, std::string* text) {
    if (!std::isnan(label)) {
      if (task.binary()) {
        text->push_back(label > 0.5f ? '1' : '0');
      } else {
        AppendNumber(label, text);
      }
    }
    text->push_back(',');
  }
  std::string TemporaryName() const { return UnfinishedPredictions(path_); }
  void Close() {
    if (fd_ >= 0) files_.Close(fd_);
    fd_ = -1;
  }
  // `result`: a negative errno. Waiting mends nothing here: nobody tries again.
  absl::Status Error(const char* what, ssize_t result) const {
    const int error = static_cast<int>(-result);
    if (error == kOutsideRoots) return ErrnoStatus(error, what, path_);
    return absl::FailedPreconditionError(
        absl::StrCat("predictions: cannot ", what, " ", path_, ": ", std::strerror(error)));
  }

  FileSystem& files_ = FileSystem::Kernel();
  std::string path_;
  int fd_ = -1;
  bool begun_ = false;  // the temporary name is there
  uint64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<EvaluationResult> Evaluator::Run(Step step, const std::string& predictions_path) {
  PredictionFile file;
  if (absl::Status s = file.Open(predictions_path); !s.ok()) return s;
  Router router;
  Batch batch;
  RoutedKeys routed;
  ParameterBlock weights;
  std::vector<float> scores, labels, some;
  const bool plain = o_.tables->plain();
  TaskMetrics tasks(o_.tables->tasks, o_.metrics, o_.gauc_field);
  for (uint64_t line = 0; line < o_.lines; line += kLinesAtATime) {
    if (o_.cancelled != nullptr && o_.cancelled->load()) return absl::CancelledError("stopped");
    if (absl::Status s = o_.source->ReadLines(line, kLinesAtATime, &batch); !s.ok()) return s;
    if (batch.size == 0) continue;
    router.Route(*o_.tables, batch, &routed);
    if (absl::Status s =
            o_.client->Pull(step, {routed.keys, routed.positions, routed.runs}, &weights);
        !s.ok()) {
      return s;
    }
    some.resize(size_t{batch.size} * batch.tasks);
    const auto tensors = o_.exchange->TensorsIn(static_cast<const float*>(weights.dense.data()));
    if (absl::Status s = o_.model->Predict({&batch, &routed, weights.rows.data(), tensors},
                                           some.data(), o_.parallel);
        !s.ok()) {
      return s;
    }
    if (absl::Status s = file.Append(o_.tables->tasks, batch.labels, some); !s.ok()) return s;
    if (o_.metrics.by_task) tasks.Add(batch, some);
    if (!plain) continue;
    scores.insert(scores.end(), some.begin(), some.end());
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
  if (absl::Status s = file.Finish(); !s.ok()) return s;
  EvaluationResult result;
  result.set_step(step.value == 0 ? 0 : step.value - 1);
  if (o_.metrics.by_task) tasks.Fill(&result);
  if (!plain) return result;
  result.set_auc(ops::Auc(scores, labels));
  result.set_logloss(ops::MeanLogloss(scores, labels));
  result.set_calibration(ops::Calibration(scores, labels));
  result.set_examples(scores.size());
  result.set_positives(static_cast<uint64_t>(
      std::count_if(labels.begin(), labels.end(), [](float label) { return label > 0.5f; })));
  return result;
}

}  // namespace strata
