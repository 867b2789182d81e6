// Work of a shard that the disk keeps from getting done: why, since when, and how often to say so.
#ifndef STRATA_SERVER_SHARD_DISK_STALL_H_
#define STRATA_SERVER_SHARD_DISK_STALL_H_

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace strata::server {

// Of commits, or of reads. Thread-safe. Owned by the shard's runner, whose executor says Failed and
// Succeeded.
class DiskStall {
 public:
  // A stall is logged when it begins, then at most this often.
  static constexpr absl::Duration kLogEvery = absl::Seconds(10);
  // A stall that begins again so soon after its end is the same one: a disk that is full to the
  // brim lets something through now and then.
  static constexpr absl::Duration kSettle = absl::Seconds(2);

  struct Info {
    absl::Status why;  // of the newest failure
    absl::Time since;
  };

  // One more try failed. 0: say nothing; else log it, as the newest of so many since last time.
  uint64_t Failed(const absl::Status& why, absl::Time now);
  // Something went through. The duration of the stall if it ended one.
  std::optional<absl::Duration> Succeeded(absl::Time now);

  // While it lasts, and for kSettle after.
  std::optional<Info> info(absl::Time now) const;

 private:
  mutable absl::Mutex mu_;
  std::optional<Info> info_ ABSL_GUARDED_BY(mu_);
  absl::Time ended_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();  // while it lasts
  absl::Time logged_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  uint64_t silent_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_DISK_STALL_H_
