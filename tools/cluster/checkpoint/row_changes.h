// What differs between two checkpoints of one model.
// Tested by tests/tools/cluster/export/delta_test.cc
#ifndef STRATA_TOOLS_CLUSTER_CHECKPOINT_ROW_CHANGES_H_
#define STRATA_TOOLS_CLUSTER_CHECKPOINT_ROW_CHANGES_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "tools/cluster/checkpoint/rows.h"

namespace strata {

// A row that one has and the other has not, or that has other bytes. Null: there is no row.
using ChangeVisitor =
    std::function<absl::Status(Position position, const uint8_t* before, const uint8_t* after)>;

// Calls `visit` for every difference in a table, ascending by position; with `before` null for
// every row. Rows are compared byte by byte, so it matters neither how checkpoints count (steps,
// cuts) nor how many servers wrote them. Stops at the first error of `visit`. Memory: rows of
// `before` of as many partitions as have kRunBytes on average, at least one. REQUIRES: the same
// tables and partitions (CheckSameModel).
inline constexpr size_t kRunBytes = size_t{32} << 20;
absl::Status VisitChanges(const CheckpointRows* before, const CheckpointRows& after, uint32_t table,
                          const ChangeVisitor& visit);

// FAILED_PRECONDITION names the first thing that makes them models of different shape.
absl::Status CheckSameModel(const CheckpointRows& before, const CheckpointRows& after);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_CHECKPOINT_ROW_CHANGES_H_
