#include "storage/gpu/clock.h"

#include <algorithm>

#include "storage/eviction/lrfu_score.h"

namespace strata::storage::gpu {
namespace {

// A batch is at most 256 ticks of lru and 16 units of lrfu long (both for at most capacity
// references; twice that for capacities that they do not divide).
constexpr uint32_t kMostTicksPerBatch = 512;
constexpr uint32_t kLruMostTime = 0xffff - kMostTicksPerBatch;

size_t ReferencesPerTick(EvictionKind kind, size_t capacity) {
  return kind == EvictionKind::kLrfu ? LrfuReferencesPerUnit(capacity)
                                     : std::max<size_t>(1, capacity / 256);
}

}  // namespace

GpuClock::GpuClock(EvictionKind kind, size_t capacity)
    : kind_(kind), references_per_tick_(ReferencesPerTick(kind, capacity)) {}

GpuAging GpuClock::Pass(size_t references) {
  if (kind_ == EvictionKind::kLfu) {
    if (++batches_ < kLfuBatches) return {};
    batches_ = 0;
    return {.halve = true};
  }
  references_ += references;
  now_ += static_cast<uint32_t>(references_ / references_per_tick_);
  references_ %= references_per_tick_;
  const uint32_t most =
      kind_ == EvictionKind::kLru ? kLruMostTime : kLrfuMostTime - kMostTicksPerBatch;
  if (now_ < most) return {};
  const auto by = static_cast<uint16_t>(now_ / 2);
  now_ -= by;
  return {.lower = by};
}

}  // namespace strata::storage::gpu
