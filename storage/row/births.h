// Rows as they are before anything touched them, wherever they are to lie.
// Tested by tests/server/table/shard_table_test.cc
// Tested by tests/storage/gpu/device/fault_test.cc
#ifndef STRATA_STORAGE_ROW_BIRTHS_H_
#define STRATA_STORAGE_ROW_BIRTHS_H_

#include <cstdint>
#include <span>

#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "storage/row/layout.h"

namespace strata::storage {

// Of InitialRow, or InitialWeights, of each key. Non-owning. REQUIRES: the table is hashed; layout
// is RowLayout::For(*spec).
struct RowBirths {
  const TableSpec* spec = nullptr;
  const RowLayout* layout = nullptr;
  uint64_t seed = 0;
  std::span<const Key> keys;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_BIRTHS_H_
