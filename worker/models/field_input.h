// What models over tables of any widths take of a batch: for each example the vectors of its
// fields, its numbers, and the values of its sequences.
// Tested by tests/worker/models/models_test.cc, tests/worker/models/gradients_test.cc
#ifndef STRATA_WORKER_MODELS_FIELD_INPUT_H_
#define STRATA_WORKER_MODELS_FIELD_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/nn/field_vectors.h"
#include "ops/nn/gemm.h"
#include "ops/nn/layer_memory.h"
#include "ops/parallel.h"
#include "proto/job/tables/model_tables.h"
#include "worker/step/model.h"

namespace strata {

// Rows of a matrix by example: the fields' vectors in order, pooled (zeros where there are none,
// and at a sequence, whose vector the model writes), then numbers: width() floats; behind them the
// values that each sequence has in this example, in order. A step: Prepare; for blocks of examples
// that cover the batch, on any threads: Gather, then fill gradients(); once all are done,
// RowGradients. Owns its memory, reused from step to step: 2 x (batch x width and the sequences'
// values) floats.
class FieldInput {
 public:
  explicit FieldInput(const ModelTables& tables);

  size_t width() const { return width_; }
  // Where a field's vector stands, and the first value of a sequence of an example.
  size_t column_of(uint32_t field) const { return column_[field]; }
  size_t first_value_of(size_t sequence, size_t example) const {
    return sequence_column_[example * sequence_fields_.size() + sequence];
  }

  void Prepare(const ModelInputs& in, ops::Passes passes);
  void Gather(const ModelInputs& in, size_t begin, size_t end);

  float* values(size_t example) { return values_.data() + starts_[example]; }
  // By values: all of the first width() floats, and those of the sequences' values. What stands at
  // a sequence's own field is not read.
  float* gradients(size_t example) { return gradients_.data() + starts_[example]; }

  // Gradient sums of the batch's rows, in the order of `in`'s keys.
  void RowGradients(const ModelInputs& in, ops::Parallel* parallel, float* rows);

 private:
  // Of a feature of an example at place `at` among those of its field.
  ops::FeaturePlace PlaceOf(const Batch& batch, uint32_t example, uint32_t feature, uint32_t field,
                            uint32_t unique) const;
  void PlaceFeatures(const ModelInputs& in, size_t begin, size_t end);
  // Where each example's row and its sequences' values stand. Returns floats of all rows.
  size_t PlaceExamples(const Batch& batch);
  ops::VectorExamples ExamplesOf(const ModelInputs& in) const;

  const uint32_t fields_, numeric_;
  const std::vector<uint32_t> dims_;          // by field
  const std::vector<uint32_t> field_tables_;  // by field; empty: all of table 0
  const std::vector<bool> max_pooled_;        // by field; empty: none
  std::vector<uint32_t> table_dims_;          // by table
  std::vector<uint32_t> column_;              // by field
  std::vector<uint32_t> sequence_of_;         // by field; kNone
  std::vector<uint32_t> sequence_fields_;     // by sequence
  const size_t width_;
  struct Run {
    size_t first_key = 0, first_float = 0;
  };
  std::vector<Run> runs_;                  // by table: of the batch
  std::vector<ops::FeaturePlace> places_;  // (features)
  std::vector<uint32_t> example_;          // (features)
  std::vector<size_t> starts_;             // (examples): rows of values_
  std::vector<uint32_t> sequence_column_;  // (examples, sequences)
  ops::AlignedFloats values_, gradients_;
  std::vector<uint32_t> from_;  // as values_, where fields are pooled by max
};

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_FIELD_INPUT_H_
