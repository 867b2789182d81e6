// A job's folder on a server: its name, whose it is, who uses it now, and its end.
//
//   <root>/job-<cluster>-<job uid>/LOCK          held (flock) by the process that uses the folder
//                                 /JOB           whose it is (JobFolderRecord)
//                                 /generation-<g>/OPEN, NOTE, log/, tier/, image-*.strata
//                                 /server-<i>/generation-<g>/...  where shards have copies; with
//                                 BOOT
//
// OPEN, a JobFolderRecord as well, is written when the generation was opened for the first time:
// with it, the newest images and the log after them are the shards; without it there is nothing to
// recover. Tested by tests/server/job/job_folder_test.cc
#ifndef STRATA_SERVER_JOB_JOB_FOLDER_H_
#define STRATA_SERVER_JOB_JOB_FOLDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata::server {

// 3: rows of csv go by their column's name. 2 went by its place, 1 named no cluster.
inline constexpr uint32_t kJobFolderFormat = 3;

// "job-<cluster>-<job uid>".
std::string JobFolderName(const JobIdentity& identity);
// Nothing: not such a name.
std::optional<JobIdentity> ParseJobFolderName(absl::string_view name);
std::string JobFolder(const std::string& root, const JobIdentity& identity);
// Where the generations of a job's shards lie; where shards have copies (`server`: index of the
// job's server), of each server apart: below the job's folder in `server-<index>`.
std::string ShardsFolder(const std::string& root, const JobIdentity& identity,
                         std::optional<uint32_t> server);
std::string GenerationFolder(const std::string& root, const JobIdentity& identity,
                             Generation generation, std::optional<uint32_t> server = std::nullopt);
// All that there are of the former.
std::vector<std::string> ShardsFolders(const std::string& root, const JobIdentity& identity);

// Those of generations in a job's folder, as far as they can be seen.
std::vector<std::string> GenerationFolders(const std::string& folder);
// Removes those of generations before `generation`. What cannot be removed stays: it is looked for
// again after the next opening.
void RemoveEarlierGenerations(const std::string& root, const JobIdentity& identity,
                              Generation generation, std::optional<uint32_t> server = std::nullopt);
// The latest of them; 0: there is none.
Generation LatestGeneration(const std::string& folder);

// Errors of what follows are those of ErrnoStatus (proto/runtime/files/file_system.h), if nothing
// else is said, and name the path.

// A lock on a job's folder, for as long as it lives.
class JobFolderLock {
 public:
  // UNAVAILABLE: another process uses the folder. NOT_FOUND: there is none.
  static absl::StatusOr<std::unique_ptr<JobFolderLock>> Take(const std::string& folder);
  ~JobFolderLock();
  JobFolderLock(const JobFolderLock&) = delete;
  JobFolderLock& operator=(const JobFolderLock&) = delete;

 private:
  explicit JobFolderLock(int fd) : fd_(fd) {}
  const int fd_;
};

// Makes the folder where it is missing, takes its lock and writes JOB. `owner` without a
// generation. FAILED_PRECONDITION: it is another job's (the text names both). UNAVAILABLE: it is in
// use.
absl::StatusOr<std::unique_ptr<JobFolderLock>> TakeJobFolder(const std::string& root,
                                                             const JobFolderRecord& owner);

// What one process has taken. Generations of a job use its folder side by side where the earlier
// one hangs, each its own generation's. Thread-safe.
class JobFolders {
 public:
  // As TakeJobFolder; with the lock that another generation here still holds, where one does.
  absl::StatusOr<std::shared_ptr<JobFolderLock>> Take(const std::string& root,
                                                      const JobFolderRecord& owner);

 private:
  absl::Mutex mu_;
  std::map<std::string, std::weak_ptr<JobFolderLock>> taken_ ABSL_GUARDED_BY(mu_);  // by folder
};

// With a log id: of the copy of its server's shards. Durable when it returns, and so are the names
// of folders from `root` on.
absl::Status WriteOpen(const std::string& root, JobFolderRecord owner, Generation generation);
// The copy of some shards of the job that is there, by what its OPEN says; of another log id it is
// none.
struct CopyFolder {
  uint32_t server = 0;
  std::string log_id;
};
// Whether the generation was opened there. FAILED_PRECONDITION: another job's, generation's or
// cluster's (names both). UNIMPLEMENTED: of an older format. DATA_LOSS: it cannot be read.
absl::StatusOr<bool> WasOpened(const std::string& root, const JobIdentity& identity,
                               Generation generation,
                               const std::optional<CopyFolder>& copy = std::nullopt);

// Whether OPEN is in the folder of a generation, or may be, as an error hides it.
bool MayBeOpened(const std::string& generation_folder);

// Whose folder it is, by JOB or, where that is not to be read, by any OPEN. NOT_FOUND: nothing
// says.
absl::StatusOr<JobFolderRecord> ReadJobFolder(const std::string& folder);

// Whether the folder of a job that was noted is there. UNAVAILABLE: not even `root` is, as where
// its file system is not mounted; that says nothing of the job.
absl::StatusOr<bool> HasJobFolder(const std::string& root, const JobIdentity& identity);
// Whether it is there, or may be, as an error that passes hides it. False where nothing is, or
// nothing can be made: a name that is too long, a circle of links, a place without the right to
// look.
bool MayHaveJobFolder(const std::string& root, const JobIdentity& identity);
// Bytes of the files below a folder, as far as they can be seen.
uint64_t FolderBytes(const std::string& folder);

// Of which of the job's servers there are copies.
std::vector<uint32_t> CopiesIn(const std::string& root, const JobIdentity& identity);
// Removes the copy of the shards of one of the job's servers. Missing is fine.
absl::Status RemoveCopy(const std::string& root, const JobIdentity& identity, uint32_t server);
// Removes the folder of this very job. Missing is fine. FAILED_PRECONDITION: what lies there says
// that it is another's (names both). UNAVAILABLE: it is in use.
absl::Status RemoveJob(const std::string& root, const JobIdentity& identity);

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_JOB_FOLDER_H_
