#include "worker/async/lane_work.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/parallel.h"
#include "proto/core/mutation.h"
#include "proto/job/job_plan.h"
#include "proto/job/tables/model_tables.h"
#include "worker/async/replica.h"
#include "worker/async/training_strategy.h"
#include "worker/client/parameter_client.h"
#include "worker/metrics/stage_times.h"
#include "worker/step/batch.h"
#include "worker/step/dense_optimizer.h"
#include "worker/step/gradient.h"
#include "worker/step/local_optimizer.h"
#include "worker/step/model.h"
#include "worker/step/router.h"
#include "worker/train/batch_step.h"

namespace strata {
namespace {

ParameterClientOptions ClientOptions(const LaneWorkOptions& o) {
  ParameterClientOptions client;
  client.exchange = o.exchange;
  client.links = o.links;
  client.timer = o.timer;
  client.header = {o.plan->job, o.session, o.plan->generation, o.plan->shards.epoch()};
  client.identity = o.plan->identity;
  client.sequences = o.sequences;
  client.cancelled = o.cancelled;
  client.codecs = o.plan->pull_codecs;
  // Only then has a push the keys of the pull before it.
  const TrainingSpec& training = o.plan->spec.training();
  client.tickets = training.mode() == "async" ||
                   (training.mode() == "downpour" && training.n_fetch() == training.n_push());
  if (training.mode() == "async" && o.exchange->MayStayThere(client.codecs)) {
    client.memory = o.rows;
    client.tables = o.plan->tables.tables;
    client.stats = o.stats;
  }
  return client;
}

// The tables with the optimizers of a lane's own steps: easgd spec.optimizer's, downpour the plain
// gradient step.
absl::StatusOr<ReplicaOptions> LocalOptions(const TrainingPlan& plan, const Exchange& exchange) {
  JobSpec spec = plan.spec;
  spec.mutable_training()->set_mode("async");  // as if the rows lived here
  auto tables = MakeModelTables(spec, plan.tables.fields, plan.tables.numeric);
  if (!tables.ok()) return tables.status();
  ReplicaOptions options;
  options.tables = tables->tables;
  options.dense_rows = exchange.dense_rows();
  const TrainingSpec& training = plan.spec.training();
  if (training.mode() == "easgd") {
    options.alpha = training.alpha();
    return options;
  }
  OptimizerSpec plain;
  plain.type = OptimizerType::kSgd;
  plain.learning_rate = training.local_learning_rate();
  for (TableSpec& table : options.tables) {
    for (SegmentSpec& segment : table.segments) segment.optimizer = plain;
  }
  return options;
}

class Work : public LaneWork {
 public:
  // `dense`: replica.dense_optimizer.
  Work(const LaneWorkOptions& options, std::unique_ptr<Model> model, const ReplicaOptions& replica,
       std::unique_ptr<DenseOptimizer> dense)
      : o_(options),
        elastic_(replica.alpha > 0),
        client_(ClientOptions(options)),
        model_(std::move(model)),
        dense_(std::move(dense)),
        parallel_(ops::MakeParallel(std::max(1u, options.threads))),
        step_(o_.exchange, model_.get(), parallel_.get(), o_.stats),
        strategy_(MakeTrainingStrategy(o_.plan->spec.training())),
        replica_(replica) {}

  absl::Status Run(const Task& task) override {
    const absl::Status s = Carry(task);
    if (!s.ok()) {  // what of it was sent is not known here: another lane, or a later time, goes on
      replica_.Forget();
      accumulated_ = nullptr;
    }
    return s;
  }

  const TaskCounts& counts() const override { return counts_; }

  absl::Status Mark(uint64_t cut, TaskId task, uint64_t window) override {
    return client_.Mark(o_.lane, cut, task, window);
  }

 private:
  struct Prepared {
    Batch batch;
    RoutedKeys routed;
  };

