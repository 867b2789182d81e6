#include "tools/gpu/bars/apply_bar.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/rows/apply.h"
#include "ops/optimizer.h"
#include "tools/gpu/bars/bar_memory.h"
#include "tools/gpu/bars/fill.h"
#include "tools/gpu/bars/probe.h"

namespace strata::gpu_check {
namespace {

using ops::OptimizerKind;
using ops::gpu::Buffer;

struct Case {
  const char* name;
  OptimizerKind kind;
  uint32_t dim;
};
constexpr Case kCases[] = {
    {"sgd", OptimizerKind::kSgd, 64},
    {"adagrad", OptimizerKind::kAdagrad, 64},
    {"adagrad", OptimizerKind::kAdagrad, 32},
    {"adagrad", OptimizerKind::kAdagrad, 16},
    {"rowwise_adagrad", OptimizerKind::kRowwiseAdagrad, 128},
    {"rowwise_adagrad", OptimizerKind::kRowwiseAdagrad, 16},
    {"adam", OptimizerKind::kAdam, 64},
    {"ftrl", OptimizerKind::kFtrl, 64},
};
constexpr uint32_t kLeastDim = 16, kLongRowBytes = 256;
constexpr double kLeastLong = 0.75, kLeastShort = 0.55;

// batch_bytes are those of the sums.
size_t Wanted(const BarSizes& sizes) {
  return PieceBytes(sizes.table_bytes) + PieceBytes(sizes.batch_bytes) +
         PieceBytes(sizes.batch_bytes / (kLeastDim * sizeof(float)) * sizeof(uint32_t)) +
         2 * PieceBytes(sizeof(ops::StepScalars));
}

struct Buffers {
  Buffer table, sums, row_of, step, refused;
};

absl::Status Prepare(const BarContext& context, const BarMemory& memory, const Buffers& buffers,
                     const ops::OptimizerConfig& config, uint32_t rows, uint32_t bits) {
  const size_t floats = memory.sizes().table_bytes / sizeof(float);
  // Above 0, as accumulators are.
  absl::Status status =
      FillFloats(*context.api, floats, 0.1f, 1.0f, 3, buffers.table.as<float>(), context.stream);
  if (status.ok()) {
    status =
        FillRowNumbers(*context.api, rows, bits, 4, buffers.row_of.as<uint32_t>(), context.stream);
  }
  if (status.ok()) {
    status = context.api->FillAsync(buffers.refused.as<void>(), 0, buffers.refused.bytes(),
                                    context.stream);
  }
  const ops::StepScalars step = ops::ScalarSource(config).At(1, 1);
  if (status.ok()) {
    status = context.api->CopyAsync(buffers.step.as<void>(), &step, sizeof step, context.stream);
  }
  return status.ok() ? context.api->Synchronize(context.stream) : status;
}

absl::Status CheckRefused(const BarContext& context, const Buffers& buffers,
                          const std::string& name) {
  uint32_t refused = 0;
  absl::Status status =
      context.api->CopyAsync(&refused, buffers.refused.as<void>(), sizeof refused, context.stream);
  if (status.ok()) status = context.api->Synchronize(context.stream);
  if (status.ok() && refused != 0) {
    status = absl::InternalError(absl::StrCat(name, ": ", refused, " rows were refused"));
  }
  return status;
}

absl::Status MeasureCase(const BarContext& context, const BarMemory& memory, const Buffers& buffers,
                         const Case& c) {
  ops::OptimizerConfig config;
  config.kind = c.kind;
  const uint32_t floats = c.dim + ops::StateFloats(c.kind, c.dim);
  const uint32_t stride = (floats + 3) / 4 * 4;
  const uint32_t bits = FloorLog2(memory.sizes().table_bytes / (stride * sizeof(float)));
  const auto rows = static_cast<uint32_t>(std::min<uint64_t>(
      memory.sizes().batch_bytes / (c.dim * sizeof(float)), uint64_t{1} << bits));
  absl::Status status = Prepare(context, memory, buffers, config, rows, bits);
  if (!status.ok()) return status;

  ops::gpu::ApplyTask task;
  task.table = {buffers.table.as<float>(), stride};
  task.state_offset = c.dim;
  task.dim = c.dim;
  task.row_of = buffers.row_of.as<uint32_t>();
  task.rows = {nullptr, rows};
  task.sums = buffers.sums.as<float>();
  task.sum_stride = c.dim;
  task.step = buffers.step.as<ops::StepScalars>();
  task.refused = buffers.refused.as<uint32_t>();

  UpdateProbe probe;
  probe.table = task.table.base;
  probe.quads = stride / 4;
  probe.row_of = task.row_of;
  probe.rows = rows;
  probe.sums = task.sums;
  probe.sum_quads = c.dim / 4;

  BarLine line;
  line.bar = "apply";
  line.name = absl::StrCat(c.name, ", dim ", c.dim, ", row + state ", floats * 4, " B");
  line.bytes = static_cast<double>(rows) * (4.0 + 4.0 * c.dim + 8.0 * floats);
  line.operations = rows;
  line.operation = "rows";
  line.least_of_copy = floats * 4 >= kLongRowBytes ? kLeastLong : kLeastShort;
  status = memory.Measure(
      line, [&] { return ops::gpu::Apply(*context.api, config, task, context.stream); },
      [&] { return ProbeUpdates(*context.api, probe, context.stream); });
  return status.ok() ? CheckRefused(context, buffers, line.name) : status;
}

}  // namespace

absl::Status ApplyBar(const BarContext& context) {
  auto memory = BarMemory::Make(context, &Wanted);
  if (!memory.ok()) return memory.status();
  ops::gpu::Arena* const arena = (*memory)->arena();
  const BarSizes& sizes = (*memory)->sizes();
  auto table = arena->Allocate(sizes.table_bytes);
  auto sums = arena->Allocate(sizes.batch_bytes);
  auto row_of = arena->AllocateArray<uint32_t>(sizes.batch_bytes / (kLeastDim * sizeof(float)));
  auto step = arena->Allocate(sizeof(ops::StepScalars));
  auto refused = arena->Allocate(sizeof(uint32_t));
  for (const absl::StatusOr<Buffer>* taken : {&table, &sums, &row_of, &step, &refused}) {
    if (!taken->ok()) return taken->status();
  }
  const Buffers buffers = {*std::move(table), *std::move(sums), *std::move(row_of),
                           *std::move(step), *std::move(refused)};
  absl::Status status = FillFloats(*context.api, sizes.batch_bytes / sizeof(float), -0.01f, 0.01f,
                                   5, buffers.sums.as<float>(), context.stream);
  for (const Case& c : kCases) {
    if (status.ok()) status = MeasureCase(context, **memory, buffers, c);
  }
  return status;
}

}  // namespace strata::gpu_check
