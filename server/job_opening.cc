#include "server/job_opening.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/runtime/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/image_files.h"
#include "server/table_memory.h"
#include "storage/rocks_tier.h"
#include "storage/shard_file.h"

namespace strata::server {
namespace {

namespace fs = std::filesystem;

absl::Status Failed(absl::string_view what, const std::string& path, int error) {
  const std::string text = absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  if (error == EACCES || error == EROFS || error == EPERM) return absl::PermissionDeniedError(text);
  if (error == ENOENT || error == ENOTDIR || error == EEXIST)
    return absl::FailedPreconditionError(text);  // waiting does not make the place another one
  return absl::UnavailableError(text);
}

absl::Status MakeFolders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? Failed("make folder", path, error.value()) : absl::OkStatus();
}

// An empty file whose name is durable when this returns.
absl::Status WriteMarker(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/OPEN");
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return Failed("write", path, errno);
  const int synced = ::fsync(file);
  ::close(file);
  if (synced != 0) return Failed("write", path, errno);
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return Failed("open folder", folder, errno);
  const int named = ::fsync(directory);
  ::close(directory);
  return named == 0 ? absl::OkStatus() : Failed("sync folder", folder, errno);
}

absl::StatusOr<std::unique_ptr<Shard>> EmptyShard(const JobPlan& plan, const ShardPlan& shard,
                                                  const OpenedJob& opened) {
  ShardOptions options;
  options.job = plan.job;
  options.generation = plan.generation;
  options.map_epoch = plan.map_epoch;
  options.id = shard.id;
  options.partitioning = plan.partitioning;
  options.range = shard.range;
  options.tables = plan.tables;
  options.seed = plan.seed;
  options.lanes = plan.lanes;
  options.synchronous = plan.synchronous;
  options.log = opened.log.get();
  auto tables =
      MakeTables(plan.tables, plan.partitioning.First(shard.range.first),
                 plan.partitioning.Last(shard.range.last), shard.memory, opened.tier.get());
  if (!tables.ok()) return tables.status();
  return std::make_unique<Shard>(std::move(options), *std::move(tables));
}

// The newest image that is whole, else the one before: if the log no longer reaches back to that,
// replay finds the gap. `from` becomes the first log segment to replay.
absl::Status LoadNewestImage(const JobPlan& plan, const ShardPlan& shard,
                             const std::vector<ImageName>& images, OpenedJob& opened,
                             uint64_t& from) {
  absl::Status damage;
  for (const ImageName& name : images) {
    if (name.shard != shard.id) continue;
    auto fresh = EmptyShard(plan, shard, opened);
    if (!fresh.ok()) return fresh.status();
    const std::string path = absl::StrCat(opened.folder, "/", ImageFileName(name));
    auto reader = storage::ShardFileReader::Open(path);
    absl::Status s = reader.ok() ? (*fresh)->LoadImage(**reader) : reader.status();
    if (s.ok()) {
      from = (*reader)->header().log_segment;
      opened.shards.push_back(*std::move(fresh));
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
  opened.shards.push_back(*std::move(fresh));
  return absl::OkStatus();
}

absl::Status RecoverShards(const JobPlan& plan, OpenedJob& opened) {
  auto images = ListImages(opened.folder);
  if (!images.ok()) return images.status();
  std::map<ShardId, std::pair<Shard*, uint64_t>> shards;  // and where its replay begins
  for (const ShardPlan& shard : plan.shards) {
    uint64_t from = 0;
    if (absl::Status s = LoadNewestImage(plan, shard, *images, opened, from); !s.ok()) return s;
    shards[shard.id] = {opened.shards.back().get(), from};
  }
  uint64_t first = ~uint64_t{0};
  for (const auto& [id, shard] : shards) first = std::min(first, shard.second);
  // An older image may want segments that are gone: replay what is left, gaps are found by steps.
  const uint64_t begin = first < opened.log->stats().first_segment ? 0 : first;
  opened.recovered = true;
  return opened.log->Replay(begin, [&](const storage::LogRecordView& record) -> absl::Status {
    const auto it = shards.find(record.header.shard);
    if (it == shards.end()) return absl::OkStatus();
    ++opened.replayed_records;
    return it->second.first->Replay(record);
  });
}

absl::Status RestoreShards(const JobPlan& plan, OpenedJob& opened) {
  for (const ShardPlan& shard : plan.shards) {
    auto fresh = EmptyShard(plan, shard, opened);
    if (!fresh.ok()) return fresh.status();
    opened.shards.push_back(*std::move(fresh));
  }
  if (plan.restore_from.empty()) return absl::OkStatus();
  auto manifest = ReadManifest(plan.restore_from);
  if (!manifest.ok()) return manifest.status();
  for (const CheckpointFile& file : manifest->files()) {
    auto reader = storage::ShardFileReader::Open(absl::StrCat(plan.restore_from, "/", file.name()));
    if (!reader.ok()) return reader.status();
    for (size_t i = 0; i < plan.shards.size(); ++i) {
      const PartitionRange& range = plan.shards[i].range;
      if (file.last_partition() < range.first.value || file.first_partition() > range.last.value) {
        continue;
      }
      absl::Status s = opened.shards[i]->Restore(**reader, plan.start_step);
      if (!s.ok()) return s;
    }
  }
  if (!plan.logged) return absl::OkStatus();
  for (const auto& shard : opened.shards) {  // the checkpoint may go; recovery must not need it
    const ImageName name = {shard->options().id, shard->clock()};
    absl::Status s = shard->WriteImage(absl::StrCat(opened.folder, "/", ImageFileName(name)),
                                       opened.log->stats().last_segment);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

void RemoveOtherGenerations(const std::string& root, const JobPlan& plan) {
  const fs::path keep = GenerationFolder(root, plan.job, plan.generation);
  std::error_code error;
  std::vector<fs::path> others;
  for (fs::directory_iterator it(JobFolder(root, plan.job), error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path() != keep) others.push_back(it->path());
  }
  for (const fs::path& other : others) fs::remove_all(other, error);
}

absl::Status OpenParts(const JobPlan& plan, OpenedJob& opened) {
  if (plan.needs_tier) {
    storage::RocksTierOptions options;
    options.directory = absl::StrCat(opened.folder, "/tier");
    options.partitions = plan.partitioning.count();
    auto tier = storage::OpenRocksTier(options);
    if (!tier.ok()) return tier.status();
    opened.tier = *std::move(tier);
  }
  if (!plan.logged) return absl::OkStatus();
  storage::UpdateLogOptions options;
  options.directory = absl::StrCat(opened.folder, "/log");
  options.direct_from_bytes = plan.log_direct_from_bytes;
  auto log = storage::UpdateLog::Open(options);
  if (!log.ok()) return log.status();
  opened.log = *std::move(log);
  return absl::OkStatus();
}

}  // namespace

std::string JobFolder(const std::string& root, JobId job) {
  return absl::StrCat(root, "/job-", job.value);
}

std::string GenerationFolder(const std::string& root, JobId job, Generation generation) {
  return absl::StrCat(JobFolder(root, job), "/generation-", generation.value);
}

absl::StatusOr<OpenedJob> OpenJob(const JobPlan& plan, const std::string& root) {
  OpenedJob opened;
  opened.folder = GenerationFolder(root, plan.job, plan.generation);
  const bool there = plan.logged && fs::exists(absl::StrCat(opened.folder, "/OPEN"));
  if (plan.was_open && !there) {
    return absl::DataLossError(absl::StrCat(
        "job ", plan.job.value, ", generation ", plan.generation.value, " was open here and ",
        plan.logged ? absl::StrCat("is not in ", opened.folder)
                    : std::string("level memory keeps nothing over a restart")));
  }
  if (!there) {
    std::error_code error;
    fs::remove_all(opened.folder, error);  // of an opening that was cut short
    if (error) return Failed("remove", opened.folder, error.value());
  }
  if (absl::Status s = MakeFolders(opened.folder); !s.ok()) return s;
  if (absl::Status s = OpenParts(plan, opened); !s.ok()) return s;
  absl::Status s = there ? RecoverShards(plan, opened) : RestoreShards(plan, opened);
  if (!s.ok()) return s;
  if (plan.logged && !there) {
    if (s = WriteMarker(opened.folder); !s.ok()) return s;
  }
  RemoveOtherGenerations(root, plan);
  return opened;
}

absl::Status RemoveJob(const std::string& root, JobId job) {
  std::error_code error;
  fs::remove_all(JobFolder(root, job), error);
  return error ? Failed("remove", JobFolder(root, job), error.value()) : absl::OkStatus();
}

}  // namespace strata::server
