// How a batch comes into a slot's pinned memory.
#include <algorithm>
#include <utility>

#include "ops/coalesce_sum.h"
#include "ops/cuda/rows/row_runs.h"
#include "worker/device/layers/return_if_error.h"
#include "worker/device/slot.h"
#include "worker/step/key_runs.h"

namespace strata::device {

using ops::gpu::RowRun;

namespace {

bool NeedsPooling(const Batch& batch) {
  if (batch.fields.empty()) return false;
  for (uint32_t i = 0; i < batch.size; ++i) {
    for (uint32_t f = batch.offsets[i] + 1; f < batch.offsets[i + 1]; ++f) {
      if (batch.fields[f] == batch.fields[f - 1]) return true;
    }
  }
  return false;
}

}  // namespace

StepKind Slot::Plan(const Batch& batch, const RoutedKeys& routed, const Stages& stages,
                    ops::Passes passes, uint32_t multiple) {
  examples_ = batch.size;
  kind_ = {};
  kind_.passes = passes;
  kind_.shape.examples = (batch.size + multiple - 1) / multiple * multiple;
  kind_.shape.features = static_cast<uint32_t>(batch.keys.size());
  kind_.shape.unique = static_cast<uint32_t>(routed.keys.size());
  kind_.values = !batch.values.empty();
  kind_.weighted = stages.weighted && !batch.weights.empty();
  row_floats_ = stages.FloatsOfRows(routed);
  // A sum of weights is the same however it is grouped into fields. What has vectors pools them
  // where it gathers them.
  const bool vectors = stages.matrix || stages.second_order;
  kind_.fields = vectors && !batch.fields.empty();
  kind_.pooled =
      !stages.field_vectors && (vectors || !stages.max_fields.empty()) && NeedsPooling(batch);
  if (kind_.pooled) {
    FindRuns(batch);
    kind_.shape.runs = static_cast<uint32_t>(run_fields_.size());
  }
  return kind_;
}

void Slot::FindRuns(const Batch& batch) {
  run_offsets_.assign(1, 0);
  run_fields_.clear();
  run_first_.clear();
  run_of_.resize(batch.keys.size());
  for (uint32_t i = 0; i < batch.size; ++i) {
    for (uint32_t f = batch.offsets[i]; f < batch.offsets[i + 1]; ++f) {
      if (f == batch.offsets[i] || batch.fields[f] != batch.fields[f - 1]) {
        run_first_.push_back(f);
        run_fields_.push_back(batch.fields[f]);
      }
      run_of_[f] = static_cast<uint32_t>(run_first_.size() - 1);
    }
    run_offsets_.push_back(static_cast<uint32_t>(run_first_.size()));
  }
  run_first_.push_back(static_cast<uint32_t>(batch.keys.size()));
}

void Slot::FillBatch(const Batch& batch, const RoutedKeys& routed, ops::Parallel* parallel) {
  copies_.Clear();
  FillExamples(batch);
  FillFeatures(batch, routed);
  if (kind_.pooled) FillRuns();
  if (sequences_ > 0) FillSequences(batch);
  uint32_t* const chunk_first = chunk_first_.Fill<uint32_t>(routed.first.size());
  uint32_t* const counts = counts_.Fill<uint32_t>(kStepCounts);
  copies_.Run(parallel, [&] { counts[kChunks] = CountChunks(routed, chunk_first); });
  if (!table_dims_.empty()) FillTableRuns(routed, chunk_first);
  counts[kExamples] = batch.size;
  counts[kUnique] = kind_.shape.unique;
  counts[kRuns] = kind_.shape.runs;
  counts[kZero] = 0;
}

absl::Status Slot::TakePinned(ops::gpu::LateBuffer* rows) {
  if (rows->taken()) return absl::OkStatus();
  STRATA_RETURN_IF_ERROR(rows->Take());
  pinned_rows_bytes_.fetch_add(rows->taken_bytes(), std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Slot::FillWeights(const ModelInputs& in, const ModelGradients* out,
                               ops::Parallel* parallel) {
  gradients_there_ = out == nullptr ? nullptr : out->rows_there;
  rows_there_ = in.there.rows;
  rows_.bytes = place_.bytes = 0;
  gathers_.clear();
  copies_.Clear();
  if (out != nullptr && gradients_there_ == nullptr) {
    STRATA_RETURN_IF_ERROR(TakePinned(&pinned_gradients_));
  }
  if (rows_there_ == nullptr) {
    STRATA_RETURN_IF_ERROR(TakePinned(&pinned_rows_));
    copies_.Add(in.rows, row_floats(), pinned_rows_.as<float>());
    rows_.bytes = row_floats() * sizeof(float);
  } else if (!in.there.place.empty()) {
    FillPlaces(in.routed->runs, in.there);
  }
  float* const tensors = tensors_.Fill<float>(tensor_floats_);
  for (size_t t = 0; t < tensor_sizes_.size(); ++t) {
    copies_.Add(in.tensors[t], tensor_sizes_[t], tensors + tensor_at_[t]);
  }
  copies_.Run(parallel);
  return absl::OkStatus();
}

// Where a device's rows lie: place is by key there, but counted in its table's where tables differ
// in width.
void Slot::FillPlaces(const KeyRuns& runs, const RowsThere& there) {
  const std::span<const uint32_t> place = there.place;
  uint32_t* const out = place_.Fill<uint32_t>(place.size());
  if (table_dims_.empty()) {
    gathers_.push_back({0, place.size(), row_dim_, 0, 0});
    return copies_.Add(place.data(), place.size(), out);
  }
  size_t to = 0;
  auto of = there.runs.begin();
  size_t from = 0;
  for (const KeyRun& run : runs) {
    // There is a run of every table that the batch has one of.
    for (; of->table != run.table; ++of) from += of->count * table_dims_[of->table];
    const size_t dim = table_dims_[run.table];
    gathers_.push_back({run.first, run.count, dim, to, from});
    const auto first = static_cast<uint32_t>(of->first);
    std::transform(place.begin() + run.first, place.begin() + run.end(), out + run.first,
                   [first](uint32_t key) { return key - first; });
    to += run.count * dim;
  }
}

// Examples that only fill up are empty.
void Slot::FillExamples(const Batch& batch) {
  const size_t padded = kind_.shape.examples;
  uint32_t* const offsets = offsets_.Fill<uint32_t>(padded + 1);
  copies_.Add(batch.offsets, offsets);
  std::fill(offsets + batch.size + 1, offsets + padded + 1, batch.offsets[batch.size]);
  const auto fill = [this](const std::vector<float>& from, size_t count, Array* to) {
    float* const out = to->Fill<float>(count);
    copies_.Add(from, out);
    std::fill(out + from.size(), out + count, 0.0f);
  };
  fill(batch.dense, padded * batch.numeric, &numeric_);
  fill(batch.labels, padded * tasks_, &labels_);
  if (kind_.weighted) fill(batch.weights, padded, &weights_);
}

void Slot::FillFeatures(const Batch& batch, const RoutedKeys& routed) {
  copies_.Add(routed.unique_of, row_.Fill<uint32_t>(routed.unique_of.size()));
  if (kind_.values) copies_.Add(batch.values, values_.Fill<float>(batch.values.size()));
  fields_.bytes = 0;
  if (kind_.fields && !kind_.pooled) {
    copies_.Add(batch.fields, fields_.Fill<uint32_t>(batch.fields.size()));
  }
  copies_.Add(routed.first, first_.Fill<uint32_t>(routed.first.size()));
  copies_.Add(routed.occurrences, occurrences_.Fill<uint32_t>(routed.occurrences.size()));
}

// As the coalescer counts them: runs of one chunk have none. Returns how many there are.
uint32_t Slot::CountChunks(const RoutedKeys& routed, uint32_t* chunk_first) {
  uint32_t chunks = 0;
  for (size_t u = 0; u < routed.keys.size(); ++u) {
    chunk_first[u] = chunks;
    const uint32_t n = routed.first[u + 1] - routed.first[u];
    if (n > ops::kCoalesceChunk) chunks += (n + ops::kCoalesceChunk - 1) / ops::kCoalesceChunk;
  }
  if (!routed.first.empty()) chunk_first[routed.keys.size()] = chunks;
  return chunks;
}

void Slot::FillRuns() {
  const size_t padded = kind_.shape.examples;
  uint32_t* const offsets = in_run_offsets_.Fill<uint32_t>(padded + 1);
  copies_.Add(run_offsets_, offsets);
  std::fill(offsets + run_offsets_.size(), offsets + padded + 1, run_offsets_.back());
  copies_.Add(run_fields_, in_run_fields_.Fill<uint32_t>(run_fields_.size()));
  copies_.Add(run_first_, in_run_first_.Fill<uint32_t>(run_first_.size()));
  copies_.Add(run_of_, in_run_of_.Fill<uint32_t>(run_of_.size()));
}

// Examples that only fill up have none.
void Slot::FillSequences(const Batch& batch) {
  const size_t count = kind_.shape.examples * sequences_;
  for (const auto& [from, to] : {std::pair(&batch.sequence_first, &sequence_first_),
                                 std::pair(&batch.sequence_length, &sequence_length_)}) {
    uint32_t* const out = to->Fill<uint32_t>(count);
    copies_.Add(*from, out);
    std::fill(out + from->size(), out + count, 0u);
  }
}

void Slot::FillTableRuns(const RoutedKeys& routed, const uint32_t* chunk_first) {
  table_keys_.assign(table_dims_.size(), 0);
  for (const KeyRun& run : routed.runs) {
    table_keys_[run.table] = static_cast<uint32_t>(run.count);
  }
  const uint32_t none = 0;
  ops::gpu::FillRowRuns(table_dims_, table_keys_, routed.first.empty() ? &none : chunk_first,
                        table_runs_.Fill<RowRun>(table_dims_.size() + 1));
}

}  // namespace strata::device
