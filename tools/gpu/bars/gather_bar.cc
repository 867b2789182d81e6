#include "tools/gpu/bars/gather_bar.h"

#include <algorithm>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/rows/pool.h"
#include "tools/gpu/bars/bar_memory.h"
#include "tools/gpu/bars/fill.h"
#include "tools/gpu/bars/probe.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::Buffer;

struct Case {
  uint32_t row_bytes;
  double least_of_copy;
};
constexpr Case kCases[] = {{256, 0.80}, {128, 0.70}, {64, 0.55}};
constexpr uint32_t kLeastRowBytes = 64;
constexpr double kLeastOfProbe = 0.95;

size_t Wanted(const BarSizes& sizes) {
  return PieceBytes(sizes.table_bytes) + PieceBytes(sizes.batch_bytes) +
         PieceBytes(sizes.batch_bytes / kLeastRowBytes * sizeof(uint32_t));
}

struct Buffers {
  Buffer table, out, row_of;
};

absl::Status MeasureCase(const BarContext& context, const BarMemory& memory, const Buffers& buffers,
                         const Case& c, uint32_t bag_size) {
  const uint32_t bits = FloorLog2(memory.sizes().table_bytes / c.row_bytes);
  const auto features = static_cast<uint32_t>(
      std::min<uint64_t>(memory.sizes().batch_bytes / c.row_bytes, uint64_t{1} << bits) / bag_size *
      bag_size);
  absl::Status status = FillRowNumbers(*context.api, features, bits, 1,
                                       buffers.row_of.as<uint32_t>(), context.stream);
  if (!status.ok()) return status;

  ops::gpu::PoolArguments pool;
  pool.dim = c.row_bytes / sizeof(float);
  pool.table = {buffers.table.as<float>(), pool.dim};
  pool.row_of = buffers.row_of.as<uint32_t>();
  pool.bag_size = bag_size;
  pool.bags = {nullptr, features / bag_size};
  pool.out = buffers.out.as<float>();
  pool.out_stride = pool.dim;

  ReadProbe probe;
  probe.table = pool.table.base;
  probe.quads = pool.dim / 4;
  probe.row_of = pool.row_of;
  probe.bags = probe.stored = pool.bags.most;
  probe.bag_size = bag_size;
  probe.out = pool.out;

  BarLine line;
  line.bar = "gather";
  line.name = absl::StrCat("rows of ", c.row_bytes, " B, ", bag_size, " a bag");
  line.bytes = static_cast<double>(features) * (c.row_bytes + sizeof(uint32_t)) +
               static_cast<double>(pool.bags.most) * c.row_bytes;
  line.operations = features;
  line.operation = "rows";
  line.least_of_copy = c.least_of_copy;
  line.least_of_probe = kLeastOfProbe;
  return memory.Measure(
      line, [&] { return ops::gpu::Pool(*context.api, pool, context.stream); },
      [&] { return ProbeReads(*context.api, probe, context.stream); });
}

}  // namespace

absl::Status GatherBar(const BarContext& context) {
  auto memory = BarMemory::Make(context, &Wanted);
  if (!memory.ok()) return memory.status();
  const BarSizes& sizes = (*memory)->sizes();
  auto table = (*memory)->arena()->Allocate(sizes.table_bytes);
  auto out = (*memory)->arena()->Allocate(sizes.batch_bytes);
  auto row_of = (*memory)->arena()->AllocateArray<uint32_t>(sizes.batch_bytes / kLeastRowBytes);
  for (const absl::StatusOr<Buffer>* taken : {&table, &out, &row_of}) {
    if (!taken->ok()) return taken->status();
  }
  const Buffers buffers = {*std::move(table), *std::move(out), *std::move(row_of)};
  absl::Status status = FillFloats(*context.api, sizes.table_bytes / sizeof(float), -1.0f, 1.0f, 2,
                                   buffers.table.as<float>(), context.stream);
  for (const Case& c : kCases) {
    for (uint32_t bag_size : {1, 4}) {
      if (status.ok()) status = MeasureCase(context, **memory, buffers, c, bag_size);
    }
  }
  return status;
}

}  // namespace strata::gpu_check
