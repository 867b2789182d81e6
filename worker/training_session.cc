#include "worker/training_session.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ops/parallel.h"
#include "proto/job/fields/label_spec.h"
#include "proto/job/job_plan.h"
#include "proto/runtime/base/id_source.h"
#include "worker/async/trainer.h"
#include "worker/bsp/lane_preparer.h"
#include "worker/bsp/trainer.h"
#include "worker/client/cancel_flag.h"
#include "worker/client/exchange.h"
#include "worker/client/parameter_client.h"
#include "worker/client/server_links.h"
#include "worker/data/index/job_epoch_plan.h"
#include "worker/data/reading/field_names.h"
#include "worker/data/reading/named_bad_lines.h"
#include "worker/data/reading/targets.h"
#include "worker/eval/boundary.h"
#include "worker/eval/evaluator.h"
#include "worker/train/model_source.h"
#include "worker/train/plan.h"

namespace strata {
namespace {

// The same caller, who shows what `session` has.
Caller CallerOf(Caller caller, std::shared_ptr<const HeldSession> session) {
  if (caller.asked) caller.jobs = std::move(session);
  return caller;
}

std::vector<DataPeer> Peers(const WorkerJobDirective& directive) {
  std::vector<DataPeer> peers;
  for (int s = 0; s < directive.server_addresses_size(); ++s) {
    peers.push_back({directive.server_addresses(s),
                     s < directive.server_names_size() ? directive.server_names(s) : ""});
  }
  return peers;
}

// Held together in the order of need; torn down in the reverse one.
class Session : public TrainingSession {
 public:
  Session(const TrainingSessionOptions& options, TrainingPlan plan, EpochPlan epochs)
      : o_(options),
        plan_(std::move(plan)),
        epochs_(std::move(epochs)),
        exchange_(plan_.tables, plan_.shards),
        links_(o_.transport, plan_.shards.servers(), CallerOf(o_.caller, session_),
               IdSource::System()),
        threads_(plan_.spec.training().threads() > 0 ? plan_.spec.training().threads()
                                                     : o_.threads),
        parallel_(ops::MakeParallel(threads_)) {}

  absl::Status Open() {
    const WorkerJobDirective& d = o_.directive;
    auto source = o_.data->Open(plan_.spec, d.train_index(), d.train_index().shape());
    if (!source.ok()) return source.status();
    source_ = NameBadLines(*std::move(source), [o = &o_](const std::string& line) {
      o->stats->OnFirstBadLine(line, o->timer->Now());
      if (o->log) o->log("lines_are_bad", line);
    });
    const absl::Status teaches =
        CheckTargets(plan_.spec, d.train_index(), source_.get(), o_.unwanted);
    if (!teaches.ok()) return teaches;
    // The scheduler sends an empty index to a job without held-out lines.
    const bool evaluates = d.has_eval_index() && d.eval_index().lines() > 0;
    auto models = MakeModels(evaluates);
    if (!models.ok()) return models.status();
    models_ = *std::move(models);
    auto model = models_->NewModel();
    if (!model.ok()) return model.status();
    model_ = *std::move(model);
    // Numbers of libffm's fields are no names.
    const bool numbered = plan_.spec.fields().empty();
    o_.stats->NameFields(FieldNames(plan_.spec, numbered ? 0 : d.train_index().shape().fields()));
    o_.stats->SetBinary(plan_.tables.tasks[0].binary());
    if (evaluates) {
      if (absl::Status s = OpenEvaluation(d); !s.ok()) return s;
    }
    EvaluationBoundaryOptions options;
    options.spec = plan_.spec;
    options.evaluator = evaluator_.get();
    options.stats = o_.stats;
    options.history = History(d);
    options.train_lines = d.train_index().lines();
    options.steps_before = d.train_index().before().steps();
    options.cancelled = &cancelled_.value();
    options.timer = o_.timer;
    auto boundary = EvaluationBoundary::Make(options);
    if (!boundary.ok()) return boundary.status();
    boundary_ = *std::move(boundary);
    if (plan_.bsp()) {
      MakeBsp();
    } else {
      MakeAsync();
    }
    return absl::OkStatus();
  }

