#include "server/leave_cluster.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/node_cluster.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/folder_lock.h"
#include "server/job/held_jobs.h"

namespace strata::server {

absl::StatusOr<std::string> LeaveCluster(const std::string& folder) {
  const auto used = FolderLock::WasTaken(folder);
  if (!used.ok()) return used.status();
  if (!*used) {
    return absl::InvalidArgumentError(absl::StrCat("no server ever ran with --dir ", folder,
                                                   "; give the --dir of the server that is to ",
                                                   "leave its cluster"));
  }
  const auto lock = FolderLock::Take(folder);
  if (!lock.ok()) return lock.status();
  const auto held = HeldJobs(folder).List();
  if (!held.ok()) return held.status();
  if (!held->empty()) {
    const HeldJob& job = held->front();
    return absl::FailedPreconditionError(absl::StrCat(
        "this server holds ", held->size(), " jobs of its cluster (", job.cluster_id(),
        "), such as ", job.name(), " in ", job.root(),
        "; let its scheduler end them, or remove their folders (of a disk that is gone for good, ",
        "the notes in ", folder, "/held), and try again"));
  }
  const auto cluster = NodeCluster::Open(folder);
  if (!cluster.ok()) return cluster.status();
  if (absl::Status s = NodeCluster::Leave(folder); !s.ok()) return s;
  return cluster->id();
}

}  // namespace strata::server
