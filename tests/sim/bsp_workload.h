// What the lanes of a simulated job compute, and the serial account of what comes of it.
#ifndef STRATA_TESTS_SIM_BSP_WORKLOAD_H_
#define STRATA_TESTS_SIM_BSP_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/core/table_spec.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::sim {

// The same in every run of a shape; computed once. One thread.
class BspWorkload {
 public:
  // `life_cycle`: features get rows late, and lose them.
  static BspWorkload& Of(uint32_t lanes, uint64_t steps, bool life_cycle);
  static std::vector<TableSpec> Tables(bool life_cycle);

  const server::LaneWork& Node(Step step, LaneNode node);
  const server::Reference& After(Step step) const { return references_[step.value]; }

 private:
  std::vector<server::Reference> references_;
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, server::LaneWork> nodes_;
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_BSP_WORKLOAD_H_
