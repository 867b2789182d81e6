#include "server/job/held_jobs.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/record_file.h"
#include "server/job/job_folder.h"

namespace strata::server {

HeldJobs::HeldJobs(std::string folder) : folder_(absl::StrCat(folder, "/held")) {}

std::string HeldJobs::PathOf(const JobIdentity& identity) const {
  return absl::StrCat(folder_, "/", identity.cluster.text(), "-", identity.job.text());
}

absl::Status HeldJobs::Put(const HeldJob& job) {
  const auto identity = ParseJobIdentity(job.cluster_id(), job.job_uid());
  if (!identity) return absl::InvalidArgumentError("a held job needs both ids");
  if (absl::Status s = MakeFolders(folder_); !s.ok()) return s;
  HeldJob record = job;
  record.set_format(kHeldFormat);
  if (absl::Status s = WriteRecordFile(PathOf(*identity), record); !s.ok()) return s;
  return SyncPlainFolder(folder_);
}

absl::Status HeldJobs::Remove(const JobIdentity& identity) {
  return RemovePlainFile(PathOf(identity));
}

absl::StatusOr<std::vector<HeldJob>> HeldJobs::List() {
  std::vector<HeldJob> jobs;
  auto names = ListFolder(folder_);
  if (absl::IsNotFound(names.status())) return jobs;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (absl::EndsWith(name, ".tmp")) continue;
    const std::string path = absl::StrCat(folder_, "/", name);
    HeldJob job;
    const absl::Status read = ReadRecordFile(path, "held job", &job);
    if (!read.ok() && !absl::IsDataLoss(read)) return read;
    const auto identity = ParseJobIdentity(job.cluster_id(), job.job_uid());
    const auto there = read.ok() && identity ? IsThere(JobFolder(job.root(), *identity)) : false;
    if (there.value_or(true)) {
      jobs.push_back(std::move(job));
    } else if (absl::Status s = RemovePlainFile(path); !s.ok()) {
      return s;
    }
  }
  return jobs;
}

}  // namespace strata::server
