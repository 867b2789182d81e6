#include "worker/train/plan.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/partition.h"
#include "proto/core/uid.h"
#include "proto/job/job_plan.h"
#include "proto/job/job_spec.h"
#include "worker/train/pull_codecs.h"

namespace strata {

absl::StatusOr<TrainingPlan> MakeTrainingPlan(const WorkerJobDirective& directive) {
  const JobSpec& spec = directive.spec().spec();
  const uint32_t partitions = spec.storage().partitions();
  if (!Partitioning::IsValid(partitions)) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.storage.partitions is ", partitions, ", not a power of two"));
  }
  const DataShape& shape = directive.train_index().shape();
  auto tables = MakeModelTables(spec, shape.fields(), shape.numeric());
  if (!tables.ok()) return tables.status();
  std::vector<ShardPlace> places;
  for (const ShardAssignment& s : directive.shards()) {
    places.push_back({ShardId(s.shard()),
                      {PartitionId(s.first_partition()), PartitionId(s.last_partition())},
                      s.server()});
  }
  auto shards =
      ShardMap::Make(MapEpoch(directive.map_epoch()), Partitioning(partitions),
                     static_cast<uint32_t>(directive.server_addresses_size()), std::move(places));
  if (!shards.ok()) return shards.status();
  const TrainingSpec& training = spec.training();
  if (training.lanes() == 0 || training.batch_size() == 0) {
    return absl::InvalidArgumentError("spec.training.lanes and batchSize must be at least 1");
  }
  const uint64_t per_epoch =
      StepsPerEpoch(directive.train_index().lines(), training.lanes(), training.batch_size());
  const auto dram = ParseBytes(spec.storage().dram_bytes_per_server());
  if (!dram.ok()) return dram.status();
  const auto hbm = ParseBytes(spec.storage().gpu_bytes_per_server());
  if (!hbm.ok()) return hbm.status();
  const auto identity = ParseJobIdentity(directive.cluster_id(), directive.job_uid());
  if (!identity) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", directive.job(), ": cluster_id \"", directive.cluster_id(),
                     "\" and job_uid \"", directive.job_uid(),
                     "\" must be 32 hexadecimal digits each; the scheduler is of another version"));
  }
  return TrainingPlan{
      JobId(directive.job()),
      *identity,
      Generation(directive.generation()),
      spec,
      *std::move(tables),
      *std::move(shards),
      training.lanes(),
      training.batch_size(),
      per_epoch,
      Step(directive.train_index().before().steps() + per_epoch * training.epochs()),
      Step(directive.start_step()),
      PullCodecsOf(spec),
      /*prefetch=*/*dram > 0 || *hbm > 0};
}

}  // namespace strata
