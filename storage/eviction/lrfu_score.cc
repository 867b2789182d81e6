#include "storage/eviction/lrfu_score.h"

#include <cmath>

namespace strata::storage {

const LrfuGains& LrfuGainTable() {
  static const LrfuGains gains = [] {
    LrfuGains out;
    for (uint32_t d = 0; d < kLrfuFar; ++d) {
      const double ratio = std::exp2(-static_cast<double>(d) / kLrfuUnit);
      out[d] = static_cast<uint16_t>(std::lround(kLrfuUnit * std::log2(1 + ratio)));
    }
    return out;
  }();
  return gains;
}

}  // namespace strata::storage
