// Where a key stands in its life cycle (spec.lifeCycle), as a checkpoint has it.
// Tested by tests/tools/cli/inspect/get_row_test.cc
// Tested by tests/e2e/inspect_process_test.cc
#ifndef STRATA_TOOLS_CLUSTER_CHECKPOINT_ROW_LIFE_H_
#define STRATA_TOOLS_CLUSTER_CHECKPOINT_ROW_LIFE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "tools/cluster/checkpoint/rows.h"

namespace strata {

struct RowLife {
  // Of a key without a row, where admission counts: the steps that touched it, as the filter says,
  // and how many it takes; the second is 0 where nothing is counted.
  uint32_t waiting_steps = 0;
  uint32_t min_steps = 0;
  // Of a row.
  uint64_t idle_steps = 0;
  std::optional<float> score;  // decayed to the checkpoint's step
  std::string removed_by;  // the rule that would take it now; empty: none that looks at it alone
};

// Nothing: the table has no life cycle. `row`: null without one. In asynchronous modes idle steps,
// score and rule are not told: rows count windows of their shard, which the checkpoint does not
// say.
absl::StatusOr<std::optional<RowLife>> LifeOf(const CheckpointRows& rows, uint32_t table,
                                              Position position, const uint8_t* row);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_CHECKPOINT_ROW_LIFE_H_
