#include "tools/gpu/table/fill.h"

#include <bit>

#include "ops/counter_random.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/inline.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::CudaApi;
using ops::gpu::LaunchOver;
using ops::gpu::StreamHandle;
using storage::gpu::GpuSlots;

constexpr uint64_t kLow40 = (uint64_t{1} << 40) - 1;

// Newton's iteration: each doubles the bits that are right, of which an odd number has three.
constexpr uint64_t InverseOf(uint64_t odd) {
  uint64_t x = odd;
  for (int i = 0; i < 5; ++i) x *= 2 - odd * x;
  return x;
}
constexpr uint64_t kUnmixer = InverseOf(storage::gpu::kGpuMixer);
static_assert(kUnmixer * storage::gpu::kGpuMixer == 1);

// What tells positions of FillBuckets from new ones: no bit of these reaches bucket or digest.
constexpr uint64_t kOfTable = uint64_t{1} << 40, kNew = uint64_t{2} << 40;

STRATA_HD uint64_t StandingAt(uint32_t slot, uint32_t bucket_bits) {
  const uint64_t bucket = slot / kBarBucketSlots, in_bucket = slot % kBarBucketSlots;
  const uint64_t mixed =
      bucket << (40 - bucket_bits) | in_bucket << 8 | (ops::MixBits(slot + 1) & 0xff);
  return ((mixed * kUnmixer) & kLow40) | kOfTable;
}

// Products with odd numbers and xors with higher bits are one to one on numbers of 40 bits.
STRATA_HD uint64_t NewAt(uint64_t i) {
  uint64_t x = i & kLow40;
  for (uint32_t round = 0; round < 3; ++round) {
    x ^= x >> 21;
    x = (x * (ops::MixBits(round + 77) | 1)) & kLow40;
  }
  return (x ^ (x >> 21)) | kNew;
}

struct FillEach {
  static constexpr uint32_t kLanes = 1;
  GpuSlots t;
  uint32_t rows, bucket_bits;
  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{t.buckets} * rows; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    const auto slot = static_cast<uint32_t>(i / rows * kBarBucketSlots + i % rows);
    storage::gpu::SetSlot(t, slot, {StandingAt(slot, bucket_bits), 0, storage::gpu::kGpuDirty}, 1);
  }
};

struct NameEach {
  static constexpr uint32_t kLanes = 1;
  const uint32_t* numbers;
  uint32_t n, rows, bucket_bits;
  uint32_t* slots;
  uint64_t* positions;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    const uint32_t number = numbers[i];
    const uint32_t slot = number / rows * kBarBucketSlots + number % rows;
    slots[i] = slot;
    positions[i] = StandingAt(slot, bucket_bits);
  }
};

struct ArriveEach {
  static constexpr uint32_t kLanes = 1;
  uint64_t first;
  uint32_t n;
  storage::gpu::GpuArrival* arrivals;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    arrivals[i] = {NewAt(first + i), static_cast<uint32_t>(i), storage::gpu::kGpuDirty};
  }
};

struct SlotOfEach {
  static constexpr uint32_t kLanes = 1;
  const storage::gpu::GpuPlaced* placed;
  uint32_t n;
  uint32_t* slots;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    slots[i] = placed[i].slot;
  }
};

uint32_t BitsOf(uint32_t buckets) { return static_cast<uint32_t>(std::bit_width(buckets)) - 1; }

}  // namespace

uint64_t PositionAt(uint32_t slot, uint32_t bucket_bits) { return StandingAt(slot, bucket_bits); }
uint64_t NewPosition(uint64_t i) { return NewAt(i); }

absl::Status FillBuckets(CudaApi& api, const GpuSlots& t, uint32_t rows, StreamHandle stream) {
  const FillEach fill{t, rows, BitsOf(t.buckets)};
  return LaunchOver(api, "fill buckets", fill, fill.items(), stream);
}

absl::Status NameRows(CudaApi& api, const GpuSlots& t, uint32_t rows, const uint32_t* numbers,
                      uint32_t n, uint32_t* slots, uint64_t* positions, StreamHandle stream) {
  const NameEach name{numbers, n, rows, BitsOf(t.buckets), slots, positions};
  return LaunchOver(api, "name rows", name, n, stream);
}

absl::Status FillArrivals(CudaApi& api, uint64_t first, uint32_t n,
                          storage::gpu::GpuArrival* arrivals, StreamHandle stream) {
  return LaunchOver(api, "fill arrivals", ArriveEach{first, n, arrivals}, n, stream);
}

absl::Status SlotsOfPlaced(CudaApi& api, const storage::gpu::GpuPlaced* placed, uint32_t n,
                           uint32_t* slots, StreamHandle stream) {
  return LaunchOver(api, "slots of placed", SlotOfEach{placed, n, slots}, n, stream);
}

}  // namespace strata::gpu_check
