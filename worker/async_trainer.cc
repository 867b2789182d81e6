#include "worker/async_trainer.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "worker/gradient.h"
#include "worker/models/models.h"
#include "worker/parameter_client.h"
#include "worker/router.h"

namespace strata {
namespace {

class Trainer : public AsyncTrainer {
 public:
  explicit Trainer(const AsyncTrainerOptions& options)
      : o_(options), slots_(std::max(1u, options.concurrent_lanes)) {}

  ~Trainer() override {
    Stop();
    JoinAll();
  }

  absl::Status Run() override {
    {
      absl::MutexLock lock(&mu_);
      const auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return stop_ || all_done_ || !failure_.ok();
      };
      mu_.Await(absl::Condition(&over));
      if (failure_.ok() && all_done_ && !stop_) return absl::OkStatus();
    }
    Stop();
    JoinAll();
    absl::MutexLock lock(&mu_);
    return failure_.ok() ? absl::CancelledError("training was stopped") : failure_;
  }

  void SetTasks(const std::vector<TaskAssignment>& tasks) override {
    absl::MutexLock lock(&mu_);
    std::set<uint64_t> assigned;
    for (const TaskAssignment& t : tasks) assigned.insert(t.task());
    for (auto& [number, lane] : lanes_) {
      std::erase_if(lane->waiting,
                    [&](const TaskAssignment& t) { return !assigned.contains(t.task()); });
      // Given to somebody else meanwhile: its windows are deduplicated, but going on is waste.
      if (lane->running && !assigned.contains(lane->current)) lane->cancelled = true;
    }
    for (const TaskAssignment& t : tasks) {
      if (!seen_.insert(t.task()).second) continue;
      LaneOf(t.lane()).waiting.push_back(t);
    }
    std::erase_if(seen_, [&](uint64_t t) { return !assigned.contains(t); });
  }

  void SetCut(uint64_t cut, const std::vector<uint32_t>& lanes) override {
    absl::MutexLock lock(&mu_);
    cut_ = std::max(cut_, cut);
    for (uint32_t lane : lanes) LaneOf(lane);  // idle lanes mark too
  }

  void SetAllDone() override {
    absl::MutexLock lock(&mu_);
    all_done_ = true;
  }

  void Stop() override {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    for (auto& [number, lane] : lanes_) lane->cancelled = true;
  }

 private:
  // One lane's queue and thread. Guarded by mu_ but for the atomics.
  struct Lane {
    uint32_t number = 0;
    std::deque<TaskAssignment> waiting;
    bool running = false;
    uint64_t current = 0;
    uint64_t marked = 0;
    std::atomic<bool> cancelled{false};
    std::thread thread;
  };

  // What a lane's thread computes with; owned by that thread.
  struct Bench {
    std::unique_ptr<Model> model;
    std::unique_ptr<ops::Parallel> parallel;
    Router router;
    Batch batch;
    RoutedKeys routed;
    ParameterBlock weights;
    std::vector<float> predictions;
  };

  Lane& LaneOf(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    auto& lane = lanes_[number];
    if (lane == nullptr) {
      lane = std::make_unique<Lane>();
      lane->number = number;
      lane->thread = std::thread([this, l = lane.get()] { LaneLoop(*l); });
    }
    return *lane;
  }

  void JoinAll() {
    std::vector<std::thread> threads;
    {
      absl::MutexLock lock(&mu_);
      for (auto& [number, lane] : lanes_) {
        if (lane->thread.joinable()) threads.push_back(std::move(lane->thread));
      }
    }
    for (std::thread& t : threads) t.join();
  }

  void LaneLoop(Lane& lane) {
    ParameterClientOptions client_options;
    client_options.exchange = o_.exchange;
    client_options.links = o_.links;
    client_options.header = {o_.plan->job, o_.session, o_.plan->generation,
                             o_.plan->shards.epoch()};
    client_options.cancelled = &lane.cancelled;
    ParameterClient client(client_options);
    Bench bench;
    auto model = MakeModel(o_.plan->tables);
    if (!model.ok()) return Fail(model.status());
    bench.model = *std::move(model);
    bench.parallel = ops::MakeParallel(std::max(1u, o_.threads));
    while (true) {
      TaskAssignment task;
      bool marks = false;
      {
        absl::MutexLock lock(&mu_);
        const auto some = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
          return stop_ || lane.marked < cut_ || !lane.waiting.empty();
        };
        mu_.Await(absl::Condition(&some));
        if (stop_) return;
        marks = lane.marked < cut_;
        if (!marks) {
          task = lane.waiting.front();
          lane.waiting.pop_front();
          lane.running = true;
          lane.current = task.task();
          lane.cancelled = false;
        }
      }
      absl::Status s = marks ? MarkCut(lane, client, 0, 0) : RunTask(lane, client, bench, task);
      absl::MutexLock lock(&mu_);
      lane.running = false;
      if (absl::IsCancelled(s)) {
        if (!stop_) lane.cancelled = false;
      } else if (!s.ok()) {
        if (failure_.ok()) failure_ = s;
      }
    }
  }

