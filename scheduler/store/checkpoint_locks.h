// The locks of the checkpoint directories of a scheduler's jobs: CheckpointLockMachines with a
// clock and files around them.
#ifndef STRATA_SCHEDULER_STORE_CHECKPOINT_LOCKS_H_
#define STRATA_SCHEDULER_STORE_CHECKPOINT_LOCKS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/base/job_work.h"
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
  std::string does;    // where it is over, for people: what it does now. Empty: unknown
  // It removes nothing more, and servers have not closed it, or one left it of which nobody hears:
  // its lock is given back, if it has one, as one whose owner may be writing.
  bool leaves_writers = false;
};

// What a job should hear of its lock.
struct LockNews {
  enum class Kind : uint8_t { kHeld, kWaits, kRefused, kLost, kStalls };
  Kind kind = Kind::kHeld;
  uint64_t job = 0;
  std::string text;        // why; of kHeld: empty
  uint64_t first_cut = 0;  // of kHeld: as CheckpointLockMachine's
  uint64_t number = 0;     // of kHeld: the lock's
};

// Thread-safe. Files are touched in a queue of each directory (proto/runtime/base/job_work.h), one
// piece of work for a job at a time: a directory that hangs holds up its own jobs alone. What comes
// back late counts from when it was begun.
class CheckpointLocks {
 public:
  struct Options {
    std::string cluster_id;
    uint64_t term = 0;  // as SetTerm's
    std::map<uint64_t, std::string> starts = {};
    absl::Duration lease;
    const Clock* clock = Clock::Real();  // outlives this
    // Where files are touched; it ends before this does. Null: in the threads that call Work.
    JobWork* work = nullptr;
    FileSystem* files = nullptr;  // null: the kernel's
    // Called without a lock after each piece of work in `work`. May be empty.
    std::function<void()> done;
  };
  explicit CheckpointLocks(Options options);
  ~CheckpointLocks();

  // The scheduler's term, of locks that are not wanted or asked for yet; and the ids of the starts
  // that had terms, as far as its records know.
  void SetTerm(uint64_t term, std::map<uint64_t, std::string> starts);
  // The jobs that are to have their locks, but for those that leave writers; those of others are
  // given back.
  void Want(const std::vector<LockedJob>& jobs);
  // One that Want does not know yet, until Settle.
  void Ask(const LockedJob& job);
  void Settle(const std::string& uid);
  // Has done what is due.
  void Work();

  struct View {
    CheckpointLockMachine::Phase phase = CheckpointLockMachine::Phase::kReleased;
    std::string why;     // as CheckpointLockMachine::Why
    absl::Status error;  // of the last call to files
    uint64_t first_cut = 0;
    uint64_t number = 0;  // of kHeld
  };
  View Of(const std::string& uid) const;
  // `job` by its number. One whose lock nobody wanted yet may not write yet: after a start work is
  // there before locks are.
  CheckpointLockMachine::May MayWrite(uint64_t job) const;
  // The same, after another look at the lock's file: who was suspended with its clock may have lost
  // it without knowing. Blocking file IO. An error: it cannot be looked at; names the path.
  absl::StatusOr<CheckpointLockMachine::May> LookAgain(uint64_t job);
  // Of jobs with a number, each once; that one is held for each number of its lock, and when it
  // stalls no more.
  std::vector<LockNews> TakeNews();

 private:
  struct Entry {
    LockedJob job;
    CheckpointLockMachine machine;
    bool wanted = true;
    bool asked = false;  // by Ask
    bool busy = false;   // a thread works on it, or will
    absl::Time since;    // if it does: since when
    bool told = false;   // news of `phase` and `stalls`
    CheckpointLockMachine::Phase phase = CheckpointLockMachine::Phase::kAsking;
    uint64_t number = 0;
    bool stalls = false;
    std::string waits;  // what was told of kWaiting
  };
  using Entries = std::map<std::string, std::shared_ptr<Entry>>;

  std::shared_ptr<Entry> Make(const LockedJob& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<Entry> Find(uint64_t job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  FileSystem& Files() const {
    return options_.files != nullptr ? *options_.files : FileSystem::Kernel();
  }
  // Whether something is due that nobody does; then it is the caller's to do.
  bool Claim(Entry& entry);
  // What is due of an entry that was claimed, until nothing is.
  void Run(Entry& entry);
  OwnerIs Owner(const LockSeen& seen) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static std::string Does(const Entry& entry);
  std::string StartOf(uint64_t term) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Does the files' part of `action`, without a lock; the machine's when it is called.
  void Do(Entry& entry, CheckpointLockMachine::Action action, const CheckpointLock& record,
          uint64_t number);

  const Options options_;
  const std::string holder_;
  mutable Mutex mu_;
  uint64_t term_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, std::string> starts_ ABSL_GUARDED_BY(mu_);  // by term
  Entries entries_ ABSL_GUARDED_BY(mu_);                         // by UID
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_CHECKPOINT_LOCKS_H_
