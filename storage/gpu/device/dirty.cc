#include "storage/gpu/device/dirty.h"

#include <algorithm>
#include <utility>

#include "storage/gpu/backend.h"
#include "storage/gpu/device/sweeps.h"
#include "storage/gpu/select.h"

namespace strata::storage::gpu {
namespace {

absl::StatusOr<std::vector<GpuRow>> DirtyBatch(const GpuDeviceTable& d, GpuDeviceCall& call,
                                               uint64_t first, uint64_t last, uint32_t n) {
  absl::Status s = call.Begin(n);
  if (!s.ok()) return s;
  const auto count = call.Take<uint32_t>(1);
  const auto rows = call.Take<GpuRow>(n);
  const GpuDirtyLists lists{.select = call.Scratch<GpuSelect>(1),
                            .bins = call.Scratch<uint32_t>(kSelectBins),
                            .positions = call.Scratch<uint64_t>(n),
                            .slots = call.Scratch<uint32_t>(n),
                            .sorted = call.Scratch<uint64_t>(n),
                            .sorted_slots = call.Scratch<uint32_t>(n)};
  s = DirtyRows(d, first, last, n, lists, count.device, rows.device);
  if (s.ok()) s = call.CopyOut(count.at);
  if (s = call.End(std::move(s)); !s.ok()) return s;
  return std::vector<GpuRow>(rows.host, rows.host + *count.host);
}

}  // namespace

// In batches: each begins behind the last row of the one before.
absl::StatusOr<std::vector<GpuRow>> DirtyOnDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                                                  uint32_t max_batch, Position first, Position last,
                                                  size_t most) {
  std::vector<GpuRow> rows;
  uint64_t begin = first.value;
  while (rows.size() < most && begin <= last.value) {
    const auto n = static_cast<uint32_t>(std::min<size_t>(max_batch, most - rows.size()));
    const auto batch = DirtyBatch(d, call, begin, last.value, n);
    if (!batch.ok()) return batch.status();
    rows.insert(rows.end(), batch->begin(), batch->end());
    if (batch->size() < n || batch->back().position == ~uint64_t{0}) break;
    begin = batch->back().position + 1;
  }
  return rows;
}

absl::StatusOr<std::vector<GpuRow>> NextToLeaveOnDevice(const GpuDeviceTable& d,
                                                        GpuDeviceCall& call, uint32_t& bucket,
                                                        size_t most) {
  absl::Status s = call.Begin(0);
  if (!s.ok()) return s;
  if (most == 0) return std::vector<GpuRow>();
  const uint32_t looks = std::min(GpuBackend::kLeaveBuckets, d.t.buckets);
  const uint32_t first = bucket % d.t.buckets;
  const size_t line = d.bucket_slots / 16;
  const auto n = static_cast<uint32_t>(std::min<size_t>(most, looks * line));
  const auto leaving = call.Take<GpuLeaving>(1);
  const auto rows = call.Take<GpuRow>(n);
  s = LeavingRowsFrom(d, first, looks, n, call.Scratch<GpuRow>(looks * line), leaving.device,
                      rows.device);
  if (s.ok()) s = call.CopyOut(leaving.at);
  if (s = call.End(std::move(s)); !s.ok()) return s;
  // As one thread would leave it: behind the last that it looked at.
  const uint64_t looked_at_last = uint64_t{first} + leaving.host->looked - 1;
  bucket = static_cast<uint32_t>(looked_at_last % d.t.buckets) + 1;
  return std::vector<GpuRow>(rows.host, rows.host + leaving.host->rows);
}

}  // namespace strata::storage::gpu
