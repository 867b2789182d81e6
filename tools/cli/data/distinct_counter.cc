#include "tools/cli/data/distinct_counter.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "proto/core/position.h"

namespace strata {

void DistinctCounter::Add(uint64_t key) {
  const uint64_t hash = Mix64(key);
  const uint64_t rest = hash << kBits;
  const int zeros = rest == 0 ? 64 - kBits : std::countl_zero(rest);
  uint8_t& reg = registers_[hash >> (64 - kBits)];
  reg = std::max(reg, static_cast<uint8_t>(zeros + 1));
}

uint64_t DistinctCounter::Count() const {
  const auto m = static_cast<double>(registers_.size());
  double sum = 0;
  uint64_t empty = 0;
  for (uint8_t reg : registers_) {
    sum += std::ldexp(1.0, -reg);
    empty += reg == 0;
  }
  const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
  const bool small = raw <= 2.5 * m && empty > 0;
  return std::llround(small ? m * std::log(m / static_cast<double>(empty)) : raw);
}

}  // namespace strata
