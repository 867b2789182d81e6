#include "worker/lane_memory.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "proto/job/tables/model_tables.h"
#include "worker/step/local_optimizer.h"

namespace strata {
namespace {

// Key, position, and its place among others.
constexpr uint64_t kKeyBytes = 20;
// A position and a slot, and a byte beside; an eighth of the places stay free.
constexpr uint64_t kSlotBytes = 17;

uint64_t StateFloats(const LaneLoad& load) {
  uint64_t floats = 0;
  for (const TableSpec& table : load.local_tables) {
    if (table.kind == TableKind::kDense) continue;
    floats = std::max<uint64_t>(floats, LocalOptimizer(table).state_floats());
  }
  return floats;
}

uint64_t DenseStateBytes(const LaneLoad& load) {
  const TableSpec& dense = load.local_tables[ModelTables::kDenseTable];
  const uint64_t rows = load.dense_bytes / (sizeof(float) * ModelTables::kDenseRowDim);
  // Pointers to each row and its state.
  return rows * (LocalOptimizer(dense).state_floats() * sizeof(float) + 2 * sizeof(float*));
}

// Where the states are: a table that doubles when seven eighths are full.
uint64_t SlotBytes(uint64_t keys) {
  return keys == 0 ? 0 : std::bit_ceil(keys + keys / 7 + 1) * kSlotBytes;
}

}  // namespace

std::vector<MemoryPart> EstimateLanes(const LaneLoad& load) {
  const uint64_t lanes = load.lanes, row = load.row_bytes, dense = load.dense_bytes;
  // Those of the exchange before are pulled, too.
  const uint64_t keys = (load.elastic ? 2 : 1) * load.keys_per_pull;
  std::vector<MemoryPart> parts;
  parts.push_back({"pulled weights", lanes * (keys * (row + kKeyBytes) + dense),
                   absl::StrCat(lanes, " lanes x (", keys, " keys of a pull x (", row, " + ",
                                kKeyBytes, ") + dense part ", dense, ")")});
  // Of a batch; downpour adds up those of a window.
  const bool adds_up = !load.local_tables.empty() && !load.elastic;
  const uint64_t sums = adds_up ? 2 * load.keys_per_pull : 0;
  parts.push_back({"gradients",
                   lanes * ((load.keys_per_batch + sums) * (row + 16) + (adds_up ? 3 : 1) * dense),
                   absl::StrCat(lanes, " lanes x (", load.keys_per_batch + sums, " keys x (", row,
                                " + 16) + ", adds_up ? "3 x " : "", "dense part)")});
  if (load.local_tables.empty()) return parts;
  const uint64_t held = load.elastic ? load.keys_per_pull : 0;
  const uint64_t copy = load.keys_per_batch * row + (load.elastic ? keys * row : 0) +
                        held * (2 * row + kKeyBytes) + (load.elastic ? 2 * dense : 0);
  parts.push_back({"lanes' copies", lanes * copy,
                   load.elastic
                       ? absl::StrCat(lanes, " lanes x ((", load.keys_per_batch,
                                      " keys of a batch + ", keys, " of a pull + 2 x ", held,
                                      " of an exchange) x ", row, " + 2 x dense part)")
                       : absl::StrCat(lanes, " lanes x rows of a batch")});
  const uint64_t floats = load.elastic ? StateFloats(load) : 0;
  const uint64_t slots = floats > 0 ? SlotBytes(load.keys_of_lane) : 0;
  const uint64_t state = 2 * load.keys_of_lane * floats * sizeof(float) + slots;
  parts.push_back({"lanes' optimizer state", lanes * (state + DenseStateBytes(load)),
                   floats > 0 ? absl::StrCat(lanes, " lanes x (", load.keys_of_lane,
                                             " rows ever stepped on x 2 x ", 4 * floats, " + ",
                                             slots, " of places, and the dense part's)")
                              : absl::StrCat(lanes, " lanes x the dense part's")});
  return parts;
}

}  // namespace strata
