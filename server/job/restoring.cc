#include "server/job/restoring.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "proto/runtime/files/manifest_io.h"
#include "server/shard/another_rows.h"
#include "server/shard/earlier_commits.h"
#include "storage/checkpoint/shard_file.h"

namespace strata::server {
namespace {

using storage::ShardFileReader;

// A file of the checkpoint that is not there: with its manifest gone as well it is the folder that
// is away, a share that is not mounted for example, and may come back; else it is damage.
absl::Status Missing(const JobPlan& plan, const absl::Status& s) {
  if (!absl::IsNotFound(s)) return s;
  if (ReadManifest(plan.restore_from).ok() || STRATA_MUTATION("reader.absent_is_damaged"))
    return absl::DataLossError(s.message());
  // Where other checkpoints of its directory are there, no share is away.
  const std::string directory = std::filesystem::path(plan.restore_from).parent_path();
  const auto beside = ListCheckpoints(directory);
  if (!plan.restore && beside.ok() && !beside->complete.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "spec.model.initFrom: checkpoint ", plan.restore_from, " was removed from ", directory,
        ", as by a job that keeps its newest alone (spec.checkpoint.keep); name one that stays"));
  }
  return absl::UnavailableError(
      absl::StrCat("checkpoint ", plan.restore_from, " is not there (", s.message(),
                   "); mount its share again or put the folder back: the job waits for it, and "
                   "goes on by itself then"));
}

// The checkpoint that is meant, and no other that took its folder: of the job's own life, or the
// one that its plan was made for.
absl::Status CheckRestored(const JobPlan& plan, const Manifest& manifest) {
  const bool known = plan.restore || plan.restore_plan.has_checkpoint();
  if (!known || STRATA_MUTATION("checkpoint.another_in_its_place")) return absl::OkStatus();
  const CheckpointIdentity& wanted = plan.restore ? *plan.restore : plan.restore_plan.checkpoint();
  if (manifest.cluster_id() == wanted.cluster_id() && manifest.job_uid() == wanted.job_uid() &&
      manifest.generation() == wanted.generation() && manifest.cut() == wanted.cut() &&
      manifest.step() == wanted.step() && manifest.model_hash() == wanted.model_hash()) {
    return absl::OkStatus();
  }
  const auto describe = [](const auto& c) {
    return absl::StrCat("job ", c.job_uid(), " of cluster ", c.cluster_id(), ", generation ",
                        c.generation(), ", cut ", c.cut(), ", step ", c.step(), ", model hash ",
                        c.model_hash());
  };
  const std::string text =
      absl::StrCat("checkpoint ", plan.restore_from, " is of ", describe(manifest),
                   "; the job is to start from that of ", describe(wanted));
  if (plan.restore) return absl::DataLossError(text);
  // Another one is whole: no reader is at fault, and what the job may take of it nobody has
  // compared.
  return absl::FailedPreconditionError(
      absl::StrCat("spec.model.initFrom: ", text, "; put that back, or submit the job again"));
}

PartitionRange Partitions(const CheckpointFile& file) {
  return {PartitionId(file.first_partition()), PartitionId(file.last_partition())};
}

absl::StatusOr<std::unique_ptr<ShardFileReader>> OpenFile(const JobPlan& plan,
                                                          const CheckpointFile& file) {
  if (absl::Status s = Wanted(plan); !s.ok()) return s;
  const std::string path = absl::StrCat(plan.restore_from, "/", file.name());
  const auto writer = WriterOf(file);
  if (!writer.ok()) return writer.status();
  auto reader = ShardFileReader::Open(path);
  if (!reader.ok()) return Missing(plan, reader.status());
  if (absl::Status s = storage::CheckWriter((*reader)->header(), path, *writer); !s.ok()) return s;
  return reader;
}

// By first partition, the clock of the newest of `files` that begins there: rows that an increment
// does not have are as old as it says. Nothing where no row of the job gets old.
absl::StatusOr<std::map<uint32_t, uint64_t>> RowClocks(const JobPlan& plan,
                                                       const std::vector<CheckpointFile>& files) {
  std::map<uint32_t, uint64_t> clocks;
  const bool removes = std::any_of(plan.tables.begin(), plan.tables.end(),
                                   [](const TableSpec& t) { return t.life_cycle.removal.any(); });
  if (plan.restore || !removes) return clocks;
  for (const CheckpointFile& file : files) {
    const auto reader = OpenFile(plan, file);
    if (!reader.ok()) return reader.status();
    const auto clock = RowClock(**reader);
    if (!clock.ok()) return clock.status();
    clocks[file.first_partition()] = *clock;
  }
  return clocks;
}

// How far Adam had counted where its state is kept; of all files, whoever's rows they hold.
absl::StatusOr<EarlierCommits> CommitsBefore(const JobPlan& plan, const Manifest& manifest) {
  EarlierCommits commits, of_adam;
  TableId dense;
  const auto adam = [](const TableSpec& t) {
    return std::any_of(t.segments.begin(), t.segments.end(), [](const SegmentSpec& s) {
      return s.optimizer.type == OptimizerType::kAdam;
    });
  };
  if (std::none_of(plan.tables.begin(), plan.tables.end(), adam)) return of_adam;
  for (const TableSpec& t : plan.tables) {
    if (t.kind == TableKind::kDense) dense = t.id;
  }
  for (const CheckpointFile& file : manifest.files()) {
    const auto reader = OpenFile(plan, file);
    if (!reader.ok()) return reader.status();
    const absl::Status s = RaiseEarlierCommits(plan.restore_plan, dense, **reader, commits);
    if (!s.ok()) return s;
  }
  for (const TableSpec& t : plan.tables) {
    if (adam(t)) of_adam[t.id] = commits[t.id];
  }
  return of_adam;
}

}  // namespace

absl::StatusOr<Manifest> ReadRestored(const JobPlan& plan) {
  auto manifest = ReadManifest(plan.restore_from);
  if (!manifest.ok()) return Missing(plan, manifest.status());
  if (absl::Status s = CheckRestored(plan, *manifest); !s.ok()) return s;
  return manifest;
}

absl::Status RestoreRows(const JobPlan& plan, const Manifest& manifest, Shard& shard) {
  const RestorePlan* const another = plan.restore ? nullptr : &plan.restore_plan;
  std::vector<CheckpointFile> files;
  for (const CheckpointFile& file : FilesInOrder(manifest)) {
    const PartitionRange range = shard.options().range;
    if (MayHoldRows(another, plan.partitioning, Partitions(file), range)) files.push_back(file);
  }
  auto clocks = RowClocks(plan, files);
  if (!clocks.ok()) return clocks.status();
  for (const CheckpointFile& file : files) {
    const auto reader = OpenFile(plan, file);
    if (!reader.ok()) return reader.status();
    const uint64_t clock = (*clocks)[file.first_partition()];
    absl::Status s = shard.Restore(**reader, plan.start_step, another, clock);
    if (!s.ok()) return s;
  }
  if (another == nullptr) return absl::OkStatus();
  const auto commits = CommitsBefore(plan, manifest);
  if (!commits.ok()) return commits.status();
  shard.CountFrom(*commits);
  return absl::OkStatus();
}

}  // namespace strata::server
