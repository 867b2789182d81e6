// The time that a GPU table's eviction policy goes by: references, batch by batch.
#ifndef STRATA_STORAGE_GPU_CLOCK_H_
#define STRATA_STORAGE_GPU_CLOCK_H_

#include <cstddef>
#include <cstdint>

#include "storage/eviction/kind.h"
#include "storage/gpu/score.h"

namespace strata::storage::gpu {

// As the policies of the DRAM tier (storage/eviction/lru_policy.h, storage/eviction/lfu_policy.h,
// storage/eviction/lrfu_policy.h), but that time stands still within a batch, and that lfu's scores
// are halved after kLfuBatches batches, in which none can have grown by more. Not thread-safe.
class GpuClock {
 public:
  static constexpr uint32_t kLfuBatches = 0x7fff;

  // capacity: the tier's rows. REQUIRES: >= 32, and no batch references more.
  GpuClock(EvictionKind kind, size_t capacity);

  // What the next batch is scored by.
  uint16_t now() const { return static_cast<uint16_t>(now_); }

  // A batch with that many references is over. What it returns is to be done to every score before
  // the next batch.
  GpuAging Pass(size_t references);

 private:
  const EvictionKind kind_;
  const size_t references_per_tick_;
  size_t references_ = 0;  // of this tick
  uint32_t batches_ = 0;   // lfu
  uint32_t now_ = 1;
};

}  // namespace strata::storage::gpu

#endif  // STRATA_STORAGE_GPU_CLOCK_H_
