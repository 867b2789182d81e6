// Rows of another job's checkpoint (spec.model.initFrom), taken over by a plan that goes by names.
// Tested by tests/server/job/restore_test.cc
// Tested by tests/server/job/restoring_test.cc
#ifndef STRATA_SERVER_SHARD_ANOTHER_ROWS_H_
#define STRATA_SERVER_SHARD_ANOTHER_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/table/shard_table.h"
#include "storage/checkpoint/shard_file.h"

namespace strata::server {

// The shard that takes them.
struct RowTaker {
  std::vector<ShardTable>* tables = nullptr;
  PartitionRange range;
  Partitioning partitioning{Partitioning::kDefaultPartitions};
  uint64_t seed = 0;  // of initial values
  // What the steps in the file's rows are counted up to: RowClock of the newest file of its
  // partitions.
  uint64_t row_clock = 0;
};

// The file's clock as its rows count: a step of bsp, of other modes the windows that the shard had
// applied.
absl::StatusOr<uint64_t> RowClock(const storage::ShardFileReader& file);

// Whether a file of the partitions `file` may hold rows for a shard of the partitions `range`.
// `plan`: null: the file is of the shard's own job.
bool MayHoldRows(const RestorePlan* plan, Partitioning partitioning, PartitionRange file,
                 PartitionRange range);

// Whether the table is the one that has its number in the files, and so its rows and keys that wait
// for one keep their partitions. Null: all are.
bool KeepsPartitions(const RestorePlan* plan, TableId table);

// Puts what `file` holds for the shard: rows of tables by their keys, rows of tensors by their
// place in the tensor. Rows keep their weights, and their state but where the plan resets it. They
// age on, whether a rule removes any here or not: the job counts from step 0, and a row that was
// idle for n steps at `row_clock` was touched at step -n (storage::StepOf). So a later job's rules
// know how old rows are, and no row says a step that is still to come. Scores are what they were at
// `row_clock`, by the decay of the rules here. Call for every file, an increment after what it
// follows. FAILED_PRECONDITION: the file's tables do not
// have the shapes that the plan speaks of.
absl::Status TakeRows(const RestorePlan& plan, const storage::ShardFileReader& file,
                      const RowTaker& taker);

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_ANOTHER_ROWS_H_
