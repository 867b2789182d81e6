#include "storage/gpu/device/updates.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "ops/cuda/kernel/row_block.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/apply.h"
#include "ops/cuda/rows/pool.h"
#include "ops/cuda/rows/row_codec.h"
#include "ops/cuda/rows/scatter.h"
#include "storage/gpu/device/touch.h"
#include "storage/gpu/slots.h"

namespace strata::storage::gpu {
namespace {

static_assert(kNoGpuSlot == ops::gpu::kNoRow);

// Rows from their float number `offset` on.
ops::gpu::RowBlock RowsFrom(const GpuDeviceTable& d, uint32_t offset) {
  return {reinterpret_cast<float*>(d.t.rows) + offset, d.t.stride / sizeof(float)};
}

// out: (n, dim), in memory that the device writes.
absl::Status GatherFloats(const GpuDeviceTable& d, const ops::gpu::RowBlock& table,
                          const uint32_t* row_of, size_t n, uint32_t dim, float* out) {
  return ops::gpu::Pool(*d.api,
                        {.table = table,
                         .dim = dim,
                         .row_of = row_of,
                         .bags = {nullptr, static_cast<uint32_t>(n)},
                         .out = out,
                         .out_stride = dim},
                        d.stream);
}

}  // namespace

absl::Status GatherOnDevice(const GpuDeviceTable& d, const GpuDeviceMemory& memory,
                            GpuDeviceCall& call, std::span<const uint32_t> slots,
                            ops::RowCodec codec, uint32_t dim, uint8_t* out) {
  absl::Status s = call.Begin(slots.size());
  if (!s.ok() || slots.empty()) return s;
  const auto n = static_cast<uint32_t>(slots.size());
  const bool packed = codec != ops::RowCodec::kFloat32;
  const uint32_t* from = nullptr;
  s = call.SlotsIn(slots, &from);
  const size_t bytes = size_t{n} * ops::EncodedRowBytes(codec, dim);
  // Kernels write whole quads: floats that lie crooked in a message are brought there by a copy of
  // the device's, packed ones by the host.
  const bool pinned = d.api->IsPinned(out, bytes) && (!packed || ops::gpu::IsAligned4(out, 4));
  uint8_t* to = out;
  if (!pinned) {
    const auto here = memory.read_rows->Get();
    if (!here.ok()) return call.End(here.status());
    to = *here;
  }
  const bool straight = ops::gpu::IsAligned4(to, dim);
  auto* floats = reinterpret_cast<float*>(packed || !straight ? memory.call_rows : to);
  if (s.ok()) s = GatherFloats(d, RowsFrom(d, 0), from, n, dim, floats);
  if (s.ok() && packed) {
    const auto format = codec == ops::RowCodec::kBf16 ? ops::gpu::PackedFormat::kBf16
                                                      : ops::gpu::PackedFormat::kInt8;
    s = ops::gpu::PackRows(*d.api, format, floats, dim, dim, {nullptr, n}, to, d.stream);
  }
  if (s.ok() && !packed && !straight) s = d.api->CopyAsync(to, floats, bytes, d.stream);
  if (s = call.End(std::move(s)); !s.ok()) return s;
  if (to != out) std::memcpy(out, to, bytes);
  return absl::OkStatus();
}

absl::Status GatherToDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                            std::span<const uint32_t> slots, uint32_t dim, float* out) {
  absl::Status s = call.Begin(slots.size());
  if (!s.ok() || slots.empty()) return s;
  const uint32_t* from = nullptr;
  s = call.SlotsIn(slots, &from);
  if (s.ok()) s = GatherFloats(d, RowsFrom(d, 0), from, slots.size(), dim, out);
  return call.End(std::move(s));
}

