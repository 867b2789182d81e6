#include "worker/memory_estimate.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "ops/cuda/blas.h"
#include "ops/nn/layer_memory.h"
#include "worker/device/step.h"
#include "worker/device/step_batch.h"

namespace strata {
namespace {

// The longest reads: 4 MiB (worker/data/index.cc) and 8 MiB (worker/data/raw_lines.cc).
constexpr uint64_t kReadBytes = uint64_t{12} << 20;

// As of server/memory_estimate.cc: what gRPC reads ahead of one connection.
constexpr uint64_t kConnectionBytes = uint64_t{20} << 20;
constexpr uint64_t kConnectionMessages = 12;
constexpr uint64_t kHugePage = uint64_t{2} << 20;

// What a block of that many bytes takes up: whole huge pages where it has one.
uint64_t Paged(uint64_t bytes) {
  return bytes < kHugePage ? bytes : (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// Floats of the dense table.
uint64_t DenseFloats(const ModelTables& tables) {
  uint64_t floats = 0;
  for (const TensorSpec& tensor : tables.tables[1].tensors) {
    floats += tensor.Rows(ModelTables::kDenseRowDim) * ModelTables::kDenseRowDim;
  }
  return floats;
}

// Bytes that a model keeps of a batch, forward and backward: inputs, and the outputs of each layer,
// each with its gradient, with rows of whole cache lines, in blocks of their own (ops/nn/mlp.h).
uint64_t ActivationBytes(const ModelTables& t, uint64_t batch) {
  uint64_t bytes = 0;
  const auto add = [&](uint64_t width) {
    bytes += 2 * Paged(batch * ops::RowStride(width) * sizeof(float));
  };
  add(t.embedding_dim);
  if (!t.hidden.empty()) add(t.example_width());
  for (uint32_t width : t.hidden) add(width);
  for (uint32_t width : t.bottom_hidden) add(width);
  for (uint32_t i = 0; i < t.cross_layers; ++i) add(t.example_width());
  if (t.type == ModelType::kDlrm) add(t.interaction_pairs());
  return bytes;
}

// A device's step (worker/device/step.h) for training batches, in fp32 and without what cuBLASLt
// works in.
MemoryPart DevicePart(const WorkerLoad& load) {
  const auto features =
      static_cast<uint32_t>(load.features_per_example * static_cast<double>(load.batch_size));
  const device::StepShape shape = {load.batch_size, features, features, 0};
  const device::StepBytes bytes =
      device::DeviceStepBytes(load.tables, ops::gpu::MatmulPrecision::kFp32, shape, 0);
  if (load.device == WorkerLoad::Device::kHost) {
    return {"model of a GPU, in the host's memory", bytes.device + bytes.pinned,
            absl::StrCat(bytes.device, " as a GPU's, ", bytes.pinned, " of batches on their way")};
  }
  return {"batches on their way to the GPU", bytes.pinned,
          absl::StrCat("2 batches with their gradients, pinned; beside that ", bytes.device,
                       " bytes of the GPU")};
}

}  // namespace

std::vector<MemoryPart> EstimateWorker(const WorkerLoad& load) {
  std::vector<MemoryPart> parts;
  const uint64_t row = uint64_t{load.tables.row_dim()} * 4;
  const uint64_t dense = DenseFloats(load.tables) * 4;
  const auto features =
      static_cast<uint64_t>(load.features_per_example * static_cast<double>(load.batch_size));
  // Parsed: 8 bytes of key, 8 where each unique key occurs; a label, an offset and the numbers.
  const uint64_t batch = features * 16 + load.keys_per_batch * 20 +
                         load.batch_size * (8 + uint64_t{load.tables.numeric} * 4);
  const uint64_t steps =
      load.lines / (uint64_t{load.lanes_here} * std::max(1u, load.batch_size)) + 1;
  const uint64_t prepared = std::min(uint64_t{load.pipeline_depth} + 1, steps);
  parts.push_back({"batches prepared ahead", prepared * load.lanes_here * batch,
                   absl::StrCat("(pipelineDepth + 1, here ", prepared, ") x ", load.lanes_here,
                                " lanes x ", batch, " a batch")});
  const uint64_t share = load.lines / std::max(1u, load.lanes_here) + 1;
  const uint64_t block = std::min<uint64_t>(load.buffer_lines, share);
  parts.push_back({"lines being shuffled",
                   load.lanes_here * block * (load.line_bytes + 16) + block * load.line_bytes,
                   absl::StrCat(load.lanes_here, " lanes x ", block, " lines x (", load.line_bytes,
                                " + 16), and one lane's text twice while it grows")});
  // Of the step at hand, and of the next one, whose keys are announced meanwhile.
  const uint64_t steps_pulled = load.prefetch ? 2 : 1;
  parts.push_back({"pulled weights", steps_pulled * (load.keys_per_push * (row + 16) + dense),
                   absl::StrCat(steps_pulled, " steps x (", load.keys_per_push,
                                " keys of a pull x (", row, " + 16) + dense part ", dense, ")")});
  // Each lane's gradient, and the sums up the tree of lanes.
  parts.push_back(
      {"gradients",
       load.lanes_here * (load.keys_per_batch * (row + 16) + dense) +
           (load.lanes_here > 1 ? load.keys_per_push * (row + 16) + dense : 0),
       absl::StrCat(load.lanes_here, " lanes x (", load.keys_per_batch, " keys of a batch x (", row,
                    " + 16) + dense part), and their sum")});
  if (load.device == WorkerLoad::Device::kCpu) {
    const uint64_t activations = ActivationBytes(load.tables, load.batch_size);
    // Weights are packed once for each direction.
    parts.push_back(
        {"model scratch", activations + 2 * dense + load.keys_per_batch * row,
         absl::StrCat("activations ", activations, ", 2 x dense part, rows of a batch")});
  } else {
    parts.push_back(DevicePart(load));
  }
  parts.push_back({"reading", kReadBytes, "one read of the index pass and one of a reader", true});
  return parts;
}

std::vector<MemoryPart> EstimateMessages(const WorkerLoad& load) {
  const uint64_t bytes =
      load.keys_per_push * (uint64_t{load.tables.row_dim()} * 4 + 8) + DenseFloats(load.tables) * 4;
  const uint64_t message = bytes / std::max(1u, load.servers);
  return {{"requests and replies", load.servers * 2 * Paged(message),
           "servers x 2 x (keys of a push x (8 + 4 dim) + dense part) / servers, in whole pages"},
          {"connections to the servers",
           load.servers * std::min(kConnectionBytes, kConnectionMessages * message),
           "servers x min(12 x bytes of a push, 20 MiB)"}};
}

}  // namespace strata
