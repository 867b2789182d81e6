// JobKeeper: what is on disk of jobs that are not open.
#include <glog/logging.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/files/file_system.h"
#include "server/job/job_folder.h"
#include "server/job_keeper.h"

namespace strata::server {

std::string JobKeeper::RootOf(const std::string& storage_directory) const {
  if (storage_directory.empty()) return options_.root;
  return absl::StrCat(storage_directory, "/", options_.name);
}

std::string JobKeeper::RootFor(const ServerJobDirective& directive) const {
  return RootOf(directive.spec().spec().storage().directory());
}

absl::Status JobKeeper::Begin() {
  std::vector<HeldJob> held;
  {
    MutexLock lock(&held_mu_);
    auto listed = held_.List();
    if (!listed.ok()) return listed.status();
    held = *std::move(listed);
  }
  MutexLock lock(&mu_);
  for (HeldJob& job : held) {
    const auto identity = *ParseJobIdentity(job.cluster_id(), job.job_uid());
    const uint64_t bytes = FolderBytes(JobFolder(job.root(), identity));
    kept_[identity] = {std::move(job), bytes};
  }
  return absl::OkStatus();
}

// Noted before its first file is made. Of a cluster that ends with its process nobody asks later.
absl::Status JobKeeper::Hold(const JobPlan& plan, const std::string& root) {
  if (plan.transient) return absl::OkStatus();
  HeldJob job;
  job.set_cluster_id(plan.identity.cluster.text());
  job.set_job_uid(plan.identity.job.text());
  job.set_job(plan.job.value);
  job.set_name(plan.name);
  job.set_root(root);
  MutexLock lock(&held_mu_);
  return held_.Put(job);
}

absl::Status JobKeeper::TryToRemove(const ServerJobDirective& directive,
                                    const JobIdentity& identity) {
  std::string root = RootOf(directive.storage_directory());
  {
    MutexLock lock(&mu_);
    const auto kept = kept_.find(identity);
    if (kept != kept_.end()) root = kept->second.job.root();
  }
  // Nothing that a job names is touched where it was not allowed to be opened.
  absl::Status removed = root == options_.root
                             ? absl::OkStatus()
                             : options_.paths.Check("spec.storage.directory", root);
  if (removed.ok()) removed = RemoveJob(root, identity);
  // A place where nothing was ever made, or can be, has nothing to be told of.
  if (!removed.ok() && MayHaveJobFolder(root, identity)) return removed;
  // Below a folder that the job named this server has one of its own: empty, it is of no use.
  if (root != options_.root) FileSystem::Kernel().RemoveFolder(root);
  MutexLock lock(&held_mu_);
  return held_.Remove(identity);
}

void JobKeeper::RemoveFiles(const ServerJobDirective& directive, const JobIdentity& identity) {
  const absl::Status removed = TryToRemove(directive, identity);
  if (removed.ok()) {
    removals_.erase(identity);
    MutexLock lock(&mu_);
    kept_.erase(identity);
    return;
  }
  Removal& removal = removals_[identity];
  removal.directive = directive;
  removal.next = options_.job.timer->Now() + kReopenAfter;
  if (std::exchange(removal.why, std::string(removed.message())) == removal.why) return;
  LOG(ERROR) << "job_files_stay job=" << directive.job() << " uid=" << identity.job.text()
             << " next=retry error=\"" << removed << '"';
}

void JobKeeper::RemoveAgain() {
  const absl::Time now = options_.job.timer->Now();
  const auto removals = removals_;  // those that succeed leave it
  for (const auto& [identity, removal] : removals) {
    if (removal.next <= now) RemoveFiles(removal.directive, identity);
  }
}

void JobKeeper::Release(JobId id) {
  JobIdentity identity;
  HeldJob job;
  {
    MutexLock lock(&mu_);
    const auto it = entries_.find(id);
    if (it == entries_.end()) return;
    identity = it->second->identity;
    job.set_root(it->second->root);
    job.set_name(it->second->directive.spec().metadata().name());
  }
  Drop(id);
  job.set_cluster_id(identity.cluster.text());
  job.set_job_uid(identity.job.text());
  job.set_job(id.value);
  MutexLock lock(&mu_);
  kept_[identity].job = std::move(job);
}

void JobKeeper::CloseJob(const ServerJobDirective& directive, const JobIdentity& identity) {
  const JobId id(directive.job());
  bool open = false;
  {
    MutexLock lock(&mu_);
    const auto it = entries_.find(id);
    open = it != entries_.end() && it->second->identity == identity;
  }
  if (open) Release(id);
  if (!directive.quarantine()) return RemoveFiles(directive, identity);
  removals_.erase(identity);
  HeldJob noted;
  {
    MutexLock lock(&mu_);
    const auto it = kept_.find(identity);
    if (it == kept_.end() || it->second.job.quarantined_unix_ms() != 0) return;
    Kept& kept = it->second;
    kept.job.set_quarantined_unix_ms(
        absl::ToUnixMillis(options_.job.timer->Wall(options_.job.timer->Now())));
    kept.bytes = FolderBytes(JobFolder(kept.job.root(), identity));
    noted = kept.job;
    LOG(ERROR) << "job_quarantined " << Describe(identity) << " bytes=" << kept.bytes
               << " folder=\"" << JobFolder(noted.root(), identity)
               << "\" reason=\"the scheduler knows of no such job; nothing is removed\"";
  }
  MutexLock lock(&held_mu_);
  const absl::Status s = held_.Put(noted);
  LOG_IF(ERROR, !s.ok()) << "job_note_not_written error=\"" << s << '"';
}

uint64_t JobKeeper::quarantined() const {
  MutexLock lock(&mu_);
  uint64_t count = 0;
  for (const auto& [identity, kept] : kept_) count += kept.job.quarantined_unix_ms() != 0;
  return count;
}

}  // namespace strata::server
