// Whether a job can go on from a checkpoint in its directory. Pure.
#ifndef STRATA_SCHEDULER_STATE_RESUME_H_
#define STRATA_SCHEDULER_STATE_RESUME_H_

#include "absl/status/status.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata::scheduler {

// Whether `job` can go on from a checkpoint of `saved`. What fixes the meaning of steps and rows
// must be equal: data format, the order of lines, partitions, mode, lanes, batch size, seed, and
// the schema, as far as it is known before the data are read (scheduler/state/start.h). Rates may
// change, and fields of the job file that say nothing of such a model. FAILED_PRECONDITION tells
// all differences: one in a line, several in a line each, of which it keeps the first 20.
absl::Status CheckResumable(const TrainingJob& job, const Manifest& saved);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STATE_RESUME_H_
