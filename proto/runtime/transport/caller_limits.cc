#include "proto/runtime/transport/caller_limits.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/identity.h"

namespace strata {
namespace {

absl::Status Beyond(absl::string_view who, absl::string_view limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat(who, " is at its limit of ", limit, "; read answers, then go on"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<CallerLimits::Admitted>> CallerLimits::Begin(const Caller& caller,
                                                                            uint64_t bytes) {
  if (!caller.asked || STRATA_MUTATION("callers.without_limits")) {
    return std::shared_ptr<Admitted>();
  }
  std::string who = absl::StrCat(RoleName(caller.role), "/", caller.name);
  const double most = 2.0 * o_.calls_a_second;
  const absl::Time now = o_.clock->Now();
  {
    MutexLock lock(&mu_);
    if (uses_.size() >= kMostIdle) ForgetIdle();
    const auto [it, first] = uses_.try_emplace(who, Use{.tokens = most, .filled = now});
    Use& use = it->second;
    const double seconds = absl::ToDoubleSeconds(std::max(now - use.filled, absl::ZeroDuration()));
    use.tokens = std::min(most, use.tokens + seconds * o_.calls_a_second);
    use.filled = now;
    if (use.calls >= o_.calls_in_flight) {
      return Beyond(who, absl::StrCat(o_.calls_in_flight, " calls in flight"));
    }
    if (use.calls > 0 && bytes > Left(use.bytes)) return BeyondBytes(who);
    if (use.tokens < 1) return Beyond(who, absl::StrCat(o_.calls_a_second, " calls a second"));
    use.tokens -= 1;
    use.calls += 1;
    use.bytes += bytes;
  }
  return std::make_shared<Admitted>(shared_from_this(), std::move(who), bytes);
}

absl::Status CallerLimits::Reply(const std::string& who, uint64_t bytes, uint64_t& held) {
  MutexLock lock(&mu_);
  Use& use = uses_[who];
  const uint64_t others = use.bytes - held;
  if (STRATA_MUTATION("callers.replies_uncounted")) return absl::OkStatus();
  if (others > 0 && bytes > std::max(Left(others), kShortReply)) return BeyondBytes(who);
  use.bytes = others + bytes;
  held = bytes;
  return absl::OkStatus();
}

uint64_t CallerLimits::Left(uint64_t taken) const {
  return o_.bytes_in_flight - std::min(taken, o_.bytes_in_flight);
}

absl::Status CallerLimits::BeyondBytes(const std::string& who) const {
  return Beyond(who, absl::StrCat(o_.bytes_in_flight, " bytes of requests and replies in flight"));
}

void CallerLimits::End(const std::string& who, uint64_t bytes) {
  MutexLock lock(&mu_);
  Use& use = uses_[who];
  use.calls -= 1;
  use.bytes -= bytes;
}

// Who asks nothing now; he begins anew with all that may come at once.
void CallerLimits::ForgetIdle() {
  for (auto it = uses_.begin(); it != uses_.end();) {
    it = it->second.calls == 0 ? uses_.erase(it) : std::next(it);
  }
}

}  // namespace strata
