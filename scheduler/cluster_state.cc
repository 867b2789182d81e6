#include "scheduler/cluster_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/core/mutation.h"
#include "scheduler/nodes/placement.h"

namespace strata::scheduler {
namespace {

constexpr char kClusterKey[] = "cluster";
constexpr char kEndedPrefix[] = "ended/";

// Sessions begin at a number of the cluster's own: what a process of another cluster says under its
// session is never taken for a word of this one's.
uint64_t FirstSession(const ClusterId& id) {
  constexpr int kCounterBits = 24;
  return (id.high >> 1 >> kCounterBits << kCounterBits) + 1;
}

std::string JobKey(uint64_t job, absl::string_view part) {
  return absl::StrFormat("job/%020d/%s", job, part);
}

// So that whoever has the job's spec alone, as its manifests and its servers' notes do, knows as
// well who may decide about it.
void AddOwner(const std::string& owner, Metadata& metadata) {
  const auto& named = metadata.owners();
  if (owner.empty() || std::find(named.begin(), named.end(), owner) != named.end()) return;
  metadata.add_owners(owner);
}

template <typename Record>
absl::Status Parse(const std::map<std::string, std::string>& records, const std::string& key,
                   Record& record) {
  auto it = records.find(key);
  if (it == records.end()) return absl::DataLossError(absl::StrCat("no record ", key));
  if (!record.ParseFromString(it->second)) {
    return absl::DataLossError(
        absl::StrCat("record ", key, " (", it->second.size(), " bytes) cannot be read"));
  }
  return absl::OkStatus();
}

}  // namespace

ClusterState::ClusterState(absl::Duration lease, ClusterId drawn, bool transient)
    : transient_(transient), members_(lease) {
  numbers_.set_format(kFormat);
  numbers_.set_cluster_id(drawn.text());
  numbers_.set_next_session(FirstSession(drawn));
  numbers_.set_next_job(1);
}

absl::Status ClusterState::Restore(const std::map<std::string, std::string>& records,
                                   absl::Time now) {
  if (records.count(kClusterKey) > 0) {
    ClusterRecord numbers;
    if (absl::Status s = Parse(records, kClusterKey, numbers); !s.ok()) return s;
    const uint32_t found = numbers.format() == 0 ? 1 : numbers.format();
    if (found != kFormat) {
      return absl::UnimplementedError(
          absl::StrCat("the metadata (record ", kClusterKey, ") have format ", found,
                       "; this program reads format ", kFormat,
                       "; end their jobs with the version of strata that wrote them, then begin "
                       "with an empty folder"));
    }
    if (!ClusterId::Parse(numbers.cluster_id())) {
      return absl::DataLossError(absl::StrCat("record ", kClusterKey, ": \"", numbers.cluster_id(),
                                              "\" is no cluster's id"));
    }
    numbers_ = std::move(numbers);
  }
  for (const auto& [key, value] : records) {
    if (!absl::StartsWith(key, kEndedPrefix)) continue;
    EndedRecord ended;
    if (absl::Status s = Parse(records, key, ended); !s.ok()) return s;
    ended_order_[ended.sequence()] = ended.job_uid();
    ended_[ended.job_uid()] = ended;
  }
  for (const auto& [key, value] : records) {
    if (const auto purge = PurgeOf(key)) purging_.insert(*purge);
    if (const uint64_t start = TermOf(key); start > 0) starts_[start] = value;
    if (!absl::StartsWith(key, "node/")) continue;
    NodeRecord node;
    if (absl::Status s = Parse(records, key, node); !s.ok()) return s;
    members_.Restore(node, now);
  }
  if (absl::Status s = RestoreJobs(records, now); !s.ok()) return s;
  if (absl::Status s = events_.Restore(records); !s.ok()) return s;
  if (!records.empty() && records.count(kClusterKey) == 0) {
    return absl::DataLossError(absl::StrCat("no record ", kClusterKey));
  }
  for (const auto& record : records) {
    if (!EventLog::IsRecord(record.first)) stored_.insert(record);
  }
  return absl::OkStatus();
}

absl::Status ClusterState::RestoreJobs(const std::map<std::string, std::string>& records,
                                       absl::Time now) {
  for (const auto& [key, value] : records) {
    if (!absl::StartsWith(key, "job/") || !absl::EndsWith(key, "/spec")) continue;
    JobSpecRecord spec;
    if (absl::Status s = Parse(records, key, spec); !s.ok()) return s;
    JobStateRecord state;
    const uint64_t id = spec.job();
    if (absl::Status s = Parse(records, JobKey(id, "state"), state); !s.ok()) return s;
    std::optional<JobIndexRecord> index;
    if (records.count(JobKey(id, "index")) > 0) {
      if (absl::Status s = Parse(records, JobKey(id, "index"), index.emplace()); !s.ok()) return s;
    }
    std::optional<LedgerRecord> ledger;
    if (records.count(JobKey(id, "tasks")) > 0) {
      if (absl::Status s = Parse(records, JobKey(id, "tasks"), ledger.emplace()); !s.ok()) return s;
    }
    jobs_[id] = std::make_unique<JobMachine>(std::move(spec), cluster_id(), std::move(state),
                                             std::move(index), std::move(ledger), now);
  }
  return absl::OkStatus();
}

void ClusterState::AdvanceJobs(absl::Time now) {
  std::map<std::string, uint32_t> load;
  const auto count = [&load](const JobMachine& job, uint32_t by) {
    if (job.over()) return;
    for (const std::string& server : job.Holders()) load[server] += by;
    for (const WorkerSlot& slot : job.state().workers()) load[slot.name()] += by;
  };
  for (const auto& [id, job] : jobs_) count(*job, 1);
  for (const auto& [id, job] : jobs_) {
    if (job->over()) {
      job->AdvanceOver(members_.lease(), now);
      continue;
    }
    // Others' jobs are what counts for a job; its own come back with what it has then.
    count(*job, static_cast<uint32_t>(-1));
    job->Advance({.members = &members_,
                  .jobs_of_node = &load,
                  .rooms = [this, id = id] { return RoomsBut(id); },
                  .draw_log_id = [this] { return DrawLogId(); }},
                 now);
    count(*job, 1);
  }
  for (const auto& [id, job] : jobs_) {
    for (const JobEvent& e : job->TakeEvents()) events_.Add(now, e.reason, e.node, id, e.message);
  }
}

void ClusterState::NoteAdmission(const Node& node, const Membership::Admission& admission,
                                 absl::Time now) {
  const NodeRecord& r = node.record;
  if (admission.replaced) {
    events_.Add(now, "NodeFenced", r.name(), 0,
                absl::StrCat("a newer process has the name ", r.name(), "; the one before is out"));
  }
  if (admission.registered) {
    events_.Add(now, "NodeRegistered", r.name(), 0,
                absl::StrCat(r.role() == SERVER ? "server " : "worker ", r.name(), ", session ",
                             r.session(), ", pid ", r.pid(), ", ", r.cores(), " cores",
                             r.data_address().empty() ? "" : ", ", r.data_address()));
  } else if (admission.revived) {
    events_.Add(now, "NodeReturned", r.name(), 0, absl::StrCat(r.name(), " is heard of again"));
  }
}

// A server locks its folder: who has the job's files there, on the file system where they were,
// says that the process before it is no more. Of another one nobody knows; a host that was booted
// again counts as another.
void ClusterState::NoteWritersLeft(const NodeReport& report, bool moved) {
  for (const auto& [id, job] : jobs_) {
    const std::string& uid = job->spec().job_uid();
    const auto& has = report.server_jobs();
    const bool here = !moved && std::any_of(has.begin(), has.end(),
                                            [&uid](const auto& j) { return j.job_uid() == uid; });
    if (!here) job->MayBeWrittenBy(report.name());
  }
}

void ClusterState::ConfirmClosed(const NodeReport& report, Told& told) {
  told.reported.clear();
  told.quarantined.clear();
  told.foreign.clear();
  for (const ServerJobReport& j : report.server_jobs()) {
    told.reported.push_back({j.job(), j.job_uid()});
    if (!j.cluster_id().empty() && j.cluster_id() != cluster_id()) {
      told.foreign[j.job_uid()] = j.cluster_id();
    }
    if (j.state() != ServerJobReport::QUARANTINED) continue;
    KeptCopy& copy = told.quarantined.emplace_back();
    copy.node = report.name();
    copy.why = j.message();
    if (j.has_kept()) copy.note = j.kept();
    QuarantinedJob& kept = copy.kept;
    kept.set_cluster_id(j.cluster_id());
    kept.set_job_uid(j.job_uid());
    kept.set_job(j.job());
    kept.set_name(j.name());
    kept.set_bytes(j.kept_bytes());
    kept.set_since_unix_ms(j.kept_unix_ms());
  }
  for (const WorkerJobReport& j : report.worker_jobs()) {
    told.reported.push_back({j.job(), j.job_uid()});
  }
  EndPurges(report);
  for (auto it = told.closed.begin(); it != told.closed.end();) {
    const bool still = std::count(told.reported.begin(), told.reported.end(), it->first) > 0;
    if (still || report.seen_version() < it->second) {
      ++it;
      continue;
    }
    JobMachine* const job = Machine(it->first.first, it->first.second);
    if (job != nullptr && job->over()) job->ConfirmClosed(report.name());
    it = told.closed.erase(it);
  }
}

JobMachine* ClusterState::Machine(uint64_t job, const std::string& uid) const {
  const auto it = jobs_.find(job);
  return it != jobs_.end() && it->second->spec().job_uid() == uid ? it->second.get() : nullptr;
}

absl::StatusOr<uint64_t> ClusterState::Report(const NodeReport& report, absl::Time now) {
  if (absl::Status s = CheckCluster(report); !s.ok()) return s;
  if (hearing_) {
    hearing_->Hear(report);
    return OnlyHears();
  }
  uint64_t next_session = numbers_.next_session();
  auto admission = members_.Report(report, now, next_session);
  if (!admission.ok()) return admission.status();
  numbers_.set_next_session(next_session);
  const Node& node = *members_.Find(report.name());
  Told& told = told_[report.name()];
  if (told.session != admission->session) told = Told{.session = admission->session};
  // After a restart of the scheduler versions go on above what the node saw.
  told.version = std::max(told.version, report.seen_version());
  NoteAdmission(node, *admission, now);
  if (admission->replaced) NoteWritersLeft(report, admission->moved);
  if (admission->registered) AdvanceJobs(now);  // others hear of it before it speaks
  ConfirmClosed(report, told);
  std::map<JobMachine*, bool> writes;  // by any of a job's copies there
  for (const ServerJobReport& j : report.server_jobs()) {
    JobMachine* const job = Machine(j.job(), j.job_uid());
    if (job == nullptr) continue;
    const bool kept =
        j.state() == ServerJobReport::KEPT || j.state() == ServerJobReport::QUARANTINED;
    writes[job] |= !kept || j.closes();
    if (!kept) job->OnServerReport(node, j, now);
  }
  for (const auto& [job, any] : writes) job->Writes(report.name(), any);
  for (const WorkerJobReport& j : report.worker_jobs()) {
    JobMachine* const job = Machine(j.job(), j.job_uid());
    if (job == nullptr) continue;
    const auto all_done = told.all_done.find(j.job());
    const bool seen = all_done != told.all_done.end() && report.seen_version() >= all_done->second;
    job->OnWorkerReport(node, j, seen, now);
  }
  AdvanceJobs(now);
  return admission->session;
}

absl::StatusOr<std::optional<uint64_t>> ClusterState::CheckSubmit(const std::string& request_id,
                                                                  const TrainingJob& job) const {
  for (const auto& [id, other] : jobs_) {
    if (!request_id.empty() && other->spec().request_id() == request_id) {
      return std::optional<uint64_t>(id);
    }
  }
  for (const auto& [id, other] : jobs_) {
    if (!other->over() && other->spec().spec().metadata().name() == job.metadata().name()) {
      return absl::AlreadyExistsError(
          absl::StrCat("job ", job.metadata().name(),
                       " is not finished; cancel it first or give metadata.name another value"));
    }
  }
  if (absl::Status s = CheckGpus(job.spec(), members_); !s.ok()) return s;
  if (absl::Status s = CheckRoom(job.spec(), members_, RoomsBut(0)); !s.ok()) return s;
  return std::optional<uint64_t>();
}

absl::StatusOr<uint64_t> ClusterState::Submit(Submission submission, absl::Time now) {
  auto known = CheckSubmit(submission.request_id, submission.job);
  if (!known.ok()) return known.status();
  if (known->has_value()) return **known;
  if (submission.uid.nil()) return absl::InvalidArgumentError("a job needs a UID");
  const uint64_t id = numbers_.next_job();
  numbers_.set_next_job(id + 1);
  JobSpecRecord spec;
  spec.set_job(id);
  spec.set_job_uid(submission.uid.text());
  spec.set_request_id(submission.request_id);
  *spec.mutable_spec() = std::move(submission.job);
  spec.set_submitted_unix_ms(absl::ToUnixMillis(now));
  spec.set_resume(submission.resume);
  spec.set_overwrite(submission.overwrite);
  spec.set_owner(submission.owner);
  AddOwner(submission.owner, *spec.mutable_spec()->mutable_metadata());
  spec.mutable_replaced()->Assign(submission.replaced.begin(), submission.replaced.end());
  if (submission.init_schema) {
    *spec.mutable_init_schema() = *std::move(submission.init_schema);
    spec.set_init_sample_weight(submission.init_sample_weight);
  }
  if (submission.init) *spec.mutable_init() = *std::move(submission.init);
  if (submission.resume_schema)
    *spec.mutable_resume_schema() = *std::move(submission.resume_schema);
  events_.Add(now, "JobSubmitted", "", id,
              absl::StrCat("job ", spec.spec().metadata().name(), " was submitted"));
  jobs_[id] = std::make_unique<JobMachine>(std::move(spec), cluster_id(),
                                           std::move(submission.complete), now);
  jobs_[id]->TellDamaged(submission.damaged, now);
  jobs_[id]->AwaitLock(std::move(submission.held_up));
  jobs_[id]->LookedUnder(submission.looked_lock);
  jobs_[id]->CountCutsFrom(submission.first_cut);
  AdvanceJobs(now);
  DropOldJobs();
  return id;
}

// Who asked for locks and heard that it leaves writers gives its lock back as such.
bool ClusterState::LockIsToBeGivenBack(const JobMachine& job) const {
  if (job.spec().spec().spec().checkpoint().directory().empty()) return false;
  if (job.UsesCheckpoints() || job.ServersClose()) return true;
  return job.LeavesWriters() && !told_of_writers_.contains(job.id());
}

void ClusterState::DropOldJobs() {
  size_t finished = 0;
  for (auto it = jobs_.rbegin(); it != jobs_.rend(); ++it) finished += it->second->over();
  for (auto it = jobs_.begin(); it != jobs_.end() && finished > kMaxFinishedJobs;) {
    const JobMachine& job = *it->second;
    const bool busy = LockIsToBeGivenBack(job) && !STRATA_MUTATION("job.dropped_busy");
    const bool newest = it->first == jobs_.rbegin()->first;  // its number may not be known yet
    if (!job.over() || newest || (busy && finished <= kMaxBusyJobs)) {
      ++it;
      continue;
    }
    if (!it->second->LeavesCopies()) NoteEnded(*it->second);
    settled_.erase(it->first);
    told_of_writers_.erase(it->first);
    it = jobs_.erase(it);
    --finished;
  }
}

void ClusterState::NoteEnded(const JobMachine& job) {
  EndedRecord ended;
  ended.set_job(job.id());
  ended.set_job_uid(job.spec().job_uid());
  ended.set_sequence(ended_order_.empty() ? 1 : ended_order_.rbegin()->first + 1);
  ended_order_[ended.sequence()] = ended.job_uid();
  ended_[ended.job_uid()] = ended;
  if (ended_order_.size() <= kMaxEnded) return;
  ended_.erase(ended_order_.begin()->second);
  ended_order_.erase(ended_order_.begin());
}

absl::Status ClusterState::Cancel(uint64_t job, absl::Time now) {
  auto it = jobs_.find(job);
  if (it == jobs_.end()) return absl::NotFoundError(absl::StrCat("no job ", job));
  it->second->Cancel(now);
  AdvanceJobs(now);
  return absl::OkStatus();
}

void ClusterState::KeepTimes(absl::Time now) {
  for (const auto& [id, job] : jobs_) {
    if (!job->over()) job->KeepTimes(now);
  }
}

void ClusterState::Started(absl::Time now, StartId drawn) {
  numbers_.set_term(numbers_.term() + 1);
  starts_[term()] = drawn.text();
  while (starts_.size() > kMaxStarts) starts_.erase(starts_.begin());
  events_.Add(now, "SchedulerStarted", "", 0,
              absl::StrCat("the scheduler knows ", members_.nodes().size(), " nodes and ",
                           jobs_.size(), " jobs"));
}

void ClusterState::Tick(absl::Time now) {
  if (hearing_) return;
  const absl::Duration gap = members_.Listen(now);
  if (gap > members_.lease()) {
    events_.Add(now, "SchedulerStalled", "", 0,
                absl::StrCat("the scheduler heard nobody for ", absl::FormatDuration(gap),
                             ", or could record nothing; every node has a fresh lease"));
  }
  for (const std::string& name : members_.Expire()) {
    events_.Add(now, "NodeLapsed", name, 0,
                absl::StrCat(name, " was silent for ", absl::FormatDuration(members_.lease())));
  }
  std::vector<std::string> forgotten;
  for (const auto& [name, node] : members_.nodes()) {
    if (node.alive || node.silence < kForgetAfter) continue;
    bool hosts = false;
    for (const auto& [id, job] : jobs_) hosts |= !job->over() && job->Hosts(name);
    if (!hosts) forgotten.push_back(name);
  }
  for (const std::string& name : forgotten) {
    members_.Forget(name);
    events_.Add(now, "NodeForgotten", name, 0,
                absl::StrCat(name, " was silent for ", absl::FormatDuration(kForgetAfter)));
    told_.erase(name);
    std::erase_if(purging_, [&name = name](const auto& purge) { return purge.first == name; });
    for (const auto& [id, job] : jobs_) job->ConfirmClosed(name);
  }
  AdvanceJobs(now);
}

}  // namespace strata::scheduler
