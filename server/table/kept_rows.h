// Where a ticket's rows lie, from one request to the next.
// Tested by tests/server/shard/warm_test.cc
#ifndef STRATA_SERVER_TABLE_KEPT_ROWS_H_
#define STRATA_SERVER_TABLE_KEPT_ROWS_H_

#include <cstddef>
#include <vector>

#include "storage/row/table.h"

namespace strata::server {

// Of one table's positions in one shard. Touched by the shard's executor only.
struct KeptRows {
  std::vector<storage::RowSlot> slots;  // by position; hints
  size_t pinned = 0;                    // positions before this one went through Pin
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_KEPT_ROWS_H_
