// One batch on its way through the device: its arrays in pinned memory and, at the same addresses
// from batch to batch, on the device.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_SLOT_H_
#define STRATA_WORKER_DEVICE_SLOT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "ops/cuda/nn/field_vectors.h"
#include "ops/nn/layer_memory.h"
#include "ops/parallel.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/copy_list.h"
#include "worker/device/layers/stages.h"
#include "worker/device/layers/step_batch.h"
#include "worker/step/model.h"

namespace strata::device {

// Floats of the tensors of a model, by number.
using TensorSizes = std::vector<size_t>;

// What a batch has of each, and which of its arrays it has: what decides a step's kernels.
struct StepKind {
  StepShape shape;  // examples: padded
  ops::Passes passes = ops::Passes::kForward;
  bool values = false, fields = false, pooled = false, weighted = false;
};

// What does not change from batch to batch, in device memory.
struct StepConstants {
  const uint32_t* ordinals = nullptr;    // 0, 1, 2.., most features + 1
  const uint32_t* max_fields = nullptr;  // as Stages has them; null: none
  const ops::gpu::FieldColumns* columns = nullptr;
};

// Used by one thread at a time, but for what runs on streams.
class Slot {
 public:
  // Memory for batches up to `most`.
  void Want(const StepShape& most, const Stages& stages, const TensorSizes& tensors,
            BufferList* device, BufferList* pinned);
  // After Want: events, and the right to take pinned memory for rows (FillWeights).
  absl::Status Open(ops::gpu::CudaApi* api);
  // Pinned memory for rows and their gradients, as Want was told: what is taken at most, and what
  // was taken so far (any thread).
  size_t most_pinned_rows_bytes() const;
  size_t pinned_rows_bytes() const { return pinned_rows_bytes_.load(std::memory_order_relaxed); }

  // What a batch needs; `multiple`: examples are padded to whole multiples of it. Finds the runs of
  // a batch whose fields have several features each.
  StepKind Plan(const Batch& batch, const RoutedKeys& routed, const Stages& stages,
                ops::Passes passes, uint32_t multiple);
  // Write the planned batch to pinned memory: what no weights are needed for, and then these.
  // REQUIRE: memory for it, and none of the slot's copies under way. `out`: null in a forward pass.
  // Pinned memory for rows, and for their gradients, is taken by the first batch whose rows come
  // from the host, or go there.
  void FillBatch(const Batch& batch, const RoutedKeys& routed, ops::Parallel* parallel);
  absl::Status FillWeights(const ModelInputs& in, const ModelGradients* out,
                           ops::Parallel* parallel);
  // What the kernels are given.
  StepBatch OnDevice(const StepShape& most, const Stages& stages,
                     const StepConstants& constants) const;

  // Asynchronous: pinned memory to the device's, of the batch and of the weights, and what came out
  // back. Rows that are on the device already are gathered there, and gradients that stay there are
  // copied.
  absl::Status CopyBatchIn(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream) const;
  absl::Status CopyWeightsIn(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream) const;
  absl::Status CopyOut(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream) const;
  // After the latter is done: predictions, and with gradients also those; returns the loss.
  double Read(const ModelGradients* out, float* predictions, ops::Parallel* parallel);

  const StepKind& kind() const { return kind_; }
  // The last one is what a step waits for: its thread sleeps, since the cores have the next batch
  // to prepare, and shards to serve.
  ops::gpu::Event batch_copied, copied_in, computed, copied_out;

 private:
  struct Array {
    ops::gpu::Buffer pinned, device;
    size_t bytes = 0;  // of the batch at hand
    template <typename T>
    T* Fill(size_t count) {
      bytes = count * sizeof(T);
      return pinned.as<T>();
    }
    absl::Status CopyIn(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream) const {
      if (bytes == 0) return absl::OkStatus();
      return api->CopyAsync(device.as<void>(), pinned.as<void>(), bytes, stream);
    }
  };
  void Want(Array* array, size_t bytes, BufferList* device, BufferList* pinned);
  void FindRuns(const Batch& batch);
  void FillExamples(const Batch& batch);
  void FillFeatures(const Batch& batch, const RoutedKeys& routed);
  void FillRuns();
  void FillSequences(const Batch& batch);
  void FillTableRuns(const RoutedKeys& routed, const uint32_t* chunk_first);
  void FillPlaces(const KeyRuns& runs, const RowsThere& there);
  double SumLosses() const;
  static uint32_t CountChunks(const RoutedKeys& routed, uint32_t* chunk_first);
  absl::Status GatherRows(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream) const;
  // Of the distinct keys' rows, which lie behind each other.
  size_t row_floats() const { return row_floats_; }
  // Of a gather: keys of one table, among the slot's and among those there.
  struct GatherPart {
    size_t first_key = 0, keys = 0, dim = 0;
    size_t to = 0, from = 0;  // floats
  };
  absl::Status TakePinned(ops::gpu::LateBuffer* rows);

  TensorSizes tensor_sizes_;
  std::vector<size_t> tensor_at_;  // floats before each
  size_t tensor_floats_ = 0;
  size_t row_dim_ = 0, tasks_ = 1, sequences_ = 0;
  std::vector<uint32_t> table_dims_;  // by number; empty: all of row_dim

  StepKind kind_;
  uint32_t examples_ = 0;  // of the batch at hand
  size_t row_floats_ = 0;
  // Where its rows come from and its gradients go on the device; null: the host.
  const float* rows_there_ = nullptr;
  float* gradients_there_ = nullptr;
  std::vector<GatherPart> gathers_;  // those rows: empty where they are in the keys' order
  CopyList copies_;
  // The runs of the batch at hand.
  std::vector<uint32_t> run_offsets_, run_fields_, run_first_, run_of_;
  std::vector<uint32_t> table_keys_;  // by table

  Array counts_, offsets_, row_, values_, fields_, numeric_, labels_, weights_, rows_, place_,
      tensors_;
  Array first_, occurrences_, chunk_first_;
  Array in_run_offsets_, in_run_fields_, in_run_first_, in_run_of_;
  Array table_runs_, sequence_first_, sequence_length_;
  Array row_gradients_, tensor_gradients_, predictions_, losses_;
  // Of rows_ and row_gradients_, which have none else.
  size_t most_row_bytes_ = 0;
  ops::gpu::LateBuffer pinned_rows_, pinned_gradients_;
  std::atomic<size_t> pinned_rows_bytes_{0};
};

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_SLOT_H_
