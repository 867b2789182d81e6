// An update log whose appends are timed.
#ifndef STRATA_SERVER_SHARD_WATCHED_LOG_H_
#define STRATA_SERVER_SHARD_WATCHED_LOG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/runtime/base/timer.h"
#include "server/protocol/slow_disk.h"
#include "storage/log/update_log.h"

namespace strata::server {

// Thread-safe, as the log.
class WatchedLog final : public storage::UpdateLog {
 public:
  // `timer` outlives the log.
  WatchedLog(std::unique_ptr<storage::UpdateLog> log, Timer* timer)
      : log_(std::move(log)), timer_(timer) {}

  using storage::UpdateLog::Append;
  using storage::UpdateLog::Replay;
  absl::StatusOr<storage::LogPosition> Append(std::span<const storage::LogEntry> entries) override;
  absl::Status Replay(uint64_t from_segment, const Filter& wanted, const Visitor& visit) override {
    return log_->Replay(from_segment, wanted, visit);
  }
  absl::StatusOr<storage::LogPosition> ReadOn(storage::LogPosition from, const Filter& wanted,
                                              const Taker& take) override {
    return log_->ReadOn(from, wanted, take);
  }
  absl::StatusOr<uint64_t> Rotate() override { return log_->Rotate(); }
  absl::Status Trim(uint64_t before_segment) override { return log_->Trim(before_segment); }
  storage::LogStats stats() const override { return log_->stats(); }
  uint64_t BytesFrom(uint64_t segment) const override { return log_->BytesFrom(segment); }

  std::optional<SlowDisk::Verdict> slow(absl::Time now) const {
    absl::MutexLock lock(&mu_);
    return speed_.Look(now);
  }

 private:
  const std::unique_ptr<storage::UpdateLog> log_;
  Timer* const timer_;
  mutable absl::Mutex mu_;
  SlowDisk speed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_WATCHED_LOG_H_
