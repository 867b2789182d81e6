#include "proto/runtime/files/node_cluster.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/record_file.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {
namespace {

constexpr uint32_t kFormat = 1;
constexpr absl::Duration kRetry = absl::Seconds(1);

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
    absl::Status s = Write(*id, scheduler.term, scheduler.start_id);
    if (!s.ok() && id_.nil()) return s;
    if (!s.ok() && !unrecorded_) unrecorded_.emplace();
    if (!s.ok()) unrecorded_->why = std::move(s);
  }
  id_ = *id;
  term_ = scheduler.term;
  start_id_ = scheduler.start_id;
  return absl::OkStatus();
}

absl::Status NodeCluster::Write(const ClusterId& id, uint64_t term,
                                const std::string& start_id) const {
  NodeClusterRecord record;
  record.set_format(kFormat);
  record.set_cluster_id(id.text());
  record.set_term(term);
  record.set_start_id(start_id);
  if (absl::Status s = WriteRecordFile(path_, record); !s.ok()) return s;
  return SyncPlainFolder(path_.substr(0, path_.rfind('/')));
}

std::string NodeCluster::Tend(absl::Time now) {
  if (!unrecorded_) return "";
  if (!unrecorded_->since) {
    unrecorded_->since = now;
    unrecorded_->next = now + kRetry;
    return absl::StrCat("cluster_not_recorded error=\"", unrecorded_->why.message(),
                        "\" next=retry jobs=go_on");
  }
  if (now < unrecorded_->next) return "";
  unrecorded_->next = now + kRetry;
  unrecorded_->why = Write(id_, term_, start_id_);
  if (!unrecorded_->why.ok()) return "";
  unrecorded_.reset();
  return absl::StrCat("cluster_recorded term=", term_);
}

void NodeCluster::AddTo(NodeReport& report) const {
  report.set_cluster_id(id());
  report.set_term(term_);
  report.set_start_id(start_id_);
  if (!unrecorded_) return;
  const auto add = [this](google::protobuf::RepeatedPtrField<Trouble>* troubles) {
    Trouble& trouble = *troubles->Add();
    trouble.set_reason("ClusterNotRecorded");
    trouble.set_message(absl::StrCat(
        "that the scheduler began again cannot be written: ", unrecorded_->why.message(),
        "; the node goes on with what it has in memory, and tries again each second: free space ",
        "there, or put the folder back"));
    if (unrecorded_->since) trouble.set_since_unix_ms(absl::ToUnixMillis(*unrecorded_->since));
  };
  for (ServerJobReport& job : *report.mutable_server_jobs()) add(job.mutable_troubles());
  for (WorkerJobReport& job : *report.mutable_worker_jobs()) add(job.mutable_troubles());
}

}  // namespace strata
