#include "proto/runtime/base/backoff.h"

#include <algorithm>

#include "proto/core/mutation.h"

namespace strata {

absl::Duration Spread(absl::Duration wait, IdSource* random) {
  if (random == nullptr || STRATA_MUTATION("backoff.all_at_once")) return wait;
  constexpr double kRange = 18446744073709551616.0;  // 2^64
  return wait * (.5 + static_cast<double>(random->Draw().low) / kRange);
}

absl::Duration Backoff::OnFailure() {
  constexpr uint32_t kMostDoublings = 20;
  const uint32_t doublings = std::min(failures_, kMostDoublings);
  ++failures_;
  return Spread(std::min(o_.most, o_.first * (uint64_t{1} << doublings)), o_.random);
}

}  // namespace strata
