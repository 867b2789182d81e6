// Where a server keeps files of jobs, noted in its own folder: `held/<cluster>-<job uid>`, one
// HeldJob each. So a process that begins anew finds what it has, also under folders that jobs
// named.
// Tested by tests/server/job/job_folder_test.cc
#ifndef STRATA_SERVER_JOB_HELD_JOBS_H_
#define STRATA_SERVER_JOB_HELD_JOBS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/uid.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata::server {

inline constexpr uint32_t kHeldFormat = 1;

// One thread at a time. Errors carry the path.
class HeldJobs {
 public:
  // `folder`: the server's own.
  explicit HeldJobs(std::string folder);

  // Notes it before the first of its files is made; durable. Replaces an earlier note.
  absl::Status Put(const HeldJob& job);
  // After the last of its files is gone.
  absl::Status Remove(const JobIdentity& identity);
  // All that was noted. A damaged note is told as an error, once, and kept aside under a name with
  // `.damaged`: somebody may still read in it where the job's files are. Touches nothing but the
  // server's own folder. A note may be of a folder that is not there any more.
  absl::StatusOr<std::vector<HeldJob>> Notes();
  // Those whose folder is there, or may be, as where its file system is not mounted; notes of
  // others go. Looks where jobs keep their files.
  absl::StatusOr<std::vector<HeldJob>> List();

 private:
  std::string PathOf(const JobIdentity& identity) const;
  absl::Status KeepAside(const std::string& path, const absl::Status& why);

  const std::string folder_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_HELD_JOBS_H_
