// What a model is made of, for a device: which parts there are, how wide, and in which tensors.
// One network (network.h) runs whatever is described here, so that models are no copies of each
// other.
// Tested by tests/worker/device/step_test.cc
#ifndef STRATA_WORKER_DEVICE_STAGES_H_
#define STRATA_WORKER_DEVICE_STAGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/nn/loss_terms.h"
#include "proto/job/model_tables.h"

namespace strata::device {

// Layers of tensors first_tensor + 2 i (weight) and + 1 (bias); ReLU between them.
struct PerceptronStage {
  std::vector<uint32_t> widths;  // inputs, each layer's outputs; at least two
  size_t first_tensor = 0;
  bool relu_output = false;

  size_t layers() const { return widths.size() - 1; }
};

// Layers of tensors from 0 on: v (rank > 0), weight, bias each.
struct CrossStage {
  uint32_t width = 0, layers = 0, rank = 0;

  size_t tensors() const { return size_t{layers} * (rank > 0 ? 3 : 2); }
};

// In the order in which they run forward. An example's row is its vectors, then (first_order) a
// weight.
struct Stages {
  uint32_t row_dim = 0, dim = 0, fields = 0, numeric = 0;
  // By task: what its logit costs. What is (.., tasks) below has a column for each.
  std::vector<ops::Loss> losses;
  bool weighted = false;  // lines have weights
  // By field: 1 where it is pooled by max. Empty: all by their sum.
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
  // With `cross`: the weights (.., tasks) of the cross network's output, then of top's; and a bias,
  // the tensor after.
  size_t output_tensor = 0;

  uint32_t tasks() const { return static_cast<uint32_t>(losses.size()); }
  bool heads() const { return second_order && tasks() > 1; }  // fm_heads.h

  uint32_t top_inputs() const { return top->widths.front(); }
  uint32_t bottom_width() const { return embeddings_at; }
};

// Whether models of that type are described here.
bool HasStages(ModelType type);
// REQUIRES: HasStages(tables.type).
Stages StagesOf(const ModelTables& tables);

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_STAGES_H_
