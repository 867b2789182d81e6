// All that a job's steps have on a device, for batches up to a shape: taken together, given back
// together.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_STEP_MEMORY_H_
#define STRATA_WORKER_DEVICE_STEP_MEMORY_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "proto/job/tables/model_tables.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/network.h"
#include "worker/device/layers/stages.h"
#include "worker/device/layers/step_batch.h"
#include "worker/device/slot.h"
#include "worker/device/step.h"

namespace strata::device {

// What decides a step's kernels and their arguments: see DeviceStep.
using GraphKey = std::tuple<uint32_t, uint32_t, bool, bool, bool, bool, bool>;
inline GraphKey GraphKeyOf(uint32_t slot, const StepKind& kind) {
  return {slot,         kind.shape.examples, kind.passes == ops::Passes::kForward,
          kind.values,  kind.fields,         kind.pooled,
          kind.weighted};
}

// Members in the order of need: what is below uses what is above, and goes first.
struct StepMemory {
  // Tensors' floats, by number.
  static TensorSizes TensorSizesOf(const ModelTables& tables);

  // Takes it from the runtime. Waits for what is copied to it.
  static absl::StatusOr<std::unique_ptr<StepMemory>> Make(const Stages& stages,
                                                          const TensorSizes& tensors,
                                                          const DeviceStepOptions& options,
                                                          const StepShape& most,
                                                          ops::gpu::StreamHandle stream);

  // Asynchronous: what Constants has.
  absl::Status CopyConstants(ops::gpu::CudaApi* api, const Stages& stages,
                             ops::gpu::StreamHandle stream) const;

  // Adds all that is wanted of each, but for the coalescer's and the products'.
  void Want(const Stages& stages, const TensorSizes& tensors, BufferList* device_list,
            BufferList* pinned_list);

  StepConstants Constants() const;

  StepShape most;
  std::unique_ptr<ops::gpu::Arena> device, pinned;
  ops::gpu::Buffer ordinals, pinned_ordinals;
  ops::gpu::Buffer max_fields, pinned_max_fields;  // empty: the job has none
  ops::gpu::Buffer columns, pinned_columns;        // as max_fields
  std::array<Slot, DeviceStep::kSlots> slots;
  std::unique_ptr<DeviceNetwork> network;
  // Null: seen once.
  std::map<GraphKey, ops::gpu::Graph> graphs;
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_STEP_MEMORY_H_
