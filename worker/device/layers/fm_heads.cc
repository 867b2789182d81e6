#include "worker/device/layers/fm_heads.h"

#include <cstddef>

#include "worker/device/layers/return_if_error.h"

namespace strata::device {

using ops::gpu::Matrix;
using ops::gpu::StreamHandle;

void DeviceFmHeads::Want(uint32_t examples, BufferList* memory) {
  const size_t elements = size_t{examples} * stages_.dim;
  memory->WantArray<float>(&terms_, elements);
  memory->WantArray<float>(&term_gradients_, elements);
  work_->NeedsColumnProduct(examples, stages_.dim, stages_.tasks());
  if (!stages_.numeric_second_order) return;
  memory->WantArray<float>(&scaled_, elements);
  memory->WantArray<float>(&squares_, size_t{examples} * stages_.numeric);
  memory->WantArray<float>(&square_sums_, size_t{stages_.numeric} * stages_.dim);
  work_->NeedsColumnProduct(examples, stages_.numeric, stages_.dim);
}

ops::gpu::FmHeadsTask DeviceFmHeads::Task(const StepBatch& batch) const {
  return {batch.examples, stages_.dim, stages_.tasks(), batch.tensors[stages_.interaction_tensor]};
}

absl::Status DeviceFmHeads::Forward(const StepBatch& batch, const ops::SparseExamples& x,
                                    const ops::FmOutputs& out, const Matrix& logits,
                                    StreamHandle stream) {
  const float* const numeric = stages_.numeric_second_order ? batch.tensors[2] : nullptr;
  STRATA_RETURN_IF_ERROR(FmTerms(work_->api(), {x, batch.examples, stages_.dim}, numeric, out,
                                 terms_.as<float>(), stream));
  return AddFmHeads(work_->api(), Task(batch), terms_.as<float>(), logits, stream);
}

absl::Status DeviceFmHeads::Backward(const StepBatch& batch, const float* sums,
                                     const Matrix& gradients, StreamHandle stream) {
  STRATA_RETURN_IF_ERROR(
      FmHeadGradients(work_->api(), Task(batch), gradients, term_gradients_.as<float>(), stream));
  STRATA_RETURN_IF_ERROR(work_->MultiplyColumns(
      batch.examples, {{terms_.as<float>(), stages_.dim}, stages_.dim},
      {gradients, stages_.tasks()}, batch.tensor_gradients[stages_.interaction_tensor], stream));
  return stages_.numeric_second_order ? BackwardNumbers(batch, sums, stream) : absl::OkStatus();
}

// d / d embedding_jd = sum_i x_ij (g_id sum_id) - embedding_jd sum_i x_ij^2 g_id.
absl::Status DeviceFmHeads::BackwardNumbers(const StepBatch& batch, const float* sums,
                                            StreamHandle stream) {
  const uint32_t dim = stages_.dim, numbers = stages_.numeric;
  const Matrix by_terms = {term_gradients_.as<float>(), dim};
  // Read only: a matrix is what is written and what is read alike.
  const Matrix sums_there = {const_cast<float*>(sums), dim};
  const Matrix numeric = {const_cast<float*>(batch.x.numeric), numbers};
  const Matrix scaled = {scaled_.as<float>(), dim}, squares = {squares_.as<float>(), numbers};
  const Matrix square_sums = {square_sums_.as<float>(), dim};
  ops::gpu::CudaApi& api = work_->api();
  STRATA_RETURN_IF_ERROR(
      MultiplyMatrix(api, {batch.examples, dim}, by_terms, sums_there, scaled, stream));
  STRATA_RETURN_IF_ERROR(
      MultiplyMatrix(api, {batch.examples, numbers}, numeric, numeric, squares, stream));
  const Matrix out = {batch.tensor_gradients[2], dim};
  STRATA_RETURN_IF_ERROR(
      work_->MultiplyColumns(batch.examples, {numeric, numbers}, {scaled, dim}, out.data, stream));
  STRATA_RETURN_IF_ERROR(work_->MultiplyColumns(batch.examples, {squares, numbers}, {by_terms, dim},
                                                square_sums.data, stream));
  return SubtractProduct(api, {numbers, dim}, {batch.tensors[2], dim}, square_sums, out, stream);
}

}  // namespace strata::device
