#include "server/job/held_jobs.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/record_file.h"
#include "server/job/job_folder.h"

namespace strata::server {
namespace {

constexpr char kDamaged[] = ".damaged";

}  // namespace

HeldJobs::HeldJobs(std::string folder) : folder_(absl::StrCat(folder, "/held")) {}

std::string HeldJobs::PathOf(const JobIdentity& identity) const {
  return absl::StrCat(folder_, "/", identity.cluster.text(), "-", identity.job.text());
}

absl::Status HeldJobs::Put(const HeldJob& job) {
  const auto identity = ParseJobIdentity(job.cluster_id(), job.job_uid());
  if (!identity) return absl::InvalidArgumentError("a held job needs both ids");
  if (absl::Status s = MakeDurableFolders(folder_); !s.ok()) return s;
  HeldJob record = job;
  record.set_format(kHeldFormat);
  if (absl::Status s = WriteRecordFile(PathOf(*identity), record); !s.ok()) return s;
  return SyncPlainFolder(folder_);
}

absl::Status HeldJobs::Remove(const JobIdentity& identity) {
  return RemovePlainFile(PathOf(identity));
}

absl::StatusOr<std::vector<HeldJob>> HeldJobs::Notes() {
  std::vector<HeldJob> jobs;
  auto names = ListFolder(folder_);
  if (absl::IsNotFound(names.status())) return jobs;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (absl::EndsWith(name, ".tmp") || absl::StrContains(name, kDamaged)) continue;
    const std::string path = absl::StrCat(folder_, "/", name);
    HeldJob job;
    absl::Status read = ReadRecordFile(path, "held job", &job);
    if (!read.ok() && !absl::IsDataLoss(read)) return read;
    if (read.ok() && !ParseJobIdentity(job.cluster_id(), job.job_uid())) {
      read = absl::DataLossError(absl::StrCat("held job ", path, " names no job"));
    }
    if (read.ok()) {
      jobs.push_back(std::move(job));
    } else if (absl::Status s = KeepAside(path, read); !s.ok()) {
      return s;
    }
  }
  return jobs;
}

absl::Status HeldJobs::KeepAside(const std::string& path, const absl::Status& why) {
  FileSystem& files = FileSystem::Kernel();
  std::string aside = absl::StrCat(path, kDamaged);
  for (int i = 2;; ++i) {  // one of an earlier time stays, too
    const auto there = IsThere(aside, files);
    if (!there.ok()) return there.status();
    if (!*there) break;
    aside = absl::StrCat(path, kDamaged, "-", i);
  }
  LOG(ERROR) << "held_note_damaged kept=\"" << aside << "\" next=look_there_for_files error=\""
             << why << '"';
  const int renamed = files.Rename(path, aside);
  return renamed < 0 ? ErrnoStatus(-renamed, "rename", path) : absl::OkStatus();
}

absl::StatusOr<std::vector<HeldJob>> HeldJobs::List() {
  auto notes = Notes();
  if (!notes.ok()) return notes;
  std::vector<HeldJob> jobs;
  for (HeldJob& job : *notes) {
    const auto identity = *ParseJobIdentity(job.cluster_id(), job.job_uid());
    if (HasJobFolder(job.root(), identity).value_or(true)) {
      jobs.push_back(std::move(job));
    } else if (absl::Status s = Remove(identity); !s.ok()) {
      return s;
    }
  }
  return jobs;
}

}  // namespace strata::server
