// Brings a job's shards into memory: recovered from this server's own disk, restored from a
// checkpoint, or new.
// Tested by tests/server/job/recovery_test.cc
#ifndef STRATA_SERVER_JOB_OPENING_H_
#define STRATA_SERVER_JOB_OPENING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/base/timer.h"
#include "server/job/job_folder.h"
#include "server/job/plan.h"
#include "server/protocol/image_schedule.h"
#include "server/shard/shard.h"
#include "server/shard/watched_log.h"
#include "storage/tier/watched_tier.h"

namespace strata::server {

// What a plan says of one of its shards; its log and what notes its removals are the caller's.
ShardOptions OptionsOf(const JobPlan& plan, const ShardPlan& shard);

// OPEN of what the plan says: from now on what lies there is recovered.
absl::Status WriteOpened(const JobPlan& plan, const std::string& root);

struct OpenedJob {
  std::string root;
  std::string folder;                          // of the generation
  std::shared_ptr<JobFolderLock> lock;         // on the job's
  std::unique_ptr<storage::WatchedTier> tier;  // null when nothing is limited
  std::unique_ptr<WatchedLog> log;             // null at level memory
  std::vector<std::unique_ptr<Shard>> shards;  // ascending by id; use tier and log
  // Of each shard, what its next recovery would start from.
  std::vector<ImageSchedule::Start> images;
  bool recovered = false;
  bool empty = false;  // a copy that has nothing: its shards wait for images, and OPEN for those
  uint64_t replayed_records = 0;
};

// 1 takes the job's folder (server/job/job_folder.h), opens or makes the generation's and the log;
// 2 recovers (RecoverShards), or restores and takes a first image (RestoreShards), or starts empty,
// shards side by side on all cores; 3 writes NOTE (server/job/job_note.h), then OPEN.
// Errors: DATA_LOSS: what should be here is not, or is damaged: roll back. FAILED_PRECONDITION
// (what is here is another job's: the text names both), INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED:
// never. CANCELLED: plan.cancelled said so. Others (disk full, the checkpoint's folder is not
// there, or cannot be reached, or what is here has trained since the order was given, by records
// that are older): try again.
// `timer`: of what the tier waits for; outlives it. `folders`: of what this process has taken;
// null: it has nothing of this job.
absl::StatusOr<OpenedJob> OpenJob(const JobPlan& plan, const std::string& root, Timer* timer,
                                  JobFolders* folders = nullptr);

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_OPENING_H_
