// How much a job has to do, and how far it is: arithmetic on the job and its index. Pure functions.
#ifndef STRATA_SCHEDULER_JOB_PROGRESS_H_
#define STRATA_SCHEDULER_JOB_PROGRESS_H_

#include <cstdint>

#include "google/protobuf/repeated_field.h"
#include "proto/strata/control.pb.h"

namespace strata::scheduler {

// Each behind what earlier runs had done on other files (train.before).
// Bsp: epochs * StepsPerEpoch. Else windows of all epochs' tasks
// (proto/job/job_plan.h).
uint64_t TotalSteps(const JobSpec& spec, const InputIndex& train);
// TaskIds of all epochs: those below it.
uint64_t TotalTasks(const JobSpec& spec, const InputIndex& train);
// Lines of all epochs, bad ones included.
uint64_t TotalLines(const JobSpec& spec, const InputIndex& train);
// Bsp: those of the steps up to `step`.
uint64_t LinesBy(const JobSpec& spec, const InputIndex& train, uint64_t step);

// Evaluations of one step are the same result: the list stays ascending by step, later ones win.
void AddEvaluation(const EvaluationResult& result,
                   google::protobuf::RepeatedPtrField<EvaluationResult>& list);
// Of a job's evaluations so many are remembered, or what its patience counts if that is more; the
// metrics file has all.
inline constexpr uint64_t kMaxEvaluations = 1024;
// Leaves the newest `most`, the one of `best_step` among them. REQUIRES: most >= 2.
void DropEvaluations(uint64_t most, uint64_t best_step,
                     google::protobuf::RepeatedPtrField<EvaluationResult>& list);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_PROGRESS_H_
