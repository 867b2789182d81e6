// What an evaluation says of its first label, where that is defined. Pure functions.
#ifndef STRATA_PROTO_JOB_EVALUATION_RESULT_H_
#define STRATA_PROTO_JOB_EVALUATION_RESULT_H_

#include <cstdint>
#include <optional>

#include "proto/strata/job.pb.h"

namespace strata {

// None where the label is not binary, no line has it, or its labels are of one class (by their
// weights, where lines have some).
std::optional<double> AucOf(const EvaluationResult& result);

// Logloss, or the mean loss of a label that is not binary. None where no line has the label, and
// where a prediction made it no finite number.
std::optional<double> LossOf(const EvaluationResult& result);

// Mean prediction / mean label. None where the labels sum to 0.
std::optional<double> CalibrationOf(const EvaluationResult& result);

// Lines that have a label of which `positives` are 1 are all of one class.
inline bool OneClass(uint64_t positives, uint64_t examples) {
  return positives == 0 || positives == examples;
}

}  // namespace strata

#endif  // STRATA_PROTO_JOB_EVALUATION_RESULT_H_
