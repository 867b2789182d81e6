#include "worker/bsp/part_answers.h"

#include "proto/core/mutation.h"

namespace strata {

PartAnswers::Whole PartAnswers::OnAccepted(ServerIdentity identity) {
  if (!first_) first_ = identity;
  mixed_ = mixed_ || *first_ != identity;
  if (--missing_ > 0) return Whole::kOpen;
  const bool again = mixed_ && !STRATA_MUTATION("push.parts_of_two_processes");
  return again ? Whole::kMixed : Whole::kAccepted;
}

}  // namespace strata
