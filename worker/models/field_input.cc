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
  for (const SequenceShape& s : tables.sequences) {
    sequence_of_[s.field] = static_cast<uint32_t>(sequence_fields_.size());
    sequence_fields_.push_back(s.field);
  }
}

size_t FieldInput::PlaceExamples(const Batch& batch) {
  const size_t sequences = sequence_fields_.size();
  ResizeExactly(batch.size, &starts_);
  ResizeExactly(batch.size * sequences, &sequence_column_);
  size_t floats = 0;
  for (size_t i = 0; i < batch.size; ++i) {
    size_t column = width_;
    for (size_t s = 0; s < sequences; ++s) {
      sequence_column_[i * sequences + s] = static_cast<uint32_t>(column);
      column += size_t{batch.sequence_length[i * sequences + s]} * dims_[sequence_fields_[s]];
    }
    starts_[i] = floats;
    floats += ops::RowStride(column);
  }
  return floats;
}

void FieldInput::Prepare(const ModelInputs& in, ops::Passes passes) {
  const Batch& batch = *in.batch;
  ResizeExactly(batch.keys.size(), &places_);
  ResizeExactly(batch.keys.size(), &example_);
  const size_t floats = PlaceExamples(batch);
  values_.Reserve(floats);
  if (passes == ops::Passes::kForwardAndBackward) gradients_.Reserve(floats);
  if (!max_pooled_.empty()) ResizeExactly(floats, &from_);
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
    const size_t at = example * sequence_fields_.size() + sequence;
    place.column = sequence_column_[at] + (feature - batch.sequence_first[at]) * dim;
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
                     {values_.data(), 0, from_.empty() ? nullptr : from_.data(), starts_.data()});
  for (size_t i = begin; i < end; ++i) {
    CopyNumbers(*in.batch, i, i + 1, values(i) + (width_ - numeric_), 0);
  }
}

void FieldInput::RowGradients(const ModelInputs& in, ops::Parallel* parallel, float* rows) {
  const ops::VectorExamples x = ExamplesOf(in);
  const RoutedKeys& routed = *in.routed;
  const ops::VectorMatrix gradient = {gradients_.data(), 0, from_.empty() ? nullptr : from_.data(),
                                      starts_.data()};
  ForRuns(routed.runs, table_dims_, [&](const KeyRun& run, size_t first_float) {
    ForKeysOf(routed, run, parallel, [&](const ops::KeyOccurrences& keys) {
      ops::VectorGradients(x, gradient, example_.data(), keys, table_dims_[run.table],
                           rows + first_float);
    });
  });
}

}  // namespace strata
