#include "worker/client/push_sequences.h"

namespace strata {

Sequence PushSequences::Of(Step step, const std::vector<uint32_t>& lanes) {
  const auto [it, fresh] = given_.try_emplace({step, lanes});
  if (fresh) it->second = counter_->Next();
  return it->second;
}

void PushSequences::DropBelow(Step step) {
  given_.erase(given_.begin(), given_.lower_bound({step, {}}));
}

}  // namespace strata
