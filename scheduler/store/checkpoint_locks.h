// The locks of the checkpoint directories of a scheduler's jobs: CheckpointLockMachines with a
// clock and files around them.
#ifndef STRATA_SCHEDULER_STORE_CHECKPOINT_LOCKS_H_
#define STRATA_SCHEDULER_STORE_CHECKPOINT_LOCKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/files/file_system.h"
#include "scheduler/store/checkpoint_lock.h"

namespace strata::scheduler {

// A job that writes checkpoints.
struct LockedJob {
  uint64_t job = 0;  // 0: not numbered yet
  std::string uid;
  std::string name;
  std::string directory;
  bool began = false;  // as CheckpointLockMachine's
  bool over = false;   // it only removes some more
};

// What a job should hear of its lock.
struct LockNews {
  enum class Kind : uint8_t { kHeld, kWaits, kRefused, kLost, kStalls };
  Kind kind = Kind::kHeld;
  uint64_t job = 0;
  std::string text;        // why; of kHeld: empty
  uint64_t first_cut = 0;  // of kHeld: as CheckpointLockMachine's
};

// Thread-safe. No lock of a thread is held while files are touched, and threads that come while one
// is stuck in a directory do the others: so that a directory that hangs holds up its own job alone.
class CheckpointLocks {
 public:
  struct Options {
    std::string cluster_id;
    uint64_t term = 0;
    absl::Duration lease;
    const Clock* clock = Clock::Real();  // outlives this
    FileSystem* files = &FileSystem::Kernel();
  };
  explicit CheckpointLocks(Options options);
  ~CheckpointLocks();

  // The jobs that are to have their locks; those of others are given back.
  void Want(const std::vector<LockedJob>& jobs);
  // One that Want does not know yet, until Settle.
  void Ask(const LockedJob& job);
  void Settle(const std::string& uid);
  // Does what is due.
  void Work();

  struct View {
    CheckpointLockMachine::Phase phase = CheckpointLockMachine::Phase::kReleased;
    std::string why;     // as CheckpointLockMachine::Why
    absl::Status error;  // of the last call to files
    uint64_t first_cut = 0;
  };
  View Of(const std::string& uid) const;
  // `job` by its number. One that has no lock here may never write.
  CheckpointLockMachine::May MayWrite(uint64_t job) const;
  // Of jobs with a number, each once.
  std::vector<LockNews> TakeNews();

 private:
  struct Entry {
    LockedJob job;
    CheckpointLockMachine machine;
    bool wanted = true;
    bool asked = false;  // by Ask
    bool busy = false;   // a thread works on it
    bool told = false;   // news of `phase` and `stalls`
    CheckpointLockMachine::Phase phase = CheckpointLockMachine::Phase::kAsking;
    bool stalls = false;
  };
  using Entries = std::map<std::string, std::shared_ptr<Entry>>;

  std::shared_ptr<Entry> Make(const LockedJob& job) const;
  void Step(Entry& entry);
  OwnerIs Owner(const LockSeen& seen) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Does the files' part of `action`, without a lock; the machine's when it is called.
  void Do(Entry& entry, CheckpointLockMachine::Action action, const CheckpointLock& record,
          uint64_t number);

  const Options options_;
  const std::string holder_;
  mutable Mutex mu_;
  Entries entries_ ABSL_GUARDED_BY(mu_);  // by UID
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_CHECKPOINT_LOCKS_H_
