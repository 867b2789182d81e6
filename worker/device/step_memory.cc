#include "worker/device/step_memory.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "ops/cuda/nn/field_vectors.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::Arena;
using ops::gpu::Coalescer;
using ops::gpu::FieldColumns;
using ops::gpu::MemoryKind;

namespace {

size_t Ordinals(const StepShape& most) {
  return size_t{std::max({most.features, most.unique, most.runs})} + 1;
}

std::span<const FieldColumns> ColumnsOf(const Stages& stages) {
  if (!stages.field_vectors) return {};
  return stages.field_vectors->fields;
}

}  // namespace

TensorSizes StepMemory::TensorSizesOf(const ModelTables& tables) {
  TensorSizes sizes;
  for (size_t t = 0; t < tables.tensor_count(); ++t) sizes.push_back(tables.tensor(t).elements);
  return sizes;
}

void StepMemory::Want(const Stages& stages, const TensorSizes& tensors, BufferList* device_list,
                      BufferList* pinned_list) {
  device_list->WantArray<uint32_t>(&ordinals, Ordinals(most));
  pinned_list->WantArray<uint32_t>(&pinned_ordinals, Ordinals(most));
  device_list->WantArray<uint32_t>(&max_fields, stages.max_fields.size());
  pinned_list->WantArray<uint32_t>(&pinned_max_fields, stages.max_fields.size());
  device_list->WantArray<FieldColumns>(&columns, ColumnsOf(stages).size());
  pinned_list->WantArray<FieldColumns>(&pinned_columns, ColumnsOf(stages).size());
  for (Slot& slot : slots) slot.Want(most, stages, tensors, device_list, pinned_list);
  network->Want(most, device_list);
}

StepBytes DeviceStepBytes(const ModelTables& tables, ops::gpu::MatmulPrecision precision,
                          const StepShape& most, size_t blas_bytes) {
  StepMemory memory;
  memory.most = most;
  const Stages stages = StagesOf(tables);
  memory.network = std::make_unique<DeviceNetwork>(stages, nullptr, precision);
  BufferList device, pinned;
  memory.Want(stages, StepMemory::TensorSizesOf(tables), &device, &pinned);
  // Sums alone need no word of the runtime.
  const auto coalescer = Coalescer::Bytes(nullptr, memory.network->CoalescerOptions(most));
  size_t pinned_rows = 0;
  for (const Slot& slot : memory.slots) pinned_rows += slot.most_pinned_rows_bytes();
  return {device.bytes() + coalescer.value_or(0) + ops::gpu::ArenaBytes(blas_bytes), pinned.bytes(),
          pinned_rows};
}

absl::StatusOr<std::unique_ptr<StepMemory>> StepMemory::Make(const Stages& stages,
                                                             const TensorSizes& tensors,
                                                             const DeviceStepOptions& options,
                                                             const StepShape& most,
                                                             ops::gpu::StreamHandle stream) {
  auto memory = std::make_unique<StepMemory>();
  memory->most = most;
  memory->network = std::make_unique<DeviceNetwork>(stages, options.api, options.precision);
  BufferList device, pinned;
  memory->Want(stages, tensors, &device, &pinned);
  const Coalescer::Options coalescing = memory->network->CoalescerOptions(most);
  const auto coalescer_bytes = Coalescer::Bytes(options.api, coalescing);
  if (!coalescer_bytes.ok()) return coalescer_bytes.status();
  const size_t device_bytes =
      device.bytes() + *coalescer_bytes + ops::gpu::ArenaBytes(options.blas_bytes);

  auto device_arena = Arena::Create(options.api, MemoryKind::kDevice, device_bytes, "the model");
  if (!device_arena.ok()) return device_arena.status();
  memory->device = *std::move(device_arena);
  auto pinned_arena =
      Arena::Create(options.api, MemoryKind::kPinned, pinned.bytes(), "the model's batches");
  if (!pinned_arena.ok()) return pinned_arena.status();
  memory->pinned = *std::move(pinned_arena);
  STRATA_RETURN_IF_ERROR(device.Take(memory->device.get()));
  STRATA_RETURN_IF_ERROR(pinned.Take(memory->pinned.get()));
  auto coalescer = Coalescer::Create(options.api, memory->device.get(), coalescing, stream);
  if (!coalescer.ok()) return coalescer.status();
  auto blas = options.open_blas(memory->device.get());
  if (!blas.ok()) return blas.status();
  memory->network->Open(*std::move(blas), *std::move(coalescer));
  for (Slot& slot : memory->slots) STRATA_RETURN_IF_ERROR(slot.Open(options.api));

  STRATA_RETURN_IF_ERROR(memory->CopyConstants(options.api, stages, stream));
  STRATA_RETURN_IF_ERROR(options.api->Synchronize(stream));
  return memory;
}

absl::Status StepMemory::CopyConstants(ops::gpu::CudaApi* api, const Stages& stages,
                                       ops::gpu::StreamHandle stream) const {
  const size_t count = Ordinals(most);
  auto* const from = pinned_ordinals.as<uint32_t>();
  std::iota(from, from + count, 0u);
  STRATA_RETURN_IF_ERROR(
      api->CopyAsync(ordinals.as<void>(), from, count * sizeof(uint32_t), stream));
  const auto copy = [&](const auto& values, const ops::gpu::Buffer& pinned,
                        const ops::gpu::Buffer& there) {
    if (values.empty()) return absl::OkStatus();
    const size_t bytes = values.size() * sizeof(values[0]);
    std::memcpy(pinned.as<void>(), values.data(), bytes);
    return api->CopyAsync(there.as<void>(), pinned.as<void>(), bytes, stream);
  };
  STRATA_RETURN_IF_ERROR(copy(stages.max_fields, pinned_max_fields, max_fields));
  return copy(ColumnsOf(stages), pinned_columns, columns);
}

StepConstants StepMemory::Constants() const {
  return {ordinals.as<uint32_t>(), max_fields.bytes() == 0 ? nullptr : max_fields.as<uint32_t>(),
          columns.as<FieldColumns>()};
}

}  // namespace strata::device
