// One update of rows of a table by sums of their gradients, wherever they lie.
// Tested by tests/server/table/shard_table_test.cc
// Tested by tests/storage/gpu/device/fault_test.cc
#ifndef STRATA_STORAGE_ROW_UPDATE_H_
#define STRATA_STORAGE_ROW_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/optimizer.h"
#include "storage/row/layout.h"

namespace strata::storage {

// What is the same for all rows, and their sums. Non-owning.
struct RowUpdate {
  const RowLayout* layout = nullptr;
  std::span<const ops::StepScalars> scalars;  // (layout->runs)
  const float* sums = nullptr;                // row i's weights' at sums + i * stride
  // Of rows on a device alone: where the sums lie in its memory, and `sums` is null.
  const float* sums_there = nullptr;
  size_t stride = 0;  // floats: 4 stride <= row_bytes
  uint32_t step = 0;  // RowMeta::last_step
};

// Most runs of an update of rows that lie in a device's memory.
inline constexpr size_t kMostDeviceRuns = 512;

// Updates weights and state of rows (n, distinct) by ops::ApplyRows, run by run; null: none, which
// is passed over. outcomes: (n), RowOutcome's bits. Metadata is left to the caller (TouchMeta). Any
// thread.
void UpdateRows(const RowUpdate& update, std::span<uint8_t* const> rows, uint8_t* outcomes);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_UPDATE_H_
