// What a table's life cycle did, since the shard was opened.
// Tested by tests/server/shard/shard_life_cycle_test.cc
#ifndef STRATA_SERVER_PROTOCOL_LIFE_CYCLE_COUNTERS_H_
#define STRATA_SERVER_PROTOCOL_LIFE_CYCLE_COUNTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace strata::server {

// In the order in which rules are tried.
enum class RemovalRule : uint8_t { kNone = 0, kTtl, kCount, kScore, kNorm, kBytes };
inline constexpr size_t kRemovalRules = 6;

struct LifeCycleCounters {
  uint64_t admitted = 0;                          // keys that a filter gave a row
  uint64_t refused = 0;                           // gradients of keys that have none yet
  std::array<uint64_t, kRemovalRules> removed{};  // rows, by RemovalRule

  LifeCycleCounters& operator+=(const LifeCycleCounters& other) {
    admitted += other.admitted;
    refused += other.refused;
    for (size_t r = 0; r < kRemovalRules; ++r) removed[r] += other.removed[r];
    return *this;
  }
  friend bool operator==(const LifeCycleCounters&, const LifeCycleCounters&) = default;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_LIFE_CYCLE_COUNTERS_H_
