// ClusterState: what is shown of it: records, directives, statuses.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/core/mutation.h"
#include "scheduler/cluster_state.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/nodes/room.h"

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

// What is free on its disk a node tells again, as durations are.
void ClearFree(NodeRecord& record) {
  record.clear_disk_bytes();
  record.clear_disk_job_bytes();
  record.clear_silent_ms();
}

}  // namespace

void ClusterState::Put(const std::string& key, std::string value,
                       std::vector<MetadataChange>& out) {
  std::string& stored = stored_[key];
  if (stored == value) return;
  stored = value;
  out.push_back({key, std::move(value)});
}

template <typename Record, typename Clear>
size_t ClusterState::PutPassing(const std::string& key, Record record, const Clear& clear,
                                std::vector<MetadataChange>& out) {
  std::string bytes = Bytes(record);
  std::string& stored = stored_[key];
  if (stored == bytes) return 0;
  Record before;  // a new one's is empty: more differs than what passes
  before.ParseFromString(stored);
  stored = bytes;
  out.push_back({key, std::move(bytes)});
  clear(before);
  clear(record);
  return Bytes(before) == Bytes(record) ? 1 : 0;
}

std::vector<MetadataChange> ClusterState::TakeChanges() {
  std::vector<MetadataChange> changes;
  size_t times = 0;
  Put("cluster", Bytes(numbers_), changes);
  for (const auto& [name, node] : members_.nodes()) {
    times += PutPassing(absl::StrCat("node/", name), node.record, ClearFree, changes);
  }
  for (const auto& [id, job] : jobs_) {
    if (settled_.count(id) > 0) continue;
    const std::string prefix = absl::StrFormat("job/%020d/", id);
    // Written once: not built again for every event.
    if (stored_.count(prefix + "spec") == 0) Put(prefix + "spec", Bytes(job->spec()), changes);
    // Once more at its end, when little of it is left.
    if (job->index() && (stored_.count(prefix + "index") == 0 || job->over())) {
      Put(prefix + "index", Bytes(*job->index()), changes);
    }
    times += PutPassing(prefix + "state", job->StateRecord(), JobMachine::ClearTimes, changes);
    if (job->ledger() != nullptr) {
      Put(prefix + "tasks", Bytes(*job->ledger()), changes);
    } else if (stored_.erase(prefix + "tasks") > 0) {
      changes.push_back({prefix + "tasks", std::nullopt});
    }
    const JobStateRecord& state = job->state();
    const bool files = !state.removing().empty() || state.leftovers();  // that may still be there
    if (job->over() && state.closing().empty() && !files) settled_.insert(id);
  }
  for (const auto& [uid, ended] : ended_) {
    const std::string key = absl::StrCat("ended/", uid);
    if (stored_.count(key) == 0) Put(key, Bytes(ended), changes);
  }
  for (const auto& purge : purging_) Put(PurgeKey(purge), "1", changes);
  PutStarts(changes);
  events_.TakeChanges(changes);
  for (auto it = stored_.begin(); it != stored_.end();) {
    bool gone = false;
    if (it->first.rfind("node/", 0) == 0) gone = members_.Find(it->first.substr(5)) == nullptr;
    if (it->first.rfind("job/", 0) == 0) {
      gone = jobs_.count(std::stoull(it->first.substr(4, 20))) == 0;
    }
    if (const auto purge = PurgeOf(it->first)) gone = purging_.count(*purge) == 0;
    if (const uint64_t start = TermOf(it->first); start > 0) gone = StartOf(start) != it->second;
    if (it->first.rfind("ended/", 0) == 0) gone = ended_.count(it->first.substr(6)) == 0;
    if (!gone) {
      ++it;
      continue;
    }
    changes.push_back({it->first, std::nullopt});
    it = stored_.erase(it);
  }
  took_times_alone_ = !changes.empty() && changes.size() == times;
  return changes;
}

