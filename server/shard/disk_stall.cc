#include "server/shard/disk_stall.h"

#include <utility>

namespace strata::server {

uint64_t DiskStall::Failed(const absl::Status& why, absl::Time now) {
  absl::MutexLock lock(&mu_);
  const bool goes_on = info_.has_value() && now - ended_ < kSettle;
  if (!goes_on) {
    info_ = Info{why, now};
    logged_ = absl::InfinitePast();
    silent_ = 0;
  }
  info_->why = why;
  ended_ = absl::InfiniteFuture();
  ++silent_;
  if (now - logged_ < kLogEvery) return 0;
  logged_ = now;
  return std::exchange(silent_, 0);
}

std::optional<absl::Duration> DiskStall::Succeeded(absl::Time now) {
  absl::MutexLock lock(&mu_);
  if (!info_.has_value() || ended_ != absl::InfiniteFuture()) return std::nullopt;
  ended_ = now;
  return now - info_->since;
}

std::optional<DiskStall::Info> DiskStall::info(absl::Time now) const {
  absl::MutexLock lock(&mu_);
  return now - ended_ < kSettle ? info_ : std::nullopt;
}

}  // namespace strata::server
