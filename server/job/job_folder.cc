#include "server/job/job_folder.h"

#include <glog/logging.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/locked_file.h"
#include "proto/runtime/files/record_file.h"
#include "storage/io/file_io.h"

namespace strata::server {
namespace {

constexpr char kOpen[] = "/OPEN";
constexpr char kJob[] = "/JOB";
constexpr char kLock[] = "/LOCK";
constexpr char kWhat[] = "folder record";

absl::Status CheckOwner(const std::string& path, const JobFolderRecord& record,
                        const JobIdentity& identity) {
  if (STRATA_MUTATION("identity.folder_of_another") ||
      (record.cluster_id() == identity.cluster.text() && record.job_uid() == identity.job.text())) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path, " says that its folder is of job ", record.job_uid(), " of cluster ",
                   record.cluster_id(), ", not of ", Describe(identity)));
}

// An empty file is format 1.
absl::Status ReadFolderRecord(const std::string& path, JobFolderRecord& record) {
  const auto bytes = FileBytes(path);
  if (bytes.ok() && *bytes == 0) return CheckFormat(kWhat, path, 1, kJobFolderFormat);
  if (absl::Status s = ReadRecordFile(path, kWhat, &record); !s.ok()) return s;
  return CheckFormat(kWhat, path, record.format(), kJobFolderFormat);
}

// Bytes below one path, as far as they can be seen.
uint64_t BytesBelow(const std::string& path, FileSystem& files) {
  FileInfo info;
  if (files.LookAtLink(path, info) != 0) return 0;
  if (info.kind == FileKind::kFile) return info.bytes;
  if (info.kind != FileKind::kFolder) return 0;
  uint64_t bytes = 0;
  for (const std::string& name : ListFolder(path, files).value_or(std::vector<std::string>())) {
    bytes += BytesBelow(absl::StrCat(path, "/", name), files);
  }
  return bytes;
}

// Of a generation's folder.
std::optional<uint64_t> NumberOf(absl::string_view folder) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(folder.substr(folder.rfind('-') + 1), &number)) return std::nullopt;
  return number;
}

}  // namespace

std::string JobFolderName(const JobIdentity& identity) {
  return absl::StrCat("job-", identity.cluster.text(), "-", identity.job.text());
}

std::optional<JobIdentity> ParseJobFolderName(absl::string_view name) {
  constexpr size_t kDigits = 32;
  if (!absl::ConsumePrefix(&name, "job-") || name.size() != 2 * kDigits + 1 ||
      name[kDigits] != '-') {
    return std::nullopt;
  }
  return ParseJobIdentity(name.substr(0, kDigits), name.substr(kDigits + 1));
}

std::string JobFolder(const std::string& root, const JobIdentity& identity) {
  return absl::StrCat(root, "/", JobFolderName(identity));
}

std::string ShardsFolder(const std::string& root, const JobIdentity& identity,
                         std::optional<uint32_t> server) {
  std::string folder = JobFolder(root, identity);
  if (server) absl::StrAppend(&folder, "/server-", *server);
  return folder;
}

std::string GenerationFolder(const std::string& root, const JobIdentity& identity,
                             Generation generation, std::optional<uint32_t> server) {
  return absl::StrCat(ShardsFolder(root, identity, server), "/generation-", generation.value);
}

std::vector<std::string> ShardsFolders(const std::string& root, const JobIdentity& identity) {
  const std::string folder = JobFolder(root, identity);
  std::vector<std::string> out = {folder};
  for (const std::string& name : ListFolder(folder).value_or(std::vector<std::string>())) {
    if (absl::StartsWith(name, "server-")) out.push_back(absl::StrCat(folder, "/", name));
  }
  return out;
}

std::vector<std::string> GenerationFolders(const std::string& folder) {
  std::vector<std::string> out;
  for (const std::string& name : ListFolder(folder).value_or(std::vector<std::string>())) {
    if (absl::StartsWith(name, "generation-")) out.push_back(absl::StrCat(folder, "/", name));
  }
  return out;
}

void RemoveEarlierGenerations(const std::string& root, const JobIdentity& identity,
                              Generation generation, std::optional<uint32_t> server) {
  for (const std::string& folder : GenerationFolders(ShardsFolder(root, identity, server))) {
    // A later one is of an opening that began while this waited.
    const auto number = NumberOf(folder);
    if (!number || *number >= generation.value) continue;
    const absl::Status removed = RemoveTree(folder);
    LOG_IF(ERROR, !removed.ok()) << "generation_stays " << Describe(identity) << " error=\""
                                 << removed << '"';
  }
}

