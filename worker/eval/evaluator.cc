#include "worker/eval/evaluator.h"

#include <string>
#include <vector>

#include "worker/eval/prediction_text.h"
#include "worker/eval/quality.h"
#include "worker/eval/scorer.h"

namespace strata {

absl::StatusOr<EvaluationResult> Evaluator::Run(Step step, PredictionFile& predictions) {
  Scorer scorer({.client = o_.client,
                 .tables = o_.tables,
                 .exchange = o_.exchange,
                 .model = o_.model,
                 .parallel = o_.parallel});
  Quality quality(o_.tables, o_.metrics, o_.gauc_field);
  Batch batch;
  std::vector<float> scores;
  std::string text;
  uint64_t line = 0;
  while (line < o_.lines) {
    if (o_.cancelled != nullptr && o_.cancelled->load()) return absl::CancelledError("stopped");
    const absl::StatusOr<uint64_t> read = o_.source->ReadLines(line, o_.at_a_time, &batch);
    if (!read.ok()) return read.status();
    if (*read == 0) break;
    line += *read;
    if (absl::Status s = scorer.Score(step, batch, &scores); !s.ok()) return s;
    text.clear();
    AppendPredictions(o_.tables->tasks, PredictionColumns::kLabelsAndScores, batch.labels, scores,
                      &text);
    if (absl::Status s = predictions.Append(text); !s.ok()) return s;
    quality.Add(batch, scores);
  }
  EvaluationResult result;
  result.set_step(step.value == 0 ? 0 : step.value - 1);
  quality.Fill(&result);
  return result;
}

}  // namespace strata
