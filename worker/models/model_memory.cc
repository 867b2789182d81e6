#include "worker/models/model_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/cpu_features.h"
#include "ops/nn/field_vectors.h"
#include "ops/nn/gemm.h"
#include "ops/nn/mlp.h"
#include "ops/nn/pairwise.h"
#include "proto/core/table_spec.h"
#include "worker/models/perceptron.h"

namespace strata {
namespace {

using ops::AlignedFloats;
using ops::RowStride;

// Lists of layers, products and tasks, with what malloc has beside each block.
constexpr uint64_t kListBytes = uint64_t{32} << 10;
// Of a feature on its way to a model: key, unique_of, occurrences, a field, a value, and what
// routes it (worker/step/router.h).
constexpr uint64_t kFeatureBytes = 96;

uint64_t RoundUp(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

// Adds up the buffers of a model for one batch; each function is a class's of its name.
class Sum {
 public:
  Sum(const ModelTables& tables, const BatchExtent& batch, ops::Passes passes, uint32_t threads)
      : t_(tables),
        examples_(batch.examples),
        features_(batch.features),
        tasks_(tables.task_count()),
        backward_(passes == ops::Passes::kForwardAndBackward),
        threads_(std::max(1u, threads)),
        kernel_(ops::GemmKernelOf(ops::IsaLevel::kV4)) {
    // Mmoe and din pool by themselves, and lr's weights are a sum however they are grouped.
    const bool sums = t_.any_width() || (t_.type == ModelType::kLr && t_.max_pooled.empty());
    if (batch.pooled && !sums) Pooled();
    ExampleScratch();
    Model();
    memory_.weights += kListBytes + threads_ * product_;
  }

  const ModelMemory& memory() const { return memory_; }

 private:
  void Model() {
    const uint64_t width = t_.example_width();
    switch (t_.type) {
      case ModelType::kLr:
        return Product(t_.numeric, tasks_);
      case ModelType::kFm:
        return Fm();
      case ModelType::kWideDeep:
        Product(t_.numeric, tasks_);
        return Mlp(LayerWidths(width, t_.hidden, tasks_), examples_);
      case ModelType::kDeepFm:
        Product(t_.numeric, tasks_);
        Sums();
        return Mlp(LayerWidths(width, t_.hidden, tasks_), examples_);
      case ModelType::kDcnV2:
        return DcnV2();
      case ModelType::kDlrm:
        return Dlrm();
      case ModelType::kSharedBottom:
        Mlp(LayerWidths(width, t_.hidden, 0), examples_);
        return Towers(t_.hidden.back());
      case ModelType::kMmoe:
        return Mmoe();
      case ModelType::kDin:
        return Din();
    }
  }

  void Vector(uint64_t elements, uint64_t bytes) { memory_.batch += elements * bytes; }
  // One that grows by push_back.
  void Grown(uint64_t elements, uint64_t bytes) { Vector(2 * elements, bytes); }
  void Floats(uint64_t n) { memory_.batch += AlignedFloats::BytesOf(n); }
  // Values, and gradients where there are some.
  void Activations(uint64_t rows, uint64_t stride) {
    Floats(rows * stride);
    if (backward_) Floats(rows * stride);
  }
  // A factor (k, n), and its transpose for the way back.
  void Packed(uint64_t k, uint64_t n) {
    memory_.weights += AlignedFloats::BytesOf(RoundUp(n, kernel_.panel) * k);
    if (backward_) memory_.weights += AlignedFloats::BytesOf(RoundUp(k, kernel_.panel) * n);
  }
  // TransposedGemm's scratch of a thread for a gradient (m, n).
  void Product(uint64_t m, uint64_t n) {
    if (!backward_) return;
    const uint64_t strips = RoundUp(m, kernel_.tile_rows) / kernel_.tile_rows;
    const uint64_t groups = std::clamp<uint64_t>(strips, 1, threads_);
    const uint64_t rows = (strips + groups - 1) / groups * kernel_.tile_rows;
    const uint64_t columns =
        RoundUp(std::min<uint64_t>(n, ops::TransposedGemm::kColumns), kernel_.panel);
    product_ = std::max<uint64_t>(
        product_, AlignedFloats::BytesOf((rows + columns) * ops::TransposedGemm::kBlockRows));
  }

  void Mlp(const std::vector<size_t>& widths, uint64_t rows) {
    for (const size_t width : widths) Activations(rows, RowStride(width));
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      Packed(widths[i], widths[i + 1]);
      memory_.weights += AlignedFloats::BytesOf(widths[i + 1]);  // the bias
      Product(widths[i], widths[i + 1]);
    }
  }

  void ExampleScratch() {
    Vector(examples_ * tasks_, (tasks_ > 1 ? 4 : 3) * sizeof(float));
    Vector(features_, sizeof(uint32_t));
  }

  // Sums of the second order, and FmHeads.
  void Sums() {
    Vector(examples_ * t_.embedding_dim, sizeof(float));
    if (tasks_ == 1) return;
    Vector(examples_ * t_.embedding_dim, 2 * sizeof(float));
    Product(t_.embedding_dim, tasks_);
  }

  void Fm() {
    Sums();
    Product(t_.numeric, tasks_);
    Product(t_.numeric, t_.embedding_dim);
    Product(0, t_.numeric);
    if (backward_) Vector(examples_ * (t_.embedding_dim + uint64_t{t_.numeric}), sizeof(float));
  }

  void DcnV2() {
    const uint64_t width = t_.example_width(), rank = t_.cross_rank;
    Mlp(LayerWidths(width, t_.hidden, 0), examples_);
    for (uint32_t l = 0; l < t_.cross_layers; ++l) {
      Activations(examples_, RowStride(width));  // u_l
      Floats(examples_ * RowStride(width));      // x_{l+1}
      if (rank > 0) {
        Activations(examples_, RowStride(rank));
        Packed(width, rank);
        Product(width, rank);
      }
      Packed(rank > 0 ? rank : width, width);
      Product(rank > 0 ? rank : width, width);
      memory_.weights += AlignedFloats::BytesOf(width);
    }
    if (backward_) Floats(examples_ * RowStride(width));
    for (const uint64_t part : {width, uint64_t{t_.hidden.back()}}) {  // the output's two
      Packed(part, tasks_);
      Product(part, tasks_);
    }
    if (tasks_ > 1) Vector(examples_ * tasks_, sizeof(float));
  }

  void Dlrm() {
    const uint64_t vectors = t_.interaction_vectors(), dim = t_.embedding_dim;
    const uint64_t bottom = t_.numeric > 0 ? dim : 0;
    Activations(examples_, RowStride(vectors * dim));
    const std::vector<size_t> top = LayerWidths(bottom + t_.interaction_pairs(), t_.hidden, tasks_);
    const ops::PairwiseDots dots(kernel_, vectors, dim);
    const uint64_t block =  // of the shortest ones
        ops::Mlp(ops::GemmKernelOf(ops::IsaLevel::kV3), top, ops::Mlp::Output::kLinear)
            .block_rows();
    Floats((examples_ + block - 1) / block * RowStride(dots.scratch()));
    if (bottom > 0) Mlp(LayerWidths(t_.numeric, t_.bottom_hidden, dim), examples_);
    Mlp(top, examples_);
  }

  void Towers(uint64_t inputs) {
    for (uint64_t t = 0; t < tasks_; ++t) Mlp(LayerWidths(inputs, t_.tower_hidden, 1), examples_);
  }

  // An example's row is as wide as its sequences are long.
  void FieldInput() {
    constexpr uint64_t kRounding = 31;  // floats, of RowStride
    const uint64_t sequences = t_.sequences.size();
    uint64_t floats = examples_ * RowStride(t_.example_width());
    if (sequences > 0) {
      floats = examples_ * (t_.example_width() + kRounding) + SequenceFloats();
      Vector(examples_ * sequences, sizeof(uint32_t));
    }
    Vector(examples_, sizeof(size_t));
    Activations(1, floats);
    if (!t_.max_pooled.empty()) Vector(floats, sizeof(uint32_t));
    Vector(features_, sizeof(ops::FeaturePlace) + sizeof(uint32_t));
  }

  // At most: the features are values of the widest sequences.
  uint64_t SequenceFloats() const {
    std::vector<std::pair<uint64_t, uint64_t>> widest;  // dim, values
    for (const SequenceShape& s : t_.sequences) {
      widest.emplace_back(t_.field_dims[s.field], examples_ * s.max_length);
    }
    std::sort(widest.rbegin(), widest.rend());
    uint64_t floats = 0, left = features_;
    for (const auto& [dim, most] : widest) {
      const uint64_t values = std::min(left, most);
      floats += values * dim;
      left -= values;
    }
    return floats;
  }

  void Mmoe() {
    FieldInput();
    for (uint32_t e = 0; e < t_.experts; ++e) {
      Mlp(LayerWidths(t_.example_width(), t_.expert_hidden, 0), examples_);
    }
    for (uint64_t t = 0; t < tasks_; ++t) {
      Mlp(LayerWidths(t_.example_width(), {}, t_.experts), examples_);  // the gate
      Vector(examples_ * t_.experts, sizeof(float));
    }
    Towers(t_.expert_hidden.back());
  }

  void Din() {
    FieldInput();
    for (const SequenceShape& s : t_.sequences) {
      Vector(examples_ + 1, sizeof(size_t));
      Mlp(LayerWidths(size_t{4} * t_.field_dims[s.field], t_.attention_hidden, 1),
          std::min(features_, examples_ * s.max_length));
    }
    Mlp(LayerWidths(t_.example_width(), t_.hidden, tasks_), examples_);
  }

  // Afterwards the model has a feature for each field.
  void Pooled() {
    const uint64_t dim = t_.row_dim();
    const uint64_t runs = std::min(features_, examples_ * std::max(1u, t_.fields));
    const bool max = !t_.max_pooled.empty();
    Floats(runs * dim);
    if (backward_) Floats((runs + (max ? features_ : 0)) * dim);
    if (max) {
      Vector(runs * dim, sizeof(uint32_t));
      Grown(runs, 2 * sizeof(uint32_t));
    }
    // Its batch, routed, and what leads from features to runs.
    Vector(examples_ * (tasks_ + t_.numeric + (t_.weighted ? 1 : 0)), sizeof(float));
    Grown(examples_, sizeof(uint32_t));
    Grown(runs, 2 * sizeof(uint32_t));  // fields, first_
    Vector(runs, 2 * sizeof(uint64_t) + 3 * sizeof(uint32_t));
    Vector(features_, sizeof(uint32_t));
    features_ = runs;
  }

  const ModelTables& t_;
  const uint64_t examples_;
  uint64_t features_;
  const uint64_t tasks_;
  const bool backward_;
  const uint64_t threads_;
  const ops::GemmKernel& kernel_;  // of the widest panels, so that all machines tell the same
  ModelMemory memory_;
  uint64_t product_ = 0;  // of a thread
};

// Features of a line whose fields have one each, and whose sequences are full.
uint64_t FeaturesOfLine(const ModelTables& tables) {
  uint64_t features = tables.fields;
  for (const SequenceShape& s : tables.sequences) features += s.max_length - 1;
  return std::max<uint64_t>(1, features);
}

// A feature, and its row where no other has the same.
uint64_t FeatureBytes(const ModelTables& tables) {
  uint64_t floats = 0;
  for (const TableSpec& table : tables.tables) {
    if (table.kind == TableKind::kHashed) floats = std::max<uint64_t>(floats, table.dim());
  }
  return kFeatureBytes + floats * sizeof(float);
}

}  // namespace

ModelMemory MemoryOfModel(const ModelTables& tables, const BatchExtent& batch, ops::Passes passes,
                          uint32_t threads) {
  return Sum(tables, batch, passes, threads).memory();
}

BatchLimit ScoredAtATime(const ModelTables& tables) {
  const uint64_t features = FeaturesOfLine(tables), feature = FeatureBytes(tables);
  const BatchExtent most = {kMostScoredLines, kMostScoredLines * features, false};
  const uint64_t bytes =
      MemoryOfModel(tables, most, ops::Passes::kForward, 1).batch + most.features * feature;
  const uint64_t line = bytes / kMostScoredLines + 1;
  return {std::clamp<uint64_t>(kScoredBytes / line, 1, kMostScoredLines),
          std::max<uint64_t>(1, kScoredBytes / feature)};
}

BatchLimit ScoredOnDevice(const ModelTables& tables, uint32_t batch_size) {
  BatchLimit limit = ScoredAtATime(tables);
  limit.least = std::max(1u, batch_size);
  limit.lines = std::max<uint64_t>(1, limit.lines / limit.least) * limit.least;
  return limit;
}

}  // namespace strata