Generation LatestGeneration(const std::string& folder) {
  uint64_t latest = 0;
  for (const std::string& path : GenerationFolders(folder)) {
    latest = std::max(latest, NumberOf(path).value_or(0));
  }
  return Generation(latest);
}

absl::StatusOr<std::unique_ptr<JobFolderLock>> JobFolderLock::Take(const std::string& folder) {
  const std::string path = absl::StrCat(folder, kLock);
  FileSystem& files = FileSystem::Kernel();
  const int fd = OpenLocked(path, files);
  if (fd == -ENOENT) return absl::NotFoundError(absl::StrCat("there is no folder ", folder));
  if (fd == -EWOULDBLOCK) {
    return absl::UnavailableError(absl::StrCat(folder, " is in use by another process; stop it"));
  }
  if (fd < 0) return ErrnoStatus(-fd, "lock", path);
  FileInfo now;
  if (files.Info(fd, now) == 0 && now.names == 0) {
    files.Close(fd);
    return absl::UnavailableError(absl::StrCat(folder, " was removed just now"));
  }
  return std::unique_ptr<JobFolderLock>(new JobFolderLock(fd));
}

JobFolderLock::~JobFolderLock() { FileSystem::Kernel().Close(fd_); }

absl::StatusOr<std::unique_ptr<JobFolderLock>> TakeJobFolder(const std::string& root,
                                                             const JobFolderRecord& owner) {
  const auto identity = ParseJobIdentity(owner.cluster_id(), owner.job_uid());
  if (!identity) return absl::InvalidArgumentError("a job's folder needs both ids of its job");
  const std::string folder = JobFolder(root, *identity);
  if (absl::Status s = MakeDurableFolders(folder); !s.ok()) return s;
  auto lock = JobFolderLock::Take(folder);
  if (!lock.ok()) return lock.status();
  const std::string path = absl::StrCat(folder, kJob);
  JobFolderRecord there;
  absl::Status s = ReadFolderRecord(path, there);
  if (s.ok()) {
    if (s = CheckOwner(path, there, *identity); !s.ok()) return s;
    return lock;
  }
  // One that a crash cut off says no less than the folder's name.
  if (!absl::IsNotFound(s) && !absl::IsDataLoss(s)) return s;
  JobFolderRecord record = owner;
  record.set_format(kJobFolderFormat);
  record.set_generation(0);
  record.clear_server_index();
  record.clear_log_id();
  if (s = WriteRecordFile(path, record); !s.ok()) return s;
  return lock;
}

absl::StatusOr<std::shared_ptr<JobFolderLock>> JobFolders::Take(const std::string& root,
                                                                const JobFolderRecord& owner) {
  const auto identity = ParseJobIdentity(owner.cluster_id(), owner.job_uid());
  if (!identity) return absl::InvalidArgumentError("a job's folder needs both ids of its job");
  const std::string folder = JobFolder(root, *identity);
  {
    absl::MutexLock lock(&mu_);
    if (auto held = taken_[folder].lock()) return held;
  }
  auto taken = TakeJobFolder(root, owner);
  if (!taken.ok()) return taken.status();
  std::shared_ptr<JobFolderLock> shared = *std::move(taken);
  absl::MutexLock lock(&mu_);
  for (auto it = taken_.begin(); it != taken_.end();) {
    it = it->second.expired() ? taken_.erase(it) : std::next(it);
  }
  taken_[folder] = shared;
  return shared;
}

absl::Status WriteOpen(const std::string& root, JobFolderRecord owner, Generation generation) {
  const auto identity = ParseJobIdentity(owner.cluster_id(), owner.job_uid());
  if (!identity) return absl::InvalidArgumentError("a job's folder needs both ids of its job");
  std::optional<uint32_t> server;
  if (!owner.log_id().empty()) server = owner.server_index();
  const std::string folder = GenerationFolder(root, *identity, generation, server);
  owner.set_format(kJobFolderFormat);
  owner.set_generation(generation.value);
  if (absl::Status s = WriteRecordFile(absl::StrCat(folder, kOpen), owner); !s.ok()) return s;
  for (std::string p = folder;; p.resize(p.find_last_of('/'))) {
    if (absl::Status s = storage::SyncFolder(p); !s.ok()) return s;
    if (p.size() <= root.size()) return absl::OkStatus();
  }
}

