#include "worker/models/linear_and_deep.h"

#include "ops/cpu_features.h"
#include "ops/nn/layer_memory.h"

namespace strata {

using ops::Passes;

LinearAndDeep::LinearAndDeep(const ModelTables& tables)
    : fields_(tables.fields),
      dim_(tables.embedding_dim),
      tasks_(tables.task_count()),
      mlp_(LayerWidths(tables.example_width(), tables.hidden, tasks_), ops::Mlp::Output::kLinear,
           tables.numeric > 0 ? 2 : 1),
      scratch_(tables),
      linear_(tables, dim_),
      gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())) {}

absl::StatusOr<double> LinearAndDeep::TrainStep(const ModelInputs& in, const ModelGradients& out,
                                                float* predictions, ops::Parallel* parallel) {
  const Batch& batch = *in.batch;
  const ops::SparseExamples x = ExamplesOf(in, dim_ + tasks_);
  Prepare(in, Passes::kForwardAndBackward, parallel);
  TrainBlocks(
      batch.size, mlp_.block_rows(), parallel, in.passes,
      [&](size_t begin, size_t end) {
        Forward(in, x, begin, end, scratch_.example.data());
        scratch_.Train(batch, begin, end - begin, predictions);
      },
      [&](size_t begin, size_t end) {
        GiveGradients(scratch_, begin, end, &mlp_);
        mlp_.Backward(begin, end - begin);
        BackwardRows(begin, end);
      });
  products_.assign(1, LinearGradients(batch, scratch_, out));
  mlp_.AppendGradients(out, &products_);
  AppendProducts(batch, out, &products_);
  gemm_.Run(products_, parallel);
  ForKeys(*in.routed, parallel,
          [&](const ops::KeyOccurrences& keys) { RowGradients(x, keys, out); });
  return scratch_.SumLosses();
}

absl::Status LinearAndDeep::Predict(const ModelInputs& in, float* predictions,
                                    ops::Parallel* parallel) {
  const ops::SparseExamples x = ExamplesOf(in, dim_ + tasks_);
  Prepare(in, Passes::kForward, parallel);
  ForBlocks(in.batch->size, mlp_.block_rows(), parallel, [&](size_t begin, size_t end) {
    Forward(in, x, begin, end, nullptr);
    scratch_.Predict(begin, end - begin, predictions);
  });
  return absl::OkStatus();
}

void LinearAndDeep::Prepare(const ModelInputs& in, Passes passes, ops::Parallel* parallel) {
  scratch_.Resize(*in.batch);
  linear_.Prepare(in);
  PrepareRows(in);
  mlp_.Prepare(in, passes, parallel);
}

void LinearAndDeep::Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin,
                            size_t end, uint32_t* example) {
  ForwardRows(in, x, static_cast<uint32_t>(begin), static_cast<uint32_t>(end), example);
  CopyNumbers(*in.batch, begin, end, mlp_.input(0) + static_cast<size_t>(fields_) * dim_,
              mlp_.input_stride());
  mlp_.Forward(begin, end - begin);
  for (size_t t = 0; t < tasks_; ++t) {
    float* const logits = scratch_.logits(t);
    for (size_t i = begin; i < end; ++i) logits[i] += mlp_.output(i)[t];
  }
}

}  // namespace strata
