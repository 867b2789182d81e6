// How a submission's time is divided: what it waits for comes before the look at its folders, which
// needs some of it. Pure.
#ifndef STRATA_SCHEDULER_SUBMIT_TIMES_H_
#define STRATA_SCHEDULER_SUBMIT_TIMES_H_

#include "absl/time/time.h"

namespace strata::scheduler {

// Until when it waits, from `now` on, for a job that has ended in its checkpoint directory to give
// that back: half of its time, and a lease at most.
absl::Time AwaitEndedUntil(absl::Time now, absl::Time deadline, absl::Duration lease);

// Until when it asks for the lock of that directory: half of what is left, and two thirds of a
// lease at most, in which an owner that lives is seen to renew.
absl::Time AskForLockUntil(absl::Time now, absl::Time deadline, absl::Duration lease);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_SUBMIT_TIMES_H_
