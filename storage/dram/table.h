// A table's rows in DRAM, alone: nothing lies below it.
#ifndef STRATA_STORAGE_DRAM_TABLE_H_
#define STRATA_STORAGE_DRAM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "proto/core/ids.h"
#include "storage/dram/store.h"
#include "storage/row/table.h"

namespace strata::storage {

struct DramTableOptions {
  // RowLayout::row_bytes(): a multiple of 4, >= 8.
  size_t row_bytes = 0;
  // The shard's range of positions, both inclusive. Other positions are refused
  // (INVALID_ARGUMENT).
  Position first{0};
  Position last{~0ull};
  Spread spread = Spread::kUniform;
  // Hard limit on rows and index (store.h gives the formula); 0 = none. With a limit, a
  // Resolve that would have to create more rows than fit answers RESOURCE_EXHAUSTED, with requested
  // and free bytes, and creates none.
  uint64_t limit_bytes = 0;
};

// The table starts empty. Memory is taken when the first row is created, and grows with the rows
// (without a limit). max_batch() is unbounded: a batch is refused by its bytes alone.
// REQUIRES: row_bytes as stated, first <= last.
std::unique_ptr<RowTable> MakeDramTable(const DramTableOptions& options);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_DRAM_TABLE_H_
