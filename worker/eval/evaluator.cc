#include "worker/eval/evaluator.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/nn/auc.h"
#include "worker/step/router.h"

namespace strata {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// "label,score" lines in a file that appears whole or not at all.
class PredictionFile {
 public:
  absl::Status Open(const std::string& path) {
    path_ = path;
    if (path.empty()) return absl::OkStatus();
    file_.reset(std::fopen(TemporaryName().c_str(), "w"));
    return file_ != nullptr ? absl::OkStatus() : Error("open");
  }

  absl::Status Append(const std::vector<float>& labels, const std::vector<float>& scores) {
    if (file_ == nullptr) return absl::OkStatus();
    for (size_t i = 0; i < labels.size(); ++i) {
      if (std::fprintf(file_.get(), "%d,%.9g\n", labels[i] > 0.5f ? 1 : 0, scores[i]) < 0) {
        return Error("write");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish() {
    if (file_ == nullptr) return absl::OkStatus();
    if (std::fclose(file_.release()) != 0) return Error("write");
    if (std::rename(TemporaryName().c_str(), path_.c_str()) != 0) return Error("rename");
    return absl::OkStatus();
  }

 private:
  std::string TemporaryName() const { return path_ + ".tmp"; }
  absl::Status Error(const char* what) const {
    return absl::FailedPreconditionError(
        absl::StrCat("predictions: cannot ", what, " ", path_, ": ", std::strerror(errno)));
  }

  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
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
  for (uint64_t line = 0; line < o_.lines; line += kLinesAtATime) {
    if (o_.cancelled != nullptr && o_.cancelled->load()) return absl::CancelledError("stopped");
    if (absl::Status s = o_.source->ReadLines(line, kLinesAtATime, &batch); !s.ok()) return s;
    if (batch.size == 0) continue;
    router.Route(o_.tables->tables[0], batch.keys, &routed);
    if (absl::Status s = o_.client->Pull(step, {routed.keys, routed.positions}, &weights);
        !s.ok()) {
      return s;
    }
    some.resize(batch.size);
    const auto tensors = o_.exchange->TensorsIn(static_cast<const float*>(weights.dense.data()));
    if (absl::Status s = o_.model->Predict({&batch, &routed, weights.rows.data(), tensors},
                                           some.data(), o_.parallel);
        !s.ok()) {
      return s;
    }
    if (absl::Status s = file.Append(batch.labels, some); !s.ok()) return s;
    scores.insert(scores.end(), some.begin(), some.end());
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
  if (absl::Status s = file.Finish(); !s.ok()) return s;
  EvaluationResult result;
  result.set_step(step.value == 0 ? 0 : step.value - 1);
  result.set_auc(ops::Auc(scores, labels));
  result.set_logloss(ops::MeanLogloss(scores, labels));
  result.set_calibration(ops::Calibration(scores, labels));
  result.set_examples(scores.size());
  result.set_positives(static_cast<uint64_t>(
      std::count_if(labels.begin(), labels.end(), [](float label) { return label > 0.5f; })));
  return result;
}

}  // namespace strata
