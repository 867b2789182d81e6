#include "server/protocol/chain_handover.h"

#include <algorithm>

#include "proto/core/mutation.h"

namespace strata::server {

std::optional<uint64_t> ChainHandover::Told(uint64_t epoch) {
  if (epoch < epoch_) return std::nullopt;
  epoch_ = epoch;
  return ++told_;
}

bool ChainHandover::Handed(size_t shard, uint64_t number) {
  handed_[shard] = number;
  const uint64_t all = *std::min_element(handed_.begin(), handed_.end());
  if (all <= gone_by_) return false;
  gone_by_ = all;
  return true;
}

bool ChainHandover::Takes(uint64_t own, uint64_t epoch) {
  return own == epoch || STRATA_MUTATION("chain.queued_entries_taken");
}

}  // namespace strata::server
