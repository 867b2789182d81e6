#include "server/job/restoring.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/mutation.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/manifest_io.h"
#include "server/job/in_parallel.h"
#include "server/shard/another_rows.h"
#include "server/shard/earlier_commits.h"
#include "storage/checkpoint/shard_file.h"

namespace strata::server {
namespace {

using storage::ShardFileReader;

// Whether a folder without a manifest is no share that is away: it is not there, or it is on the
// file system of its directory and something is in it. A link may lead to a share, another file
// system is one, and an empty folder is where one is mounted, or was made by hand.
bool IsNoShare(const std::filesystem::path& folder) {
  FileSystem& files = FileSystem::Kernel();
  FileInfo info, directory;
  const int looked = files.LookAtLink(folder.string(), info);
  if (looked < 0) return looked == -ENOENT;
  const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
  std::vector<std::string> names;
  return info.kind == FileKind::kFolder && files.Look(parent, directory) == 0 &&
         info.device == directory.device && files.List(folder.string(), names) == 0 &&
         !names.empty();
}

// What shows that another job's checkpoint was removed, as by that job, which keeps its newest
// alone; "": nothing does. A removal may leave its mark, and the folder where something else is in
// it: of one that is empty nobody knows. Without the mark, others of its directory are there, so
// that no share is away that holds them all.
std::string WhyRemoved(std::filesystem::path folder) {
  if (!folder.has_filename()) folder = folder.parent_path();  // "dir/"
  FileSystem& files = FileSystem::Kernel();
  FileInfo info;
  if (files.LookAtLink((folder / kManifestName).string(), info) != -ENOENT) return "";
  if (files.LookAtLink((folder / kRemovedName).string(), info) == 0) {
    return absl::StrCat("its folder holds ", kRemovedName);
  }
  if (!StepOfFolder(folder.filename().string()) || !IsNoShare(folder)) return "";
  const auto beside =
      ListCheckpoints(folder.has_parent_path() ? folder.parent_path().string() : ".");
  if (!beside.ok() || beside->complete.empty()) return "";
  return "others of its directory are there";
}

// A file of the checkpoint that is not there: with its manifest gone as well it is the folder that
// is away, a share that is not mounted for example, and may come back; else it is damage.
absl::Status Missing(const JobPlan& plan, const absl::Status& s) {
  if (!absl::IsNotFound(s)) return s;
  if (ReadManifest(plan.restore_from).ok() || STRATA_MUTATION("reader.absent_is_damaged"))
    return absl::DataLossError(s.message());
  const bool another = !plan.restore && plan.restore_plan.has_checkpoint();
  if (const std::string why = another ? WhyRemoved(plan.restore_from) : ""; !why.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "spec.model.initFrom: checkpoint ", plan.restore_from, " was removed, and ", why,
        ": as by a job that keeps its newest alone (spec.checkpoint.keep); name one that stays"));
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

bool HasAdam(const TableSpec& table) {
  return std::any_of(table.segments.begin(), table.segments.end(),
                     [](const SegmentSpec& s) { return s.optimizer.type == OptimizerType::kAdam; });
}

// Of each run of partitions the newest file, which counts the furthest: rows that an increment does
// not have are as old as it says.
std::vector<CheckpointFile> FilesThatCount(const JobPlan& plan, const Manifest& manifest) {
  const bool all = std::any_of(plan.tables.begin(), plan.tables.end(), HasAdam);
  const auto wanted = [&](const CheckpointFile& file) {
    return all || std::any_of(plan.shards.begin(), plan.shards.end(), [&](const ShardPlan& shard) {
             return MayHoldRows(&plan.restore_plan, plan.partitioning, Partitions(file),
                                shard.range);
           });
  };
  std::map<uint32_t, CheckpointFile> newest;
  for (const CheckpointFile& file : FilesInOrder(manifest)) {
    if (wanted(file)) newest[file.first_partition()] = file;
  }
  std::vector<CheckpointFile> files;
  for (auto& [partition, file] : newest) files.push_back(std::move(file));
  return files;
}

TableId DenseTable(const JobPlan& plan) {
  for (const TableSpec& t : plan.tables) {
    if (t.kind == TableKind::kDense) return t.id;
  }
  return TableId();
}

// How far another job's checkpoint had counted.
absl::Status ReadCounts(const JobPlan& plan, Restored& restored) {
  const std::vector<CheckpointFile> files = FilesThatCount(plan, restored.manifest);
  struct Counts {
    uint64_t clock = 0;
    EarlierCommits commits;
  };
  std::vector<Counts> counts(files.size());
  const absl::Status s = InParallel(files.size(), [&](size_t i) {
    const auto reader = OpenFile(plan, files[i]);
    if (!reader.ok()) return reader.status();
    const auto clock = RowClock(**reader);
    if (!clock.ok()) return clock.status();
    counts[i].clock = *clock;
    return RaiseEarlierCommits(plan.restore_plan, DenseTable(plan), **reader, *clock,
                               counts[i].commits);
  });
  if (!s.ok()) return s;
  for (size_t i = 0; i < files.size(); ++i) {
    restored.row_clocks[files[i].first_partition()] = counts[i].clock;
    for (const TableSpec& t : plan.tables) {
      if (!HasAdam(t)) continue;
      uint64_t& commits = restored.commits[t.id];
      commits = std::max(commits, counts[i].commits[t.id]);
    }
  }
  return s;
}

}  // namespace

absl::StatusOr<Restored> ReadRestored(const JobPlan& plan) {
  Restored restored;
  auto manifest = ReadManifest(plan.restore_from);
  if (!manifest.ok()) return Missing(plan, manifest.status());
  if (absl::Status s = CheckRestored(plan, *manifest); !s.ok()) return s;
  restored.manifest = *std::move(manifest);
  if (plan.restore) return restored;
  if (absl::Status s = ReadCounts(plan, restored); !s.ok()) return s;
  return restored;
}

absl::Status RestoreRows(const JobPlan& plan, const Restored& restored, Shard& shard) {
  const RestorePlan* const another = plan.restore ? nullptr : &plan.restore_plan;
  for (const CheckpointFile& file : FilesInOrder(restored.manifest)) {
    if (!MayHoldRows(another, plan.partitioning, Partitions(file), shard.options().range)) continue;
    const auto reader = OpenFile(plan, file);
    if (!reader.ok()) return reader.status();
    const auto clock = restored.row_clocks.find(file.first_partition());
    absl::Status s = shard.Restore(**reader, plan.start_step, another,
                                   clock == restored.row_clocks.end() ? 0 : clock->second);
    if (!s.ok()) return s;
  }
  shard.CountFrom(restored.commits);
  return absl::OkStatus();
}

}  // namespace strata::server
