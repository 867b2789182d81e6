// Who may write checkpoints into a directory: one job's side of the directory's lock.
#ifndef STRATA_SCHEDULER_STORE_CHECKPOINT_LOCK_H_
#define STRATA_SCHEDULER_STORE_CHECKPOINT_LOCK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata::scheduler {

// What a directory says of its lock: of the files LOCK.1, LOCK.2 ... the last counts.
struct LockSeen {
  uint64_t number = 0;                 // 0: there is none
  std::string text;                    // of the file; another one at each renewal
  std::optional<CheckpointLock> lock;  // nothing: it cannot be read
};

// What a cluster knows of the owner of a lock.
enum class OwnerIs : uint8_t {
  // Of another cluster, or of a start of this one's scheduler that its records do not know: only
  // its
  // renewals tell that it lives.
  kStranger,
  kLive,    // a job of this cluster
  kEnding,  // one that is over and gives it back when it has removed what is to go
  kOver,    // and one that is no more
};

// A pure state machine; whoever drives it asks what is Due, does it, and says how it went. Rules:
//   * A lock that is there is never changed by others: who takes over makes the next number, by a
//     link, which one of several can. So what a former owner still writes is of a lower number.
//   * Free is what was released, what a job of this cluster left that is over, and what was seen
//     unchanged for two leases by the clock of the one who looks. An owner renews three times a
//     lease, and writes nothing a lease after its last renewal: a lease before another may. From
//     then on it renews no more: it looks, and takes the next number, which one of several can.
//   * So one number is one holding: what was found in the directory under it is what there is, but
//     for what its owner did.
//   * Of two schedulers that drive one job (a copy of the records was restored) the one of the
//   later
//     term has the lock, under the next number as well; the other one has lost it. Of two starts
//     with one term the one that has it keeps it.
//   * Who sees the owner renew is refused: that job lives.
class CheckpointLockMachine {
 public:
  enum class Phase : uint8_t {
    kAsking,   // has not looked yet
    kWaiting,  // somebody has it who may be gone
    kHeld,
    kRefused,  // somebody who lives has it; never held
    kLost,     // was held; another job has it now
    // A later scheduler of its own cluster has it for this very job, or another start of the same
    // term: the records here may be older.
    kSuperseded,
    kReleased,
  };
  enum class Action : uint8_t { kNone, kLook, kTake, kRenew, kRelease };
  enum class May : uint8_t { kYes, kNotNow, kNever };

  // `own`: cluster_id, job_uid, job, name, holder, term, start_id. `began`: the job had the lock
  // when another process of its scheduler drove it, and may have written: if another has it now, it
  // is lost. `over`: the job is over as well; its own lock, given back, is its again, as that
  // process ended before it recorded that.
  CheckpointLockMachine(CheckpointLock own, std::string directory, absl::Duration lease, bool began,
                        bool over = false);

  Action Due(absl::Time now) const;
  // Looked: before and after the look.
  void Looked(const LockSeen& seen, OwnerIs owner, absl::Time before, absl::Time after);
  // What the owner that was seen last still does where it is kEnding; for people. Empty: unknown.
  void OwnerDoes(std::string what) { owner_does_ = std::move(what); }
  // kTake was done: false: another job was faster.
  void Took(bool taken, absl::Time before);
  // kRenew was done: false: `seen` has it.
  void Renewed(absl::Time before);
  void LostTo(const LockSeen& seen);
  // kRelease was done.
  void Released() { phase_ = Phase::kReleased; }
  // What was due was begun and has not come back for a lease. What it comes to when it does counts
  // from when it was begun.
  void Hangs();
  // What was due failed; it is tried again.
  void Failed(absl::Status error, absl::Time now);
  // The job ends: at once, and no more than that. `writers`: servers of it may still be writing; so
  // may those of an owner before whose lock was not given back. Then the next owner counts its cuts
  // as after one that was silent (first_cut).
  void GiveBack(bool writers);

  // What kTake, kRenew and kRelease write, and under which number.
  CheckpointLock Record() const;
  uint64_t number() const { return number_; }
  // From where the job counts its cuts, so that no file of its has the name of one that a server of
  // the owner before may still be writing. 0: nobody is, or nothing is held.
  uint64_t first_cut() const;

  Phase phase() const { return phase_; }
  // Whether the job may write into the directory.
  May MayWrite(absl::Time now) const;
  // Held, but not renewed for a lease.
  bool Stalls(absl::Time now) const;
  // For people: what stands in the way. Empty: nothing.
  std::string Why() const;
  const absl::Status& error() const { return error_; }
  bool Mine(const CheckpointLock& lock) const;
  // What was seen takes the lock from who holds it: of a higher number, of another job, or of a
  // later term or another start of its own scheduler.
  bool Beaten(const LockSeen& seen) const;

 private:
  bool Lapsed(absl::Time now) const { return now - renewed_ >= lease_; }
  bool LaterOrOther(const CheckpointLock& lock) const;
  void TakeAs(uint64_t number, bool given_back);

  CheckpointLock own_;
  const std::string directory_;
  const absl::Duration lease_;
  const bool began_, over_;
  Phase phase_ = Phase::kAsking;
  bool giving_back_ = false;
  bool writers_ = false;    // GiveBack's
  bool take_ = false;       // number_ is free
  bool given_back_ = true;  // and so was the number before, by its owner
  uint64_t number_ = 0;
  LockSeen seen_;
  absl::Time since_;     // when `seen_` was seen first
  bool ending_ = false;  // its owner was kEnding then
  std::string owner_does_;
  absl::Duration patience_;
  absl::Time renewed_ = absl::InfinitePast();
  absl::Time next_ = absl::InfinitePast();  // when something is due
  absl::Status error_;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_CHECKPOINT_LOCK_H_