std::vector<FileWork> ClusterState::TakeFileWork() {
  std::vector<FileWork> work;
  if (hearing_) return work;
  for (const auto& [id, job] : jobs_) {
    for (FileWork& w : job->TakeFileWork()) work.push_back(std::move(w));
  }
  return work;
}

std::vector<LockedJob> ClusterState::LockedJobs(const std::multiset<uint64_t>& also) const {
  std::vector<LockedJob> locked;
  for (const auto& [id, job] : jobs_) {
    const TrainingJob& spec = job->spec().spec();
    const std::string& directory = spec.spec().checkpoint().directory();
    const bool uses = job->UsesCheckpoints() || also.count(id) > 0;
    if (directory.empty() || (!uses && !job->LeavesWriters())) continue;
    if (!uses) told_of_writers_.insert(id);
    locked.push_back({.job = id,
                      .uid = job->spec().job_uid(),
                      .name = spec.metadata().name(),
                      .directory = directory,
                      .began = !job->IsToBegin(),
                      .over = job->over(),
                      .does = job->ServersClose() ? "waiting for its servers to close it" : "",
                      .leaves_writers = !uses});
  }
  return locked;
}

NodeDirective ClusterState::Build(const Node& node, const Told& told, bool bulk) const {
  NodeDirective out;
  out.set_session(node.record.session());
  out.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(members_.lease())));
  out.set_cluster_id(cluster_id());
  out.set_term(term());
  out.set_start_id(StartOf(term()));
  out.set_transient(transient_);
  const bool server = node.record.role() == SERVER;
  for (const auto& [id, job] : jobs_) {
    if (server) {
      const int before = out.server_jobs_size();
      job->AddServerDirective(members_, node, bulk, out);
      for (int i = before; i < out.server_jobs_size(); ++i) {
        out.mutable_server_jobs(i)->set_transient(transient_);
      }
    } else {
      job->AddWorkerDirective(members_, node, bulk, out);
    }
  }
  // What it has and should not have.
  for (const JobName& name : told.reported) AddUnwanted(node, told, name, out);
  return out;
}

// What is known to be over, or to have gone to others, is removed; what nobody knows is kept, until
// a user says that it goes.
void ClusterState::AddUnwanted(const Node& node, const Told& told, const JobName& name,
                               NodeDirective& out) const {
  const auto is_it = [&name](const auto& d) {
    return d.job() == name.first && d.job_uid() == name.second;
  };
  if (std::any_of(out.server_jobs().begin(), out.server_jobs().end(), is_it)) return;
  if (std::any_of(out.worker_jobs().begin(), out.worker_jobs().end(), is_it)) return;
  if (node.record.role() != SERVER) {
    WorkerJobDirective* d = out.add_worker_jobs();
    d->set_job(name.first);
    d->set_job_uid(name.second);
    d->set_cluster_id(cluster_id());
    d->set_close(true);
    return;
  }
  const auto foreign = told.foreign.find(name.second);
  ServerJobDirective* d = out.add_server_jobs();
  d->set_job(name.first);
  d->set_job_uid(name.second);
  d->set_cluster_id(foreign == told.foreign.end() ? cluster_id() : foreign->second);
  d->set_close(true);
  const JobMachine* const job = Machine(name.first, name.second);
  if (foreign == told.foreign.end() && job != nullptr) {
    d->set_storage_directory(job->spec().spec().spec().storage().directory());
    d->set_quarantine(job->LeavesCopies() && !Purging(node.record.name(), name.second) &&
                      !STRATA_MUTATION("adoption.removes_copies"));
    return;
  }
  const bool over = (foreign == told.foreign.end() && ended_.count(name.second) > 0) ||
                    STRATA_MUTATION("identity.unknown_is_removed");
  d->set_quarantine(!over && !Purging(node.record.name(), name.second));
}

