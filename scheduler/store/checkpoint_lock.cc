#include "scheduler/store/checkpoint_lock.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"

namespace strata::scheduler {
namespace {

constexpr int kRenewalsOfLease = 3;
constexpr int kLooksOfLease = 12;  // and tries, where one failed
constexpr int kSilentLeases = 2;
constexpr int kCutsOfOwnerBits = 20;  // nobody takes more of them

std::string NameOf(const CheckpointLock& lock) {
  return absl::StrCat("job ", lock.name(), " (", lock.job_uid(), ") of cluster ",
                      lock.cluster_id());
}

std::string Describe(const LockSeen& seen) {
  if (!seen.lock) return "somebody whose lock cannot be read";
  return absl::StrCat(NameOf(*seen.lock), " (", seen.lock->holder(), ")");
}

}  // namespace

CheckpointLockMachine::CheckpointLockMachine(CheckpointLock own, std::string directory,
                                             absl::Duration lease, bool began, bool over)
    : own_(std::move(own)),
      directory_(std::move(directory)),
      lease_(lease),
      began_(began),
      over_(over) {
  own_.set_format(1);
  own_.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(lease)));
}

bool CheckpointLockMachine::Mine(const CheckpointLock& lock) const {
  return lock.cluster_id() == own_.cluster_id() && lock.job_uid() == own_.job_uid();
}

// Of its own job: not by what this start, or an earlier one of its records, wrote.
bool CheckpointLockMachine::LaterOrOther(const CheckpointLock& lock) const {
  return lock.term() > own_.term() ||
         (lock.term() == own_.term() && lock.start_id() != own_.start_id());
}

bool CheckpointLockMachine::Beaten(const LockSeen& seen) const {
  if (seen.number > number_) return true;
  return seen.lock && (!Mine(*seen.lock) || LaterOrOther(*seen.lock));
}

CheckpointLockMachine::Action CheckpointLockMachine::Due(absl::Time now) const {
  switch (phase_) {
    case Phase::kAsking:
    case Phase::kWaiting:
      if (giving_back_ || now < next_) return Action::kNone;
      return take_ ? Action::kTake : Action::kLook;
    case Phase::kHeld:
      if (now < next_) return Action::kNone;
      if (giving_back_) return Action::kRelease;
      if (take_) return Action::kTake;
      return Lapsed(now) ? Action::kLook : Action::kRenew;
    default:
      return Action::kNone;
  }
}

void CheckpointLockMachine::TakeAs(uint64_t number, bool given_back) {
  take_ = true;
  given_back_ = given_back;
  number_ = number;
  next_ = absl::InfinitePast();
}

void CheckpointLockMachine::Looked(const LockSeen& seen, OwnerIs owner, absl::Time before,
                                   absl::Time after) {
  error_ = absl::OkStatus();
  if (phase_ == Phase::kHeld) {  // and lapsed
    if (Beaten(seen)) return LostTo(seen);
    return TakeAs(number_ + 1, given_back_);
  }
  if (seen.number == 0) return TakeAs(1, true);
  const bool mine = seen.lock && Mine(*seen.lock);
  if (mine && (owner == OwnerIs::kStranger || LaterOrOther(*seen.lock))) return LostTo(seen);
  if (mine && !seen.lock->released()) return TakeAs(seen.number + 1, !seen.lock->taken_over());
  if (began_ && !(mine && over_)) return LostTo(seen);
  if (seen.lock && seen.lock->released()) {
    const bool writers =
        seen.lock->taken_over() && !STRATA_MUTATION("checkpoint.writers_forgotten");
    return TakeAs(seen.number + 1, !writers);
  }
  if (seen.lock && owner == OwnerIs::kOver) return TakeAs(seen.number + 1, false);
  if (seen.lock && owner == OwnerIs::kEnding) {
    phase_ = Phase::kWaiting;
    ending_ = true;
    seen_ = seen;
    since_ = after;
    patience_ = kSilentLeases * lease_;
    next_ = after + lease_ / kLooksOfLease;
    return;
  }
  if (std::exchange(ending_, false)) phase_ = Phase::kAsking;  // another start of its scheduler
  const bool renews =
      phase_ == Phase::kWaiting && (seen.number != seen_.number || seen.text != seen_.text);
  if (renews || (seen.lock && owner == OwnerIs::kLive)) {
    phase_ = Phase::kRefused;
    seen_ = seen;
    return;
  }
  if (phase_ == Phase::kAsking) {
    phase_ = Phase::kWaiting;
    seen_ = seen;
    since_ = after;
    const auto theirs = absl::Milliseconds(seen.lock ? seen.lock->lease_ms() : 0);
    patience_ = kSilentLeases * std::max(lease_, theirs);
  }
  if (before - since_ >= patience_) return TakeAs(seen.number + 1, false);
  next_ = after + lease_ / kLooksOfLease;
}

