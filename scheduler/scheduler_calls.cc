// Scheduler: what nodes and users ask of it.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/job/checks/unknown_fields.h"
#include "proto/job/dram_limit.h"
#include "proto/job/job_spec.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/scheduler_impl.h"
#include "scheduler/store/checkpoint_locks.h"
#include "scheduler/store/event_log.h"
#include "scheduler/store/submission_looks.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kMaxEventsWait = absl::Seconds(10);
// For the folders that a submitted job names; callers with less time get an answer before it ends.
constexpr absl::Duration kMaxSubmitWait = absl::Seconds(30);
// How long a call waits for a server that was told to remove a copy.
constexpr absl::Duration kPurgeWait = absl::Seconds(10);

// For people.
constexpr char kOwn[] = "the scheduler", kClient[] = "this client";

}  // namespace

absl::StatusOr<NodeDirective> SchedulerImpl::Sync(const NodeReport& report,
                                                  absl::Duration timeout) {
  const Call call(this);
  // A node must be heard of three times per lease, so that no poll is held for longer.
  const absl::Time deadline =
      timer_->Now() + std::min({absl::Milliseconds(report.wait_ms()), timeout, lease_ / 3});
  const std::string revoked = revoked_ ? revoked_() : "";
  uint64_t session = 0;
  {
    MutexLock lock(&mu_);
    ++counters_.syncs;
    if (state_.hearing()) return state_.Report(report, timer_->Now()).status();
    if (absl::Status s = Ready(); !s.ok()) return s;
    auto reported = state_.Report(report, timer_->Now());
    if (absl::Status s = Save(); !s.ok()) return s;
    if (!reported.ok()) {
      counters_.fenced += absl::IsUnauthenticated(reported.status());
      return reported.status();
    }
    session = *reported;
  }
  TendFiles();
  MutexLock lock(&mu_);
  while (true) {
    if (absl::Status s = Ready(); !s.ok()) return s;
    auto version = state_.Directive(report.name(), session, /*version_only=*/true);
    if (!version.ok()) {
      ++counters_.fenced;
      return version.status();
    }
    if (report.session() == 0 || version->version() > report.seen_version()) break;
    if (node_credentials_ && node_credentials_->Due(report.name(), revoked, WallNow())) break;
    if (timer_->Now() >= deadline) {
      version->set_session(session);
      version->set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(lease_)));
      version->set_unchanged(true);
      return version;
    }
    AwaitChange(deadline);
  }
  auto directive = state_.Directive(report.name(), session, /*version_only=*/false);
  if (node_credentials_ && directive.ok()) {
    directive->set_session(session);  // which the credentials are of
    const absl::Status filled =
        node_credentials_->Fill(report.name(), revoked, WallNow(), *directive);
    if (!filled.ok()) return filled;
  }
  return directive;
}

absl::Time SchedulerImpl::SubmitDeadline(absl::Duration timeout) const {
  return await_files_ ? absl::InfiniteFuture()
                      : timer_->Now() + std::min(timeout / 8 * 7, kMaxSubmitWait);
}

// 1 checks the job by itself, 2 and what is known; 3 looks at its places, 4 takes the lock of its
// checkpoint directory and 5 looks what is there, beside all other calls and for a while only; 6
// takes it.
absl::StatusOr<SubmitReply> SchedulerImpl::SubmitAs(const Caller& caller,
                                                    const SubmitRequest& request,
                                                    absl::Duration timeout) {
  const Call call(this);
  const absl::Time deadline = SubmitDeadline(timeout);
  // A newer client's job may say what this program does not do.
  absl::Status all_known = CheckKnown(request.job(), kOwn, kClient);
  if (all_known.ok()) all_known = CheckKnown(request, kOwn, kClient);
  if (!all_known.ok()) return all_known;
  SubmitRequest resolved = request;
  if (absl::Status s = ResolveJob(*resolved.mutable_job()); !s.ok()) return s;
  if (absl::Status s = CheckReplicas(resolved.job().spec()); !s.ok()) return s;
  if (absl::Status s = CheckDramLimit(resolved.job().spec()); !s.ok()) return s;
  // So that nobody takes the name or the directory while the folders are looked at.
  const auto turn = looks_.AwaitTurn(resolved.job().metadata().name(),
                                     resolved.job().spec().checkpoint().directory(), deadline);
  if (!turn.ok()) return turn.status();
  {
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    auto known = state_.CheckSubmit(resolved.request_id(), resolved.job());
    if (!known.ok()) return known.status();
    if (known->has_value()) return Reply(**known);
  }
  const auto uid = DrawId<JobUid>(*ids_);
  if (absl::Status s = looks_.LookAtPlaces(resolved, deadline); !s.ok()) return s;
  auto lock = AskForLock(resolved.job(), uid, deadline);
  auto found =
      lock.ok() ? looks_.Look(resolved, deadline) : absl::StatusOr<FoundCheckpoints>(lock.status());
  if (found.ok()) {
    if (absl::Status s = CheckOwnersOf(caller, *found); !s.ok()) found = s;
  }
  auto reply = found.ok() ? Enter(resolved, caller.asked ? caller.name : "", uid, *std::move(found),
                                  *std::move(lock))
                          : absl::StatusOr<SubmitReply>(found.status());
  locks_->Settle(uid.text());
  TendFiles();
  return reply;
}

