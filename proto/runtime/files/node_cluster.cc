#include "proto/runtime/files/node_cluster.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/record_file.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {
namespace {

constexpr uint32_t kFormat = 1;

// Nobody's, of a scheduler of an older version.
std::string NameOf(const std::string& start_id) { return start_id.empty() ? "\"\"" : start_id; }

std::string PathIn(const std::string& folder) { return absl::StrCat(folder, "/CLUSTER"); }

}  // namespace

absl::StatusOr<NodeCluster> NodeCluster::Open(const std::string& folder) {
  NodeCluster node;
  if (folder.empty()) return node;
  node.path_ = PathIn(folder);
  NodeClusterRecord record;
  absl::Status s = ReadRecordFile(node.path_, "cluster record", &record);
  if (absl::IsNotFound(s)) return node;
  if (s.ok()) s = CheckFormat("cluster record", node.path_, record.format(), kFormat);
  const auto id = ClusterId::Parse(record.cluster_id());
  if (s.ok() && !id) {
    s = absl::DataLossError(absl::StrCat("cluster record ", node.path_, ": \"", record.cluster_id(),
                                         "\" is no cluster's id"));
  }
  if (!s.ok()) return s;
  node.id_ = *id;
  node.term_ = record.term();
  node.start_id_ = record.start_id();
  return node;
}

absl::Status NodeCluster::Leave(const std::string& folder) {
  const auto there = IsThere(folder + "/");
  if (!there.ok()) return there.status();
  if (!*there) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no folder ", folder,
                     "; give the --dir of the node that is to leave its cluster"));
  }
  return RemovePlainFile(PathIn(folder));
}

absl::Status NodeCluster::Follow(const Scheduler& scheduler) {
  const auto id = ClusterId::Parse(scheduler.cluster_id);
  if (!id) {
    return absl::PermissionDeniedError(absl::StrCat("the scheduler names no cluster (\"",
                                                    scheduler.cluster_id,
                                                    "\"); it is of an older version"));
  }
  if (!id_.nil() && !(*id == id_) && !STRATA_MUTATION("identity.foreign_scheduler")) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the scheduler is of cluster ", id->text(), ", but this node belongs to cluster ",
        id_.text(), "; give it the address of its own scheduler, or let it leave its cluster"));
  }
  if (scheduler.term < term_ && !STRATA_MUTATION("identity.lower_term")) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the scheduler of cluster ", id->text(), " has term ", scheduler.term, ", but term ", term_,
        " was heard of: it was replaced, or its folder comes ", "from an older copy"));
  }
  const bool same_term = *id == id_ && scheduler.term == term_;
  if (same_term && scheduler.start_id != start_id_ && !STRATA_MUTATION("identity.other_start")) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the scheduler of cluster ", id->text(), " is start ", NameOf(scheduler.start_id),
        " of term ", term_, ", but this node has heard of that term from start ", NameOf(start_id_),
        ": one of the two has its folder from an older copy; start that one ",
        "once with --restored, or end it"));
  }
  if (same_term) return absl::OkStatus();
  if (!path_.empty() && !scheduler.transient) {
    NodeClusterRecord record;
    record.set_format(kFormat);
    record.set_cluster_id(id->text());
    record.set_term(scheduler.term);
    record.set_start_id(scheduler.start_id);
    if (absl::Status s = WriteRecordFile(path_, record); !s.ok()) return s;
    const std::string folder = path_.substr(0, path_.rfind('/'));
    if (absl::Status s = SyncPlainFolder(folder); !s.ok()) return s;
  }
  id_ = *id;
  term_ = scheduler.term;
  start_id_ = scheduler.start_id;
  return absl::OkStatus();
}

}  // namespace strata
