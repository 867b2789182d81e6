// What every RowTable must do, held against a std::map.
#ifndef STRATA_TESTS_STORAGE_ROW_TABLE_CONFORMANCE_H_
#define STRATA_TESTS_STORAGE_ROW_TABLE_CONFORMANCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "proto/core/ids.h"
#include "storage/row/table.h"
#include "tests/storage/tier/failing_tier.h"

namespace strata::storage {

struct ConformanceCase {
  size_t row_bytes = 0;
  Position first{0};
  Position last{~0ull};
  // An empty table with that shape; called once or more.
  std::function<std::unique_ptr<RowTable>()> make;
  uint64_t limit_bytes = 0;      // dram_bytes must never exceed it; 0 = none
  uint64_t hbm_limit_bytes = 0;  // of a GPU table: hbm_bytes must never exceed it
  size_t most_pinned = 0;        // rows; 0: those of a DRAM tier of max_batch * 2 rows
  size_t positions = 4000;       // distinct ones in play
  // Positions named in Resolve and Erase, at least; CheckRandomOperations: fewer under a sanitizer.
  uint64_t operations = 1'000'000;
  uint64_t seed = 1;
  // Has calls fail at times, for some operations; null: never. Such an operation must answer the
  // tier's error and change nothing.
  FailingTier* below = nullptr;
};

// Random batches of updates, reads, replacements, removals, scans and flushes; checks bytes, order,
// pins, counters and limits after each.
void CheckRandomOperations(const ConformanceCase& c);

// Updates, and removals between them, while memory for rows and index is refused now and then: a
// call without it names bytes, changes nothing, and works as soon as there is memory. Returns how
// often it was refused.
size_t CheckMemoryShortage(const ConformanceCase& c);

// Wrong calls are refused by INVALID_ARGUMENT and change nothing.
void CheckRefusals(const ConformanceCase& c);

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_ROW_TABLE_CONFORMANCE_H_
