#include <memory>
#include <vector>

#include "ops/coalesce_sum.h"
#include "ops/cpu_features.h"
#include "ops/nn/gemm.h"
#include "ops/nn/sparse_examples.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"

namespace strata {
namespace {

constexpr size_t kBlock = 256;  // examples of a task

// Tensors: bias; numeric_weight.
class Lr : public Model {
 public:
  explicit Lr(const ModelTables& tables)
      : linear_(tables, 0), scratch_(tables), gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())) {}

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    const Batch& batch = *in.batch;
    ops::SparseExamples x = ExamplesOf(in, scratch_.tasks());
    x.fields = nullptr;  // of no interest to a sum over all features
    scratch_.Resize(batch);
    linear_.Prepare(in);
    TrainBlocks(
        batch.size, kBlock, parallel, in.passes,
        [&](size_t begin, size_t end) {
          linear_.Forward(x, begin, end, &scratch_, scratch_.example.data());
          scratch_.Train(batch, begin, end - begin, predictions);
        },
        [](size_t, size_t) {});
    ForKeys(*in.routed, parallel, [&](const ops::KeyOccurrences& keys) {
      linear_.RowGradients(x, keys, scratch_, out.rows);
    });
    const ops::TransposedProduct p = LinearGradients(batch, scratch_, out);
    gemm_.Run({&p, 1}, parallel);
    return scratch_.SumLosses();
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    ops::SparseExamples x = ExamplesOf(in, scratch_.tasks());
    x.fields = nullptr;  // of no interest to a sum over all features
    scratch_.Resize(*in.batch);
    linear_.Prepare(in);
    ForBlocks(in.batch->size, kBlock, parallel, [&](size_t begin, size_t end) {
      linear_.Forward(x, begin, end, &scratch_, nullptr);
      scratch_.Predict(begin, end - begin, predictions);
    });
    return absl::OkStatus();
  }

 private:
  LinearHeads linear_;
  ExampleScratch scratch_;
  ops::TransposedGemm gemm_;
};

}  // namespace

std::unique_ptr<Model> MakeLr(const ModelTables& tables) { return std::make_unique<Lr>(tables); }

}  // namespace strata
