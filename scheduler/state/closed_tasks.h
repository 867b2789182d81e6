// What a checkpoint holds of tasks: its manifest lists all that are closed, its record only those
// above the first that is not. A long job has closed many.
// Tested by tests/scheduler/job/task_ledger_test.cc
#ifndef STRATA_SCHEDULER_STATE_CLOSED_TASKS_H_
#define STRATA_SCHEDULER_STATE_CLOSED_TASKS_H_

#include <cstdint>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// `listed`: in any order.
void SetClosedTasks(const google::protobuf::RepeatedField<uint64_t>& listed,
                    CheckpointRecord& record);
// Ascending.
std::vector<uint64_t> ListClosedTasks(const CheckpointRecord& record);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STATE_CLOSED_TASKS_H_
