// How fast a server writes base images and checkpoints while it also serves.
#ifndef STRATA_SERVER_SNAPSHOT_PACE_H_
#define STRATA_SERVER_SNAPSHOT_PACE_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace strata::server {

// A token bucket that a job's shards share. Any thread.
class SnapshotPace {
 public:
  // What may be read at once after a pause.
  static constexpr uint64_t kBurstBytes = uint64_t{4} << 20;

  // Shorter waits are saved up.
  static constexpr absl::Duration kLeastWait = absl::Milliseconds(2);
  // Who is later than this has to catch up.
  static constexpr absl::Duration kLate = absl::Milliseconds(4);

  // 0: as fast as it goes.
  explicit SnapshotPace(uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  // `bytes` were read; when the next may be: not before now - Lasts(kBurstBytes), so that a time
  // before now - kLate says that the pace is not kept.
  absl::Time Took(absl::Time now, uint64_t bytes) {
    if (bytes_per_second_ == 0) return absl::InfinitePast();
    absl::MutexLock lock(&mu_);
    next_ = std::max(next_, now - Lasts(kBurstBytes)) + Lasts(bytes);
    return next_ > now && next_ - now < kLeastWait ? now : next_;
  }

 private:
  absl::Duration Lasts(uint64_t bytes) const {
    return absl::Seconds(static_cast<double>(bytes) / static_cast<double>(bytes_per_second_));
  }

  const uint64_t bytes_per_second_;
  absl::Mutex mu_;
  absl::Time next_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SNAPSHOT_PACE_H_
