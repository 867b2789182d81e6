// Whether rows really lay below DRAM while a job trained.
#ifndef STRATA_TESTS_E2E_CLUSTER_READS_BELOW_H_
#define STRATA_TESTS_E2E_CLUSTER_READS_BELOW_H_

#include <cstdint>

#include "proto/runtime/base/failpoints.h"

namespace strata::testing {

// Counts the batches of this process's tiered tables of which some row was read from SSD, from
// construction on. One at a time. Any thread.
class ReadsBelow {
 public:
  uint64_t count() const { return FailpointHits("tier.read"); }

 private:
  const ScopedFailpoint hit_{"tier.read", {}};
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_READS_BELOW_H_
