#include "tools/gpu/table/memory.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/eviction/lrfu_score.h"
#include "tools/gpu/bars/fill.h"
#include "tools/gpu/table/fill.h"

namespace strata::gpu_check {

storage::gpu::GpuShape BarShape(size_t table_bytes, uint32_t row_bytes,
                                storage::EvictionKind eviction, uint32_t places) {
  const uint64_t buckets = std::max<uint64_t>(table_bytes / row_bytes / kBarBucketSlots, 1);
  return {.row_bytes = row_bytes,
          .bucket_slots = kBarBucketSlots,
          .eviction = eviction,
          .buckets = uint32_t{1} << FloorLog2(buckets),
          .places = places};
}

uint32_t KeySets(size_t cache_bytes, double set_bytes) {
  constexpr double kTimes = 4;
  const double sets = std::ceil(kTimes * static_cast<double>(cache_bytes) / set_bytes);
  return static_cast<uint32_t>(std::clamp<double>(sets, 1, kMostKeySets));
}

absl::StatusOr<storage::gpu::GpuSlots> MakeBarTable(const BarContext& context,
                                                    const storage::gpu::GpuShape& shape,
                                                    const ops::gpu::Buffer& memory) {
  const storage::gpu::GpuSlots t = shape.At(memory.as<uint8_t>());
  absl::Status status = context.api->FillAsync(memory.as<void>(), 0, shape.bytes(), context.stream);
  if (status.ok()) {
    status = FillFloats(*context.api, shape.slots() * shape.stride() / sizeof(float), -1.0f, 1.0f,
                        9, reinterpret_cast<float*>(t.rows), context.stream);
  }
  if (status.ok() && t.gains != nullptr) {
    status = context.api->CopyAsync(t.gains, storage::LrfuGainTable().data(),
                                    sizeof(storage::LrfuGains), context.stream);
  }
  if (status.ok()) status = context.api->Synchronize(context.stream);
  if (!status.ok()) return status;
  return t;
}

absl::Status CheckRows(const BarContext& context, const char* what, const storage::gpu::GpuSlots& t,
                       const uint32_t* slots, uint32_t n, const uint8_t* to) {
  constexpr uint32_t kRowsLookedAt = 64;
  std::vector<uint8_t> want(t.stride), got(t.stride);
  for (uint64_t k = 0; k < std::min(n, kRowsLookedAt); ++k) {
    const uint64_t i = k * n / std::min(n, kRowsLookedAt);
    absl::Status status = context.api->CopyAsync(want.data(), t.rows + size_t{slots[i]} * t.stride,
                                                 t.stride, context.stream);
    if (status.ok()) {
      status = context.api->CopyAsync(got.data(), to + i * t.stride, t.stride, context.stream);
    }
    if (status.ok()) status = context.api->Synchronize(context.stream);
    if (!status.ok()) return status;
    if (want != got) {
      return absl::InternalError(
          absl::StrCat(what, ": row ", i, " is not that of slot ", slots[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace strata::gpu_check
