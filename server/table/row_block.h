// A run of rows of one table on its way from a shard to a file.
// Tested by tests/server/table/shard_table_gpu_test.cc
#ifndef STRATA_SERVER_TABLE_ROW_BLOCK_H_
#define STRATA_SERVER_TABLE_ROW_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/core/ids.h"

namespace strata::server {

struct RowBlock {
  TableId table;
  std::vector<Position> positions;  // (n), strictly ascending
  std::vector<uint8_t> rows;        // (n, row_bytes)
  std::vector<Position> erased;     // of an increment: rows that are gone; strictly ascending

  bool empty() const { return positions.empty() && erased.empty(); }
  size_t bytes() const { return rows.size() + 8 * (positions.size() + erased.size()); }
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_ROW_BLOCK_H_
