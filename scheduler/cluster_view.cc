// ClusterState: what is shown of it: records, directives, statuses.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "scheduler/cluster_state.h"

namespace strata::scheduler {
namespace {

// The same bytes for the same message, in this build.
std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream out(&bytes);
    google::protobuf::io::CodedOutputStream coded(&out);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace

void ClusterState::Put(const std::string& key, std::string value,
                       std::vector<MetadataChange>& out) {
  std::string& stored = stored_[key];
  if (stored == value) return;
  stored = value;
  out.push_back({key, std::move(value)});
}

std::vector<MetadataChange> ClusterState::TakeChanges() {
  std::vector<MetadataChange> changes;
  Put("cluster", Bytes(numbers_), changes);
  for (const auto& [name, node] : members_.nodes()) {
    Put(absl::StrCat("node/", name), Bytes(node.record), changes);
  }
  for (const auto& [id, job] : jobs_) {
    if (settled_.count(id) > 0) continue;
    const std::string prefix = absl::StrFormat("job/%020d/", id);
    // Written once: not built again for every event.
    if (stored_.count(prefix + "spec") == 0) Put(prefix + "spec", Bytes(job->spec()), changes);
    if (job->index() && stored_.count(prefix + "index") == 0) {
      Put(prefix + "index", Bytes(*job->index()), changes);
    }
    Put(prefix + "state", Bytes(job->StateRecord()), changes);
    if (job->ledger() != nullptr) Put(prefix + "tasks", Bytes(*job->ledger()), changes);
    const JobStateRecord& state = job->state();
    if (job->over() && state.closing().empty() && state.removing().empty()) settled_.insert(id);
  }
  events_.TakeChanges(changes);
  for (auto it = stored_.begin(); it != stored_.end();) {
    bool gone = false;
    if (it->first.rfind("node/", 0) == 0) gone = members_.Find(it->first.substr(5)) == nullptr;
    if (it->first.rfind("job/", 0) == 0) {
      gone = jobs_.count(std::stoull(it->first.substr(4, 20))) == 0;
    }
    if (!gone) {
      ++it;
      continue;
    }
    changes.push_back({it->first, std::nullopt});
    it = stored_.erase(it);
  }
  return changes;
}

std::vector<FileWork> ClusterState::TakeFileWork() {
  std::vector<FileWork> work;
  for (const auto& [id, job] : jobs_) {
    for (FileWork& w : job->TakeFileWork()) work.push_back(std::move(w));
  }
  return work;
}

NodeDirective ClusterState::Build(const Node& node, const Told& told, bool bulk) const {
  NodeDirective out;
  out.set_session(node.record.session());
  out.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(members_.lease())));
  const bool server = node.record.role() == SERVER;
  for (const auto& [id, job] : jobs_) {
    if (server) {
      job->AddServerDirective(node, bulk, out);
    } else {
      job->AddWorkerDirective(members_, node, bulk, out);
    }
  }
  // What it has and should not have.
  for (uint64_t job : told.reported) {
    bool known = false;
    for (const ServerJobDirective& d : out.server_jobs()) known |= d.job() == job;
    for (const WorkerJobDirective& d : out.worker_jobs()) known |= d.job() == job;
    if (known) continue;
    if (server) {
      ServerJobDirective* d = out.add_server_jobs();
      d->set_job(job);
      d->set_close(true);
    } else {
      WorkerJobDirective* d = out.add_worker_jobs();
      d->set_job(job);
      d->set_close(true);
    }
  }
  return out;
}

void ClusterState::Refresh(const Node& node, Told& told) {
  NodeDirective now = Build(node, told, /*bulk=*/false);
  std::string fingerprint = Bytes(now);
  if (fingerprint == told.fingerprint) return;
  told.fingerprint = std::move(fingerprint);
  ++told.version;
  for (const ServerJobDirective& d : now.server_jobs()) {
    if (d.close()) told.closed.emplace(d.job(), told.version);
  }
  for (const WorkerJobDirective& d : now.worker_jobs()) {
    if (d.close()) told.closed.emplace(d.job(), told.version);
    if (d.all_tasks_done()) {
      told.all_done.emplace(d.job(), told.version);
    } else {
      told.all_done.erase(d.job());
    }
  }
}

absl::StatusOr<NodeDirective> ClusterState::Directive(absl::string_view name, uint64_t session,
                                                      bool version_only) {
  const Node* node = members_.Find(name);
  if (node == nullptr || node->record.session() != session) {
    return absl::UnauthenticatedError(absl::StrCat(
        "session ", session, " of ", name, " was replaced by a newer process of that name"));
  }
  Told& told = told_.try_emplace(std::string(name), Told{.session = session}).first->second;
  Refresh(*node, told);
  NodeDirective out = version_only ? NodeDirective() : Build(*node, told, /*bulk=*/true);
  out.set_version(told.version);
  return out;
}

absl::StatusOr<uint64_t> ClusterState::FindJob(const JobRef& ref) const {
  if (ref.job() != 0) {
    if (jobs_.count(ref.job()) > 0) return ref.job();
    return absl::NotFoundError(absl::StrCat("no job ", ref.job()));
  }
  for (auto it = jobs_.rbegin(); it != jobs_.rend(); ++it) {
    if (it->second->spec().spec().metadata().name() == ref.name()) return it->first;
  }
  return absl::NotFoundError(absl::StrCat("no job named \"", ref.name(), "\""));
}

JobStatus ClusterState::Status(uint64_t job, absl::Time now) const {
  auto it = jobs_.find(job);
  return it == jobs_.end() ? JobStatus() : it->second->Status(now);
}

ListJobsReply ClusterState::Jobs(absl::Time now) const {
  ListJobsReply reply;
  for (const auto& [id, job] : jobs_) *reply.add_jobs() = job->Status(now);
  return reply;
}

ClusterStatus ClusterState::Cluster() const {
  ClusterStatus status;
  for (const auto& [name, node] : members_.nodes()) {
    NodeStatus* out = status.add_nodes();
    out->set_name(name);
    out->set_role(node.record.role());
    out->set_alive(node.alive);
    out->set_data_address(node.record.data_address());
    out->set_metrics_address(node.record.metrics_address());
    out->set_cores(node.record.cores());
    out->set_pid(node.record.pid());
    out->set_last_seen_unix_ms(absl::ToUnixMillis(node.last_seen));
    out->set_incarnation(node.record.incarnation());
    out->set_session(node.record.session());
    out->set_memory_bytes(node.record.memory_bytes());
    out->set_numerics_id(node.record.numerics_id());
    out->set_device(node.record.device());
    out->set_device_numerics_id(node.record.device_numerics_id());
    for (const auto& [id, job] : jobs_) {
      if (!job->over() && job->Hosts(name)) out->add_jobs(id);
    }
  }
  return status;
}

JobShards ClusterState::Shards(uint64_t job) const {
  auto it = jobs_.find(job);
  return it == jobs_.end() ? JobShards() : it->second->Shards(members_);
}

std::optional<absl::StatusOr<CheckpointRecord>> ClusterState::CheckpointResult(uint64_t job,
                                                                               uint64_t ticket) {
  auto it = jobs_.find(job);
  if (it == jobs_.end()) return absl::NotFoundError(absl::StrCat("no job ", job));
  return it->second->TakeCheckpointResult(ticket);
}

}  // namespace strata::scheduler
