#include "storage/gpu/device/pin_calls.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "storage/gpu/device/pins.h"

namespace strata::storage::gpu {
namespace {

GpuPinLists TakePinLists(GpuDeviceCall& call, size_t n) {
  return {.ordinals = call.Scratch<uint32_t>(n),
          .sorted = call.Scratch<uint32_t>(n),
          .order = call.Scratch<uint32_t>(n),
          .before = call.Scratch<uint32_t>(n),
          .codes = call.Scratch<uint8_t>(n),
          .stops = call.Scratch<uint8_t>(n)};
}

}  // namespace

absl::StatusOr<GpuPinned> PinOnDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                                      std::span<const uint32_t> slots, size_t most_rows) {
  absl::Status s = call.Begin(slots.size());
  if (!s.ok()) return s;
  if (slots.empty()) return GpuPinned();
  const auto n = static_cast<uint32_t>(slots.size());
  const uint32_t* to = nullptr;
  s = call.SlotsIn(slots, &to);
  const auto counts = call.Take<GpuPinCounts>(1);
  if (s.ok()) {
    const auto most = static_cast<uint32_t>(std::min<size_t>(most_rows, n));
    s = PinRows(d, to, n, most, TakePinLists(call, n), counts.device);
  }
  if (s.ok()) s = call.CopyOut(counts.at);
  if (s = call.End(std::move(s)); !s.ok()) return s;
  return GpuPinned{.through = counts.host->through, .rows = counts.host->rows};
}

absl::StatusOr<size_t> UnpinOnDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                                     std::span<const Position> positions,
                                     std::span<const uint32_t> slots) {
  absl::Status s = call.Begin(positions.size());
  if (!s.ok()) return s;
  if (positions.empty()) return size_t{0};
  const auto n = static_cast<uint32_t>(positions.size());
  const auto rows = call.Take<uint64_t>(n);
  const auto from = call.Take<uint32_t>(n);
  for (uint32_t i = 0; i < n; ++i) rows.host[i] = positions[i].value;
  std::copy_n(slots.begin(), n, from.host);
  s = call.CopyIn();
  const auto ended = call.Take<uint8_t>(n);
  if (s.ok()) s = UnpinRows(d, rows.device, from.device, n, TakePinLists(call, n), ended.device);
  if (s.ok()) s = call.CopyOut(ended.at);
  if (s = call.End(std::move(s)); !s.ok()) return s;
  return std::accumulate(ended.host, ended.host + n, size_t{0});
}

}  // namespace strata::storage::gpu
