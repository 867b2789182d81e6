// The cursor of the RocksDB tier.
// Tested by tests/storage/rocks/tier_test.cc
#ifndef STRATA_STORAGE_ROCKS_CURSOR_H_
#define STRATA_STORAGE_ROCKS_CURSOR_H_

#include <rocksdb/iterator.h>

#include <cstddef>
#include <memory>
#include <string>

#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "storage/tier/row_tier.h"

namespace strata::storage::rocks {

struct CursorRange {
  TableId table;
  Position first;
  Position last;  // inclusive
  size_t row_bytes = 0;
};

std::unique_ptr<TierCursor> NewRocksCursor(std::unique_ptr<rocksdb::Iterator> it,
                                           const std::string& directory, Partitioning partitioning,
                                           const CursorRange& range);

}  // namespace strata::storage::rocks

#endif  // STRATA_STORAGE_ROCKS_CURSOR_H_
