// Rows of a checkpoint, of the job's own life or of another job's, put into a job's shards.
#ifndef STRATA_SERVER_JOB_RESTORING_H_
#define STRATA_SERVER_JOB_RESTORING_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/plan.h"
#include "server/shard/earlier_commits.h"
#include "server/shard/shard.h"

namespace strata::server {

// The checkpoint that a job starts from, as its shards need it. A server reads it once for all of
// them.
struct Restored {
  Manifest manifest;
  // How far another job had counted (spec.model.initFrom). Empty of the job's own checkpoint.
  // By first partition of files: RowTaker::row_clock.
  std::map<uint32_t, uint64_t> row_clocks;
  // Of the tables here whose Adam state goes on.
  EarlierCommits commits;
};

// The checkpoint in plan.restore_from. Of another job's it opens the newest file of each run of
// partitions, and reads what that counts, but no row: of those runs whose rows shards here may
// take; with Adam of all, as every server must count alike. DATA_LOSS, FAILED_PRECONDITION: it is
// of another checkpoint than the job is to start from; the text names both. UNAVAILABLE: the folder
// is away. Else errors of the files, and Wanted's.
absl::StatusOr<Restored> ReadRestored(const JobPlan& plan);

// Puts what the files of that checkpoint hold of the shard into it, which is empty. Errors are
// those of ReadRestored. `restored` is shared by the server's shards.
absl::Status RestoreRows(const JobPlan& plan, const Restored& restored, Shard& shard);

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_RESTORING_H_
