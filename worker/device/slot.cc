#include "worker/device/slot.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "ops/cuda/rows/pool.h"
#include "ops/cuda/rows/row_runs.h"
#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::RowRun;

namespace {

constexpr size_t kTensorFloats = 64;  // tensors begin at multiples of 256 bytes

}  // namespace

void Slot::Want(Array* array, size_t bytes, BufferList* device, BufferList* pinned) {
  device->Want(&array->device, bytes);
  pinned->Want(&array->pinned, bytes);
}

void Slot::Want(const StepShape& most, const Stages& stages, const TensorSizes& tensors,
                BufferList* device, BufferList* pinned) {
  tensor_sizes_ = tensors;
  row_dim_ = stages.row_dim;
  tasks_ = stages.tasks();
  sequences_ = stages.sequences();
  if (stages.field_vectors) table_dims_ = stages.field_vectors->table_dims;
  tensor_at_.clear();
  tensor_floats_ = 0;
  for (const size_t size : tensors) {
    tensor_at_.push_back(tensor_floats_);
    tensor_floats_ += (size + kTensorFloats - 1) / kTensorFloats * kTensorFloats;
  }
  const size_t examples = most.examples, features = most.features, unique = most.unique;
  const size_t runs = most.runs, row_bytes = stages.row_dim * sizeof(float);
  const std::pair<Array*, size_t> wanted[] = {
      {&counts_, kStepCounts * 4},
      {&offsets_, (examples + 1) * 4},
      {&row_, features * 4},
      {&values_, features * 4},
      {&fields_, features * 4},
      {&numeric_, examples * stages.numeric * 4},
      {&labels_, examples * tasks_ * 4},
      {&weights_, stages.weighted ? examples * 4 : 0},
      {&place_, unique * 4},
      {&tensors_, tensor_floats_ * 4},
      {&first_, (unique + 1) * 4},
      {&occurrences_, features * 4},
      {&chunk_first_, (unique + 1) * 4},
      {&in_run_offsets_, runs == 0 ? 0 : (examples + 1) * 4},
      {&in_run_fields_, runs * 4},
      {&in_run_first_, runs == 0 ? 0 : (runs + 1) * 4},
      {&in_run_of_, runs == 0 ? 0 : features * 4},
      {&table_runs_, stages.field_vectors ? (table_dims_.size() + 1) * sizeof(RowRun) : 0},
      {&sequence_first_, examples * sequences_ * 4},
      {&sequence_length_, examples * sequences_ * 4},
      {&tensor_gradients_, tensor_floats_ * 4},
      {&predictions_, examples * tasks_ * 4},
      {&losses_, examples * tasks_ * 4},
  };
  for (const auto& [array, bytes] : wanted) Want(array, bytes, device, pinned);
  most_row_bytes_ = unique * row_bytes;
  device->Want(&rows_.device, most_row_bytes_);
  device->Want(&row_gradients_.device, most_row_bytes_);
}

size_t Slot::most_pinned_rows_bytes() const { return 2 * ops::gpu::ArenaBytes(most_row_bytes_); }

absl::Status Slot::Open(ops::gpu::CudaApi* api) {
  using ops::gpu::LateBuffer;
  constexpr auto kPinned = ops::gpu::MemoryKind::kPinned;
  pinned_rows_ = LateBuffer(api, kPinned, most_row_bytes_, "rows of the model's batches");
  pinned_gradients_ = LateBuffer(api, kPinned, most_row_bytes_, "gradients of the model's rows");
  using ops::gpu::EventUse;
  const std::pair<ops::gpu::Event*, EventUse> events[] = {{&batch_copied, EventUse::kOrder},
                                                          {&copied_in, EventUse::kOrder},
                                                          {&computed, EventUse::kOrder},
                                                          {&copied_out, EventUse::kLongWait}};
  for (const auto& [event, use] : events) {
    auto made = ops::gpu::MakeEvent(api, use);
    if (!made.ok()) return made.status();
    *event = *std::move(made);
  }
  return absl::OkStatus();
}

StepBatch Slot::OnDevice(const StepShape& most, const Stages& stages,
                         const StepConstants& constants) const {
  const uint32_t* const ordinals = constants.ordinals;
  const auto* const counts = counts_.device.as<uint32_t>();
  StepBatch b;
  b.examples = kind_.shape.examples;
  b.counts = counts;
  b.x.offsets = offsets_.device.as<uint32_t>();
  b.x.row = row_.device.as<uint32_t>();
  b.x.values = kind_.values ? values_.device.as<float>() : nullptr;
  b.x.rows = rows_.device.as<float>();
  b.x.stride = stages.row_dim;
  b.x.numeric = numeric_.device.as<float>();
  b.x.numeric_count = stages.numeric;
  b.x.fields = kind_.fields && !kind_.pooled ? fields_.device.as<uint32_t>() : nullptr;
  b.labels = labels_.device.as<float>();
  b.weights = kind_.weighted ? weights_.device.as<float>() : nullptr;
  b.keys.keys = ordinals;
  b.keys.first = first_.device.as<uint32_t>();
  b.keys.occurrences = occurrences_.device.as<uint32_t>();
  b.keys.count = counts + kUnique;
  b.keys.features = std::max(most.features, most.unique);  // keys need not occur
  b.keys.chunk_first = chunk_first_.device.as<uint32_t>();
  b.keys.chunks = counts + kChunks;
  if (kind_.pooled) {
    b.run_offsets = in_run_offsets_.device.as<uint32_t>();
    b.run_fields = in_run_fields_.device.as<uint32_t>();
    b.run_first = in_run_first_.device.as<uint32_t>();
    b.run_of = in_run_of_.device.as<uint32_t>();
    b.max_fields = constants.max_fields;
    // Each occurs once, where it stands.
    b.runs = {ordinals, ordinals, ordinals, counts + kRuns, most.runs, ordinals, counts + kZero};
  }
  if (stages.field_vectors) {
    b.table_runs = table_runs_.device.as<RowRun>();
    b.columns = constants.columns;
    b.sequence_first = sequence_first_.device.as<uint32_t>();
    b.sequence_length = sequence_length_.device.as<uint32_t>();
  }
  for (size_t t = 0; t < tensor_sizes_.size(); ++t) {
    b.tensors.push_back(tensors_.device.as<float>() + tensor_at_[t]);
    b.tensor_gradients.push_back(tensor_gradients_.device.as<float>() + tensor_at_[t]);
  }
  b.row_gradients = {row_gradients_.device.as<float>(), stages.row_dim};
  b.predictions = predictions_.device.as<float>();
  b.losses = losses_.device.as<float>();
  return b;
}

