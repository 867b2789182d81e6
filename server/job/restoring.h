// Rows of a checkpoint, of the job's own life or of another job's, put into a job's shards.
#ifndef STRATA_SERVER_JOB_RESTORING_H_
#define STRATA_SERVER_JOB_RESTORING_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/plan.h"
#include "server/shard/shard.h"

namespace strata::server {

// The manifest of plan.restore_from. DATA_LOSS, FAILED_PRECONDITION: it is of another checkpoint
// than the job is to start from; the text names both. UNAVAILABLE: the folder is away.
absl::StatusOr<Manifest> ReadRestored(const JobPlan& plan);

// Puts what the files of that checkpoint hold of the shard into it, which is empty. Errors are
// those of ReadRestored, of the files, and Wanted's.
absl::Status RestoreRows(const JobPlan& plan, const Manifest& manifest, Shard& shard);

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_RESTORING_H_
