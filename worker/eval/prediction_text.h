// What predictions read like: a line of each example.
#ifndef STRATA_WORKER_EVAL_PREDICTION_TEXT_H_
#define STRATA_WORKER_EVAL_PREDICTION_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job/fields/task_spec.h"

namespace strata {

enum class PredictionColumns : uint8_t {
  kLabelsAndScores,  // the labels of all tasks, then their scores; a label that is none is empty
  kScores,           // the scores alone
};

// Appends a line of each example, its columns parted by commas; tasks stand in the order of
// spec.labels. A score that is no number is "nan". `labels` and `scores` are (examples, tasks).
void AppendPredictions(const std::vector<TaskSpec>& tasks, PredictionColumns columns,
                       const std::vector<float>& labels, const std::vector<float>& scores,
                       std::string* text);

// The line that names the columns: NAME a label, NAME_score a score, in quotes where csv wants
// them.
std::string PredictionHeader(const std::vector<TaskSpec>& tasks, PredictionColumns columns);

}  // namespace strata

#endif  // STRATA_WORKER_EVAL_PREDICTION_TEXT_H_