absl::StatusOr<bool> WasOpened(const std::string& root, const JobIdentity& identity,
                               Generation generation, const std::optional<CopyFolder>& copy) {
  std::optional<uint32_t> server;
  if (copy) server = copy->server;
  const std::string path =
      absl::StrCat(GenerationFolder(root, identity, generation, server), kOpen);
  const auto there = IsThere(path);
  if (!there.ok() || !*there) return there;
  JobFolderRecord record;
  absl::Status s = ReadFolderRecord(path, record);
  if (s.ok()) s = CheckOwner(path, record, identity);
  if (s.ok() && record.generation() != generation.value) {
    s = absl::FailedPreconditionError(absl::StrCat(path, " says that its folder is of generation ",
                                                   record.generation(), ", not of generation ",
                                                   generation.value));
  }
  if (!s.ok()) return s;
  // R17: whoever has files under another log id is no copy that counts.
  return !copy || record.log_id() == copy->log_id || STRATA_MUTATION("chain.any_log_id");
}

bool MayBeOpened(const std::string& generation_folder) {
  return IsThere(generation_folder + kOpen).value_or(true);
}

absl::StatusOr<JobFolderRecord> ReadJobFolder(const std::string& folder) {
  JobFolderRecord record;
  absl::Status s = ReadFolderRecord(absl::StrCat(folder, kJob), record);
  if (s.ok()) return record;
  for (const std::string& generation : GenerationFolders(folder)) {
    JobFolderRecord open;
    if (ReadFolderRecord(generation + kOpen, open).ok()) return open;
  }
  return absl::NotFoundError(
      absl::StrCat("nothing in ", folder, " says whose it is: ", s.message()));
}

absl::StatusOr<bool> HasJobFolder(const std::string& root, const JobIdentity& identity) {
  const auto there = IsThere(JobFolder(root, identity));
  if (!there.ok() || *there) return there;
  const auto above = IsThere(root);
  if (!above.ok()) return above.status();
  if (*above) return false;
  return absl::UnavailableError(
      absl::StrCat(root, ", where ", Describe(identity), " has files, is not there; mount its ",
                   "file system or, where they are gone for good, make that folder anew"));
}

bool MayHaveJobFolder(const std::string& root, const JobIdentity& identity) {
  const auto there = IsThere(JobFolder(root, identity));
  if (there.ok()) return *there;
  return absl::IsUnavailable(there.status()) || absl::IsResourceExhausted(there.status());
}

uint64_t FolderBytes(const std::string& folder) { return BytesBelow(folder, FileSystem::Kernel()); }

std::vector<uint32_t> CopiesIn(const std::string& root, const JobIdentity& identity) {
  std::vector<uint32_t> out;
  const std::string folder = JobFolder(root, identity);
  for (const std::string& name : ListFolder(folder).value_or(std::vector<std::string>())) {
    absl::string_view number = name;
    uint32_t server = 0;
    if (!absl::ConsumePrefix(&number, "server-") || !absl::SimpleAtoi(number, &server)) continue;
    out.push_back(server);
  }
  return out;
}

absl::Status RemoveCopy(const std::string& root, const JobIdentity& identity, uint32_t server) {
  return RemoveTree(ShardsFolder(root, identity, server));
}

absl::Status RemoveJob(const std::string& root, const JobIdentity& identity) {
  const std::string folder = JobFolder(root, identity);
  const auto there = IsThere(folder);
  if (!there.ok() || !*there) return there.status();
  JobFolderRecord record;
  if (const std::string path = folder + kJob; ReadFolderRecord(path, record).ok()) {
    if (absl::Status s = CheckOwner(path, record, identity); !s.ok()) return s;
  }
  for (const std::string& generation : GenerationFolders(folder)) {
    const std::string path = generation + kOpen;
    if (!ReadFolderRecord(path, record).ok()) continue;
    if (absl::Status s = CheckOwner(path, record, identity); !s.ok()) return s;
  }
  auto lock = JobFolderLock::Take(folder);
  if (!lock.ok()) return absl::IsNotFound(lock.status()) ? absl::OkStatus() : lock.status();
  return RemoveTree(folder);
}

}  // namespace strata::server
