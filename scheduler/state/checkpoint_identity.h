// Which checkpoint one is, by what is said of it. Pure.
// Tested by tests/scheduler/store/submission_test.cc
// Tested by tests/scheduler/checkpoint_found_test.cc
#ifndef STRATA_SCHEDULER_STATE_CHECKPOINT_IDENTITY_H_
#define STRATA_SCHEDULER_STATE_CHECKPOINT_IDENTITY_H_

#include "proto/strata/checkpoint.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

CheckpointIdentity IdentityOf(const Manifest& manifest);
// By the record's of_cut: its cut is 0 where the checkpoint is of another job's life.
CheckpointIdentity IdentityOf(const CheckpointRecord& record);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STATE_CHECKPOINT_IDENTITY_H_
