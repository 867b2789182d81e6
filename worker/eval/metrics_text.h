// What a line of spec.output.metrics is made of. Pure functions.
#ifndef STRATA_WORKER_EVAL_METRICS_TEXT_H_
#define STRATA_WORKER_EVAL_METRICS_TEXT_H_

#include <optional>
#include <string>

#include "proto/strata/job.pb.h"

namespace strata {

// A number of JSON with so many digits behind its point; null where there is none, or it is not
// finite.
std::string NumberText(std::optional<double> value, int digits);

// The members of an evaluation, each after ", ": evalAuc and evalLogloss of the first label, and
// evalTasks where the result tells of each.
std::string EvaluationMembers(const EvaluationResult& result);

}  // namespace strata

#endif  // STRATA_WORKER_EVAL_METRICS_TEXT_H_