void ClusterState::Refresh(const Node& node, Told& told) {
  NodeDirective now = Build(node, told, /*bulk=*/false);
  std::string fingerprint = Bytes(now);
  if (fingerprint == told.fingerprint) return;
  told.fingerprint = std::move(fingerprint);
  ++told.version;
  for (const ServerJobDirective& d : now.server_jobs()) {
    if (d.close()) told.closed.emplace(JobName(d.job(), d.job_uid()), told.version);
  }
  for (const WorkerJobDirective& d : now.worker_jobs()) {
    if (d.close()) told.closed.emplace(JobName(d.job(), d.job_uid()), told.version);
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
  out.set_cluster_id(cluster_id());
  out.set_term(term());
  out.set_start_id(StartOf(term()));
  out.set_transient(transient_);
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

Rooms ClusterState::RoomsBut(uint64_t without) const {
  Rooms rooms = WholeRooms(members_, [this](absl::string_view name) {
    return std::any_of(jobs_.begin(), jobs_.end(),
                       [name](const auto& job) { return job.second->KeepsRoomOn(name); });
  });
  for (const auto& [id, job] : jobs_) {
    if (id != without) job->Reserve(rooms);
  }
  TakeBeside(rooms);
  return rooms;
}

// The most that it has reserved of one of its servers.
void ClusterState::AddReserved(const JobMachine& job, const Rooms& rooms, JobStatus& out) const {
  MemoryNeed most;
  uint64_t rows = 0;
  for (const std::string& server : job.Holders()) {
    const auto room = rooms.find(server);
    if (room == rooms.end()) continue;
    MemoryNeed here;  // it may have several copies
    for (const Holding& h : room->second.held) {
      if (h.job != job.spec().spec().metadata().name()) continue;
      here.set_dram_bytes(here.dram_bytes() + h.bytes.dram_bytes());
      here.set_disk_bytes(here.disk_bytes() + h.bytes.disk_bytes());
      here.set_gpu_bytes(here.gpu_bytes() + h.bytes.gpu_bytes());
      rows = std::max(rows, h.estimated_rows);
    }
    most.set_dram_bytes(std::max(most.dram_bytes(), here.dram_bytes()));
    most.set_disk_bytes(std::max(most.disk_bytes(), here.disk_bytes()));
    most.set_gpu_bytes(std::max(most.gpu_bytes(), here.gpu_bytes()));
  }
  if (job.over() || job.state().servers_size() == 0) return;
  *out.mutable_reserved() = most;
  out.set_estimated_rows(rows);
}

JobStatus ClusterState::Status(uint64_t job, absl::Time now) const {
  auto it = jobs_.find(job);
  if (it == jobs_.end()) return JobStatus();
  JobStatus out = it->second->Status(now);
  AddReserved(*it->second, RoomsBut(0), out);
  return out;
}

ListJobsReply ClusterState::Jobs(absl::Time now) const {
  ListJobsReply reply;
  const Rooms rooms = RoomsBut(0);
  for (const auto& [id, job] : jobs_) {
    *reply.add_jobs() = job->Status(now);
    AddReserved(*job, rooms, *reply.mutable_jobs()->rbegin());
  }
  return reply;
}

ClusterStatus ClusterState::Cluster() const {
  ClusterStatus status;
  status.set_cluster_id(cluster_id());
  status.set_term(term());
  const Rooms rooms = RoomsBut(0);
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
    out->set_machine_id(node.record.machine_id());
    out->set_disk_bytes(node.record.disk_bytes());
    out->set_disk_id(node.record.disk_id());
    if (node.record.role() == SERVER) out->set_zone(ZoneOf(node.record));
    out->set_certificate_not_after_unix_ms(node.certificate_not_after_unix_ms);
    *out->mutable_peers() = {node.peers.begin(), node.peers.end()};
    out->set_gpu_bytes(node.record.gpu_bytes());
    if (const auto room = rooms.find(name); room != rooms.end()) {
      *out->mutable_room() = room->second.whole;
      *out->mutable_reserved() = HeldOf(room->second);
    }
    for (const auto& [id, job] : jobs_) {
      if (!job->over() && job->Hosts(name)) out->add_jobs(id);
    }
    if (const auto told = told_.find(name); told != told_.end()) {
      for (const KeptCopy& q : told->second.quarantined) *out->add_quarantined() = q.kept;
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
