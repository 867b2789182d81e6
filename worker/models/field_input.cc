#include "worker/models/field_input.h"

#include "ops/coalesce_sum.h"
#include "worker/models/model_parts.h"
#include "worker/step/key_runs.h"

namespace strata {
namespace {

constexpr uint32_t kNone = ~0u;

}  // namespace

FieldInput::FieldInput(const ModelTables& tables)
    : fields_(tables.fields),
      numeric_(tables.numeric),
      dims_(tables.field_dims),
      field_tables_(tables.field_tables),
      max_pooled_(tables.max_pooled),
      sequence_of_(tables.fields, kNone),
      width_(tables.example_width()) {
  for (const TableSpec& table : tables.tables) table_dims_.push_back(table.dim());
  uint32_t column = 0;
  for (const uint32_t dim : dims_) {
    column_.push_back(column);
    column += dim;
  }
  column += numeric_;
  for (const SequenceShape& s : tables.sequences) {
    sequence_of_[s.field] = static_cast<uint32_t>(sequence_column_.size());
    sequence_column_.push_back(column);
    column += s.max_length * dims_[s.field];
  }
  stride_ = ops::RowStride(column);
}

void FieldInput::Prepare(const ModelInputs& in, ops::Passes passes) {
  const Batch& batch = *in.batch;
  places_.resize(batch.keys.size());
  example_.resize(batch.keys.size());
  values_.Reserve(batch.size * stride_);
  if (passes == ops::Passes::kForwardAndBackward) gradients_.Reserve(batch.size * stride_);
  if (!max_pooled_.empty()) from_.resize(batch.size * stride_);
  runs_.assign(table_dims_.size(), {});
  ForRuns(in.routed->runs, table_dims_, [&](const KeyRun& run, size_t begin) {
    runs_[run.table] = {run.first, begin};
  });
}

ops::FeaturePlace FieldInput::PlaceOf(const Batch& batch, uint32_t example, uint32_t feature,
                                      uint32_t field, uint32_t unique) const {
  const uint32_t table = field_tables_.empty() ? 0 : field_tables_[field];
  const Run& run = runs_[table];
  const uint32_t dim = table_dims_[table];
  ops::FeaturePlace place;
  place.row = run.first_float + (unique - run.first_key) * size_t{dim};
  place.dim = static_cast<uint16_t>(dim);
  if (field >= fields_) return place;
  const uint32_t sequence = sequence_of_[field];
  if (sequence != kNone) {
    const size_t first = batch.sequence_first[example * sequence_column_.size() + sequence];
    place.column = sequence_column_[sequence] + static_cast<uint32_t>(feature - first) * dim;
    return place;
  }
  place.column = column_[field];
  place.max = !max_pooled_.empty() && max_pooled_[field];
  place.first = batch.fields.empty() || feature == batch.offsets[example] ||
                batch.fields[feature - 1] != field;
  return place;
}

void FieldInput::PlaceFeatures(const ModelInputs& in, size_t begin, size_t end) {
  const Batch& batch = *in.batch;
  for (size_t i = begin; i < end; ++i) {
    for (uint32_t f = batch.offsets[i]; f < batch.offsets[i + 1]; ++f) {
      const uint32_t field = batch.fields.empty() ? f - batch.offsets[i] : batch.fields[f];
      example_[f] = static_cast<uint32_t>(i);
      places_[f] = PlaceOf(batch, static_cast<uint32_t>(i), f, field, in.routed->unique_of[f]);
    }
  }
}

ops::VectorExamples FieldInput::ExamplesOf(const ModelInputs& in) const {
  ops::VectorExamples x;
  x.offsets = in.batch->offsets.data();
  x.places = places_.data();
  x.values = in.batch->values.empty() ? nullptr : in.batch->values.data();
  x.rows = in.rows;
  return x;
}

void FieldInput::Gather(const ModelInputs& in, size_t begin, size_t end) {
  PlaceFeatures(in, begin, end);
  ops::GatherVectors(ExamplesOf(in), static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                     static_cast<uint32_t>(width_ - numeric_),
                     {values_.data(), stride_, from_.empty() ? nullptr : from_.data()});
  CopyNumbers(*in.batch, begin, end, values_.data() + (width_ - numeric_), stride_);
}

void FieldInput::RowGradients(const ModelInputs& in, ops::Parallel* parallel, float* rows) {
  const ops::VectorExamples x = ExamplesOf(in);
  const RoutedKeys& routed = *in.routed;
  const ops::VectorMatrix gradient = {gradients_.data(), stride_,
                                      from_.empty() ? nullptr : from_.data()};
  ForRuns(routed.runs, table_dims_, [&](const KeyRun& run, size_t first_float) {
    ForKeysOf(routed, run, parallel, [&](const ops::KeyOccurrences& keys) {
      ops::VectorGradients(x, gradient, example_.data(), keys, table_dims_[run.table],
                           rows + first_float);
    });
  });
}

}  // namespace strata
