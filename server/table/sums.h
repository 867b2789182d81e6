// Gradient sums of one table within one shard, and their addition along the lane tree.
// Tested by tests/server/table/shard_table_device_test.cc
// Tested by tests/server/table/shard_table_gpu_test.cc
#ifndef STRATA_SERVER_TABLE_SUMS_H_
#define STRATA_SERVER_TABLE_SUMS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "proto/core/ids.h"
#include "server/protocol/step_gate.h"
#include "server/table/kept_rows.h"

namespace strata::server {

// Sums by ascending position. Holds on to the memory it points into (a received message, a replayed
// record, or a merge), so passing one on copies no row. Immutable.
struct TableSums {
  std::span<const Position> positions;  // (n), strictly ascending
  const float* values = nullptr;        // (n, dim)
  std::shared_ptr<const void> owner;
  KeptRows* kept = nullptr;  // where the rows lie, if a ticket knows; lives as long as owner
  // Instead of values: in the memory of the table's device (ShardTable::values_device). Its
  // OnHost gives what has to do with them here.
  const float* values_there = nullptr;

  size_t size() const { return positions.size(); }
};

// left + right, element by element, for rows that both have; rows of one side pass through
// unchanged. A side without rows gives the other side itself, uncopied. REQUIRES: where both have
// rows, their values are on the host.
TableSums AddSums(const TableSums& left, const TableSums& right, uint32_t dim);

// Evaluates a root plan (StepGate::RootPlan) for one table. `by_handle` may lack handles: no rows.
TableSums EvaluateRoot(const std::vector<SumInstruction>& plan,
                       const std::map<ContributionHandle, TableSums>& by_handle, uint32_t dim);

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_SUMS_H_
