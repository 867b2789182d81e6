// What a server is to hold of a job: the scheduler's directive, checked and resolved.
#ifndef STRATA_SERVER_JOB_PLAN_H_
#define STRATA_SERVER_JOB_PLAN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "proto/core/uid.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "server/table/memory.h"
#include "storage/gpu/backend.h"
#include "storage/log/update_log.h"

namespace strata::server {

// A shard that is to be held here.
struct ShardPlan {
  ShardId id;
  PartitionRange range;
  TableMemory memory;
};

// One copy of several of the shards of one of the job's servers.
struct CopyPlan {
  std::string log_id;
  bool joins = false;  // it begins with nothing, and gets images
};

struct JobPlan {
  JobId job;
  JobIdentity identity;  // which job that is
  Generation generation;
  MapEpoch map_epoch;
  std::string name;
  std::string server;  // for people
  uint32_t server_index = 0;
  std::optional<CopyPlan> copy;  // the shards have copies
  std::string boot_id;           // of this machine's start; empty: not known
  std::vector<TableSpec> tables;
  Partitioning partitioning{Partitioning::kDefaultPartitions};
  std::vector<ShardPlan> shards;  // ascending
  uint64_t seed = 0;
  uint32_t lanes = 1;
  bool synchronous = true;
  bool life_cycle = false;  // of some table, in the job file
  bool logged = true;       // false: level memory
  bool synced = false;      // logged, and a commit waits for the disk
  uint64_t log_bytes = 0;   // of log that are kept at most (server/protocol/image_schedule.h)
  uint64_t snapshot_bytes_per_second = 0;  // of images and checkpoints; 0: no limit
  uint64_t log_direct_from_bytes = storage::UpdateLogOptions{}.direct_from_bytes;
  uint64_t tier_memtable_bytes = 0;  // of the tier; 0: what it takes by itself
  std::string directory;             // spec.storage.directory; empty: the server's own
  bool needs_tier = false;           // some table has a DRAM limit
  bool has_hbm = false;              // some table has a GPU tier
  // Makes the memory of the GPU tier; null: that of the server's GPU, which the plan does not know.
  storage::gpu::GpuBackendFactory make_gpu;
  bool row_file = false;     // the tier is a row file, else RocksDB
  std::string removed;       // spec.output.removed; empty: nobody wants it
  std::string restore_from;  // folder of a complete checkpoint, or empty
  // Which checkpoint that must be; nothing: whichever is there (spec.model.initFrom), of which
  // restore_plan says what is taken.
  std::optional<CheckpointIdentity> restore;
  RestorePlan restore_plan;
  Step start_step;
  bool was_open = false;
  bool transient = false;  // the cluster's metadata end with the scheduler's process
  // What is noted beside the generation's files; without a spec: nothing.
  KeptJob note;
  // Looked at between the steps of an opening, from any of its threads: nobody wants it any more.
  // Null: somebody always does.
  std::function<bool()> cancelled;
};

// INVALID_ARGUMENT / FAILED_PRECONDITION name the field, its value and its limit: the job can never
// be opened here. Pure.
absl::StatusOr<JobPlan> PlanJob(const ServerJobDirective& directive);

// CANCELLED: plan.cancelled says so. A call that hangs may end long after somebody else took the
// work over.
absl::Status Wanted(const JobPlan& plan);

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_PLAN_H_
