#include "worker/bsp/pull_answers.h"

#include <algorithm>

#include "absl/status/status.h"

namespace strata {

absl::StatusOr<std::optional<Exchange::PullAnswer>> PullAnswers::OnAnswer(
    const Exchange::PullAnswer& part) {
  switch (part.outcome) {
    case wire::PullOutcome::kServed:
      break;
    case wire::PullOutcome::kNotYet:
      not_yet_ = true;
      break;
    case wire::PullOutcome::kTooOld:
      resume_ = std::max(resume_.value_or(Step(0)), part.state.clock);
      break;
    default:
      return absl::DataLossError("unknown outcome of a pull");
  }
  if (--missing_ > 0) return std::nullopt;
  Exchange::PullAnswer whole = part;
  if (resume_) {
    whole.outcome = wire::PullOutcome::kTooOld;
    whole.state.clock = *resume_;
  } else {
    whole.outcome = not_yet_ ? wire::PullOutcome::kNotYet : wire::PullOutcome::kServed;
  }
  return whole;
}

}  // namespace strata
