#include "server/job_keeper.h"

#include <glog/logging.h>

#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ops/mxcsr.h"
#include "proto/core/mutation.h"
#include "proto/core/position.h"
#include "proto/job/checks/unknown_fields.h"
#include "proto/runtime/base/timer.h"
#include "server/job/opening.h"
#include "server/job/plan.h"

namespace strata::server {
namespace {

// Between two steps of an opening lies an image at most: whatever takes longer does not come back.
constexpr absl::Duration kSteplessAfter = absl::Minutes(5);

// Errors that no later try can mend. A place that may not be written is one for a job that begins,
// whose user waits and can name another; a job that was open here is not given up for it.
bool IsFinal(const absl::Status& s, bool was_open) {
  return absl::IsInvalidArgument(s) || absl::IsFailedPrecondition(s) || absl::IsNotFound(s) ||
         absl::IsUnimplemented(s) || (absl::IsPermissionDenied(s) && !was_open);
}

// A place that the job names, and the field that does.
struct NamedPath {
  absl::string_view field;
  std::string path;  // "": none
};

std::vector<NamedPath> PathsOf(const ServerJobDirective& directive) {
  const JobSpec& spec = directive.spec().spec();
  return {{"spec.storage.directory", spec.storage().directory()},
          {"spec.output.removed", spec.output().removed()},
          {"spec.checkpoint.directory", spec.checkpoint().directory()},
          {"spec.model.initFrom", spec.model().init_from().checkpoint()}};
}

// What the user has to change, where the place is the job's own choice.
std::string OpeningError(const absl::Status& s, const ServerJobDirective& directive) {
  for (const auto& [field, path] : PathsOf(directive)) {
    if (path.empty() || !absl::StrContains(s.message(), path)) continue;
    if (absl::StrContains(s.message(), field)) break;
    return absl::StrCat(field, ": ", s.message());
  }
  return std::string(s.message());
}

absl::Status CheckPaths(const PathPolicy& policy, const ServerJobDirective& directive) {
  for (const auto& [field, path] : PathsOf(directive)) {
    if (absl::Status s = policy.Check(field, path); !s.ok()) return s;
  }
  // A checkpoint of an earlier run is below another directory, perhaps.
  return policy.Check("the checkpoint to restore", directive.restore_from());
}

// Of the copy that is meant; empty: its shards have none.
std::string LogIdOf(const ServerJobDirective& directive) {
  const ChainDirective& chain = directive.chain();
  const auto place = static_cast<int>(chain.place());
  if (place < chain.members_size()) return chain.members(place).log_id();
  return chain.joining().log_id();
}

// Waits until nobody but the caller uses the job: handlers that found it before it was removed from
// the service hand on their request and let go; none of them waits for anything.
void DestroyWhenUnused(std::shared_ptr<ServerJob> job) {
  while (job.use_count() > 1) std::this_thread::yield();
  job.reset();
}

}  // namespace

JobKeeper::JobKeeper(Options options)
    : options_(std::move(options)), held_(options_.root), work_(options_.job.timer) {}

JobKeeper::~JobKeeper() { CloseAll(); }

void JobKeeper::CloseAll() {
  std::vector<JobSlot> slots;
  {
    MutexLock lock(&mu_);
    for (const auto& [slot, entry] : entries_) slots.push_back(slot);
  }
  for (const JobSlot slot : slots) Drop(slot);
  work_.Drain();
}

void JobKeeper::Follow(const NodeDirective& directive) {
  DropUnnamed(directive);
  for (const ServerJobDirective& job : directive.server_jobs()) FollowOne(job);
}

std::vector<JobSlot> JobKeeper::SlotsOf(JobId id,
                                        const std::function<bool(const Entry&)>& which) const {
  std::vector<JobSlot> slots;
  MutexLock lock(&mu_);
  for (auto it = entries_.lower_bound({id, 0}); it != entries_.end() && it->first.job == id; ++it) {
    if (which(*it->second)) slots.push_back(it->first);
  }
  return slots;
}

void JobKeeper::FollowOne(const ServerJobDirective& directive) {
  const JobSlot slot = {JobId(directive.job()), directive.server_index()};
  const JobIdentity identity =
      ParseJobIdentity(directive.cluster_id(), directive.job_uid()).value_or(JobIdentity());
  if (directive.close()) return CloseJob(directive, identity);
  const Generation generation(directive.generation());
  for (const JobSlot another :
       SlotsOf(slot.job, [&](const Entry& entry) { return !(entry.identity == identity); })) {
    Release(another);
  }
  for (const JobSlot earlier :
       SlotsOf(slot.job, [&](const Entry& entry) { return entry.generation < generation; })) {
    Drop(earlier);
  }
  std::shared_ptr<ServerJob> open;
  bool start = false, rejoins = false, leaving = false;
  {
    MutexLock lock(&mu_);
    leaving = CopyLeaves(identity, slot) && !STRATA_MUTATION("chain.opened_while_removed");
    const auto it = entries_.find(slot);
    if (it == entries_.end()) {
      start = true;
    } else if (it->second->generation == generation) {
      rejoins = LogIdOf(it->second->directive) != LogIdOf(directive);
      it->second->directive = directive;
      open = it->second->job;
    }
  }
  if (rejoins) {
    Drop(slot);
    // In the same folder: nothing of the copy before may still write there.
    StartOpening(directive, {}, Begins::kInOrder);
  } else if (start) {
    // What removes the copy before it removes whatever is in its folder.
    StartOpening(directive, {}, leaving ? Begins::kInOrder : Begins::kPassing);
  } else if (open != nullptr) {
    open->Follow(directive);
    const bool served = options_.service->Find(slot.job, slot.server) != nullptr;
    if (!served) options_.service->Add(std::move(open));
  }
}

void JobKeeper::Tend() {
  work_.Pump();
  ReopenDamaged();
  RemoveAgain();
}

void JobKeeper::ReopenDamaged() {
  std::map<JobSlot, absl::Status> damaged;
  {
    MutexLock lock(&mu_);
    for (const auto& [slot, entry] : entries_) {
      if (entry->job == nullptr) continue;
      absl::Status damage = entry->job->tier_damage();
      if (!damage.ok()) damaged.emplace(slot, std::move(damage));
    }
  }
  for (const auto& [slot, damage] : damaged) {
    LOG(ERROR) << "tier_damaged job=" << slot.job.value << " next=open_anew error=\"" << damage
               << '"';
    ServerJobDirective directive;
    Reopening reopening;
    {
      MutexLock lock(&mu_);
      directive = entries_[slot]->directive;
      reopening = {entries_[slot]->reopening.times + 1, std::string(damage.message())};
    }
    directive.set_was_open(true);
    Drop(slot);
    // In the same folder: nothing of the last opening may still write there.
    StartOpening(directive, reopening, Begins::kInOrder);
  }
}

void JobKeeper::StartOpening(const ServerJobDirective& directive, const Reopening& reopening,
                             Begins begins) {
  const JobId id(directive.job());
  LOG(INFO) << "job_opening job=" << id.value << " generation=" << directive.generation()
            << " was_open=" << directive.was_open() << " restore_from=\""
            << directive.restore_from() << '"';
  auto entry = std::make_shared<Entry>();
  entry->identity =
      ParseJobIdentity(directive.cluster_id(), directive.job_uid()).value_or(JobIdentity());
  entry->generation = Generation(directive.generation());
  entry->reopening = reopening;
  entry->message = reopening.why;
  entry->root = RootFor(directive);
  entry->directive = directive;
  *entry->stepped = absl::ToUnixNanos(options_.job.timer->Now());
  {
    MutexLock lock(&mu_);
    kept_.erase(entry->identity);
    removals_.erase(entry->identity);
    entries_[{id, directive.server_index()}] = entry;
  }
  work_.Post(
      QueueOf(entry->identity), begins,
      [this, entry, directive, reopening] { Open(entry, directive, reopening); }, entry->cancelled);
}

void JobKeeper::Open(const EntryPtr& entry, const ServerJobDirective& directive,
                     const Reopening& reopening) {
  ops::RestoreExactFloatState();  // replay computes
  // A file that fails again is not met by opening it in a circle.
  bool wait = reopening.times > 1;
  while (wait || !OpenOnce(entry, directive, reopening)) {
    wait = false;
    MutexLock lock(&mu_);
    const auto gone = [&] { return entry->cancelled->load(); };
    const absl::Time next = options_.job.timer->Now() + kReopenAfter;
    if (AwaitUntil(options_.job.timer, &mu_, absl::Condition(&gone), next)) return;
  }
}

absl::StatusOr<JobPlan> JobKeeper::Plan(const EntryPtr& entry,
                                        const ServerJobDirective& directive) const {
  auto plan = PlanJob(directive);
  if (!plan.ok()) return plan;
  if (plan->has_hbm && !plan->make_gpu) {
    plan->make_gpu = options_.make_gpu;
    if (!plan->make_gpu) {
      return absl::FailedPreconditionError(
          absl::StrCat("spec.storage.gpuBytesPerServer: server ", options_.name,
                       " has no GPU; start it with --device, or give "
                       "spec.storage.gpuBackend: host"));
    }
  }
  plan->log_direct_from_bytes = options_.log_direct_from_bytes;
  plan->tier_memtable_bytes = options_.tier_memtable_bytes;
  plan->server = options_.name;
  plan->boot_id = options_.boot_id;
  plan->cancelled = [flag = entry->cancelled, stepped = entry->stepped,
                     timer = options_.job.timer] {
    *stepped = absl::ToUnixNanos(timer->Now());
    return flag->load();
  };
  return plan;
}

bool JobKeeper::OpenOnce(const EntryPtr& entry, const ServerJobDirective& directive,
                         const Reopening& reopening) {
  auto plan = Plan(entry, directive);
  if (!plan.ok()) {
    return Settle(entry, ServerJobReport::FAILED, std::string(plan.status().message()), nullptr);
  }
  const absl::Time begin = options_.job.timer->Now();
  const std::string& root = entry->root;
  absl::Status allowed =
      CheckKnown(directive.spec(), absl::StrCat("server ", options_.name), "the scheduler");
  if (allowed.ok()) allowed = CheckPaths(options_.paths, directive);
  if (allowed.ok()) allowed = Hold(*plan, root);
  auto opened = allowed.ok() ? OpenJob(*plan, root, options_.job.timer, &folders_)
                             : absl::StatusOr<OpenedJob>(allowed);
  if (!opened.ok()) {
    const absl::Status& s = opened.status();
    if (absl::IsCancelled(s)) return true;
    if (!directive.was_open()) Unhold(plan->identity, root);
    ServerJobReport::State state = ServerJobReport::OPENING;
    if (IsFinal(s, directive.was_open())) state = ServerJobReport::FAILED;
    if (absl::IsDataLoss(s)) state = ServerJobReport::LOST;
    // What ends or rolls back the job is told to its user by the job itself.
    LOG_IF(ERROR, state == ServerJobReport::OPENING)
        << "job_not_opened job=" << directive.job() << " next=retry error=\"" << s << '"';
    LOG_IF(INFO, state != ServerJobReport::OPENING)
        << "job_not_opened job=" << directive.job() << " error=\"" << s << '"';
    std::string message = OpeningError(s, directive);
    if (reopening.times > 0) message = absl::StrCat(reopening.why, "; then ", message);
    return Settle(entry, state, std::move(message), nullptr);
  }
  LOG(INFO) << "job_open job=" << directive.job() << " generation=" << directive.generation()
            << " shards=" << opened->shards.size() << " recovered=" << opened->recovered
            << " replayed_records=" << opened->replayed_records
            << " milliseconds=" << absl::ToInt64Milliseconds(options_.job.timer->Now() - begin);
  ServerJob::Options options = options_.job;
  options.process = options.incarnation;
  options.incarnation += reopening.times;
  if (plan->copy) {
    // Another one than the process's and than that of any copy which was here before (R12).
    options.incarnation =
        Mix64(options.incarnation ^ Mix64(std::hash<std::string>()(plan->copy->log_id)));
  }
  std::optional<uint32_t> server;
  if (plan->copy) server = plan->server_index;
  // Removes what earlier generations left, when nobody waits for it.
  work_.Post(
      QueueOf(entry->identity), Begins::kPassing,
      [identity = plan->identity, generation = plan->generation, root, server] {
        RemoveEarlierGenerations(root, identity, generation, server);
      },
      entry->cancelled);
  auto job = std::make_shared<ServerJob>(*std::move(plan), *std::move(opened), options);
  return Settle(entry, ServerJobReport::OPEN, "", std::move(job));
}

bool JobKeeper::Settle(const EntryPtr& entry, ServerJobReport::State state, std::string message,
                       std::shared_ptr<ServerJob> job) {
  MutexLock lock(&mu_);
  if (*entry->cancelled) return true;  // `job`, if any, ends here: nobody has seen it
  entry->state = state;
  entry->message = std::move(message);
  if (job != nullptr) {
    job->Follow(entry->directive);
    options_.service->Add(job);
    entry->job = std::move(job);
  }
  return state != ServerJobReport::OPENING;
}

void JobKeeper::Drop(JobSlot slot) {
  EntryPtr entry;
  std::shared_ptr<ServerJob> job;
  {
    MutexLock lock(&mu_);
    const auto it = entries_.find(slot);
    if (it == entries_.end()) return;
    entry = std::move(it->second);
    entries_.erase(it);
    *entry->cancelled = true;
    job = std::move(entry->job);
  }
  options_.service->Remove(slot.job, slot.server);
  work_.Pump();  // an opening that waits is none any more
  if (job != nullptr) Destroy(entry->identity, std::move(job));
}

void JobKeeper::Destroy(const JobIdentity& identity, std::shared_ptr<ServerJob> job) {
  {
    MutexLock lock(&mu_);
    Closing& closing = closing_[identity];
    ++closing.objects;
    closing.since = options_.job.timer->Now();
  }
  work_.Post(QueueOf(identity), Begins::kPassing, [this, identity, job = std::move(job)]() mutable {
    DestroyWhenUnused(std::move(job));
    MutexLock lock(&mu_);
    if (--closing_[identity].objects == 0) closing_.erase(identity);
  });
}

void JobKeeper::Fence() {
  MutexLock lock(&mu_);
  for (const auto& [slot, entry] : entries_) options_.service->Remove(slot.job, slot.server);
}

std::vector<ServerJobReport> JobKeeper::Reports() const {
  MutexLock lock(&mu_);
  std::vector<ServerJobReport> reports;
  for (const auto& [slot, entry] : entries_) {
    if (entry->job != nullptr) {
      reports.push_back(entry->job->Report());
      reports.back().set_reopened(entry->reopening.times);
      reports.back().set_reopened_because(entry->reopening.why);
      ReportHang(entry->identity, reports.back());
      continue;
    }
    ServerJobReport report;
    report.set_reopened(entry->reopening.times);
    report.set_job(slot.job.value);
    report.set_server_index(slot.server);
    if (entry->directive.has_chain()) {
      report.mutable_copy()->set_log_id(LogIdOf(entry->directive));
      report.mutable_copy()->set_place(entry->directive.chain().place());
    }
    report.set_job_uid(entry->identity.job.text());
    report.set_generation(entry->generation.value);
    report.set_state(entry->state);
    report.set_message(entry->message);
    const absl::Duration still =
        options_.job.timer->Now() - absl::FromUnixNanos(entry->stepped->load());
    if (entry->message.empty() && still > kSteplessAfter) {
      report.set_message(absl::StrCat("no step of the opening has ended for five minutes; see ",
                                      "whether files below ", entry->root, " answer"));
    }
    ReportHang(entry->identity, report);
    reports.push_back(std::move(report));
  }
  for (const auto& [identity, kept] : kept_) {
    ServerJobReport& report = reports.emplace_back();
    const bool quarantined = kept.job.quarantined_unix_ms() != 0;
    report.set_job(kept.job.job());
    report.set_job_uid(kept.job.job_uid());
    report.set_cluster_id(kept.job.cluster_id());
    report.set_name(kept.job.name());
    report.set_state(quarantined ? ServerJobReport::QUARANTINED : ServerJobReport::KEPT);
    report.set_kept_bytes(kept.bytes);
    report.set_generation(kept.generation.value);
    report.set_kept_unix_ms(kept.job.quarantined_unix_ms());
    report.set_closes(closing_.contains(identity));
    ReportHang(identity, report);
    if (!quarantined || !kept.note) continue;
    const absl::StatusOr<KeptJob>& note = *kept.note;
    if (note.ok()) *report.mutable_kept() = *note;
    if (!note.ok()) report.set_message(std::string(note.status().message()));
  }
  return reports;
}

bool JobKeeper::Busy() const {
  MutexLock lock(&mu_);
  const absl::Time patient = options_.job.timer->Now() - JobWork::kPatience;
  for (const auto& [identity, removal] : removals_) {
    if (removal.posted && removal.since > patient) return true;
  }
  for (const auto& [identity, closing] : closing_) {
    if (closing.since > patient) return true;
  }
  for (const auto& [slot, entry] : entries_) {
    if (entry->state == ServerJobReport::OPENING) return true;
    if (entry->job == nullptr) continue;
    const ServerJobReport report = entry->job->Report();
    if (report.cuts_size() < entry->directive.cuts_size()) return true;
    if (report.lane_epoch() < entry->directive.lane_epoch()) return true;  // lanes wait for it
  }
  return false;
}

bool JobKeeper::HasCopies() const {
  MutexLock lock(&mu_);
  for (const auto& [slot, entry] : entries_) {
    if (entry->directive.has_chain()) return true;
  }
  return false;
}

std::vector<std::shared_ptr<ServerJob>> JobKeeper::Jobs() const {
  MutexLock lock(&mu_);
  std::vector<std::shared_ptr<ServerJob>> jobs;
  for (const auto& [slot, entry] : entries_) {
    if (entry->job != nullptr) jobs.push_back(entry->job);
  }
  return jobs;
}

}  // namespace strata::server
