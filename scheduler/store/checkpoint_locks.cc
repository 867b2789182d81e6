#include "scheduler/store/checkpoint_locks.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "scheduler/store/lock_file.h"

namespace strata::scheduler {
namespace {

using Action = CheckpointLockMachine::Action;
using Phase = CheckpointLockMachine::Phase;

std::string ThisProcess() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return absl::StrCat("process ", getpid(), " on ", host);
}

bool IsOver(Phase phase) {
  return phase == Phase::kRefused || phase == Phase::kLost || phase == Phase::kSuperseded ||
         phase == Phase::kReleased;
}

}  // namespace

CheckpointLocks::CheckpointLocks(Options options)
    : options_(std::move(options)),
      holder_(ThisProcess()),
      term_(options_.term),
      starts_(options_.starts) {}

CheckpointLocks::~CheckpointLocks() = default;

std::shared_ptr<CheckpointLocks::Entry> CheckpointLocks::Make(const LockedJob& job) const {
  CheckpointLock own;
  own.set_cluster_id(options_.cluster_id);
  own.set_term(term_);
  own.set_start_id(StartOf(term_));
  own.set_job_uid(job.uid);
  own.set_job(job.job);
  own.set_name(job.name);
  own.set_holder(holder_);
  const bool over = job.over && !STRATA_MUTATION("checkpoint.over_is_superseded");
  return std::make_shared<Entry>(Entry{
      .job = job,
      .machine =
          CheckpointLockMachine(std::move(own), job.directory, options_.lease, job.began, over)});
}

void CheckpointLocks::SetTerm(uint64_t term, std::map<uint64_t, std::string> starts) {
  MutexLock lock(&mu_);
  term_ = term;
  starts_ = std::move(starts);
}

std::string CheckpointLocks::StartOf(uint64_t term) const {
  const auto start = starts_.find(term);
  return start == starts_.end() ? "" : start->second;
}

void CheckpointLocks::Want(const std::vector<LockedJob>& jobs) {
  MutexLock lock(&mu_);
  for (const auto& [uid, entry] : entries_) entry->wanted = entry->asked;
  for (const LockedJob& job : jobs) {
    if (job.leaves_writers) {
      const auto found = entries_.find(job.uid);
      if (found != entries_.end() && !found->second->wanted) found->second->machine.GiveBack(true);
      continue;
    }
    std::shared_ptr<Entry>& entry = entries_[job.uid];
    if (entry == nullptr) entry = Make(job);
    entry->wanted = true;
    entry->job.job = job.job;
    entry->job.over = job.over;
    entry->job.does = job.does;
  }
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = *it->second;
    if (!entry.wanted) entry.machine.GiveBack(false);
    const bool done = IsOver(entry.machine.phase()) || entry.machine.phase() == Phase::kAsking ||
                      entry.machine.phase() == Phase::kWaiting;
    it = !entry.wanted && !entry.busy && done ? entries_.erase(it) : std::next(it);
  }
}

void CheckpointLocks::Ask(const LockedJob& job) {
  MutexLock lock(&mu_);
  std::shared_ptr<Entry>& entry = entries_[job.uid];
  entry = Make(job);
  entry->asked = true;
}

void CheckpointLocks::Settle(const std::string& uid) {
  MutexLock lock(&mu_);
  const auto found = entries_.find(uid);
  if (found != entries_.end()) found->second->asked = false;
}

OwnerIs CheckpointLocks::Owner(const LockSeen& seen) const {
  if (!seen.lock || seen.lock->cluster_id() != options_.cluster_id || seen.lock->term() > term_) {
    return OwnerIs::kStranger;
  }
  const std::string start = StartOf(seen.lock->term());
  if (!start.empty() && start != seen.lock->start_id()) return OwnerIs::kStranger;
  const auto found = entries_.find(seen.lock->job_uid());
  const bool live =
      found != entries_.end() && found->second->wanted && !IsOver(found->second->machine.phase());
  if (!live) return OwnerIs::kOver;
  return found->second->job.over ? OwnerIs::kEnding : OwnerIs::kLive;
}

// For people: what a job that is over does, and why it cannot.
std::string CheckpointLocks::Does(const Entry& entry) {
  const std::string why = entry.machine.error().ok() ? "" : entry.machine.Why();
  return absl::StrCat(entry.job.does, entry.job.does.empty() || why.empty() ? "" : ": ", why);
}

void CheckpointLocks::Do(Entry& entry, Action action, const CheckpointLock& record,
                         uint64_t number) {
  const std::string& directory = entry.job.directory;
  FileSystem& files = Files();
  const absl::Time before = options_.clock->Now();
  absl::StatusOr<LockSeen> seen;
  absl::StatusOr<bool> taken = false;
  absl::Status status;
  switch (action) {
    case Action::kLook:
      status = (seen = LookAtLock(directory, files)).status();
      break;
    case Action::kTake:
      status = (taken = TakeLock(directory, number, record, files)).status();
      break;
    case Action::kRenew:
      status = (seen = RenewLock(directory, number, record, files)).status();
      break;
    case Action::kRelease:
      status = ReleaseLock(directory, number, record, files);
      break;
    case Action::kNone:
      break;
  }
  const absl::Time after = options_.clock->Now();
  MutexLock lock(&mu_);
  CheckpointLockMachine& machine = entry.machine;
  if (!status.ok()) return machine.Failed(status, after);
  if (action == Action::kLook) {
    machine.Looked(*seen, Owner(*seen), before, after);
    const auto owner = entries_.find(seen->lock ? seen->lock->job_uid() : "");
    machine.OwnerDoes(owner == entries_.end() ? "" : Does(*owner->second));
  }
  if (action == Action::kTake) machine.Took(*taken, before);
  if (action == Action::kRelease) machine.Released();
  if (action != Action::kRenew) return;
  if (machine.Beaten(*seen)) {
    machine.LostTo(*seen);
  } else {
    machine.Renewed(before);
  }
}

