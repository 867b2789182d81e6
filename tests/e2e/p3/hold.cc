#include "tests/e2e/p3/hold.h"

#include "absl/time/time.h"

namespace strata::testing {

bool Hold::Reached() const {
  absl::MutexLock lock(&mu_);
  return reached_;
}

void Hold::Set(State state) {
  absl::MutexLock lock(&mu_);
  state_ = state;
}

absl::Status Hold::Act() {
  // What a slow commit waits for something else to happen meanwhile.
  constexpr absl::Duration kSlow = absl::Milliseconds(200);
  absl::MutexLock lock(&mu_);
  reached_ = true;
  const auto told = [this]()
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return state_ != State::kHolding; };
  mu_.Await(absl::Condition(&told));
  const auto open = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return state_ == State::kOpen; };
  if (state_ == State::kSlow) mu_.AwaitWithTimeout(absl::Condition(&open), kSlow);
  if (state_ != State::kRefusing) return absl::OkStatus();
  return absl::UnavailableError("held by the test");
}

}  // namespace strata::testing