  absl::Status Run() override {
    if (bsp_ != nullptr) {
      const absl::Status s = bsp_->Run();
      return stopped_early_ && absl::IsCancelled(s) ? absl::OkStatus() : s;
    }
    return async_->Run();
  }

  void Update(const WorkerJobDirective& directive) override {
    o_.stats->ForgetEvaluations(directive.evaluations());
    session_->Set(directive.session_credential());
    links_.SetPeers(Peers(directive));
    boundary_->SetCheckpoints(
        {directive.checkpoint_steps().begin(), directive.checkpoint_steps().end()});
    const std::vector<uint32_t> lanes(directive.lanes().begin(), directive.lanes().end());
    bool changed = false;
    {
      absl::MutexLock lock(&mu_);
      changed = lanes != lanes_;
      lanes_ = lanes;
    }
    if (bsp_ != nullptr) {
      if (changed) bsp_->SetLanes(lanes);
      if (directive.stop_at_step() > 0) {
        stopped_early_ = true;
        bsp_->Stop();
      }
      return;
    }
    async_->SetGivenUp(directive.given_up_through());
    async_->SetCut(directive.cut(), lanes);
    async_->SetTasks({directive.tasks().begin(), directive.tasks().end()});
    if (directive.all_tasks_done()) async_->SetAllDone();
  }

  void Stop() override {
    cancelled_.Set();
    if (bsp_ != nullptr) bsp_->Stop();
    if (async_ != nullptr) async_->Stop();
  }

 private:
  // Evaluations up to where the generation starts; later ones belong to a time that was rolled
  // back.
  static std::vector<EvaluationResult> History(const WorkerJobDirective& d) {
    return {d.evaluations().begin(), d.evaluations().end()};
  }

  absl::StatusOr<std::unique_ptr<ModelSource>> MakeModels(bool evaluates) {
    ModelSourceOptions options;
    options.tables = &plan_.tables;
    options.device = o_.device;
    options.worker = plan_.spec.worker();
    options.batch_size = plan_.spec.training().batch_size();
    options.evaluates = evaluates;
    options.threads = threads_;
    return ModelSource::Make(options);
  }

  absl::Status OpenEvaluation(const WorkerJobDirective& d) {
    auto source = o_.data->Open(plan_.spec, d.eval_index(), d.train_index().shape());
    if (!source.ok()) return source.status();
    eval_source_ = *std::move(source);
    auto model = models_->NewModel();
    if (!model.ok()) return model.status();
    eval_model_ = *std::move(model);
    ParameterClientOptions client;
    client.exchange = &exchange_;
    client.links = &links_;
    client.timer = o_.timer;
    client.header = {plan_.job, o_.member, plan_.generation, plan_.shards.epoch()};
    client.identity = plan_.identity;
    client.cancelled = &cancelled_;
    client_ = std::make_unique<ParameterClient>(client);
    EvaluatorOptions evaluator;
    evaluator.client = client_.get();
    evaluator.source = eval_source_.get();
    evaluator.lines = d.eval_index().lines();
    evaluator.at_a_time = models_->scored();
    evaluator.tables = &plan_.tables;
    evaluator.metrics = MetricsOf(plan_.spec);
    evaluator.gauc_field =
        FieldNumber(plan_.spec, d.train_index().shape().fields(), evaluator.metrics.gauc_field);
    evaluator.exchange = &exchange_;
    evaluator.model = eval_model_.get();
    evaluator.parallel = parallel_.get();
    evaluator.cancelled = &cancelled_.value();
    evaluator_ = std::make_unique<Evaluator>(evaluator);
    return absl::OkStatus();
  }

