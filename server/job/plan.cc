#include "server/job/plan.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/uid.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/life_cycle_spec.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/files/machine_id.h"
#include "server/job/job_note.h"
#include "server/table/gpu_memory.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/host_backend.h"

namespace strata::server {
namespace {

absl::StatusOr<std::vector<ShardPlan>> MyShards(const ServerJobDirective& directive,
                                                Partitioning partitioning) {
  std::vector<ShardPlan> mine;
  for (const ShardAssignment& a : directive.shards()) {
    if (a.server() != directive.server_index()) continue;
    if (a.first_partition() > a.last_partition() || a.last_partition() >= partitioning.count()) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard ", a.shard(), ": partitions ", a.first_partition(), " to ",
                       a.last_partition(), " are not within 0 to ", partitioning.count() - 1));
    }
    mine.push_back({ShardId(a.shard()),
                    {PartitionId(a.first_partition()), PartitionId(a.last_partition())},
                    {}});
  }
  std::sort(mine.begin(), mine.end(),
            [](const ShardPlan& a, const ShardPlan& b) { return a.id < b.id; });
  return mine;
}

absl::StatusOr<CopyPlan> CopyOf(const ServerJobDirective& directive) {
  const ChainDirective& chain = directive.chain();
  const auto place = static_cast<int>(chain.place());
  CopyPlan copy;
  copy.joins = place == chain.members_size();
  if (place < chain.members_size()) copy.log_id = chain.members(place).log_id();
  if (copy.joins) copy.log_id = chain.joining().log_id();
  if (copy.log_id.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", directive.job(), ", server ", directive.server_index(), ": place ",
                     place, " of a chain of ", chain.members_size(),
                     " copies has no log id; the scheduler is of another version"));
  }
  if (!directive.spec().spec().output().removed().empty()) {
    return absl::InvalidArgumentError(
        "spec.output.removed: a job whose shards have copies cannot tell removed rows yet; leave "
        "it "
        "out, or set spec.storage.replicas to 1");
  }
  return copy;
}

// The kernel gives memory away that it has not, and ends the process that touches it.
absl::Status CheckHostMemory(uint64_t hbm_bytes) {
  const uint64_t memory = ThisMachine().memory_bytes;
  if (hbm_bytes <= memory) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("spec.storage.gpuBytesPerServer is ", hbm_bytes,
                                                    " bytes, which spec.storage.gpuBackend: host "
                                                    "takes of this machine's ",
                                                    memory, " bytes of memory; lower it"));
}

// The threads that run shards are those of the tier.
absl::StatusOr<std::unique_ptr<storage::gpu::GpuBackend>> MakeOnHost(
    const storage::gpu::GpuShape& shape) {
  return storage::gpu::MakeHostGpuBackend(shape, {.threads = 1});
}

}  // namespace