absl::StatusOr<SubmitReply> SchedulerImpl::Enter(const SubmitRequest& resolved,
                                                 const std::string& owner, const JobUid& uid,
                                                 FoundCheckpoints found,
                                                 CheckpointLocks::View lock) {
  MutexLock state_lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  const std::string& directory = resolved.job().spec().checkpoint().directory();
  const uint64_t looked_lock = directory.empty() ? 0 : LookedUnder(uid, lock);
  if (!directory.empty() && looked_lock == 0 && lock.why.empty()) {
    lock.why = NotHeld(directory);
  }
  auto job = state_.Submit({.request_id = resolved.request_id(),
                            .job = resolved.job(),
                            .resume = resolved.resume(),
                            .overwrite = resolved.overwrite(),
                            .complete = std::move(found.complete),
                            .damaged = std::move(found.damaged),
                            .replaced = std::move(found.replaced),
                            .init_schema = std::move(found.init_schema),
                            .init = std::move(found.init),
                            .init_sample_weight = std::move(found.init_sample_weight),
                            .resume_schema = std::move(found.resume_schema),
                            .uid = uid,
                            .held_up = std::move(lock.why),
                            .first_cut = lock.first_cut,
                            .looked_lock = looked_lock,
                            .owner = owner},
                           timer_->Now());
  if (absl::Status s = Save(); !s.ok()) return s;
  if (!job.ok()) return job.status();
  return Reply(*job);
}

absl::StatusOr<JobStatus> SchedulerImpl::GetJob(const JobRef& ref, absl::Duration) {
  MutexLock lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  auto job = state_.FindJob(ref);
  if (!job.ok()) return job.status();
  return state_.Status(*job, timer_->Now());
}

absl::StatusOr<ListJobsReply> SchedulerImpl::ListJobs(absl::Duration) {
  MutexLock lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  return state_.Jobs(timer_->Now());
}

absl::StatusOr<JobStatus> SchedulerImpl::CancelJob(const JobRef& ref, absl::Duration) {
  const Call call(this);
  JobStatus status;
  {
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    auto job = state_.FindJob(ref);
    if (!job.ok()) return job.status();
    if (absl::Status s = state_.Cancel(*job, timer_->Now()); !s.ok()) return s;
    if (absl::Status s = Save(); !s.ok()) return s;
    status = state_.Status(*job, timer_->Now());
  }
  TendFiles();
  return status;
}

absl::StatusOr<CreateCheckpointReply> SchedulerImpl::CreateCheckpoint(
    const CreateCheckpointRequest& request, absl::Duration timeout) {
  const Call call(this);
  const absl::Time deadline =
      timer_->Now() + std::min(absl::Milliseconds(request.wait_ms()), timeout);
  MutexLock lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  auto job = state_.FindJob(request.job());
  if (!job.ok()) return job.status();
  auto ticket = state_.WantCheckpoint(*job, timer_->Now());
  if (!ticket.ok()) return ticket.status();
  auto reply = AwaitCheckpoint(*job, *ticket, request.wait_ms(), deadline);
  state_.ForgetTicket(*job, *ticket);
  return reply;
}