absl::Status Slot::CopyWeightsIn(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream) const {
  if (rows_.bytes > 0) {
    STRATA_RETURN_IF_ERROR(
        api->CopyAsync(rows_.device.as<void>(), pinned_rows_.as<void>(), rows_.bytes, stream));
  }
  for (const Array* array : {&place_, &tensors_}) {
    STRATA_RETURN_IF_ERROR(array->CopyIn(api, stream));
  }
  return GatherRows(api, stream);
}

absl::Status Slot::CopyBatchIn(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream) const {
  const auto copy = [&](const Array& array) { return array.CopyIn(api, stream); };
  for (const Array* array :
       {&counts_, &offsets_, &row_, &numeric_, &table_runs_, &sequence_first_, &sequence_length_}) {
    STRATA_RETURN_IF_ERROR(copy(*array));
  }
  if (kind_.values) STRATA_RETURN_IF_ERROR(copy(values_));
  if (kind_.fields && !kind_.pooled) STRATA_RETURN_IF_ERROR(copy(fields_));
  if (kind_.pooled) {
    for (const Array* array : {&in_run_offsets_, &in_run_fields_, &in_run_first_}) {
      STRATA_RETURN_IF_ERROR(copy(*array));
    }
  }
  if (kind_.passes == ops::Passes::kForward) return absl::OkStatus();
  for (const Array* array : {&labels_, &first_, &occurrences_, &chunk_first_}) {
    STRATA_RETURN_IF_ERROR(copy(*array));
  }
  if (kind_.weighted) STRATA_RETURN_IF_ERROR(copy(weights_));
  return kind_.pooled ? copy(in_run_of_) : absl::OkStatus();
}

// To the place where the step's kernels, which a graph may hold, look for them.
absl::Status Slot::GatherRows(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream) const {
  if (rows_there_ == nullptr || row_floats() == 0) return absl::OkStatus();
  if (gathers_.empty()) {
    return api->CopyAsync(rows_.device.as<void>(), rows_there_, row_floats() * sizeof(float),
                          stream);
  }
  for (const GatherPart& part : gathers_) {
    ops::gpu::PoolArguments gather;
    gather.table = {const_cast<float*>(rows_there_) + part.from, part.dim};
    gather.dim = static_cast<uint32_t>(part.dim);
    gather.row_of = place_.device.as<uint32_t>() + part.first_key;
    gather.bags.most = static_cast<uint32_t>(part.keys);
    gather.out = rows_.device.as<float>() + part.to;
    gather.out_stride = part.dim;
    STRATA_RETURN_IF_ERROR(ops::gpu::Pool(*api, gather, stream));
  }
  return absl::OkStatus();
}

absl::Status Slot::CopyOut(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream) const {
  const auto copy_to = [&](void* to, const Array& array, size_t floats) {
    if (floats == 0) return absl::OkStatus();
    return api->CopyAsync(to, array.device.as<void>(), floats * sizeof(float), stream);
  };
  const auto copy = [&](const Array& array, size_t floats) {
    return copy_to(array.pinned.as<void>(), array, floats);
  };
  STRATA_RETURN_IF_ERROR(copy(predictions_, examples_ * tasks_));
  if (kind_.passes == ops::Passes::kForward) return absl::OkStatus();
  STRATA_RETURN_IF_ERROR(copy(losses_, examples_ * tasks_));
  STRATA_RETURN_IF_ERROR(copy(tensor_gradients_, tensor_floats_));
  void* const to = gradients_there_ == nullptr ? pinned_gradients_.as<void>() : gradients_there_;
  return copy_to(to, row_gradients_, row_floats());
}

double Slot::Read(const ModelGradients* out, float* predictions, ops::Parallel* parallel) {
  copies_.Clear();
  copies_.Add(predictions_.pinned.as<float>(), examples_ * tasks_, predictions);
  double loss = 0;
  if (out == nullptr) {
    copies_.Run(parallel);
    return loss;
  }
  if (gradients_there_ == nullptr) {
    copies_.Add(pinned_gradients_.as<float>(), row_floats(), out->rows);
  }
  const float* const tensors = tensor_gradients_.pinned.as<float>();
  for (size_t t = 0; t < tensor_sizes_.size(); ++t) {
    copies_.Add(tensors + tensor_at_[t], tensor_sizes_[t], out->tensors[t]);
  }
  copies_.Run(parallel, [&] { loss = SumLosses(); });
  return loss;
}

// Task by task, as on the host.
double Slot::SumLosses() const {
  const float* const losses = losses_.pinned.as<float>();
  double sum = 0;
  for (size_t t = 0; t < tasks_; ++t) {
    for (size_t i = 0; i < examples_; ++i) sum += losses[i * tasks_ + t];
  }
  return sum;
}

}  // namespace strata::device
