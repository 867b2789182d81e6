#include "tools/generate/auc_sample.h"

#include <algorithm>

#include "proto/core/position.h"

namespace strata {

void AucSample::Add(float score, bool label) {
  const uint64_t i = seen_++;
  if (kept_.size() < capacity_) {
    kept_.emplace_back(score, label);
    return;
  }
  const uint64_t draw = Mix64(0x5374726174610000ull + i * 0x9e3779b97f4a7c15ull);
  const uint64_t slot = static_cast<uint64_t>((static_cast<unsigned __int128>(draw) * seen_) >> 64);
  if (slot < capacity_) kept_[slot] = {score, label};
}

double AucSample::Auc() {
  std::sort(kept_.begin(), kept_.end());
  // Over groups of equal scores: positives above each negative, half of those beside it.
  double wins = 0;
  uint64_t negatives = 0;
  uint64_t positives = 0;
  for (size_t i = 0; i < kept_.size();) {
    uint64_t group[2] = {0, 0};
    size_t j = i;
    for (; j < kept_.size() && kept_[j].first == kept_[i].first; ++j) ++group[kept_[j].second];
    wins += static_cast<double>(group[1]) *
            (static_cast<double>(negatives) + 0.5 * static_cast<double>(group[0]));
    negatives += group[0];
    positives += group[1];
    i = j;
  }
  if (positives == 0 || negatives == 0) return 0.5;
  return wins / (static_cast<double>(positives) * static_cast<double>(negatives));
}

}  // namespace strata