absl::StatusOr<CreateCheckpointReply> SchedulerImpl::AwaitCheckpoint(uint64_t job, uint64_t ticket,
                                                                     uint32_t wait_ms,
                                                                     absl::Time deadline) {
  if (absl::Status s = Save(); !s.ok()) return s;
  while (true) {
    if (auto result = state_.CheckpointResult(job, ticket)) {
      if (!result->ok()) return result->status();
      CreateCheckpointReply reply;
      reply.set_directory((*result)->folder());
      reply.set_step((*result)->step());
      reply.set_model_hash((*result)->model_hash());
      return reply;
    }
    if (absl::Status s = Ready(); !s.ok()) return s;
    if (timer_->Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("the checkpoint is not complete after ", wait_ms,
                       " ms; it goes on, and appears in spec.checkpoint.directory when it is"));
    }
    AwaitChange(deadline);
  }
}

absl::StatusOr<ClusterStatus> SchedulerImpl::GetCluster(absl::Duration) {
  MutexLock lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  ClusterStatus status = state_.Cluster();
  for (NodeStatus& node : *status.mutable_nodes()) {
    const absl::Time seen = absl::FromUnixMillis(node.last_seen_unix_ms());
    node.set_last_seen_unix_ms(absl::ToUnixMillis(timer_->Wall(seen)));
  }
  status.set_scheduler_version(version_);
  return status;
}

absl::StatusOr<JobShards> SchedulerImpl::GetShards(const JobRef& ref, absl::Duration) {
  MutexLock lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  auto job = state_.FindJob(ref);
  if (!job.ok()) return job.status();
  return state_.Shards(*job);
}

absl::StatusOr<GetEventsReply> SchedulerImpl::GetEvents(const GetEventsRequest& request,
                                                        absl::Duration timeout) {
  const Call call(this);
  const absl::Time deadline =
      timer_->Now() + std::min({absl::Milliseconds(request.wait_ms()), kMaxEventsWait, timeout});
  MutexLock lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  absl::StatusOr<uint64_t> job = uint64_t{0};
  if (request.has_job()) job = state_.FindJob(request.job());
  if (!job.ok()) return job.status();
  const int64_t since = SinceUnixMs(request, timer_->Now());
  while (true) {
    if (absl::Status s = Ready(); !s.ok()) return s;
    GetEventsReply reply = state_.Events(request.after_sequence(), *job, since);
    if (reply.events_size() > 0 || timer_->Now() >= deadline) return reply;
    AwaitChange(deadline);
  }
}

absl::StatusOr<SettleQuarantineReply> SchedulerImpl::SettleQuarantineAs(
    const Caller& caller, const SettleQuarantineRequest& request, absl::Duration timeout) {
  const Call call(this);
  {
    MutexLock lock(&mu_);
    if (absl::Status s = Ready(); !s.ok()) return s;
    if (absl::Status s = CheckOwnersOf(caller, request); !s.ok()) return s;
  }
  if (request.action() == SettleQuarantineRequest::ADOPT) {
    return AdoptJob(caller.asked ? caller.name : "", request.job_uid(), timeout);
  }
  const absl::Time deadline = timer_->Now() + std::min(kPurgeWait, timeout);
  MutexLock lock(&mu_);
  if (absl::Status s = Ready(); !s.ok()) return s;
  auto settled = state_.SettleQuarantine(request, timer_->Now());
  if (!settled.ok()) return settled.status();
  if (absl::Status s = Save(); !s.ok()) return s;
  while (state_.Purging(request.node(), request.job_uid())) {
    if (timer_->Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("server ", request.node(), " was told to remove its copy of job ",
                       request.job_uid(), ", but still has it; its log says why"));
    }
    AwaitChange(deadline);
    if (absl::Status s = Ready(); !s.ok()) return s;
  }
  return settled;
}

SubmitReply SchedulerImpl::Reply(uint64_t job) {
  SubmitReply reply;
  reply.set_job(job);
  reply.set_cluster_id(state_.cluster_id());
  const auto found = state_.jobs().find(job);
  if (found != state_.jobs().end()) reply.set_job_uid(found->second->spec().job_uid());
  return reply;
}

}  // namespace strata::scheduler
