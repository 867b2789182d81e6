#include "worker/memory_estimate.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/cuda/products/blas.h"
#include "ops/nn/layer_memory.h"
#include "worker/bsp/lane_preparer.h"
#include "worker/device/layers/step_batch.h"
#include "worker/device/step.h"
#include "worker/lane_memory.h"
#include "worker/models/model_memory.h"

namespace strata {
namespace {

// The longest reads: 4 MiB (worker/data/index/index.cc) and 8 MiB
// (worker/data/reading/raw_lines.cc).
constexpr uint64_t kReadBytes = uint64_t{12} << 20;

// Text that is read before it is parsed (worker/data/reading/file_batch_source.cc), about.
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

bool OnDevice(const WorkerLoad& load) { return load.device != WorkerLoad::Device::kCpu; }

BatchLimit ScoredBy(const WorkerLoad& load) {
  return OnDevice(load) ? ScoredOnDevice(load.tables, load.batch_size) : ScoredAtATime(load.tables);
}

uint64_t MeanFeatures(const WorkerLoad& load, uint64_t examples) {
  return static_cast<uint64_t>(load.features_per_example * static_cast<double>(examples));
}

// Of a batch of training.
uint64_t FeaturesOfBatch(const WorkerLoad& load) {
  return load.features_per_batch > 0 ? load.features_per_batch
                                     : MeanFeatures(load, load.batch_size);
}
BatchCounts CountsOfBatch(const WorkerLoad& load) {
  return {load.batch_size, FeaturesOfBatch(load), load.keys_per_batch};
}

// Of lines that are scored.
uint64_t FeaturesOfLongest(const WorkerLoad& load, uint64_t lines) {
  return load.of_lines.empty() ? MeanFeatures(load, lines) : load.of_lines.OfLongest(lines);
}

uint32_t In32Bits(uint64_t n) { return static_cast<uint32_t>(std::min<uint64_t>(n, UINT32_MAX)); }

// What a device's steps (worker/device/step.h) take memory for in the end; where the host stands
// for it, what they touch of that.
device::StepShape ShapeOf(const WorkerLoad& load) {
  const uint32_t fields = load.tables.fields;
  const bool host = load.device == WorkerLoad::Device::kHost;
  const bool evaluates = load.eval_lines > 0;
  device::StepShape shape =
      device::FirstShape(load.batch_size, evaluates ? In32Bits(ScoredBy(load).lines) : 0, fields);
  BatchCounts most = CountsOfBatch(load);
  if (evaluates) {
    const BatchCounts scored = MostScored(load, load.eval_lines);
    most.features = std::max(most.features, scored.features);
    most.keys = std::max(most.keys, scored.keys);
  }
  const uint32_t features = In32Bits(most.features);
  const uint32_t unique = std::min(features, In32Bits(most.keys));
  shape.features = host ? features : device::GrownTo(shape.features, features);
  shape.unique = host ? unique : device::GrownTo(shape.unique, unique);
  // Fields of several features each: they are pooled, but where models do that as they gather.
  if (fields > 0 && !load.tables.any_width() && load.features_per_example > fields) {
    shape.runs =
        std::min(device::GrownTo(0, In32Bits(uint64_t{shape.examples} * fields)), shape.features);
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

// Parsed, and routed.
uint64_t BatchBytes(const WorkerLoad& load, const BatchCounts& most) {
  return MemoryOfBatch(load.tables, most) + MemoryOfRoutedKeys(most);
}

// Who finds the distinct keys of batches.
void AddRouters(const WorkerLoad& load, uint64_t routers, std::vector<MemoryPart>* parts) {
  const uint64_t bytes = MemoryOfRouter(load.tables, CountsOfBatch(load));
  parts->push_back({"finding the distinct keys", routers * bytes,
                    absl::StrCat(routers, " at a time x ", bytes, " of a batch")});
}

void AddPrepared(const WorkerLoad& load, std::vector<MemoryPart>* parts) {
  const uint64_t batch = BatchBytes(load, CountsOfBatch(load));
  const uint64_t steps =
      load.lines / (uint64_t{load.lanes_here} * std::max(1u, load.batch_size)) + 1;
  const uint64_t prepared = std::min(uint64_t{load.pipeline_depth} + 1, steps);
  parts->push_back({"batches prepared ahead", prepared * load.lanes_here * batch,
                    absl::StrCat("(pipelineDepth + 1, here ", prepared, ") x ", load.lanes_here,
                                 " lanes x ", batch, " a batch")});
  AddRouters(load,
             PreparingThreads(load.batch_size, std::max(1u, load.pipeline_depth), load.threads),
             parts);
}

void AddPulledBatches(const WorkerLoad& load, std::vector<MemoryPart>* parts) {
  const uint64_t batch = BatchBytes(load, CountsOfBatch(load));
  parts->push_back({"batches of the lanes", load.lanes_here * load.batches_per_pull * batch,
                    absl::StrCat(load.lanes_here, " lanes x ", load.batches_per_pull,
                                 " batches of a pull x ", batch)});
  AddRouters(load, load.lanes_here, parts);
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
  const ModelMemory model =
      MemoryOfModel(load.tables, {load.batch_size, FeaturesOfBatch(load), load.pooled},
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
  const uint64_t line = std::max(load.line_bytes, load.task_line_bytes);
  parts.push_back({"lines being shuffled", load.lanes_here * block * (line + 16) + block * line,
                   absl::StrCat(load.lanes_here, " lanes x ", block, " lines x (", line,
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

BatchCounts MostScored(const WorkerLoad& load, uint64_t lines) {
  const BatchLimit limit = ScoredBy(load);
  BatchCounts most;
  most.examples = std::min(lines, limit.lines);
  // It ends with the line by which it has as many features as the limit says.
  most.features = std::min(
      FeaturesOfLongest(load, most.examples),
      std::max(limit.features + FeaturesOfLongest(load, 1), FeaturesOfLongest(load, limit.least)));
  most.keys = load.rows > 0 ? std::min(most.features, load.rows) : most.features;
  return most;
}

namespace {

// What such a block takes: of the model, on the CPU, and of its lines and their rows.
struct ScoringBytes {
  ModelMemory model;
  uint64_t lines = 0;
  uint64_t total() const { return model.total() + lines; }
};
ScoringBytes BytesOfScored(const WorkerLoad& load, const BatchCounts& block) {
  ScoringBytes bytes;
  if (!OnDevice(load)) {
    bytes.model = MemoryOfModel(load.tables, {block.examples, block.features, load.pooled},
                                ops::Passes::kForward, load.threads);
  }
  bytes.lines = BatchBytes(load, block) + MemoryOfRouter(load.tables, block) +
                block.keys * (RowBytes(load.tables) + 16) + DenseFloats(load.tables) * 4;
  return bytes;
}

// What malloc keeps of shorter blocks: buffers that became too small lie behind each other, and the
// larger ones take the place of several of them.
uint64_t KeptOfShorter(const WorkerLoad& load, const BatchCounts& most) {
  constexpr uint64_t kMost = uint64_t{64} << 20;  // two blocks that are not mapped (allocator.h)
  BatchCounts usual = most;
  usual.features = std::min(most.features, MeanFeatures(load, most.examples));
  usual.keys = std::min(most.keys, usual.features);
  return std::min(kMost,
                  (BytesOfScored(load, most).total() - BytesOfScored(load, usual).total()) / 2);
}

}  // namespace

std::vector<MemoryPart> EstimateScoring(const WorkerLoad& load, uint64_t lines) {
  const BatchCounts most = MostScored(load, lines);
  const ScoringBytes bytes = BytesOfScored(load, most);
  std::vector<MemoryPart> parts;
  if (!OnDevice(load)) {
    parts.push_back({"model scratch", bytes.model.total(),
                     absl::StrCat("of ", most.examples, " lines of ", load.tables.fields,
                                  " fields; packed weights ", bytes.model.weights)});
  }
  parts.push_back({"lines and their rows",
                   bytes.lines + std::min(lines * load.line_bytes, 2 * kPieceBytes),
                   absl::StrCat("at most ", most.features, " features, ", most.keys, " keys x (",
                                RowBytes(load.tables), " + 16), dense part and text")});
  constexpr uint64_t kWorthALine = uint64_t{1} << 20;
  if (const uint64_t freed = KeptOfShorter(load, most); freed >= kWorthALine) {
    parts.push_back({"what shorter lines took", freed,
                     "half of what the longest take more than the mean, at most 64 MiB"});
  }
  const uint64_t kept = kScoredLineBytes * load.tables.task_count() +
                        (load.tables.weighted ? kScoredLineBytes : 0) +
                        (load.gauc ? kScoredLineBytes : 0) + kSortedLineBytes;
  parts.push_back({"scores and labels", lines * kept,
                   absl::StrCat(lines, " lines x ", kept, ", to sort them by score")});
  return parts;
}

std::vector<MemoryPart> EstimateWorkerDevice(const WorkerLoad& load) {
  if (!OnDevice(load)) return {};
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

absl::Status CheckDevice(const WorkerLoad& load) {
  return OnDevice(load) ? device::CheckOnDevice(load.tables, load.batch_size) : absl::OkStatus();
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