absl::Status UploadRows(const GpuDeviceTable& d, const GpuDeviceMemory& memory, GpuDeviceCall& call,
                        const float* rows, std::span<const uint32_t> numbers, uint32_t dim,
                        float* there) {
  absl::Status s = call.Begin(numbers.size());
  if (!s.ok() || numbers.empty()) return s;
  const auto n = static_cast<uint32_t>(numbers.size());
  const size_t bytes = size_t{n} * dim * sizeof(float);
  const uint32_t* to = nullptr;
  const auto pinned = memory.open_rows->Get();
  if (!pinned.ok()) return call.End(pinned.status());
  s = call.SlotsIn(numbers, &to);
  std::memcpy(*pinned, rows, bytes);
  if (s.ok()) s = d.api->CopyAsync(memory.call_rows, *pinned, bytes, d.stream);
  if (s.ok()) {
    s = ops::gpu::Scatter(*d.api,
                          {.rows = reinterpret_cast<const float*>(memory.call_rows),
                           .row_of = to,
                           .count = {nullptr, n},
                           .dim = dim,
                           .table = {there, dim}},
                          d.stream);
  }
  return call.End(std::move(s));
}

absl::Status DownloadRows(const GpuDeviceTable& d, const GpuDeviceMemory& memory,
                          GpuDeviceCall& call, const float* there,
                          std::span<const uint32_t> numbers, uint32_t dim, float* rows) {
  absl::Status s = call.Begin(numbers.size());
  if (!s.ok() || numbers.empty()) return s;
  const auto pinned = memory.read_rows->Get();
  if (!pinned.ok()) return call.End(pinned.status());
  const uint32_t* from = nullptr;
  s = call.SlotsIn(numbers, &from);
  auto* const here = reinterpret_cast<float*>(*pinned);
  if (s.ok()) {
    s = GatherFloats(d, {const_cast<float*>(there), dim}, from, numbers.size(), dim, here);
  }
  if (s = call.End(std::move(s)); !s.ok()) return s;
  std::memcpy(rows, here, numbers.size() * dim * sizeof(float));
  return absl::OkStatus();
}

absl::Status ApplyOnDevice(const GpuDeviceTable& d, const GpuDeviceMemory& memory,
                           GpuDeviceCall& call, std::span<const uint32_t> slots,
                           const RowUpdate& update, uint8_t* outcomes) {
  absl::Status s = call.Begin(slots.size());
  if (!s.ok() || slots.empty()) return s;
  const auto n = static_cast<uint32_t>(slots.size());
  const auto& runs = update.layout->runs;
  const auto rows = call.Take<uint32_t>(n);
  const auto scalars = call.Take<ops::StepScalars>(runs.size());
  std::copy(slots.begin(), slots.end(), rows.host);
  std::copy(update.scalars.begin(), update.scalars.end(), scalars.host);
  s = call.CopyIn();
  const size_t sum_bytes = (size_t{n} - 1) * update.stride * 4 + size_t{update.layout->dim} * 4;
  const float* sums_there = update.sums_there;
  if (sums_there == nullptr) {
    const auto pinned = memory.open_rows->Get();
    if (!pinned.ok()) return call.End(pinned.status());
    std::memcpy(*pinned, update.sums, sum_bytes);
    if (s.ok()) s = d.api->CopyAsync(memory.call_rows, *pinned, sum_bytes, d.stream);
    sums_there = reinterpret_cast<const float*>(memory.call_rows);
  }
  const auto answers = call.Take<uint8_t>(n);
  auto* const of_run = call.Scratch<uint8_t>(n);
  for (size_t k = 0; k < runs.size() && s.ok(); ++k) {
    const SegmentLayout& run = runs[k];
    const float* sums = sums_there + run.weight_offset;
    s = ops::gpu::Apply(*d.api, run.optimizer,
                        {.table = RowsFrom(d, run.weight_offset),
                         .state_offset = run.state_offset - run.weight_offset,
                         .dim = run.dim,
                         .row_of = rows.device,
                         .rows = {nullptr, n},
                         .sums = sums,
                         .sum_stride = update.stride,
                         .step = scalars.device + k,
                         .outcomes = of_run},
                        d.stream);
    const GpuFold fold{.slots = rows.device,
                       .of_run = of_run,
                       .outcomes = answers.device,
                       .first = k == 0,
                       .last = k + 1 == runs.size(),
                       .meta_offset = static_cast<uint32_t>(update.layout->meta_offset()),
                       .step = update.step};
    if (s.ok()) s = FoldOutcomes(d, fold, n);
  }
  if (s.ok()) s = call.CopyOut(answers.at);
  if (s = call.End(std::move(s)); !s.ok()) return s;
  std::copy_n(answers.host, n, outcomes);
  return absl::OkStatus();
}

}  // namespace strata::storage::gpu
