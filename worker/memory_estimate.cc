#include "worker/memory_estimate.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/cuda/products/blas.h"
#include "ops/nn/layer_memory.h"
#include "worker/device/layers/step_batch.h"
#include "worker/device/step.h"
#include "worker/lane_memory.h"
#include "worker/models/model_memory.h"

namespace strata {
namespace {

// The longest reads: 4 MiB (worker/data/index/index.cc) and 8 MiB
// (worker/data/reading/raw_lines.cc).
constexpr uint64_t kReadBytes = uint64_t{12} << 20;

// Text that is read before it is parsed (worker/data/reading/file_batch_source.cc).
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
// Of a line and label that is scored, in memory that doubles (worker/eval/quality.h); and of a line
// while one label's are sorted.
constexpr uint64_t kScoredLineBytes = 16;
constexpr uint64_t kSortedLineBytes = 24;

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

// Of the widest table: whose keys a batch has is not known.
uint64_t RowBytes(const ModelTables& tables) {
  uint64_t dim = 0;
  for (const TableSpec& table : tables.tables) {
    if (table.kind == TableKind::kHashed) dim = std::max(dim, uint64_t{table.dim()});
  }
  return dim * sizeof(float);
}

uint32_t LinesScored(const WorkerLoad& load) {
  return static_cast<uint32_t>(ScoredAtATime(load.tables).lines);
}

// What a device's steps (worker/device/step.h) take memory for in the end; where the host stands
// for it, what they touch of that.
device::StepShape ShapeOf(const WorkerLoad& load) {
  const uint32_t fields = load.tables.fields;
  const bool host = load.device == WorkerLoad::Device::kHost;
  device::StepShape shape =
      device::FirstShape(load.batch_size, load.eval_lines > 0 ? LinesScored(load) : 0, fields);
  const double examples = shape.examples;
  const double batches = examples / std::max(1u, load.batch_size);
  const auto features = static_cast<uint32_t>(load.features_per_example * examples);
  // Of several batches at most so many.
  const auto unique = static_cast<uint32_t>(
      std::min(static_cast<double>(load.keys_per_batch) * batches, static_cast<double>(features)));
  shape.features = host ? features : device::GrownTo(shape.features, features);
  shape.unique = host ? unique : device::GrownTo(shape.unique, unique);
  // Fields of several features each: they are pooled, but where models do that as they gather.
  if (fields > 0 && !load.tables.any_width() && load.features_per_example > fields) {
    shape.runs = std::min(device::GrownTo(0, shape.examples * fields), shape.features);
  }
  return shape;
}

device::StepBytes StepBytesOf(const WorkerLoad& load) {
  const bool gpu = load.device == WorkerLoad::Device::kGpu;
  return device::DeviceStepBytes(load.tables, load.precision, ShapeOf(load),
                                 gpu ? ops::gpu::Blas::Options::kBytes : 0);
}

// Keys of the sum of so many lanes.
uint64_t KeysOfSum(const WorkerLoad& load, uint64_t lanes) {
  return std::min(lanes * load.keys_per_batch, load.keys_per_push);
}

// The most keys of all sums that are there at once while that of a node is made (SumNode): its
// left part, while the right one is made; then both, and itself.
uint64_t KeysOfSums(const WorkerLoad& load, uint64_t lanes) {
  if (lanes < 2) return 0;
  const uint64_t left = std::bit_ceil(lanes) / 2, right = lanes - left;
  const auto kept = [&](uint64_t n) { return n < 2 ? 0 : KeysOfSum(load, n); };
  return std::max({KeysOfSums(load, left), kept(left) + KeysOfSums(load, right),
                   kept(left) + kept(right) + KeysOfSum(load, lanes)});
}

// Two places of each row of the largest sum.
uint64_t PlaceBytes(const WorkerLoad& load) {
  return load.synchronous && load.lanes_here > 1
             ? 2 * sizeof(uint32_t) * KeysOfSum(load, load.lanes_here)
             : 0;
}

// A quarter that the host does not touch.
uint64_t WithSpare(const WorkerLoad& load, uint64_t bytes) {
  return load.device == WorkerLoad::Device::kHost ? bytes : bytes + bytes / 4;
}

MemoryPart RowsPart(const WorkerLoad& load) {
  const uint64_t row = RowBytes(load.tables);
  const uint64_t gradients = load.lanes_here * load.keys_per_batch;
  const char* const spare = load.device == WorkerLoad::Device::kHost ? "" : "5/4 x ";
  if (!load.synchronous) {
    return {"rows of steps", WithSpare(load, 2 * gradients * row),
            absl::StrCat(spare, "2 x ", load.lanes_here, " lanes x ", load.keys_per_batch,
                         " keys of a batch x ", row)};
  }
  const uint64_t sums = KeysOfSums(load, load.lanes_here);
  return {"rows of steps",
          WithSpare(load, (2 * load.keys_per_push + gradients + sums) * row + PlaceBytes(load)),
          absl::StrCat(spare, "((2 x ", load.keys_per_push, " keys of a pull + ", load.lanes_here,
                       " lanes x ", load.keys_per_batch, " of a batch + ", sums, " of sums) x ",
                       row, " + places)")};
}

// Parsed: 8 bytes of key, a field and a value, and where each feature's key and each unique key's
// features are; an offset, labels, a weight, numbers.
uint64_t BatchBytes(const WorkerLoad& load, uint64_t examples, uint64_t features, uint64_t keys) {
  const ModelTables& t = load.tables;
  const uint64_t floats =
      1 + uint64_t{t.task_count()} + (t.weighted ? 1 : 0) + t.numeric + 2 * t.sequences.size();
  return features * (load.pooled || !t.sequences.empty() ? 24 : 16) + keys * 20 +
         examples * floats * 4;
}

uint64_t BatchBytes(const WorkerLoad& load) {
  const auto features =
      static_cast<uint64_t>(load.features_per_example * static_cast<double>(load.batch_size));
  return BatchBytes(load, load.batch_size, features, load.keys_per_batch);
}

void AddPrepared(const WorkerLoad& load, std::vector<MemoryPart>* parts) {
  const uint64_t batch = BatchBytes(load);
  const uint64_t steps =
      load.lines / (uint64_t{load.lanes_here} * std::max(1u, load.batch_size)) + 1;
  const uint64_t prepared = std::min(uint64_t{load.pipeline_depth} + 1, steps);
  parts->push_back({"batches prepared ahead", prepared * load.lanes_here * batch,
                    absl::StrCat("(pipelineDepth + 1, here ", prepared, ") x ", load.lanes_here,
                                 " lanes x ", batch, " a batch")});
}

void AddPulledBatches(const WorkerLoad& load, std::vector<MemoryPart>* parts) {
  const uint64_t batch = BatchBytes(load);
  parts->push_back({"batches of the lanes", load.lanes_here * load.batches_per_pull * batch,
                    absl::StrCat(load.lanes_here, " lanes x ", load.batches_per_pull,
                                 " batches of a pull x ", batch)});
}

// Bsp: the weights of a step, and gradients.
void AddStep(const WorkerLoad& load, uint64_t row, uint64_t dense, std::vector<MemoryPart>* parts) {
  // Of the step at hand, and of the next one, whose keys are announced meanwhile.
  const uint64_t steps_pulled = load.prefetch ? 2 : 1;
  parts->push_back({"pulled weights", steps_pulled * (load.keys_per_push * (row + 16) + dense),
                    absl::StrCat(steps_pulled, " steps x (", load.keys_per_push,
                                 " keys of a pull x (", row, " + 16) + dense part ", dense, ")")});
  // Each lane's gradient, and the sums up the tree of lanes.
  parts->push_back(
      {"gradients",
       load.lanes_here * (load.keys_per_batch * (row + 16) + dense) +
           (load.lanes_here > 1 ? load.keys_per_push * (row + 16) + dense : 0),
       absl::StrCat(load.lanes_here, " lanes x (", load.keys_per_batch, " keys of a batch x (", row,
                    " + 16) + dense part), and their sum")});
}

void AddLanes(const WorkerLoad& load, uint64_t row, uint64_t dense,
              std::vector<MemoryPart>* parts) {
  LaneLoad lanes;
  lanes.lanes = load.lanes_here;
  lanes.keys_per_batch = load.keys_per_batch;
  lanes.keys_per_pull = load.keys_per_pull;
  lanes.keys_of_lane = load.keys_of_lane;
  lanes.row_bytes = row;
  lanes.dense_bytes = dense;
  lanes.local_tables = load.local_tables;
  lanes.elastic = load.elastic;
  for (MemoryPart& part : EstimateLanes(lanes)) parts->push_back(std::move(part));
}

// Of bsp one, of the other modes each lane's.
void AddModel(const WorkerLoad& load, uint64_t row, std::vector<MemoryPart>* parts) {
  const auto features =
      static_cast<uint64_t>(load.features_per_example * static_cast<double>(load.batch_size));
  const ModelMemory model = MemoryOfModel(load.tables, {load.batch_size, features, load.pooled},
                                          ops::Passes::kForwardAndBackward, load.threads);
  const uint64_t models = load.synchronous ? 1 : load.lanes_here;
  parts->push_back({"model scratch", models * (model.total() + load.keys_per_batch * row),
                    absl::StrCat(models == 1 ? std::string() : absl::StrCat(models, " lanes x "),
                                 "(activations ", model.batch, ", packed weights ", model.weights,
                                 ", rows of a batch)")});
}

// What stands for the device's memory, or lies between the host and the device.
void AddDevice(const WorkerLoad& load, std::vector<MemoryPart>* parts) {
  const device::StepBytes step = StepBytesOf(load);
  if (load.device == WorkerLoad::Device::kHost) {
    for (MemoryPart& part : EstimateWorkerDevice(load)) {
      part.name = absl::StrCat(part.name, " of a GPU, in the host's memory");
      parts->push_back(std::move(part));
    }
  }
  parts->push_back(
      {"batches on their way to the GPU", step.pinned, "2 batches and the dense part, pinned"});
  if (!load.rows_there) {
    parts->push_back({"rows on their way to the GPU", step.pinned_rows,
                      "2 batches' rows and their gradients, pinned"});
  }
  if (load.rows_there && PlaceBytes(load) > 0) {
    parts->push_back({"places on their way to the GPU", WithSpare(load, PlaceBytes(load)),
                      "8 x keys of the largest sum, and a quarter, pinned"});
  }
}

}  // namespace

std::vector<MemoryPart> EstimateWorker(const WorkerLoad& load) {
  std::vector<MemoryPart> parts;
  // A device has the rows themselves.
  const uint64_t row = load.rows_there ? 0 : RowBytes(load.tables);
  const uint64_t dense = DenseFloats(load.tables) * 4;
  if (load.synchronous) {
    AddPrepared(load, &parts);
  } else {
    AddPulledBatches(load, &parts);
  }
  const uint64_t share = load.lines / std::max(1u, load.lanes_here) + 1;
  const uint64_t block = std::min<uint64_t>(load.buffer_lines, share);
  parts.push_back({"lines being shuffled",
                   load.lanes_here * block * (load.line_bytes + 16) + block * load.line_bytes,
                   absl::StrCat(load.lanes_here, " lanes x ", block, " lines x (", load.line_bytes,
                                " + 16), and one lane's text twice while it grows")});
  if (load.synchronous) {
    AddStep(load, row, dense, &parts);
  } else {
    AddLanes(load, row, dense, &parts);
  }
  if (load.device == WorkerLoad::Device::kCpu) {
    AddModel(load, row, &parts);
  } else {
    AddDevice(load, &parts);
  }
  if (load.eval_lines > 0) {
    for (MemoryPart& part : EstimateScoring(load, load.eval_lines)) {
      part.name = absl::StrCat("evaluation: ", part.name);
      part.reused = true;  // one worker evaluates
      parts.push_back(std::move(part));
    }
  }
  parts.push_back({"reading", kReadBytes, "one read of the index pass and one of a reader", true});
  return parts;
}

std::vector<MemoryPart> EstimateScoring(const WorkerLoad& load, uint64_t lines) {
  const BatchLimit limit = ScoredAtATime(load.tables);
  const uint64_t at_once = std::min(lines, limit.lines);
  const auto features_of = [&](uint64_t n) {
    return static_cast<uint64_t>(load.features_per_example * static_cast<double>(n));
  };
  // Lines are parsed by pieces of text.
  const uint64_t features =
      std::min(features_of(at_once),
               limit.features + features_of(kPieceBytes / std::max<uint64_t>(1, load.line_bytes)));
  const uint64_t batches = at_once / std::max(1u, load.batch_size) + 1;
  uint64_t keys = std::min(features, load.keys_per_batch * batches);
  if (load.rows > 0) keys = std::min(keys, load.rows);
  const uint64_t row = RowBytes(load.tables), dense = DenseFloats(load.tables) * 4;
  std::vector<MemoryPart> parts;
  if (load.device == WorkerLoad::Device::kCpu) {
    const ModelMemory model = MemoryOfModel(load.tables, {at_once, features, load.pooled},
                                            ops::Passes::kForward, load.threads);
    parts.push_back({"model scratch", model.total(),
                     absl::StrCat("of ", at_once, " lines of ", load.tables.fields,
                                  " fields; packed weights ", model.weights)});
  }
  parts.push_back({"lines and their rows",
                   BatchBytes(load, at_once, features, keys) + keys * (row + 16) + dense +
                       std::min(at_once * load.line_bytes, kPieceBytes),
                   absl::StrCat(features, " features, ", keys, " keys x (", row,
                                " + 16), dense part and text")});
  const uint64_t kept = kScoredLineBytes * load.tables.task_count() +
                        (load.tables.weighted ? kScoredLineBytes : 0) +
                        (load.gauc ? kScoredLineBytes : 0) + kSortedLineBytes;
  parts.push_back({"scores and labels", lines * kept,
                   absl::StrCat(lines, " lines x ", kept, ", to sort them by score")});
  return parts;
}

std::vector<MemoryPart> EstimateWorkerDevice(const WorkerLoad& load) {
  if (load.device == WorkerLoad::Device::kCpu) return {};
  const device::StepShape shape = ShapeOf(load);
  std::vector<MemoryPart> parts = {
      {"model", StepBytesOf(load).device,
       absl::StrCat(
           "2 batches of ", shape.examples, " examples, ", shape.features,
           " features, and their way through the model",
           load.precision == ops::gpu::MatmulPrecision::kBf16 ? ", factors in bf16 too" : "")}};
  if (load.rows_there) parts.push_back(RowsPart(load));
  return parts;
}

std::vector<MemoryPart> EstimateMessages(const WorkerLoad& load) {
  const uint64_t bytes =
      load.keys_per_push * (RowBytes(load.tables) + 8) + DenseFloats(load.tables) * 4;
  const uint64_t message = bytes / std::max(1u, load.servers);
  return {{"requests and replies", load.servers * 2 * Paged(message),
           "servers x 2 x (keys of a push x (8 + 4 dim) + dense part) / servers, in whole pages"},
          {"connections to the servers",
           load.servers * std::min(kConnectionBytes, kConnectionMessages * message),
           "servers x min(12 x bytes of a push, 20 MiB)"}};
}

}  // namespace strata
