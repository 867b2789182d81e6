#include "worker/models/linear_and_deep.h"

#include "ops/cpu_features.h"
#include "ops/nn/layer_memory.h"
#include "ops/nn/logistic.h"

namespace strata {

using ops::Passes;

LinearAndDeep::LinearAndDeep(const ModelTables& tables)
    : fields_(tables.fields),
      numeric_(tables.numeric),
      dim_(tables.embedding_dim),
      mlp_(LayerWidths(tables.example_width(), tables.hidden, 1), ops::Mlp::Output::kLinear,
           numeric_ > 0 ? 2 : 1),
      gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())) {}

absl::StatusOr<double> LinearAndDeep::TrainStep(const ModelInputs& in, const ModelGradients& out,
                                                float* predictions, ops::Parallel* parallel) {
  const Batch& batch = *in.batch;
  const ops::SparseExamples x = ExamplesOf(in, dim_ + 1);
  Prepare(in, Passes::kForwardAndBackward, parallel);
  TrainBlocks(
      batch.size, mlp_.block_rows(), parallel, in.passes,
      [&](size_t begin, size_t end) {
        Forward(in, x, begin, end, scratch_.example.data());
        LogisticBlock(batch, begin, end - begin, &scratch_, predictions);
      },
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) *mlp_.output_gradient(i) = scratch_.gradients[i];
        mlp_.Backward(begin, end - begin);
      });
  products_.assign(1, LinearGradients(batch, scratch_, out));
  mlp_.AppendGradients(in, out, &products_);
  gemm_.Run(products_, parallel);
  ForKeys(*in.routed, parallel,
          [&](const ops::KeyOccurrences& keys) { RowGradients(x, keys, out); });
  return SumLosses(scratch_, batch);
}

absl::Status LinearAndDeep::Predict(const ModelInputs& in, float* predictions,
                                    ops::Parallel* parallel) {
  const ops::SparseExamples x = ExamplesOf(in, dim_ + 1);
  Prepare(in, Passes::kForward, parallel);
  ForBlocks(in.batch->size, mlp_.block_rows(), parallel, [&](size_t begin, size_t end) {
    Forward(in, x, begin, end, nullptr);
    ops::Sigmoid(end - begin, scratch_.logits.data() + begin, predictions + begin);
  });
  return absl::OkStatus();
}

void LinearAndDeep::Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel) {
  scratch_.Resize(*in.batch);
  PrepareRows(in.batch->size);
  mlp_.Prepare(in, passes, parallel);
}

void LinearAndDeep::Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin,
                            size_t end, uint32_t* example) {
  ForwardRows(in, x, static_cast<uint32_t>(begin), static_cast<uint32_t>(end), example);
  CopyNumbers(*in.batch, begin, end, mlp_.input(0) + static_cast<size_t>(fields_) * dim_,
              mlp_.input_stride());
  mlp_.Forward(begin, end - begin);
  for (size_t i = begin; i < end; ++i) scratch_.logits[i] += *mlp_.output(i);
}

}  // namespace strata
