// What a model is made of, for a device: which parts there are, how wide, and in which tensors.
// One network (network.h) runs whatever is described here, so that models are no copies of each
// other.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_STAGES_H_
#define STRATA_WORKER_DEVICE_LAYERS_STAGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/cuda/nn/field_vectors.h"
#include "ops/nn/loss/loss_terms.h"
#include "proto/job/tables/model_tables.h"
#include "worker/step/batch.h"

namespace strata::device {

// Layers of tensors first_tensor + 2 i (weight) and + 1 (bias); ReLU between them.
struct PerceptronStage {
  std::vector<uint32_t> widths;  // inputs, each layer's outputs; at least two
  size_t first_tensor = 0;
  bool relu_output = false;
  uint32_t rows = 1;  // of an example

  size_t layers() const { return widths.size() - 1; }
};

// Layers of tensors from 0 on: v (rank > 0), weight, bias each.
struct CrossStage {
  uint32_t width = 0, layers = 0, rank = 0;

  size_t tensors() const { return size_t{layers} * (rank > 0 ? 3 : 2); }
};

// Rows of the matrix whose fields have tables of any widths (FieldVectors in field_vectors.h): the
// fields' vectors, numbers, then the values of the sequences.
struct VectorStage {
  std::vector<ops::gpu::FieldColumns> fields;
  std::vector<uint32_t> table_dims;  // by number; the dense table's is not read
  uint32_t numbers_at = 0;           // floats before the numbers
  bool max = false;                  // some field is pooled by max

  uint32_t most_dim() const;
  uint32_t tables() const { return static_cast<uint32_t>(table_dims.size()); }
};

// What a sequence's field has in the matrix: the sum of the values, by what `layers` makes of each
// with the target. Layers have a row of each value that there is room for.
struct AttentionStage {
  uint32_t most = 0, dim = 0;                // values, floats of each
  uint32_t values = 0, target = 0, sum = 0;  // columns of the matrix
  PerceptronStage layers;
};

// By task: a tower of the experts' outputs, mixed by a gate. Experts and gates are of the matrix.
struct MixtureStage {
  std::vector<PerceptronStage> experts, gates, towers;

  uint32_t width() const { return experts.front().widths.back(); }
};

// In the order in which they run forward. An example's row is its vectors, then (first_order) a
// weight.
struct Stages {
  // Row_dim of tables that differ in width: the widest one's.
  uint32_t row_dim = 0, dim = 0, fields = 0, numeric = 0;
  // By task: what its logit costs. What is (.., tasks) below has a column for each.
  std::vector<ops::Loss> losses;
  bool weighted = false;  // lines have weights
  // By field: 1 where it is pooled by max. Empty: all by their sum, or as `field_vectors` says.
  std::vector<uint32_t> max_fields;

  // Logits begin with bias + sum w x: tensor 0 (tasks), and of numbers tensor 1 (numeric, tasks).
  bool first_order = false;
  // + 1/2 sum_d ((sum v x)^2 - sum (v x)^2); of numbers, too: tensor 2.
  bool second_order = false;
  bool numeric_second_order = false;
  // Several tasks' weights of the second order's elements, less one: (dim, tasks).
  size_t interaction_tensor = 0;

  // A matrix (examples, matrix_width) that later stages read has the fields' vectors from column
  // embeddings_at on, and the numbers, unless they are `bottom`'s, after those.
  bool matrix = false;
  uint32_t matrix_width = 0, embeddings_at = 0;
  std::optional<VectorStage> field_vectors;
  // Of the matrix, in turn: each writes a field's vector there.
  std::vector<AttentionStage> attentions;  // by sequence

  // Of the numbers; its outputs are the matrix's first columns.
  std::optional<PerceptronStage> bottom;
  // `top` reads bottom's outputs and the dot products of every two of the matrix's vectors.
  bool dots = false;
  uint32_t vectors = 0;
  // Of the matrix, beside `top`.
  std::optional<CrossStage> cross;
  // Of the matrix, or of the dots. With neither `cross` nor `towers` its outputs (tasks) are added
  // to the logits.
  std::optional<PerceptronStage> top;
  // By task, of top's outputs: the logits.
  std::vector<PerceptronStage> towers;
  // Instead of `top`: the logits.
  std::optional<MixtureStage> mixture;
  // With `cross`: the weights (.., tasks) of the cross network's output, then of top's; and a bias,
  // the tensor after.
  size_t output_tensor = 0;

  uint32_t tasks() const { return static_cast<uint32_t>(losses.size()); }
  bool heads() const { return second_order && tasks() > 1; }  // fm_heads.h

  uint32_t top_inputs() const { return top->widths.front(); }
  uint32_t bottom_width() const { return embeddings_at; }
  uint32_t numbers_at() const { return field_vectors ? field_vectors->numbers_at : fields * dim; }
  // Floats of the rows of a batch's distinct keys.
  size_t FloatsOfRows(const RoutedKeys& routed) const;
  uint32_t sequences() const { return static_cast<uint32_t>(attentions.size()); }
};

// Whether models of that type are described here.
bool HasStages(ModelType type);
// REQUIRES: HasStages(tables.type).
Stages StagesOf(const ModelTables& tables);

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_LAYERS_STAGES_H_