absl::StatusOr<JobPlan> PlanJob(const ServerJobDirective& directive) {
  TrainingJob job = directive.spec();
  if (absl::Status s = ResolveAccepted(job); !s.ok()) return s;
  const JobSpec& spec = job.spec();
  JobPlan plan;
  plan.job = JobId(directive.job());
  const auto identity = ParseJobIdentity(directive.cluster_id(), directive.job_uid());
  if (!identity) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", directive.job(), ": cluster_id \"", directive.cluster_id(),
                     "\" and job_uid \"", directive.job_uid(),
                     "\" must be 32 hexadecimal digits each; the scheduler is of another version"));
  }
  plan.identity = *identity;
  plan.generation = Generation(directive.generation());
  plan.map_epoch = MapEpoch(directive.map_epoch());
  plan.name = job.metadata().name();
  plan.server_index = directive.server_index();
  if (directive.has_chain()) {
    auto copy = CopyOf(directive);
    if (!copy.ok()) return copy.status();
    plan.copy = *std::move(copy);
  }
  auto model = MakeModelTables(spec, directive.shape().fields(), directive.shape().numeric());
  if (!model.ok()) return model.status();
  plan.tables = std::move(model->tables);
  if (!Partitioning::IsValid(spec.storage().partitions())) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.storage.partitions: ", spec.storage().partitions(),
                     " is not a power of two up to ", Partitioning::kMaxPartitions));
  }
  plan.partitioning = Partitioning(spec.storage().partitions());
  plan.seed = spec.training().seed();
  plan.lanes = spec.training().lanes();
  plan.synchronous = spec.training().mode() == "bsp";
  plan.life_cycle = spec::HasLifeCycle(spec);
  plan.logged = spec.storage().durability() != "memory";
  plan.synced = spec.storage().durability() == "synced";
  plan.row_file = spec.storage().ssd() == "rowfile";
  plan.directory = spec.storage().directory();
  plan.removed = spec.output().removed();
  plan.restore_from = directive.restore_from();
  plan.start_step = Step(directive.start_step());
  plan.was_open = directive.was_open();
  plan.transient = directive.transient();
  if (directive.has_restore()) plan.restore = directive.restore();
  // What was open here is in base images.
  const bool anothers = !plan.restore_from.empty() && !plan.restore && !plan.was_open;
  if (anothers && !directive.has_restore_plan()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "job ", directive.job(), " is to start from ", plan.restore_from,
        ", but nothing says what it takes of it, as after its records were lost; submit it anew"));
  }
  plan.restore_plan = directive.restore_plan();
  plan.note = NoteOf(directive);
  *plan.note.mutable_spec() = job;
  auto log_bytes = ParseBytes(spec.storage().log_bytes_per_server());
  if (!log_bytes.ok()) return log_bytes.status();
  plan.log_bytes = *log_bytes;
  auto snapshots = ParseBytes(spec.storage().snapshot_bytes_per_second());
  if (!snapshots.ok()) return snapshots.status();
  plan.snapshot_bytes_per_second = *snapshots;
  auto dram_bytes = ParseBytes(spec.storage().dram_bytes_per_server());
  if (!dram_bytes.ok()) return dram_bytes.status();
  const auto eviction = storage::EvictionKindOf(spec.storage().eviction());
  if (!eviction) {
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.storage.eviction: '", spec.storage().eviction(), "' is not lrfu, lfu or lru"));
  }
  auto hbm_bytes = ParseBytes(spec.storage().gpu_bytes_per_server());
  if (!hbm_bytes.ok()) return hbm_bytes.status();
  plan.has_hbm = *hbm_bytes > 0;
  if (spec.storage().gpu_backend() == "host") {
    if (absl::Status s = CheckHostMemory(*hbm_bytes); !s.ok()) return s;
    plan.make_gpu = MakeOnHost;
  }
  auto shards = MyShards(directive, plan.partitioning);
  if (!shards.ok()) return shards.status();
  plan.shards = *std::move(shards);
  const auto here = static_cast<uint32_t>(plan.shards.size());
  for (ShardPlan& shard : plan.shards) {
    // A limit below one byte a shard is a limit nevertheless: 0 would mean none.
    const uint64_t bytes = *dram_bytes == 0 ? 0 : std::max<uint64_t>(*dram_bytes / here, 1);
    auto memory = DivideMemory(plan.tables, plan.partitioning.First(shard.range.first),
                               plan.partitioning.Last(shard.range.last), bytes, here);
    if (!memory.ok()) return memory.status();
    shard.memory = *std::move(memory);
    shard.memory.eviction = *eviction;
    for (const uint64_t limit : shard.memory.limits) plan.needs_tier |= limit > 0;
    if (!plan.has_hbm) continue;
    auto limits = DivideHbm(plan.tables, *eviction, *hbm_bytes / here, here);
    if (!limits.ok()) return limits.status();
    shard.memory.hbm_limits = *std::move(limits);
  }
  return plan;
}

absl::Status Wanted(const JobPlan& plan) {
  if (!plan.cancelled || !plan.cancelled()) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("the opening of job ", plan.job.value, ", generation ",
                                           plan.generation.value, " was given up"));
}

}  // namespace strata::server
