#include "worker/memory_estimate.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

// The longest reads: 4 MiB (worker/data/index.cc) and 8 MiB (worker/data/raw_lines.cc).
constexpr uint64_t kReadBytes = uint64_t{12} << 20;

// Floats of the dense table.
uint64_t DenseFloats(const ModelTables& tables) {
  uint64_t floats = 0;
  for (const TensorSpec& tensor : tables.tables[1].tensors) {
    floats += tensor.Rows(ModelTables::kDenseRowDim) * ModelTables::kDenseRowDim;
  }
  return floats;
}

// Floats that a model keeps of one example, forward and backward: inputs, and the outputs of each
// layer, each with its gradient.
uint64_t ScratchFloats(const ModelTables& t) {
  uint64_t widths = t.embedding_dim + t.numeric;
  for (uint32_t width : t.hidden) widths += width;
  for (uint32_t width : t.bottom_hidden) widths += width;
  if (!t.hidden.empty()) widths += t.example_width();
  widths += t.cross_layers * t.example_width();
  if (t.type == ModelType::kDlrm) widths += t.interaction_pairs();
  return 2 * widths;
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
  parts.push_back(
      {"lines being shuffled", load.lanes_here * block * (load.line_bytes + 16),
       absl::StrCat(load.lanes_here, " lanes x ", block, " lines x (", load.line_bytes, " + 16)")});
  parts.push_back({"pulled weights", load.keys_per_push * (row + 16) + dense,
                   absl::StrCat(load.keys_per_push, " keys of a pull x (", row,
                                " + 16) + dense part ", dense)});
  // Each lane's gradient, and the sums up the tree of lanes.
  parts.push_back(
      {"gradients",
       load.lanes_here * (load.keys_per_batch * (row + 16) + dense) +
           (load.lanes_here > 1 ? load.keys_per_push * (row + 16) + dense : 0),
       absl::StrCat(load.lanes_here, " lanes x (", load.keys_per_batch, " keys of a batch x (", row,
                    " + 16) + dense part), and their sum")});
  parts.push_back({"requests and replies", 4 * (load.keys_per_push * (row + 8) + dense),
                   "4 x (keys of a push x (8 + 4 dim) + dense part): encoded, and in transit"});
  const uint64_t scratch = ScratchFloats(load.tables) * 4;
  parts.push_back({"model scratch", load.batch_size * scratch + load.keys_per_batch * row,
                   absl::StrCat("batchSize x ", scratch, " + rows of a batch")});
  parts.push_back({"reading", kReadBytes, "one read of the index pass and one of a reader", true});
  return parts;
}

}  // namespace strata
