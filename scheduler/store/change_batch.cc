#include "scheduler/store/change_batch.h"

#include <utility>

namespace strata::scheduler {

void ChangeBatch::Add(std::vector<MetadataChange> changes) {
  for (MetadataChange& change : changes) {
    const auto [it, fresh] = places_.try_emplace(change.key, changes_.size());
    if (fresh) {
      changes_.push_back(std::move(change));
    } else {
      changes_[it->second] = std::move(change);
    }
  }
}

void ChangeBatch::Clear() {
  changes_.clear();
  places_.clear();
}

}  // namespace strata::scheduler
