#include "worker/device/layers/field_vectors.h"

#include <cstddef>

#include "ops/cuda/nn/field_vectors.h"
#include "worker/device/layers/layer_work.h"
#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::Matrix;
using ops::gpu::StreamHandle;

void DeviceFieldVectors::Want(const StepShape& most, BufferList* memory) {
  memory->WantArray<ops::FeaturePlace>(&places_, most.features);
  memory->WantArray<uint32_t>(&example_, most.features);
  const size_t floats = size_t{most.examples} * RowFloats(stages_.matrix_width);
  memory->WantArray<uint32_t>(&from_, stages_.field_vectors->max ? floats : 0);
}

ops::gpu::RowRuns DeviceFieldVectors::Runs(const StepBatch& batch) const {
  return {batch.table_runs, stages_.field_vectors->tables()};
}

ops::VectorExamples DeviceFieldVectors::Examples(const StepBatch& batch) const {
  return {batch.x.offsets, places_.as<ops::FeaturePlace>(), batch.x.values, batch.x.rows};
}

absl::Status DeviceFieldVectors::Forward(const StepBatch& batch, const Matrix& matrix,
                                         ops::Passes passes, StreamHandle stream) {
  const VectorStage& vectors = *stages_.field_vectors;
  ops::gpu::FeatureList list;
  list.examples = batch.examples;
  list.offsets = batch.x.offsets;
  list.key = batch.x.row;
  list.fields = batch.x.fields;
  list.columns = batch.columns;
  list.known_fields = stages_.fields;
  list.sequence_first = batch.sequence_first;
  list.sequences = stages_.sequences();
  list.runs = Runs(batch);
  STRATA_RETURN_IF_ERROR(
      PlaceFeatures(*api_, list, places_.as<ops::FeaturePlace>(), example_.as<uint32_t>(), stream));
  const bool from = vectors.max && passes == ops::Passes::kForwardAndBackward;
  return GatherVectors(*api_, Examples(batch), batch.examples, vectors.most_dim(),
                       vectors.numbers_at,
                       {matrix.data, matrix.stride, from ? from_.as<uint32_t>() : nullptr}, stream);
}

absl::Status DeviceFieldVectors::Backward(const StepBatch& batch, const Matrix& matrix_gradient,
                                          const ops::gpu::Coalescer& coalescer,
                                          StreamHandle stream) {
  return VectorGradients(*api_, coalescer, batch.keys, Examples(batch),
                         {matrix_gradient.data, matrix_gradient.stride, from_.as<uint32_t>()},
                         example_.as<uint32_t>(), Runs(batch), batch.row_gradients.rows, stream);
}

}  // namespace strata::device
