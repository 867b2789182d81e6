// JobKeeper: what is on disk of jobs that are not open.
#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "server/job/job_folder.h"
#include "server/job/job_note.h"
#include "server/job_keeper.h"

namespace strata::server {

std::string JobKeeper::QueueOf(const JobIdentity& identity) { return Describe(identity); }

std::string JobKeeper::RootOf(const std::string& storage_directory) const {
  if (storage_directory.empty()) return options_.root;
  return absl::StrCat(storage_directory, "/", options_.name);
}

std::string JobKeeper::RootFor(const ServerJobDirective& directive) const {
  return RootOf(directive.spec().spec().storage().directory());
}

absl::Status JobKeeper::Begin() {
  std::vector<HeldJob> notes;
  {
    MutexLock lock(&held_mu_);
    auto listed = held_.Notes();
    if (!listed.ok()) return listed.status();
    notes = *std::move(listed);
  }
  for (HeldJob& note : notes) {
    const auto identity = *ParseJobIdentity(note.cluster_id(), note.job_uid());
    const std::string root = note.root();
    {
      MutexLock lock(&mu_);
      kept_[identity] = {.job = std::move(note), .of_note = true};
    }
    work_.Post(QueueOf(identity), Begins::kInOrder,
               [this, identity, root] { LookAtHeld(identity, root); });
  }
  return absl::OkStatus();
}

void JobKeeper::LookAtHeld(const JobIdentity& identity, const std::string& root) {
  const std::string folder = JobFolder(root, identity);
  const auto there = HasJobFolder(root, identity);
  const uint64_t bytes = there.value_or(false) ? FolderBytes(folder) : 0;
  Generation generation;
  for (const std::string& shards : ShardsFolders(root, identity)) {
    generation = std::max(generation, LatestGeneration(shards));
  }
  auto note = ReadJobNote(root, identity);
  MutexLock held(&held_mu_);
  {
    MutexLock lock(&mu_);
    const auto kept = kept_.find(identity);
    if (kept == kept_.end() || !kept->second.of_note) return;  // opened meanwhile
    kept->second.bytes = bytes;
    kept->second.generation = generation;
    kept->second.note = std::move(note);
    if (there.value_or(true)) return;
    kept_.erase(kept);
  }
  held_.Remove(identity).IgnoreError();  // looked at again by the next process
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

void JobKeeper::Unhold(const JobIdentity& identity, const std::string& root) {
  if (MayHaveJobFolder(root, identity)) return;
  MutexLock lock(&held_mu_);
  held_.Remove(identity).IgnoreError();  // a note of nothing does no harm
}

absl::Status JobKeeper::TryToRemove(const std::string& root, bool made,
                                    const JobIdentity& identity) {
  // Nothing that a job names is touched where it was not allowed to be opened.
  absl::Status removed = root == options_.root
                             ? absl::OkStatus()
                             : options_.paths.Check("spec.storage.directory", root);
  if (removed.ok()) removed = RemoveJob(root, identity);
  // Files were there, and now not even the place is: they come back with its file system.
  if (made && removed.ok()) removed = HasJobFolder(root, identity).status();
  if (made && absl::IsUnavailable(removed)) return removed;
  // A place where nothing was ever made, or can be, has nothing to be told of.
  if (!removed.ok() && MayHaveJobFolder(root, identity)) return removed;
  {
    MutexLock lock(&held_mu_);
    if (absl::Status s = held_.Remove(identity); !s.ok()) return s;
  }
  // Below a folder that the job named this server has one of its own: empty, it is of no use. After
  // the note, which says that the place is there.
  if (root != options_.root) FileSystem::Kernel().RemoveFolder(root);
  return absl::OkStatus();
}

void JobKeeper::RemoveFiles(const JobIdentity& identity) {
  std::string root;
  bool made = false;
  {
    MutexLock lock(&mu_);
    const auto it = removals_.find(identity);
    if (it == removals_.end()) return;  // it was opened again, or is to be kept
    const auto kept = kept_.find(identity);
    root = kept == kept_.end() ? it->second.told : kept->second.job.root();
    made = kept != kept_.end() && kept->second.made;
  }
  const absl::Status removed = TryToRemove(root, made, identity);
  MutexLock lock(&mu_);
  if (removed.ok()) {
    removals_.erase(identity);
    kept_.erase(identity);
    return;
  }
  const auto it = removals_.find(identity);
  if (it == removals_.end()) return;
  Removal& removal = it->second;
  removal.posted = false;
  removal.next = options_.job.timer->Now() + kReopenAfter;
  if (std::exchange(removal.why, std::string(removed.message())) == removal.why) return;
  LOG(ERROR) << "job_files_stay job=" << removal.job.value << " uid=" << identity.job.text()
             << " next=retry error=\"" << removed << '"';
}

void JobKeeper::PostRemoval(const JobIdentity& identity, Removal& removal) {
  removal.posted = true;
  removal.since = options_.job.timer->Now();
  work_.Post(QueueOf(identity), Begins::kInOrder, [this, identity] { RemoveFiles(identity); });
}

void JobKeeper::RemoveAgain() {
  MutexLock lock(&mu_);
  for (auto& [identity, removal] : removals_) {
    if (!removal.posted && removal.next <= options_.job.timer->Now()) {
      PostRemoval(identity, removal);
    }
  }
}

void JobKeeper::Release(JobSlot slot) {
  JobIdentity identity;
  HeldJob job;
  Generation generation;
  bool made = false;
  {
    MutexLock lock(&mu_);
    const auto it = entries_.find(slot);
    if (it == entries_.end()) return;
    identity = it->second->identity;
    generation = it->second->generation;
    const ServerJobDirective& d = it->second->directive;
    made = !d.transient() && (it->second->job != nullptr || d.was_open());
    job.set_root(it->second->root);
    job.set_name(it->second->directive.spec().metadata().name());
  }
  Drop(slot);
  job.set_cluster_id(identity.cluster.text());
  job.set_job_uid(identity.job.text());
  job.set_job(slot.job.value);
  MutexLock lock(&mu_);
  kept_[identity] = {.job = std::move(job), .generation = generation, .made = made};
}

void JobKeeper::CloseJob(const ServerJobDirective& directive, const JobIdentity& identity) {
  const JobId id(directive.job());
  const auto mine = [&](const Entry& entry) { return entry.identity == identity; };
  for (const JobSlot slot : SlotsOf(id, mine)) Release(slot);
  if (directive.quarantine()) return Quarantine(identity);
  MutexLock lock(&mu_);
  Removal& removal = removals_[identity];
  if (removal.posted) return;
  removal.job = id;
  removal.told = RootOf(directive.storage_directory());
  PostRemoval(identity, removal);
}

void JobKeeper::Quarantine(const JobIdentity& identity) {
  {
    MutexLock lock(&mu_);
    removals_.erase(identity);
    const auto it = kept_.find(identity);
    if (it == kept_.end() || it->second.job.quarantined_unix_ms() != 0) return;
    it->second.job.set_quarantined_unix_ms(
        absl::ToUnixMillis(options_.job.timer->Wall(options_.job.timer->Now())));
  }
  work_.Post(QueueOf(identity), Begins::kInOrder, [this, identity] { NoteQuarantine(identity); });
}

void JobKeeper::NoteQuarantine(const JobIdentity& identity) {
  HeldJob noted;
  {
    MutexLock lock(&mu_);
    const auto it = kept_.find(identity);
    if (it == kept_.end()) return;  // it was opened again
    noted = it->second.job;
  }
  const std::string folder = JobFolder(noted.root(), identity);
  const uint64_t bytes = FolderBytes(folder);
  auto note = ReadJobNote(noted.root(), identity);
  LOG(ERROR) << "job_quarantined " << Describe(identity) << " bytes=" << bytes << " folder=\""
             << folder << "\" reason=\"the scheduler knows of no such job; nothing is removed\"";
  {
    MutexLock lock(&held_mu_);
    const absl::Status s = held_.Put(noted);
    LOG_IF(ERROR, !s.ok()) << "job_note_not_written error=\"" << s << '"';
  }
  MutexLock lock(&mu_);
  const auto it = kept_.find(identity);
  if (it == kept_.end()) return;
  it->second.bytes = bytes;
  it->second.note = std::move(note);
}

void JobKeeper::ReportHang(const JobIdentity& identity, ServerJobReport& report) const {
  const JobWork::Load load = work_.Of(QueueOf(identity));
  if (load.passed == 0 && !load.held) return;
  Trouble* trouble = report.add_troubles();
  trouble->set_reason("FilesHang");
  trouble->set_message(absl::StrCat(
      load.running, " pieces of work on files of the job do not come back from the file system, ",
      load.held ? "and what is next waits for them" : "and were given up",
      "; see whether the mounts of spec.storage.directory, spec.checkpoint.directory and "
      "spec.model.initFrom answer on this machine"));
}

std::map<std::string, std::string> JobKeeper::OwnFolders() const {
  MutexLock lock(&mu_);
  std::map<std::string, std::string> folders;
  for (const auto& [slot, entry] : entries_) {
    if (entry->root != options_.root) continue;
    folders[entry->identity.job.text()] = JobFolder(options_.root, entry->identity);
  }
  for (const auto& [identity, kept] : kept_) {
    if (kept.job.root() != options_.root) continue;
    const bool quarantined = kept.job.quarantined_unix_ms() != 0;
    if (quarantined && !STRATA_MUTATION("room.kept_for_nobody_counts")) continue;
    folders[identity.job.text()] = JobFolder(options_.root, identity);
  }
  return folders;
}

uint64_t JobKeeper::quarantined() const {
  MutexLock lock(&mu_);
  uint64_t count = 0;
  for (const auto& [identity, kept] : kept_) count += kept.job.quarantined_unix_ms() != 0;
  return count;
}

}  // namespace strata::server