  void MakeBsp() {
    LanePreparer::Options preparer;
    preparer.source = source_.get();
    preparer.tables = plan_.tables;
    preparer.last_step = plan_.last_step;
    preparer.depth = std::max(1u, plan_.spec.training().pipeline_depth());
    preparer.threads =
        PreparingThreads(plan_.spec.training().batch_size(), preparer.depth, threads_);
    preparer.times = &o_.stats->stages();
    preparer_ = LanePreparer::Make(preparer);
    BspTrainerOptions trainer;
    trainer.plan = &plan_;
    trainer.exchange = &exchange_;
    trainer.links = &links_;
    trainer.timer = o_.timer;
    trainer.preparer = preparer_.get();
    trainer.model = model_.get();
    if (o_.row_path == device::RowPath::kDevice) trainer.rows = models_->row_memory();
    trainer.parallel = parallel_.get();
    trainer.stats = o_.stats;
    trainer.boundary = boundary_.get();
    trainer.session = o_.member;
    trainer.sequences = o_.sequences;
    bsp_ = BspTrainer::Make(trainer);
  }

  void MakeAsync() {
    AsyncTrainerOptions trainer;
    trainer.plan = &plan_;
    trainer.exchange = &exchange_;
    trainer.links = &links_;
    trainer.timer = o_.timer;
    trainer.source = source_.get();
    trainer.stats = o_.stats;
    trainer.session = o_.member;
    trainer.sequences = o_.sequences;
    trainer.threads = 1;
    trainer.concurrent_lanes = threads_;
    trainer.boundary = boundary_.get();
    trainer.total_windows = 0;
    for (uint64_t task = 0; task < epochs_.tasks(); ++task) {
      trainer.total_windows +=
          WindowsOfTask(plan_.spec.training(), epochs_.Windows(epochs_.task_lines(task)));
    }
    trainer.total_windows *= std::max(1u, plan_.spec.training().epochs());
    trainer.first_window = o_.directive.train_index().before().steps();
    trainer.total_windows += trainer.first_window;
    for (const EvaluationResult& e : o_.directive.evaluations()) {
      trainer.first_window = std::max(trainer.first_window, e.step());
    }
    trainer.models = models_.get();
    if (o_.row_path == device::RowPath::kDevice) trainer.rows = models_->row_memory();
    trainer.batches_of = [this](TaskId task) { return BatchesOf(task); };
    async_ = AsyncTrainer::Make(trainer);
  }

  uint64_t BatchesOf(TaskId task) const {
    const EpochPlan::TaskPlace place = epochs_.PlaceOf(task);
    const uint32_t in_file_order = epochs_.TaskOrder(place.epoch)[place.index];
    return epochs_.Windows(epochs_.task_lines(in_file_order));
  }

  const TrainingSessionOptions o_;
  const TrainingPlan plan_;
  const EpochPlan epochs_;
  const Exchange exchange_;
  const std::shared_ptr<HeldSession> session_ = std::make_shared<HeldSession>();
  ServerLinks links_;
  const uint32_t threads_;
  std::unique_ptr<ops::Parallel> parallel_;
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<BatchSource> eval_source_;
  std::unique_ptr<ModelSource> models_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Model> eval_model_;
  CancelFlag cancelled_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<EvaluationBoundary> boundary_;
  std::unique_ptr<LanePreparer> preparer_;
  std::unique_ptr<BspTrainer> bsp_;
  std::unique_ptr<AsyncTrainer> async_;
  std::atomic<bool> stopped_early_{false};
  mutable absl::Mutex mu_;
  std::vector<uint32_t> lanes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingSession>> TrainingSession::Make(
    const TrainingSessionOptions& options) {
  auto plan = MakeTrainingPlan(options.directive);
  if (!plan.ok()) return plan.status();
  auto epochs = MakeEpochPlan(options.directive.spec().spec(), options.directive.train_index());
  if (!epochs.ok()) return epochs.status();
  auto session = std::make_unique<Session>(options, *std::move(plan), *std::move(epochs));
  if (absl::Status s = session->Open(); !s.ok()) return s;
  return std::unique_ptr<TrainingSession>(std::move(session));
}

}  // namespace strata
