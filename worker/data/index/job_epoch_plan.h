// The EpochPlan of a job over its indexed input.
// Tested by tests/worker/data/reading/file_batch_source_test.cc
#ifndef STRATA_WORKER_DATA_INDEX_JOB_EPOCH_PLAN_H_
#define STRATA_WORKER_DATA_INDEX_JOB_EPOCH_PLAN_H_

#include "absl/status/statusor.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/index/epoch_plan.h"

namespace strata {

// Fields that are absent take the defaults of job.proto. INVALID_ARGUMENT: no lines, or a zero
// where the plan needs at least 1 (the message names the field).
absl::StatusOr<EpochPlan> MakeEpochPlan(const JobSpec& spec, const InputIndex& index);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_INDEX_JOB_EPOCH_PLAN_H_
