// How far optimizers had counted in the jobs that a table's rows come from (spec.model.initFrom):
// Adam's t goes on behind it, since its state is an average over all of those commits.
// Tested by tests/server/job/restoring_test.cc
#ifndef STRATA_SERVER_SHARD_EARLIER_COMMITS_H_
#define STRATA_SERVER_SHARD_EARLIER_COMMITS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/strata/checkpoint.pb.h"
#include "storage/checkpoint/shard_file.h"

namespace strata::server {

// By table. One that is not in it: none.
using EarlierCommits = std::map<TableId, uint64_t>;

// As kEarlierSection has them: of the tables of a file's header, in order.
std::vector<uint8_t> EncodeEarlierCommits(const std::vector<uint64_t>& commits);

// What the file's own job had of jobs before it. DATA_LOSS: not a number of each table.
absl::StatusOr<EarlierCommits> ReadEarlierCommits(const storage::ShardFileReader& file);

// Raises `commits`, which are of the tables here, to what a file of another job's checkpoint says
// of the tables whose state `plan` keeps: its own count, `clock` (RowClock), and those before it.
// One tensor counts for `dense`, the table of all of them. Call for the newest file of each run of
// partitions, so that it depends on nobody's shards. Errors of the file.
absl::Status RaiseEarlierCommits(const RestorePlan& plan, TableId dense,
                                 const storage::ShardFileReader& file, uint64_t clock,
                                 EarlierCommits& commits);

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_EARLIER_COMMITS_H_