bool CheckpointLocks::Claim(Entry& entry) {
  MutexLock lock(&mu_);
  const absl::Time now = options_.clock->Now();
  if (entry.busy || entry.machine.Due(now) == Action::kNone) return false;
  entry.busy = true;
  entry.since = now;
  return true;
}

void CheckpointLocks::Run(Entry& entry) {
  while (true) {
    Action action = Action::kNone;
    CheckpointLock record;
    uint64_t number = 0;
    {
      MutexLock lock(&mu_);
      entry.since = options_.clock->Now();
      action = entry.machine.Due(entry.since);
      entry.busy = action != Action::kNone;
      if (!entry.busy) return;
      record = entry.machine.Record();
      record.set_job(entry.job.job);
      number = entry.machine.number();
    }
    Do(entry, action, record, number);
  }
}

void CheckpointLocks::Work() {
  std::vector<std::shared_ptr<Entry>> entries;
  {
    MutexLock lock(&mu_);
    for (const auto& [uid, entry] : entries_) entries.push_back(entry);
  }
  for (const auto& entry : entries) {
    if (!Claim(*entry)) continue;
    if (options_.work == nullptr) {
      Run(*entry);
      continue;
    }
    // One job's release comes before the next one's look.
    options_.work->Post(absl::StrCat("lock ", entry->job.directory), JobWork::Begins::kInOrder,
                        [this, entry] {
                          Run(*entry);
                          if (options_.done) options_.done();
                        });
  }
}

CheckpointLocks::View CheckpointLocks::Of(const std::string& uid) const {
  MutexLock lock(&mu_);
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return {};
  const CheckpointLockMachine& machine = found->second->machine;
  return {machine.phase(), machine.Why(), machine.error(), machine.first_cut(), machine.number()};
}

CheckpointLockMachine::May CheckpointLocks::MayWrite(uint64_t job) const {
  MutexLock lock(&mu_);
  const auto entry = Find(job);
  return entry == nullptr ? CheckpointLockMachine::May::kNotNow
                          : entry->machine.MayWrite(options_.clock->Now());
}

std::shared_ptr<CheckpointLocks::Entry> CheckpointLocks::Find(uint64_t job) const {
  for (const auto& [uid, entry] : entries_) {
    if (entry->job.job == job) return entry;
  }
  return nullptr;
}

absl::StatusOr<CheckpointLockMachine::May> CheckpointLocks::LookAgain(uint64_t job) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(&mu_);
    entry = Find(job);
    if (entry == nullptr) return CheckpointLockMachine::May::kNotNow;
    const auto may = entry->machine.MayWrite(options_.clock->Now());
    if (may != CheckpointLockMachine::May::kYes) return may;
  }
  const auto seen = LookAtLock(entry->job.directory, Files());
  if (!seen.ok()) return seen.status();
  MutexLock lock(&mu_);
  CheckpointLockMachine& machine = entry->machine;
  if (machine.phase() == Phase::kHeld && machine.Beaten(*seen)) machine.LostTo(*seen);
  return machine.MayWrite(options_.clock->Now());
}

std::vector<LockNews> CheckpointLocks::TakeNews() {
  std::vector<LockNews> news;
  MutexLock lock(&mu_);
  const absl::Time now = options_.clock->Now();
  for (const auto& [uid, entry] : entries_) {
    Entry& e = *entry;
    if (e.busy && e.machine.error().ok() && now - e.since >= options_.lease) e.machine.Hangs();
    const Phase phase = e.machine.phase();
    // A renewal that is under way may just have begun late.
    const bool stalls = e.machine.Stalls(now) && !e.machine.error().ok();
    if (phase == Phase::kAsking && e.machine.error().ok()) continue;  // nothing is known yet
    const bool again = phase == Phase::kHeld && !e.machine.Stalls(now) &&
                       (e.number != e.machine.number() || e.stalls);
    const std::string waits = phase == Phase::kWaiting ? e.machine.Why() : "";
    const bool began = !e.told || e.phase != phase || again || e.waits != waits;
    if (e.job.job == 0 || (!began && e.stalls == stalls)) continue;
    e.told = true;
    e.phase = phase;
    e.waits = waits;
    if (began) e.number = e.machine.number();
    LockNews::Kind kind = LockNews::Kind::kWaits;
    if (phase == Phase::kAsking || phase == Phase::kSuperseded) kind = LockNews::Kind::kStalls;
    if (phase == Phase::kHeld) kind = LockNews::Kind::kHeld;
    if (phase == Phase::kRefused) kind = LockNews::Kind::kRefused;
    if (phase == Phase::kLost) kind = LockNews::Kind::kLost;
    if (began && phase != Phase::kReleased)
      news.push_back({.kind = kind,
                      .job = e.job.job,
                      .text = e.machine.Why(),
                      .first_cut = e.machine.first_cut(),
                      .number = e.machine.number()});
    if (stalls && !e.stalls) {
      news.push_back({.kind = LockNews::Kind::kStalls, .job = e.job.job, .text = e.machine.Why()});
    }
    e.stalls = stalls;
  }
  return news;
}

}  // namespace strata::scheduler
