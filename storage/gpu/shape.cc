#include "storage/gpu/shape.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "storage/eviction/lrfu_score.h"

namespace strata::storage::gpu {
namespace {

// Takes arrays from a block, one after the other; from none, it only counts.
class Cutter {
 public:
  explicit Cutter(uint8_t* memory) : memory_(memory) {}

  template <typename T>
  void Take(size_t n, T*& array) {
    array = memory_ == nullptr || n == 0 ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ +=
        (uint64_t{n} * sizeof(T) + GpuShape::kAlign - 1) / GpuShape::kAlign * GpuShape::kAlign;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint8_t* const memory_;
  uint64_t bytes_ = 0;
};

GpuSlots Cut(const GpuShape& shape, Cutter& cutter) {
  GpuSlots t;
  t.buckets = shape.buckets;
  t.stride = static_cast<uint32_t>(shape.stride());
  const bool lrfu = shape.eviction == EvictionKind::kLrfu;
  cutter.Take(shape.slots() * shape.stride(), t.rows);
  cutter.Take(shape.places * shape.stride(), t.staged);
  cutter.Take(shape.slots(), t.positions);
  cutter.Take(shape.slots(), t.scores);
  cutter.Take(lrfu ? shape.slots() : 0, t.ghosts);
  cutter.Take(shape.slots(), t.control);
  cutter.Take(shape.slots(), t.pins);
  cutter.Take(shape.slots(), t.flags);
  cutter.Take(lrfu ? kLrfuFar : 0, t.gains);
  return t;
}

}  // namespace

uint64_t GpuShape::bytes() const {
  Cutter cutter(nullptr);
  Cut(*this, cutter);
  return cutter.bytes();
}

GpuSlots GpuShape::At(uint8_t* memory) const {
  Cutter cutter(memory);
  return Cut(*this, cutter);
}

uint64_t MinimumHbmBytes(size_t row_bytes, uint32_t bucket_slots, EvictionKind eviction) {
  return GpuShape{.row_bytes = row_bytes,
                  .bucket_slots = bucket_slots,
                  .eviction = eviction,
                  .buckets = 1,
                  .places = GpuShape::kFewestPlaces}
      .bytes();
}

absl::StatusOr<GpuShape> GpuShapeFor(uint64_t limit_bytes, size_t row_bytes, uint32_t bucket_slots,
                                     EvictionKind eviction) {
  if (row_bytes < 8 || row_bytes % 4 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("row_bytes is ", row_bytes, "; it must be a multiple of 4, at least 8"));
  }
  if (bucket_slots != 32 && bucket_slots != 64 && bucket_slots != 128) {
    return absl::InvalidArgumentError(
        absl::StrCat("bucket_slots is ", bucket_slots, "; it must be 32, 64 or 128"));
  }
  const uint64_t least = MinimumHbmBytes(row_bytes, bucket_slots, eviction);
  if (limit_bytes < least) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a GPU limit of ", limit_bytes, " bytes for a table of one shard; rows of ", row_bytes,
        " bytes need at least ", least, ": raise spec.storage.gpuBytesPerServer"));
  }
  GpuShape shape{.row_bytes = row_bytes, .bucket_slots = bucket_slots, .eviction = eviction};
  shape.places = static_cast<uint32_t>(std::clamp<uint64_t>(
      limit_bytes / 16 / shape.stride(), GpuShape::kFewestPlaces, GpuShape::kMostPlaces));
  const auto with = [&shape](uint64_t buckets) {
    GpuShape other = shape;
    other.buckets = static_cast<uint32_t>(buckets);
    return other;
  };
  uint64_t low = 1;
  uint64_t high = std::min(GpuShape::kMostSlots, limit_bytes / shape.stride()) / bucket_slots;
  while (low < high) {  // the most buckets whose bytes fit
    const uint64_t middle = low + (high - low + 1) / 2;
    if (with(middle).bytes() <= limit_bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return with(low);
}

}  // namespace strata::storage::gpu
