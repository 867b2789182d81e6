// What an update leaves in a row beside weights and state, and what it tells of the row: one
// source for the host's loop (update.h) and a device's kernel (storage/gpu/device/touch.h).
// Tested by tests/server/table/shard_table_test.cc
// Tested by tests/storage/gpu/device/fault_test.cc
#ifndef STRATA_STORAGE_ROW_TOUCH_H_
#define STRATA_STORAGE_ROW_TOUCH_H_

#include <cstdint>
#include <cstring>

#include "ops/inline.h"

namespace strata::storage {

// Of a row, over its segments; 0: the row was passed over.
enum RowOutcome : uint8_t {
  kOutcomeApplied = 1,  // some segment took its gradient
  kOutcomeRefused = 2,  // some segment refused it
  kOutcomeClipped = 4,  // some segment took less than it
};

// A segment's outcome (ops/optimizer.h: 0, 1 refused, 2 clipped) as a row's.
STRATA_HD uint8_t RowOutcomeOf(uint8_t of_segment) {
  return static_cast<uint8_t>(((of_segment & 1) ^ 1) | of_segment << 1);
}

// meta: a row's RowMeta (layout.h), at a multiple of 4 bytes.
STRATA_HD void TouchMeta(uint8_t* meta, uint32_t step) {
  uint32_t words[2];
  std::memcpy(words, __builtin_assume_aligned(meta, 4), sizeof(words));
  words[0] = step;
  words[1] += words[1] != ~uint32_t{0};
  std::memcpy(__builtin_assume_aligned(meta, 4), words, sizeof(words));
}

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_TOUCH_H_
