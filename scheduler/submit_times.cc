#include "scheduler/submit_times.h"

#include <algorithm>

namespace strata::scheduler {

absl::Time AwaitEndedUntil(absl::Time now, absl::Time deadline, absl::Duration lease) {
  return now + std::min((deadline - now) / 2, lease);
}

absl::Time AskForLockUntil(absl::Time now, absl::Time deadline, absl::Duration lease) {
  return now + std::min((deadline - now) / 2, 2 * lease / 3);
}

}  // namespace strata::scheduler
