#include "server/shard/watched_log.h"

namespace strata::server {

absl::StatusOr<storage::LogPosition> WatchedLog::Append(
    std::span<const storage::LogEntry> entries) {
  const absl::Time began = timer_->Now();
  {
    absl::MutexLock lock(&mu_);
    speed_.Began(began);
  }
  auto at = log_->Append(entries);
  const absl::Time ended = timer_->Now();
  absl::MutexLock lock(&mu_);
  speed_.Ended(ended - began, ended);
  return at;
}

}  // namespace strata::server
