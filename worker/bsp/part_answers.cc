#include "worker/bsp/part_answers.h"

#include <algorithm>

#include "proto/core/mutation.h"

namespace strata {

std::vector<bool> PartAnswers::Begin(Sequence push, std::span<const Part> parts) {
  if (push != push_) taken_.clear();
  push_ = push;
  shards_ = 0;
  std::vector<bool> goes;
  for (const Part& part : parts) {
    shards_ += part.size();
    goes.push_back(!std::all_of(part.begin(), part.end(),
                                [this](ShardId shard) { return taken_.contains(shard); }));
  }
  in_flight_ = static_cast<size_t>(std::count(goes.begin(), goes.end(), true));
  return goes;
}

PartAnswers::Whole PartAnswers::OnAccepted(const Part& part, ServerIdentity identity) {
  if (identity_ != identity && !STRATA_MUTATION("push.parts_of_two_processes")) taken_.clear();
  identity_ = identity;
  taken_.insert(part.begin(), part.end());
  return OnThrough();
}

PartAnswers::Whole PartAnswers::OnThrough() {
  if (--in_flight_ > 0) return Whole::kOpen;
  if (taken_.size() < shards_) return Whole::kAgain;
  taken_.clear();
  return Whole::kAccepted;
}

}  // namespace strata