void CheckpointLockMachine::Took(bool taken, absl::Time before) {
  take_ = false;
  error_ = absl::OkStatus();
  if (!taken) {
    // Who held it and lapsed looks again at who was faster.
    if (phase_ != Phase::kHeld) phase_ = Phase::kAsking;
    return;
  }
  phase_ = Phase::kHeld;
  Renewed(before);
}

void CheckpointLockMachine::Renewed(absl::Time before) {
  error_ = absl::OkStatus();
  own_.set_counter(own_.counter() + 1);
  renewed_ = before;
  next_ = giving_back_ ? absl::InfinitePast() : before + lease_ / kRenewalsOfLease;
}

void CheckpointLockMachine::LostTo(const LockSeen& seen) {
  phase_ = seen.lock && Mine(*seen.lock) ? Phase::kSuperseded : Phase::kLost;
  seen_ = seen;
}

void CheckpointLockMachine::Hangs() {
  error_ = absl::DeadlineExceededError(
      absl::StrCat("it did not answer for ", absl::FormatDuration(lease_),
                   "; see whether its mount answers on the scheduler's machine"));
}

void CheckpointLockMachine::Failed(absl::Status error, absl::Time now) {
  error_ = std::move(error);
  next_ = now + lease_ / kLooksOfLease;
}

void CheckpointLockMachine::GiveBack(bool writers) {
  if (giving_back_) return;
  giving_back_ = true;
  writers_ = writers;
  next_ = absl::InfinitePast();
}

CheckpointLock CheckpointLockMachine::Record() const {
  CheckpointLock record = own_;
  record.set_counter(own_.counter() + 1);
  record.set_released(giving_back_);
  record.set_taken_over(!given_back_ || writers_);
  return record;
}

CheckpointLockMachine::May CheckpointLockMachine::MayWrite(absl::Time now) const {
  if (phase_ == Phase::kRefused || phase_ == Phase::kLost || phase_ == Phase::kReleased) {
    return May::kNever;
  }
  return phase_ == Phase::kHeld && now - renewed_ < lease_ ? May::kYes : May::kNotNow;
}

uint64_t CheckpointLockMachine::first_cut() const {
  return phase_ == Phase::kHeld && !given_back_ ? number_ << kCutsOfOwnerBits : 0;
}

bool CheckpointLockMachine::Stalls(absl::Time now) const {
  return phase_ == Phase::kHeld && renewed_ != absl::InfinitePast() && now - renewed_ >= lease_;
}

std::string CheckpointLockMachine::Why() const {
  const std::string field = absl::StrCat("spec.checkpoint.directory ", directory_);
  switch (phase_) {
    case Phase::kRefused:
      return absl::StrCat(field, " is written by ", Describe(seen_),
                          ", which is alive; cancel that job, or give ", NameOf(own_),
                          " another directory");
    case Phase::kSuperseded:
      return absl::StrCat(field, " is written by ",
                          seen_.lock->term() > own_.term() ? "a later scheduler" : "another start",
                          " of its own cluster, which has ", Describe(seen_), " under term ",
                          seen_.lock->term(), " (start ", seen_.lock->start_id(),
                          "); this one has term ", own_.term(), " (start ", own_.start_id(),
                          ") and writes nothing there; end it, or, where its folder comes from an "
                          "older copy, start it once with --restored");
    case Phase::kLost:
      return absl::StrCat(field, " was taken over by ", Describe(seen_), ", since ", NameOf(own_),
                          " had not renewed its lock for two leases; ",
                          "that writes nothing there any more");
    case Phase::kWaiting:
      if (ending_) {
        return absl::StrCat(field, " is still cleaned up by ", Describe(seen_),
                            ", which is over; the job waits until it gives back its lock",
                            owner_does_.empty() ? "" : "; now it is ", owner_does_);
      }
      return absl::StrCat(field, " was last written by ", Describe(seen_),
                          ", which did not give back its lock ", directory_, "/LOCK.", seen_.number,
                          "; the job waits until that was silent for ",
                          absl::FormatDuration(patience_));
    default:
      break;
  }
  if (error_.ok()) return "";
  return absl::StrCat(field, " cannot be locked: ", error_.message());
}

}  // namespace strata::scheduler
