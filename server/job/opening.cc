#include "server/job/opening.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/core/mutation.h"
#include "proto/core/partition.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/files/folders.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/boot_note.h"
#include "server/job/in_parallel.h"
#include "server/job/job_folder.h"
#include "server/job/job_note.h"
#include "server/job/restoring.h"
#include "server/snapshot/image_files.h"
#include "server/table/memory.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/delta/removed_stream.h"
#include "storage/log/update_log.h"
#include "storage/rocks/tier.h"
#include "storage/row/layout.h"
#include "storage/row_file/tier.h"
#include "storage/tier/row_tier.h"
#include "storage/tier/watched_tier.h"

namespace strata::server {
namespace {

JobFolderRecord OwnerOf(const JobPlan& plan) {
  JobFolderRecord owner;
  owner.set_cluster_id(plan.identity.cluster.text());
  owner.set_job_uid(plan.identity.job.text());
  owner.set_job(plan.job.value);
  owner.set_name(plan.name);
  owner.set_server(plan.server);
  owner.set_transient(plan.transient);
  if (plan.copy) {
    owner.set_server_index(plan.server_index);
    owner.set_log_id(plan.copy->log_id);
  }
  return owner;
}

// Null where the job wants none.
std::unique_ptr<storage::RemovedWriter> RemovedFile(const JobPlan& plan, ShardId shard) {
  if (plan.removed.empty()) return nullptr;
  storage::RemovedWriter::Options options;
  options.folder = plan.removed;
  options.name = {plan.generation, plan.start_step, shard};
  for (const TableSpec& t : plan.tables) {
    if (!t.life_cycle.removal.any()) continue;
    const storage::RowLayout layout = storage::RowLayout::For(t);
    options.tables.push_back({t.id, t.kind, layout.dim, layout.state_floats});
  }
  return std::make_unique<storage::RemovedWriter>(std::move(options));
}

absl::StatusOr<std::unique_ptr<Shard>> EmptyShard(const JobPlan& plan, const ShardPlan& shard,
                                                  const OpenedJob& opened) {
  ShardOptions options = OptionsOf(plan, shard);
  options.log = opened.log.get();
  options.removed = RemovedFile(plan, shard.id);
  auto tables = MakeTables(plan.tables, plan.partitioning.First(shard.range.first),
                           plan.partitioning.Last(shard.range.last), shard.memory,
                           opened.tier.get(), plan.make_gpu);
  if (!tables.ok()) return tables.status();
  return std::make_unique<Shard>(std::move(options), *std::move(tables));
}

// A shard in the making.
struct Recovering {
  std::unique_ptr<Shard> shard;
  ImageSchedule::Start image;
  uint64_t replayed_records = 0;
};

uint64_t SizeOf(const std::string& path) { return FileBytes(path).value_or(0); }

// DATA_LOSS of the tier says nothing of images and log: the tier is filled from them at the next
// opening.
absl::Status NotOfTheTier(absl::Status s, const OpenedJob& opened) {
  if (!absl::IsDataLoss(s) || opened.tier == nullptr) return s;
  const absl::Status damage = opened.tier->damage();
  return damage.ok() ? s : absl::UnavailableError(damage.message());
}

// The newest image that is whole, else the one before: if the log no longer reaches back to that,
// replay finds the gap.
absl::Status LoadNewestImage(const JobPlan& plan, const ShardPlan& shard,
                             const std::vector<ImageName>& images, const OpenedJob& opened,
                             Recovering& out) {
  absl::Status damage;
  for (const ImageName& name : images) {
    if (name.shard != shard.id) continue;
    if (absl::Status s = Wanted(plan); !s.ok()) return s;
    auto fresh = EmptyShard(plan, shard, opened);
    if (!fresh.ok()) return fresh.status();
    const std::string path = absl::StrCat(opened.folder, "/", ImageFileName(name));
    auto reader = storage::ShardFileReader::Open(path);
    absl::Status s = reader.ok() ? (*fresh)->LoadImage(**reader) : reader.status();
    s = NotOfTheTier(std::move(s), opened);
    if (s.ok()) {
      out.image.segment = (*reader)->header().log_segment;
      out.image.image_bytes = SizeOf(path);
      out.shard = *std::move(fresh);
      return s;
    }
    if (!absl::IsDataLoss(s)) return s;
    LOG(ERROR) << "image_damaged job=" << plan.job.value << " shard=" << shard.id.value
               << " error=\"" << s << "\" next=older";
    damage = s;
    // What of it went to the tier must not be found again.
    if (opened.tier != nullptr) {
      s = opened.tier->DeletePartitions(shard.range.first, shard.range.last);
      if (!s.ok()) return s;
    }
  }
  if (plan.start_step.value > 0 || !plan.restore_from.empty()) {
    return damage.ok() ? absl::DataLossError(absl::StrCat("no base image of shard ", shard.id.value,
                                                          " in ", opened.folder))
                       : damage;
  }
  auto fresh = EmptyShard(plan, shard, opened);
  if (!fresh.ok()) return fresh.status();
  out.shard = *std::move(fresh);
  return out.shard->StartRemoved(/*is_new=*/false);
}

// 1 loads the shard's image, 2 replays its records of the log after it.
absl::Status RecoverShard(const JobPlan& plan, const ShardPlan& shard,
                          const std::vector<ImageName>& images, const OpenedJob& opened,
                          Recovering& out) {
  if (absl::Status s = Failpoint("server.recover"); !s.ok()) return s;
  if (absl::Status s = LoadNewestImage(plan, shard, images, opened, out); !s.ok()) return s;
  // An older image may want segments that are gone: replay what is left, gaps are found by steps.
  const bool gone = out.image.segment < opened.log->stats().first_segment;
  const uint64_t begin = gone ? 0 : out.image.segment;
  out.image.replay_bytes = opened.log->BytesFrom(begin);
  absl::Status s = opened.log->Replay(
      begin, [&](const storage::LogHeader& header) { return header.shard == shard.id; },
      [&](const storage::LogRecordView& record) {
        ++out.replayed_records;
        if (absl::Status s = Wanted(plan); !s.ok()) return s;
        return out.shard->Replay(record);
      });
  return NotOfTheTier(std::move(s), opened);
}

void Add(std::vector<Recovering> shards, OpenedJob& opened) {
  for (Recovering& r : shards) {
    opened.shards.push_back(std::move(r.shard));
    opened.images.push_back(r.image);
    opened.replayed_records += r.replayed_records;
  }
}

absl::Status RecoverShards(const JobPlan& plan, OpenedJob& opened) {
  auto images = ListImages(opened.folder);
  if (!images.ok()) return images.status();
  std::vector<Recovering> shards(plan.shards.size());
  absl::Status s = InParallel(shards.size(), [&](size_t i) {
    return RecoverShard(plan, plan.shards[i], *images, opened, shards[i]);
  });
  if (!s.ok()) return s;
  Add(std::move(shards), opened);
  opened.recovered = true;
  return absl::OkStatus();
}

// What the checkpoint's files hold of the shard; at `logged` into an image as well: the checkpoint
// may go, and recovery must not need it.
absl::Status RestoreShard(const JobPlan& plan, const ShardPlan& shard, const Restored& restored,
                          const OpenedJob& opened, Recovering& out) {
  if (absl::Status s = Failpoint("server.restore"); !s.ok()) return s;
  if (absl::Status s = RestoreRows(plan, restored, *out.shard); !s.ok()) return s;
  if (absl::Status s = Wanted(plan); !s.ok() || !plan.logged) return s;
  const std::string path =
      absl::StrCat(opened.folder, "/", ImageFileName({shard.id, out.shard->clock()}));
  out.image.segment = opened.log->stats().last_segment;
  if (absl::Status s = out.shard->WriteImage(path, out.image.segment); !s.ok()) return s;
  out.image.image_bytes = SizeOf(path);
  return absl::OkStatus();
}

absl::Status RestoreShards(const JobPlan& plan, OpenedJob& opened) {
  std::vector<Recovering> shards(plan.shards.size());
  for (size_t i = 0; i < shards.size(); ++i) {
    auto fresh = EmptyShard(plan, plan.shards[i], opened);
    if (!fresh.ok()) return fresh.status();
    shards[i].shard = *std::move(fresh);
    if (absl::Status s = shards[i].shard->StartRemoved(/*is_new=*/true); !s.ok()) return s;
  }
  if (!plan.restore_from.empty() && !opened.empty) {
    const auto restored = ReadRestored(plan);
    if (!restored.ok()) return restored.status();
    absl::Status s = InParallel(shards.size(), [&](size_t i) {
      return RestoreShard(plan, plan.shards[i], *restored, opened, shards[i]);
    });
    if (!s.ok()) return s;
  }
  Add(std::move(shards), opened);
  return absl::OkStatus();
}

// Empty, whatever the folder holds.
absl::StatusOr<std::unique_ptr<storage::RowTier>> OpenTier(const JobPlan& plan,
                                                           const std::string& directory,
                                                           Timer* timer) {
  const auto with = [&](auto options) {
    options.directory = directory;
    if (STRATA_MUTATION("bsp.live_tier_is_trusted")) options.mode = storage::OpenMode::kKeep;
    options.partitions = plan.partitioning.count();
    if (plan.tier_memtable_bytes > 0) options.memtable_bytes = plan.tier_memtable_bytes;
    options.timer = timer;
    return options;
  };
  if (plan.row_file) return storage::OpenRowFileTier(with(storage::RowFileTierOptions{}));
  return storage::OpenRocksTier(with(storage::RocksTierOptions{}));
}

absl::Status OpenParts(const JobPlan& plan, Timer* timer, OpenedJob& opened) {
  if (plan.needs_tier) {
    auto tier = OpenTier(plan, absl::StrCat(opened.folder, "/tier"), timer);
    if (!tier.ok()) return tier.status();
    opened.tier = std::make_unique<storage::WatchedTier>(*std::move(tier));
  }
  if (!plan.logged) return absl::OkStatus();
  storage::UpdateLogOptions options;
  options.directory = absl::StrCat(opened.folder, "/log");
  options.owner = {plan.identity, plan.generation};
  options.direct_from_bytes = plan.log_direct_from_bytes;
  if (plan.synced) options.durability = storage::LogDurability::kSynced;
  auto log = storage::UpdateLog::Open(options);
  if (!log.ok()) return log.status();
  opened.log = std::make_unique<WatchedLog>(*std::move(log), timer);
  return absl::OkStatus();
}

// For a scheduler that should lose its records. Nothing that was recovered waits for it.
absl::Status NoteJob(const JobPlan& plan, const OpenedJob& opened) {
  if (plan.transient || !plan.note.has_spec()) return absl::OkStatus();
  const absl::Status noted = WriteJobNote(opened.folder, plan.note);
  if (noted.ok() || !opened.recovered) return noted;
  LOG(ERROR) << "job_note_not_written job=" << plan.job.value << " error=\"" << noted << '"';
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteOpened(const JobPlan& plan, const std::string& root) {
  return WriteOpen(root, OwnerOf(plan), plan.generation);
}

ShardOptions OptionsOf(const JobPlan& plan, const ShardPlan& shard) {
  ShardOptions options;
  options.job = plan.job;
  options.identity = plan.identity;
  options.generation = plan.generation;
  options.map_epoch = plan.map_epoch;
  options.id = shard.id;
  options.partitioning = plan.partitioning;
  options.range = shard.range;
  options.tables = plan.tables;
  options.seed = plan.seed;
  options.lanes = plan.lanes;
  options.synchronous = plan.synchronous;
  options.start = plan.start_step;
  return options;
}

namespace {

// Where an earlier version of this program kept the job; empty: nowhere.
std::string OldFolder(const std::string& root, JobId job) {
  const std::string folder = absl::StrCat(root, "/job-", job.value);
  if (!IsThere(folder).value_or(false)) return "";
  return absl::StrCat("; ", folder, " has format 1, and this program reads format ",
                      kJobFolderFormat);
}

// Whoever orders an earlier generation than is there, or one anew that has trained, goes by older
// records: nothing of what is there is opened in its place, or replaced.
absl::Status OrderIsOlder(const JobPlan& plan, const std::string& folder, Generation latest) {
  return absl::UnavailableError(absl::StrCat(
      folder, " has trained in generation ", latest.value, ", but the scheduler begins generation ",
      plan.generation.value, " at step ", plan.start_step.value, " here: the scheduler's folder ",
      "comes from an older copy; start it once with --restored. Nothing is changed here"));
}

// Whether what an earlier process opened is recovered. Of a copy of which nobody was told that it
// was open nothing counts yet: where its end may be gone it begins anew.
absl::StatusOr<bool> GoesOn(const JobPlan& plan, const std::string& root, const std::string& folder,
                            const std::optional<CopyFolder>& copy) {
  const auto opened = WasOpened(root, plan.identity, plan.generation, copy);
  if (!opened.ok()) return opened.status();
  if (!*opened || !plan.logged) return false;
  if (!copy || plan.synced) return true;
  const absl::Status end = CheckLogEnd(folder, plan.boot_id);
  if (absl::IsDataLoss(end) && !plan.was_open) return false;
  if (!end.ok()) return end;
  return true;
}

bool Trained(const JobPlan& plan, const OpenedJob& opened) {
  if (opened.replayed_records > 0) return true;
  return plan.synchronous &&
         std::any_of(opened.shards.begin(), opened.shards.end(),
                     [&plan](const auto& s) { return s->clock() != plan.start_step; });
}

}  // namespace

absl::StatusOr<OpenedJob> OpenJob(const JobPlan& plan, const std::string& root, Timer* timer,
                                  JobFolders* folders) {
  JobFolders none;
  OpenedJob opened;
  opened.root = root;
  std::optional<uint32_t> server;
  std::optional<CopyFolder> copy;
  if (plan.copy) {
    server = plan.server_index;
    copy = CopyFolder{plan.server_index, plan.copy->log_id};
  }
  opened.folder = GenerationFolder(root, plan.identity, plan.generation, server);
  const Generation latest = LatestGeneration(ShardsFolder(root, plan.identity, server));
  if (plan.generation < latest) return OrderIsOlder(plan, JobFolder(root, plan.identity), latest);
  const auto goes_on = GoesOn(plan, root, opened.folder, copy);
  if (!goes_on.ok()) return goes_on.status();
  const bool there = *goes_on;
  opened.empty = plan.copy && plan.copy->joins && !there;
  if (plan.was_open && !there && !opened.empty && !STRATA_MUTATION("bsp.memory_recovers")) {
    return absl::DataLossError(absl::StrCat(
        "job ", plan.job.value, ", generation ", plan.generation.value, " was open here and ",
        plan.logged ? absl::StrCat("is not in ", opened.folder, OldFolder(root, plan.job))
                    : std::string("level memory keeps nothing over a restart")));
  }
  if (absl::Status s = Wanted(plan); !s.ok()) return s;
  auto lock = (folders == nullptr ? &none : folders)->Take(root, OwnerOf(plan));
  if (!lock.ok()) return lock.status();
  opened.lock = *std::move(lock);
  if (absl::Status s = Wanted(plan); !s.ok()) return s;
  if (!there) {
    // Of an opening that was cut short.
    if (absl::Status s = RemoveTree(opened.folder); !s.ok()) return s;
  }
  if (absl::Status s = Wanted(plan); !s.ok()) return s;
  if (absl::Status s = MakeDurableFolders(opened.folder); !s.ok()) return s;
  if (plan.copy) {
    if (absl::Status s = NoteLogOpen(opened.folder, plan.boot_id); !s.ok()) return s;
  }
  if (absl::Status s = OpenParts(plan, timer, opened); !s.ok()) return s;
  if (absl::Status s = Wanted(plan); !s.ok()) return s;
  absl::Status s = there ? RecoverShards(plan, opened) : RestoreShards(plan, opened);
  if (!s.ok() && opened.tier != nullptr && !opened.tier->damage().ok()) {
    // The tier failed, not what it is filled from: nothing is lost.
    return absl::UnavailableError(opened.tier->damage().message());
  }
  if (s.ok()) s = Wanted(plan);
  if (!s.ok()) return s;
  if (there && !plan.was_open && !plan.copy && Trained(plan, opened)) {
    return OrderIsOlder(plan, JobFolder(root, plan.identity), latest);
  }
  if (s = NoteJob(plan, opened); !s.ok()) return s;
  if (plan.logged && !there && !opened.empty) {
    if (s = WriteOpened(plan, root); !s.ok()) return s;
  }
  return opened;
}

}  // namespace strata::server
