// Which files the folders and globs of a job stand for.
#ifndef STRATA_SCHEDULER_JOB_INPUT_LISTING_H_
#define STRATA_SCHEDULER_JOB_INPUT_LISTING_H_

#include "proto/strata/job.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// Sets train_input and eval_input alone, each where `data` names other paths than the files that
// the index pass found.
JobIndexRecord ListingsOf(const DataSpec& data, const JobIndexRecord& index);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_INPUT_LISTING_H_
