#include "worker/models/pooled.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/nn/embedding.h"
#include "ops/nn/embedding_types.h"
#include "ops/nn/gemm.h"
#include "ops/nn/max_pool.h"
#include "worker/models/model_parts.h"

namespace strata {
namespace {

constexpr size_t kBlock = 1024;  // runs of a task

bool NeedsPooling(const Batch& batch) {
  if (batch.fields.empty()) return false;
  for (uint32_t i = 0; i < batch.size; ++i) {
    for (uint32_t f = batch.offsets[i] + 1; f < batch.offsets[i + 1]; ++f) {
      if (batch.fields[f] == batch.fields[f - 1]) return true;
    }
  }
  return false;
}

class Pooled : public Model {
 public:
  Pooled(const ModelTables& tables, std::unique_ptr<Model> model)
      : row_dim_(tables.row_dim()), max_pooled_(tables.max_pooled), model_(std::move(model)) {}

  absl::StatusOr<double> TrainStep(const ModelInputs& in, const ModelGradients& out,
                                   float* predictions, ops::Parallel* parallel) override {
    if (!NeedsPooling(*in.batch)) return model_->TrainStep(in, out, predictions, parallel);
    const ops::SparseExamples x = ExamplesOf(in, row_dim_);
    const ModelInputs pooled = Pool(in, x, parallel);
    // Behind the runs' rows: those of the features of max runs.
    float* const gradient = gradient_.Reserve((batch_.keys.size() + max_features_) * row_dim_);
    const absl::StatusOr<double> loss =
        model_->TrainStep(pooled, {gradient, out.tensors}, predictions, parallel);
    SplitMaxGradients(x, gradient, parallel);
    ForKeys(*in.routed, parallel, [&](const ops::KeyOccurrences& keys) {
      ops::PooledGradients(x, {first_.data(), run_of_.data()}, gradient, keys, out.rows);
    });
    return loss;
  }

  absl::Status Predict(const ModelInputs& in, float* predictions,
                       ops::Parallel* parallel) override {
    if (!NeedsPooling(*in.batch)) return model_->Predict(in, predictions, parallel);
    const ops::SparseExamples x = ExamplesOf(in, row_dim_);
    return model_->Predict(Pool(in, x, parallel), predictions, parallel);
  }

 private:
  ModelInputs Pool(const ModelInputs& in, const ops::SparseExamples& x, ops::Parallel* parallel) {
    FindRuns(*in.batch);
    const size_t runs = batch_.fields.size();
    float* const rows = rows_.Reserve(runs * row_dim_);
    ForBlocks(runs, kBlock, parallel, [&](size_t begin, size_t end) {
      ops::PoolRows(x, {first_.data(), run_of_.data()}, static_cast<uint32_t>(begin),
                    static_cast<uint32_t>(end), rows);
    });
    ResizeExactly(max_runs_.size() * row_dim_, &from_);
    ForBlocks(max_runs_.size(), kBlock, parallel, [&](size_t begin, size_t end) {
      for (size_t m = begin; m < end; ++m) {
        const uint32_t run = max_runs_[m].run;
        ops::MaxPoolRow(x, FeaturesOf(run), rows + run * row_dim_, from_.data() + m * row_dim_);
      }
    });
    // Every run is a key of its own that occurs once.
    ResizeExactly(runs, &batch_.keys);
    if (routed_.keys.size() != runs) routed_.keys = std::vector<uint64_t>(runs);
    ResizeExactly(runs, &routed_.unique_of);
    ResizeExactly(runs, &routed_.occurrences);
    ResizeExactly(runs + 1, &routed_.first);
    std::iota(routed_.unique_of.begin(), routed_.unique_of.end(), 0u);
    std::iota(routed_.occurrences.begin(), routed_.occurrences.end(), 0u);
    std::iota(routed_.first.begin(), routed_.first.end(), 0u);
    return {&batch_, &routed_, rows, in.tensors};
  }

  // Fills first_, run_of_ and the batch of runs.
  void FindRuns(const Batch& batch) {
    batch_.Clear();
    batch_.size = batch.size;
    batch_.numeric = batch.numeric;
    batch_.tasks = batch.tasks;
    batch_.labels = batch.labels;
    batch_.weights = batch.weights;
    batch_.dense = batch.dense;
    first_.clear();
    ResizeExactly(batch.keys.size(), &run_of_);
    for (uint32_t i = 0; i < batch.size; ++i) {
      for (uint32_t f = batch.offsets[i]; f < batch.offsets[i + 1]; ++f) {
        if (f == batch.offsets[i] || batch.fields[f] != batch.fields[f - 1]) {
          first_.push_back(f);
          batch_.fields.push_back(batch.fields[f]);
        }
        run_of_[f] = static_cast<uint32_t>(first_.size() - 1);
      }
      batch_.offsets.push_back(static_cast<uint32_t>(first_.size()));
    }
    first_.push_back(static_cast<uint32_t>(batch.keys.size()));
    FindMaxRuns();
  }

  // Of fields that are pooled by max: the runs of several features.
  void FindMaxRuns() {
    max_runs_.clear();
    max_features_ = 0;
    if (max_pooled_.empty()) return;
    for (uint32_t run = 0; run < batch_.fields.size(); ++run) {
      const uint32_t field = batch_.fields[run];
      if (field >= max_pooled_.size() || !max_pooled_[field]) continue;
      const ops::MaxRun features = FeaturesOf(run);
      if (features.end - features.first == 1) continue;
      max_runs_.push_back({run, max_features_});
      max_features_ += features.end - features.first;
    }
  }

  // Gives each feature of a max run a row of its own, behind those of the runs, as its run.
  void SplitMaxGradients(const ops::SparseExamples& x, float* gradient, ops::Parallel* parallel) {
    const auto runs = static_cast<uint32_t>(batch_.keys.size());
    ForBlocks(max_runs_.size(), kBlock, parallel, [&](size_t begin, size_t end) {
      for (size_t m = begin; m < end; ++m) {
        const auto [run, before] = max_runs_[m];
        const ops::MaxRun features = FeaturesOf(run);
        for (uint32_t f = features.first; f < features.end; ++f) {
          run_of_[f] = runs + before + (f - features.first);
        }
        ops::MaxPoolGradients(x, features, from_.data() + m * row_dim_, gradient + run * row_dim_,
                              gradient + size_t{runs + before} * row_dim_);
      }
    });
  }

  ops::MaxRun FeaturesOf(uint32_t run) const { return {first_[run], first_[run + 1]}; }

  struct MaxPlace {
    uint32_t run;
    uint32_t before;  // features of max runs before it
  };

  const uint32_t row_dim_;
  const std::vector<bool> max_pooled_;  // by field
  const std::unique_ptr<Model> model_;
  // Reused from batch to batch.
  Batch batch_;
  RoutedKeys routed_;
  std::vector<uint32_t> first_;   // (runs + 1): the first feature of a run
  std::vector<uint32_t> run_of_;  // (features)
  std::vector<MaxPlace> max_runs_;
  uint32_t max_features_ = 0;           // of all of them
  std::vector<uint32_t> from_;          // (max runs, row dim): which feature an element is of
  ops::AlignedFloats rows_, gradient_;  // (runs, row dim)
};

}  // namespace

std::unique_ptr<Model> MakePooled(const ModelTables& tables, std::unique_ptr<Model> model) {
  return std::make_unique<Pooled>(tables, std::move(model));
}

}  // namespace strata
