#include "worker/bsp/pull_answers.h"

#include <algorithm>

#include "proto/core/mutation.h"

namespace strata {

absl::Status PullAnswers::OnPart(const absl::StatusOr<Exchange::PullAnswer>& part) {
  --in_flight_;
  absl::Status status = part.status();
  if (part.ok()) {
    switch (part->outcome) {
      case wire::PullOutcome::kServed:
        break;
      case wire::PullOutcome::kNotYet:
        not_yet_ = true;
        break;
      case wire::PullOutcome::kTooOld:
        resume_ = std::max(resume_.value_or(Step(0)), part->state.clock);
        break;
      default:
        status = absl::DataLossError("unknown outcome of a pull");
    }
  }
  if (status.ok()) {
    state_ = part->state;
  } else if (broken_.ok()) {
    broken_ = status;
  }
  return status;
}

std::optional<PullAnswers::Whole> PullAnswers::whole() const {
  if (in_flight_ > 0 && (broken_.ok() || !STRATA_MUTATION("pull.over_at_first_break"))) {
    return std::nullopt;
  }
  if (!broken_.ok()) return Whole(broken_);
  Exchange::PullAnswer answer;
  answer.state = state_;
  answer.outcome = not_yet_ ? wire::PullOutcome::kNotYet : wire::PullOutcome::kServed;
  if (resume_) {
    answer.outcome = wire::PullOutcome::kTooOld;
    answer.state.clock = *resume_;
  }
  return Whole(answer);
}

}  // namespace strata
