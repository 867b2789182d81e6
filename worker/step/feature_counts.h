// How many features the lines of some data have.
#ifndef STRATA_WORKER_STEP_FEATURE_COUNTS_H_
#define STRATA_WORKER_STEP_FEATURE_COUNTS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>

namespace strata {

// Counts lines by their features. n lines with different numbers of features have at least n
// squared / 2 features together, so this stays small.
class FeatureCounts {
 public:
  void Add(uint64_t features) { ++lines_[features]; }

  // Whether no line was counted.
  bool empty() const { return lines_.empty(); }

  // Features of those `lines` that have the most, or of all where there are fewer: no `lines` of
  // these data have more together, whatever their order.
  uint64_t OfLongest(uint64_t lines) const {
    uint64_t features = 0;
    for (const auto& [of_line, count] : lines_) {
      const uint64_t taken = std::min(lines, count);
      features += taken * of_line;
      lines -= taken;
      if (lines == 0) break;
    }
    return features;
  }

 private:
  std::map<uint64_t, uint64_t, std::greater<>> lines_;  // by features, the most first
};

}  // namespace strata

#endif  // STRATA_WORKER_STEP_FEATURE_COUNTS_H_