  void Fail(const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    if (failure_.ok()) failure_ = status;
  }

  absl::Status RunTask(Lane& lane, ParameterClient& client, Bench& bench,
                       const TaskAssignment& task) {
    const uint64_t windows = o_.windows_of(TaskId(task.task()));
    for (uint64_t w = task.first_window(); w < windows; ++w) {
      if (absl::Status s = MarkCut(lane, client, task.task(), w); !s.ok()) return s;
      if (absl::Status s = RunWindow(lane, client, bench, task.task(), w); !s.ok()) return s;
    }
    o_.stats->OnDoneTask(task.task());
    return absl::OkStatus();
  }

  absl::Status MarkCut(Lane& lane, ParameterClient& client, uint64_t task, uint64_t window) {
    uint64_t cut;
    {
      absl::MutexLock lock(&mu_);
      if (lane.marked >= cut_) return absl::OkStatus();
      cut = cut_;
    }
    if (absl::Status s = client.Mark(LaneId(lane.number), cut, TaskId(task), window); !s.ok()) {
      return s;
    }
    absl::MutexLock lock(&mu_);
    lane.marked = std::max(lane.marked, cut);
    uint64_t all = cut;
    for (const auto& [number, other] : lanes_) all = std::min(all, other->marked);
    o_.stats->SetMarkedCut(all);
    return absl::OkStatus();
  }

  absl::Status RunWindow(Lane& lane, ParameterClient& client, Bench& bench, uint64_t task,
                         uint64_t window) {
    if (absl::Status s = o_.source->ReadWindow(TaskId(task), window, &bench.batch); !s.ok()) {
      return s;
    }
    bench.router.Route(o_.plan->tables.tables[0], bench.batch.keys, &bench.routed);
    const KeyList keys{bench.routed.keys, bench.routed.positions};
    auto gradient = std::make_shared<Gradient>();
    gradient->examples = bench.batch.size;
    if (bench.batch.size > 0) {
      if (absl::Status s = client.Pull(Step(0), keys, &bench.weights); !s.ok()) return s;
      Compute(bench, gradient.get());
    } else {
      o_.stats->OnBatch({}, {}, 0, bench.batch.bad_lines);
    }
    wire::PushFields fields;
    fields.task = TaskId(task);
    fields.window = window;
    fields.lane = LaneId(lane.number);
    {
      absl::MutexLock lock(&mu_);
      fields.cut = lane.marked;
    }
    if (absl::Status s = client.Push(fields, gradient); !s.ok()) return s;
    o_.stats->OnStep(pushed_.fetch_add(1) + 1, absl::Now());
    return absl::OkStatus();
  }

  // At most `concurrent_lanes` lanes compute at a time: more would only share the cores.
  void Compute(Bench& bench, Gradient* gradient) {
    {
      absl::MutexLock lock(&compute_mu_);
      const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(compute_mu_) { return slots_ > 0; };
      compute_mu_.Await(absl::Condition(&free));
      --slots_;
    }
    ComputeNow(bench, gradient);
    absl::MutexLock lock(&compute_mu_);
    ++slots_;
  }

  void ComputeNow(Bench& bench, Gradient* gradient) {
    const size_t dim = o_.exchange->row_dim();
    gradient->keys = bench.routed.keys;
    gradient->positions = bench.routed.positions;
    gradient->rows.resize(bench.routed.keys.size() * dim);
    gradient->dense.assign(o_.exchange->dense_rows() * ModelTables::kDenseRowDim, 0.0f);
    const std::vector<const float*> tensors =
        o_.exchange->TensorsIn(static_cast<const float*>(bench.weights.dense.data()));
    const std::vector<float*> dense = o_.exchange->TensorsIn(gradient->dense.data());
    bench.predictions.resize(bench.batch.size);
    const double loss = bench.model->TrainStep(
        {&bench.batch, &bench.routed, bench.weights.rows.data(), tensors},
        {gradient->rows.data(), dense}, bench.predictions.data(), bench.parallel.get());
    o_.stats->OnBatch(bench.batch.labels, bench.predictions, loss, bench.batch.bad_lines);
  }

  const AsyncTrainerOptions o_;
  absl::Mutex mu_;
  std::map<uint32_t, std::unique_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> seen_ ABSL_GUARDED_BY(mu_);
  uint64_t cut_ ABSL_GUARDED_BY(mu_) = 0;
  bool all_done_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  absl::Mutex compute_mu_;
  uint32_t slots_ ABSL_GUARDED_BY(compute_mu_);
  std::atomic<uint64_t> pushed_{0};
};

}  // namespace

std::unique_ptr<AsyncTrainer> AsyncTrainer::Make(const AsyncTrainerOptions& options) {
  return std::make_unique<Trainer>(options);
}

}  // namespace strata
