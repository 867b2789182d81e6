#include "tests/worker/small_training.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "proto/core/partition.h"
#include "proto/core/position.h"
#include "proto/core/shard_map.h"
#include "tests/worker/client/served_rows.h"
#include "worker/step/router.h"

namespace strata::testing {

TrainingPlan SmallPlan(const std::string& mode, uint32_t servers, uint32_t lanes, Step last_step) {
  TrainingPlan plan{JobId(5),
                    {{0, 1}, {0, 5}},
                    Generation(2),
                    SmallSpec(),
                    SmallTables(),
                    ShardMap::Even(MapEpoch(3), Partitioning(64), servers, 4),
                    lanes,
                    /*batch_size=*/3,
                    last_step.value,
                    last_step,
                    Step(0)};
  TrainingSpec& training = *plan.spec.mutable_training();
  training.set_mode(mode);
  training.set_lanes(lanes);
  training.set_batch_size(3);
  training.set_n_fetch(1);
  training.set_n_push(1);
  training.set_tau(1);
  return plan;
}

absl::Status MadeUpSource::Read(Step step, LaneId lane, Batch* out) {
  return Make(step.value * 100 + lane.value, out);
}

absl::Status MadeUpSource::ReadWindow(TaskId task, uint64_t window, Batch* out) {
  const absl::Status s = Make(1'000'000 + task.value * 1000 + window, out);
  out->bad_lines = 1;
  return s;
}

absl::StatusOr<uint64_t> MadeUpSource::ReadLines(uint64_t first, const BatchLimit& most,
                                                 Batch* out) {
  if (absl::Status s = Make(2'000'000 + first, out); !s.ok()) return s;
  return most.lines;
}

void MadeUpSource::Fail(absl::Status status) {
  absl::MutexLock lock(&mu_);
  fails_ = std::move(status);
}

absl::Status MadeUpSource::Make(uint64_t place, Batch* out) {
  absl::MutexLock lock(&mu_);
  if (!fails_.ok()) return std::exchange(fails_, absl::OkStatus());
  out->Clear();
  out->size = 3;
  out->numeric = 2;
  for (uint32_t i = 0; i < out->size; ++i) {
    out->labels.push_back(i == 0 ? 1.0f : 0.0f);
    out->dense.insert(out->dense.end(), {0.5f, 0.25f});
    for (uint64_t field = 0; field < 5; ++field) {
      // Field 0 is the same in all batches and examples.
      out->keys.push_back(Mix64(field == 0 ? 0 : place * 100 + i * 10 + field));
    }
    out->offsets.push_back(static_cast<uint32_t>(out->keys.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const PreparedLane>> PromptPreparer::Get(Step step, uint32_t lane) {
  auto prepared = std::make_shared<PreparedLane>();
  absl::Status s = source_->Read(step, LaneId(lane), &prepared->batch);
  if (!s.ok()) return s;
  Router().Route(*features_, prepared->batch.keys, &prepared->routed);
  return prepared;
}

absl::StatusOr<double> CountingModel::TrainStep(const ModelInputs& in, const ModelGradients& out,
                                                float* predictions, ops::Parallel*) {
  if (on_step) on_step();
  const ModelTables tables = SmallTables();
  const size_t dim = tables.row_dim();
  float* const rows = out.rows != nullptr ? out.rows : out.rows_there;
  for (size_t u = 0; u < in.routed->keys.size(); ++u) {
    const auto times = static_cast<float>(in.routed->first[u + 1] - in.routed->first[u]);
    std::fill_n(rows + u * dim, dim, times);
  }
  for (float* tensor : out.tensors) *tensor = 1;
  std::fill_n(predictions, in.batch->size, 0.25f);
  if (in.passes != nullptr) in.passes->blocks_done = std::chrono::steady_clock::now();
  return 0.5 * in.batch->size;
}

absl::Status CountingModel::Predict(const ModelInputs& in, float* predictions, ops::Parallel*) {
  std::fill_n(predictions, in.batch->size, 0.25f);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Model>> CountingModels::NewModel() {
  return std::make_unique<CountingModel>();
}

absl::StatusOr<std::unique_ptr<DenseOptimizer>> CountingModels::NewDenseOptimizer(const TableSpec&,
                                                                                  size_t) {
  return nullptr;
}

absl::StatusOr<StepBoundary::Verdict> NotedBoundary::OnBoundary(Step completed, bool last) {
  absl::MutexLock lock(&mu_);
  calls_.push_back({completed.value, last});
  const auto it = says_.find(completed.value);
  return it == says_.end() ? Verdict::kGoOn : it->second;
}

std::vector<NotedBoundary::Call> NotedBoundary::calls() const {
  absl::MutexLock lock(&mu_);
  return calls_;
}

void NotedBoundary::AwaitCalls(size_t n) {
  absl::MutexLock lock(&mu_);
  const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return calls_.size() >= n; };
  mu_.Await(absl::Condition(&there));
}

void NotedBoundary::StopAfter(Step completed) {
  absl::MutexLock lock(&mu_);
  says_.insert_or_assign(completed.value, Verdict::kStop);
}

void NotedBoundary::FailAfter(Step completed, absl::Status status) {
  absl::MutexLock lock(&mu_);
  says_.insert_or_assign(completed.value, std::move(status));
}

}  // namespace strata::testing