  static Stage StageOf(LaneActionKind kind) {
    switch (kind) {
      case LaneActionKind::kPull:
        return Stage::kPull;
      case LaneActionKind::kGradient:
        return Stage::kOther;  // waiting for a free thread; the passes are told by the batch
      case LaneActionKind::kLocalStep:
      case LaneActionKind::kPush:
      case LaneActionKind::kExchange:
        return Stage::kPush;
      case LaneActionKind::kWindowDone:
      case LaneActionKind::kTaskDone:
        return Stage::kOther;
    }
    return Stage::kOther;
  }

  // Counts what the task's windows before `first_window` hold: who did them need not have told it.
  // A task has at most 8192 lines, and only those begin in their midst where a lane stood at a cut.
  absl::Status CountFirstWindows(const Task& task) {
    counts_.Clear();
    counts_.set_task(task.id.value);
    const uint64_t end = BatchesOfWindows(task.first_window,
                                          BatchesPerWindow(o_.plan->spec.training()), task.batches);
    Batch batch;
    for (uint64_t b = 0; b < end; ++b) {
      if (o_.cancelled != nullptr && o_.cancelled->set()) return absl::CancelledError("stopped");
      if (absl::Status s = Read(task.id, b, &batch); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status Read(TaskId task, uint64_t number, Batch* batch) {
    if (absl::Status s = o_.source->ReadWindow(task, number, batch); !s.ok()) return s;
    counts_.set_examples(counts_.examples() + batch->size);
    counts_.set_bad_lines(counts_.bad_lines() + batch->bad_lines);
    o_.stats->OnTaskRead(counts_);
    return absl::OkStatus();
  }

  absl::Status Carry(const Task& task) {
    if (absl::Status s = CountFirstWindows(task); !s.ok()) return s;
    strategy_->BeginTask(task.batches, task.first_window);
    while (true) {
      const LaneAction action = strategy_->Next();
      const InStage stage(&clock_, StageOf(action.kind));
      absl::Status s;
      switch (action.kind) {
        case LaneActionKind::kPull:
          s = Pull(task.id, action.first, action.end);
          break;
        case LaneActionKind::kGradient:
          s = ComputeGradient(action.first);
          break;
        case LaneActionKind::kLocalStep:
          s = LocalStep(action.first);
          break;
        case LaneActionKind::kPush:
          s = Push(task, action.window, std::exchange(accumulated_, nullptr));
          break;
        case LaneActionKind::kExchange:
          s = Exchange(task, action.window);
          break;
        case LaneActionKind::kWindowDone:
          s = task.window_done(action.window + 1);
          break;
        case LaneActionKind::kTaskDone:
          return absl::OkStatus();
      }
      if (!s.ok()) return s;
    }
  }

  // All rows of the batches until the next pull at once: they are those of one moment, as if the
  // whole model had been pulled.
  absl::Status Pull(TaskId task, uint64_t first, uint64_t end) {
    first_ = first;
    prepared_.resize(end - first);
    std::vector<const RoutedKeys*> keys;
    bool any = false;
    for (size_t i = 0; i < prepared_.size(); ++i) {
      Prepared& p = prepared_[i];
      clock_.Enter(Stage::kRead);
      if (absl::Status s = Read(task, first + i, &p.batch); !s.ok()) return s;
      clock_.Enter(Stage::kRoute);
      router_.Route(o_.plan->tables, p.batch, &p.routed);
      keys.push_back(&p.routed);
      any |= p.batch.size > 0;
    }
    const KeyList wanted = replica_.Plan(keys);
    clock_.Enter(Stage::kPull);
    if (any || elastic_) {
      if (absl::Status s = client_.Pull(Step(0), wanted, replica_.pulled()); !s.ok()) return s;
    }
    replica_.Pulled();
    return absl::OkStatus();
  }

  absl::Status ComputeGradient(uint64_t batch) {
    const Prepared& p = prepared_[batch - first_];
    BatchRows rows;
    if (const auto& there = replica_.pulled()->rows_there; there != nullptr) {
      rows.there.rows = there.get();  // of this batch alone: a window of async is one
      rows.memory = o_.rows;
    } else {
      rows.here = replica_.Rows(batch - first_);
    }
    o_.slots->Acquire();
    auto gradient = step_.Run(p.batch, p.routed, rows, replica_.dense(), &clock_);
    o_.slots->Release();
    if (!gradient.ok()) return gradient.status();
    gradient_ = *std::move(gradient);
    if (gradient_->examples == 0 || elastic_) return absl::OkStatus();
    accumulated_ = accumulated_ == nullptr
                       ? gradient_
                       : std::make_shared<const Gradient>(
                             AddMeans(o_.plan->tables.tables, *accumulated_, *gradient_));
    return absl::OkStatus();
  }

  absl::Status LocalStep(uint64_t batch) {
    const auto counts = replica_.LocalStep(batch - first_, *gradient_);
    if (!counts.ok()) return counts.status();
    // Downpour's gradients go to the servers too, which count.
    if (elastic_) o_.stats->OnLocalRows(counts->refused, counts->clipped);
    return absl::OkStatus();
  }

  // The task may have been begun by a lane that is gone: what that one exchanged is in the centre,
  // and must not come there a second time through this lane's copy.
  absl::Status Exchange(const Task& task, uint64_t window) {
    bool theirs = false;
    if (absl::Status s = Push(task, window, replica_.Exchange(), &theirs); !s.ok()) return s;
    if (theirs) replica_.Reset();
    return absl::OkStatus();
  }

  absl::Status Push(const Task& task, uint64_t window, std::shared_ptr<const Gradient> update,
                    bool* theirs = nullptr) {
    // A window without examples is pushed too: it is applied, and adds nothing.
    if (update == nullptr) update = std::make_shared<const Gradient>();
    wire::PushFields fields;
    fields.task = task.id;
    fields.window = window;
    fields.lane = o_.lane;
    fields.cut = task.cut();
    if (STRATA_MUTATION("cut.marked_before_answers")) {
      if (absl::Status s = task.window_done(window + 1); !s.ok()) return s;
    }
    return client_.Push(fields, std::move(update), theirs);
  }

  const LaneWorkOptions o_;
  const bool elastic_;
  ParameterClient client_;
  const std::unique_ptr<Model> model_;
  const std::unique_ptr<DenseOptimizer> dense_;
  const std::unique_ptr<ops::Parallel> parallel_;
  BatchStep step_;
  const std::unique_ptr<TrainingStrategy> strategy_;
  Replica replica_;
  Router router_;
  std::vector<Prepared> prepared_;  // of the last pull: batches first_ ...
  uint64_t first_ = 0;
  TaskCounts counts_;                            // of the task in work, as far as it was read
  std::shared_ptr<const Gradient> gradient_;     // of the last batch
  std::shared_ptr<const Gradient> accumulated_;  // of the window's batches so far
  StageClock clock_{&o_.stats->stages()};
};

}  // namespace

void ComputeSlots::Acquire() {
  absl::MutexLock lock(&mu_);
  const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return free_ > 0; };
  mu_.Await(absl::Condition(&free));
  --free_;
}

void ComputeSlots::Release() {
  absl::MutexLock lock(&mu_);
  ++free_;
}

absl::StatusOr<std::unique_ptr<LaneWork>> LaneWork::Make(const LaneWorkOptions& options) {
  auto model = options.models->NewModel();
  if (!model.ok()) return model.status();
  auto replica = LocalOptions(*options.plan, *options.exchange);
  if (!replica.ok()) return replica.status();
  std::unique_ptr<DenseOptimizer> dense;
  if (options.plan->spec.training().mode() != "async") {  // which has no steps of its own
    auto made = options.models->NewDenseOptimizer(replica->tables[ModelTables::kDenseTable],
                                                  replica->dense_rows);
    if (!made.ok()) return made.status();
    dense = *std::move(made);
    replica->dense_optimizer = dense.get();
  }
  return std::unique_ptr<LaneWork>(
      std::make_unique<Work>(options, *std::move(model), *replica, std::move(dense)));
}

}  // namespace strata
