#include "storage/gpu/device/births.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "ops/cuda/kernel/row_block.h"
#include "ops/cuda/rows/initialize.h"
#include "ops/optimizer.h"
#include "storage/gpu/device/touch.h"
#include "storage/row/layout.h"

namespace strata::storage::gpu {
namespace {

// The arguments of a call, on the device.
struct Births {
  const uint32_t* row_of = nullptr;
  const uint64_t* keys = nullptr;
  uint32_t n = 0;
};

absl::Status In(GpuDeviceCall& call, const RowBirths& births, std::span<const uint32_t> row_of,
                Births& in) {
  in.n = static_cast<uint32_t>(row_of.size());
  const auto rows = call.Take<uint32_t>(in.n);
  const auto keys = call.Take<uint64_t>(in.n);
  std::copy(row_of.begin(), row_of.end(), rows.host);
  for (uint32_t i = 0; i < in.n; ++i) keys.host[i] = births.keys[i].value;
  in.row_of = rows.device;
  in.keys = keys.device;
  return call.CopyIn();
}

// What all segments have in common with their neighbours: `table` has their rows from the first
// weight on. Asynchronous.
absl::Status InitializeSegment(const GpuDeviceTable& d, const RowBirths& births, const Births& in,
                               const SegmentLayout& segment, const ops::OptimizerConfig& optimizer,
                               const ops::gpu::RowBlock& table) {
  return ops::gpu::Initialize(*d.api, segment.initializer, optimizer,
                              {.table = {table.base + segment.weight_offset, table.stride},
                               .state_offset = segment.state_offset - segment.weight_offset,
                               .dim = segment.dim,
                               .seed = births.seed,
                               .table_number = births.spec->id.value,
                               .first_element = segment.weight_offset,
                               .keys = in.keys,
                               .row_of = in.row_of,
                               .rows = {nullptr, in.n}},
                              d.stream);
}

}  // namespace

absl::Status InitializeOnDevice(const GpuDeviceTable& d, GpuDeviceCall& call,
                                std::span<const uint32_t> slots, const RowBirths& births) {
  absl::Status s = call.Begin(slots.size());
  if (!s.ok() || slots.empty()) return s;
  const RowLayout& layout = *births.layout;
  Births in;
  s = In(call, births, slots, in);
  const ops::gpu::RowBlock rows = {reinterpret_cast<float*>(d.t.rows), d.t.stride / sizeof(float)};
  for (const SegmentLayout& segment : layout.segments) {
    if (s.ok()) s = InitializeSegment(d, births, in, segment, segment.optimizer, rows);
  }
  // The score and the metadata.
  const size_t rest = layout.scored ? layout.score_offset() : layout.meta_offset();
  if (s.ok()) {
    s = ZeroWords(d, in.row_of, in.n, static_cast<uint32_t>(rest / 4),
                  static_cast<uint32_t>(layout.row_bytes() / 4));
  }
  return call.End(std::move(s));
}

absl::Status InitializeWeightsThere(const GpuDeviceTable& d, GpuDeviceCall& call,
                                    const RowBirths& births, std::span<const uint32_t> numbers,
                                    float* there) {
  absl::Status s = call.Begin(numbers.size());
  if (!s.ok() || numbers.empty()) return s;
  Births in;
  s = In(call, births, numbers, in);
  const ops::OptimizerConfig stateless;  // sgd
  for (const SegmentLayout& segment : births.layout->segments) {
    if (s.ok()) {
      s = InitializeSegment(d, births, in, segment, stateless, {there, births.layout->dim});
    }
  }
  return call.End(std::move(s));
}

}  // namespace strata::storage::gpu
