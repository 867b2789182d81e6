#include <memory>
#include <vector>

#include "ops/coalesce.h"
#include "ops/cpu_features.h"
#include "ops/nn/fm.h"
#include "ops/nn/gemm.h"
#include "ops/nn/logistic.h"
#include "worker/models/model_kinds.h"
#include "worker/models/model_parts.h"

namespace strata {
namespace {

constexpr size_t kBlock = 256;  // examples of a task

// Tensors: bias; numeric_weight.
class Lr : public Model {
 public:
  explicit Lr(const ModelTables& tables)
      : numeric_(tables.numeric), gemm_(ops::GemmKernelOf(ops::ActiveIsaLevel())) {}

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    const Batch& batch = *in.batch;
    ops::SparseExamples x = ExamplesOf(in, 1);
    x.fields = nullptr;  // of no interest to a sum over all features
    scratch_.Resize(batch);
    TrainBlocks(
        batch.size, kBlock, parallel, in.passes,
        [&](size_t begin, size_t end) {
          Forward(in, x, begin, end, scratch_.logits.data(), scratch_.example.data());
          LogisticBlock(batch, begin, end - begin, &scratch_, predictions);
        },
        [](size_t, size_t) {});
    ForKeys(*in.routed, parallel, [&](const ops::KeyOccurrences& keys) {
      ops::CoalesceScaled(keys, scratch_.example.data(), scratch_.gradients.data(), x.values,
                          out.rows, 1);
    });
    const ops::TransposedProduct p = LinearGradients(batch, scratch_, out);
    gemm_.Run({&p, 1}, parallel);
    return SumLosses(scratch_, batch);
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    ops::SparseExamples x = ExamplesOf(in, 1);
    x.fields = nullptr;  // of no interest to a sum over all features
    scratch_.logits.resize(in.batch->size);
    ForBlocks(in.batch->size, kBlock, parallel, [&](size_t begin, size_t end) {
      Forward(in, x, begin, end, scratch_.logits.data(), nullptr);
      ops::Sigmoid(end - begin, scratch_.logits.data() + begin, predictions + begin);
    });
    return absl::OkStatus();
  }

 private:
  void Forward(const ModelInputs& in, const ops::SparseExamples& x, size_t begin, size_t end,
               float* logits, uint32_t* example) const {
    ops::LinearForward(x, 0, in.tensors[0][0], numeric_ > 0 ? in.tensors[1] : nullptr,
                       static_cast<uint32_t>(begin), static_cast<uint32_t>(end), logits, example);
  }

  const uint32_t numeric_;
  ops::TransposedGemm gemm_;
  ExampleScratch scratch_;
};

}  // namespace

std::unique_ptr<Model> MakeLr(const ModelTables& tables) { return std::make_unique<Lr>(tables); }

}  // namespace strata
