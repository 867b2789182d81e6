// When a table's rows are born and die (LifeCycleSpec of job.proto), resolved. Pure values.
// Tested by tests/proto/job/tables/life_cycle_spec_test.cc
// Tested by tests/server/shard/shard_life_cycle_test.cc
#ifndef STRATA_PROTO_CORE_LIFE_CYCLE_RULES_H_
#define STRATA_PROTO_CORE_LIFE_CYCLE_RULES_H_

#include <cstdint>

namespace strata {

// Shows and clicks, behind a row's gradients in pushes, sums and log records.
inline constexpr uint32_t kCountColumns = 2;

enum class AdmissionType : uint8_t { kAlways = 0, kExact = 1, kCounting = 2, kProbability = 3 };

struct AdmissionRules {
  AdmissionType type = AdmissionType::kAlways;
  uint32_t min_steps = 2;        // exact, counting
  float probability = 1.0f;      // probability
  uint64_t partition_bytes = 0;  // exact, counting: of one partition's filter
  friend bool operator==(const AdmissionRules&, const AdmissionRules&) = default;
};

// A rule whose `below`, `ttl_steps` or `partition_bytes` is 0 removes nothing.
struct RemovalRules {
  uint64_t every_steps = 1;
  uint64_t ttl_steps = 0;
  uint32_t count_below = 0;
  uint64_t count_idle_steps = 0;
  bool scored = false;
  float score_below = 0.0f;
  float show_weight = 0.0f;
  float click_weight = 0.0f;
  float decay = 1.0f;
  uint64_t decay_steps = 1;
  float norm_below = 0.0f;
  uint64_t norm_idle_steps = 0;
  uint64_t partition_bytes = 0;

  bool any() const {
    return ttl_steps > 0 || count_below > 0 || scored || norm_below > 0 || partition_bytes > 0;
  }
  friend bool operator==(const RemovalRules&, const RemovalRules&) = default;
};

struct LifeCycleRules {
  AdmissionRules admission;
  RemovalRules removal;

  bool scored() const { return removal.scored; }
  friend bool operator==(const LifeCycleRules&, const LifeCycleRules&) = default;
};

}  // namespace strata

#endif  // STRATA_PROTO_CORE_LIFE_CYCLE_RULES_H_
