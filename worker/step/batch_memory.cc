#include "worker/step/batch_memory.h"

#include <algorithm>
#include <bit>

namespace strata {
namespace {

// Of a vector that doubles.
constexpr uint64_t kRoom = 2;

}  // namespace

uint64_t MemoryOfBatch(const ModelTables& tables, const BatchCounts& most) {
  constexpr uint64_t kFeature = 8 + 4 + 4;  // key, value, field
  const uint64_t numbers = uint64_t{tables.task_count()} + tables.numeric +
                           (tables.weighted ? 1 : 0) + 1 + 2 * tables.sequences.size();
  return kRoom * (most.features * kFeature + most.examples * 4 * numbers);
}

uint64_t MemoryOfRoutedKeys(const BatchCounts& most) {
  constexpr uint64_t kFeature = 4 + 4;  // unique_of, occurrences
  constexpr uint64_t kKey = 8 + 8;      // key, position
  return kRoom * (most.features * kFeature + most.keys * kKey) + (most.keys + 1) * 4;
}

uint64_t MemoryOfRouter(const ModelTables& tables, const BatchCounts& most) {
  constexpr uint64_t kSlot = 16;
  constexpr uint64_t kKey = 8 + 2 * 16 + 4;  // distinct_, placed_, spare_, rank_
  constexpr uint64_t kFeature = 4 + 8 + 4;   // feature_of_, sorted_keys_, sorted_unique_
  constexpr uint64_t kFewSlots = 64;
  const uint64_t slots = std::bit_ceil(std::max(kFewSlots, 2 * most.features));
  return slots * kSlot + kRoom * most.keys * kKey +
         (tables.several() ? kRoom * most.features * kFeature : 0);
}

}  // namespace strata
