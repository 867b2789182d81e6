// JobKeeper: copies of shards that this server is not to have any more.
#include <glog/logging.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "proto/core/mutation.h"
#include "server/job/job_folder.h"
#include "server/job_keeper.h"

namespace strata::server {

void JobKeeper::DropUnnamed(const NodeDirective& directive) {
  std::set<JobSlot> named;
  std::map<JobIdentity, std::pair<JobId, std::string>> jobs;  // and where their files are
  for (const ServerJobDirective& d : directive.server_jobs()) {
    if (d.close() || !d.has_chain()) continue;
    const JobId id(d.job());
    named.insert({id, d.server_index()});
    if (const auto identity = ParseJobIdentity(d.cluster_id(), d.job_uid())) {
      jobs[*identity] = {id, RootFor(d)};
    }
  }
  for (const auto& [identity, job] : jobs) {
    const auto is_copy = [&own = identity](const Entry& entry) {
      return entry.directive.has_chain() && entry.identity == own;
    };
    for (const JobSlot slot : SlotsOf(job.first, is_copy)) {
      if (!named.contains(slot)) DropCopy(slot);
    }
    RemoveLeftCopies(identity, job.first, job.second, named);
  }
}

// Until their files are gone the slot is opened by nobody, however long that takes.
void JobKeeper::RemoveCopyLater(const JobIdentity& identity, JobSlot slot,
                                const std::string& root) {
  {
    MutexLock lock(&mu_);
    leaving_.insert(slot);
  }
  work_.Post(QueueOf(identity), Begins::kInOrder, [this, identity, slot, root] {
    const absl::Status s = RemoveCopy(root, identity, slot.server);
    LOG_IF(ERROR, !s.ok()) << "copy_stays " << Describe(identity) << " server=" << slot.server
                           << " error=\"" << s << '"';
    MutexLock lock(&mu_);
    leaving_.erase(leaving_.find(slot));
  });
}

// R16: what was removed is dropped before it joins again.
void JobKeeper::DropCopy(JobSlot slot) {
  JobIdentity identity;
  std::string root;
  {
    MutexLock lock(&mu_);
    const auto it = entries_.find(slot);
    if (it == entries_.end()) return;
    identity = it->second->identity;
    root = it->second->root;
  }
  LOG(INFO) << "copy_dropped job=" << slot.job.value << " server=" << slot.server;
  Drop(slot);
  RemoveCopyLater(identity, slot, root);
}

// An earlier process had them, and the scheduler took them from the chain while it was away. Once a
// process: what comes later is dropped when it is named no more. Meanwhile nothing of the job
// opens.
void JobKeeper::RemoveLeftCopies(const JobIdentity& identity, JobId job, const std::string& root,
                                 const std::set<JobSlot>& named) {
  if (STRATA_MUTATION("chain.left_copies_stay")) return;
  {
    MutexLock lock(&mu_);
    if (!left_copies_.emplace(identity, true).second) return;
  }
  work_.Post(QueueOf(identity), Begins::kInOrder, [this, identity, job, root, named] {
    for (const uint32_t server : CopiesIn(root, identity)) {
      const JobSlot slot{job, server};
      {
        MutexLock lock(&mu_);
        if (named.contains(slot) || entries_.contains(slot)) continue;
      }
      const absl::Status s = RemoveCopy(root, identity, server);
      LOG_IF(INFO, s.ok()) << "left_copy_removed job=" << job.value << " server=" << server;
      LOG_IF(ERROR, !s.ok()) << "copy_stays " << Describe(identity) << " server=" << server
                             << " error=\"" << s << '"';
    }
    MutexLock lock(&mu_);
    left_copies_[identity] = false;
  });
}

bool JobKeeper::CopyLeaves(const JobIdentity& identity, JobSlot slot) const {
  const auto left = left_copies_.find(identity);
  return leaving_.contains(slot) || (left != left_copies_.end() && left->second);
}

}  // namespace strata::server
