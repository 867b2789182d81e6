// The checkpoint locks of one scheduler, and what is told of them.
#ifndef STRATA_TESTS_SCHEDULER_STORE_LOCKS_OF_CLUSTER_H_
#define STRATA_TESTS_SCHEDULER_STORE_LOCKS_OF_CLUSTER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/files/file_system.h"
#include "scheduler/store/checkpoint_locks.h"

namespace strata::scheduler {

inline constexpr absl::Duration kLease = absl::Seconds(9);

struct Cluster {
  Cluster(const std::string& id, const Clock* clock, FileSystem* files = &FileSystem::Kernel())
      : locks({.cluster_id = id, .term = 1, .lease = kLease, .clock = clock, .files = files}) {}

  void Run(std::vector<LockedJob> jobs) {
    locks.Want(jobs);
    locks.Work();
    for (LockNews& n : locks.TakeNews()) news.push_back(std::move(n));
  }
  CheckpointLocks locks;
  std::vector<LockNews> news;
};

inline LockedJob JobIn(const std::string& directory, const std::string& uid, uint64_t job = 1) {
  return {.job = job, .uid = uid, .name = "day", .directory = directory};
}

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_STORE_LOCKS_OF_CLUSTER_H_
