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
#include "worker/batch_step.h"
#include "worker/gradient.h"
#include "worker/models/models.h"
#include "worker/parameter_client.h"
#include "worker/router.h"

namespace strata {
namespace {

// Where an idle lane stands at a cut: at no task, so that none counts as done before it.
constexpr uint64_t kNoTask = ~uint64_t{0};

class Trainer : public AsyncTrainer {
 public:
  explicit Trainer(const AsyncTrainerOptions& options)
      : o_(options),
        slots_(std::max(1u, options.concurrent_lanes)),
        windows_(options.first_window) {}

  ~Trainer() override {
    Stop();
    JoinAll();
  }

  absl::Status Run() override {
    bool ended = false;
    while (true) {
      {
        absl::MutexLock lock(&mu_);
        const auto some = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
          return stop_ || !failure_.ok() || (!ended && all_done_ && hosted_.contains(0));
        };
        mu_.Await(absl::Condition(&some));
        if (stop_ || !failure_.ok()) break;
      }
      // The lanes go on marking cuts: the last one is taken after the end.
      ended = true;
      if (absl::Status s = End(); !s.ok()) Fail(s);
    }
    Stop();
    JoinAll();
    absl::MutexLock lock(&mu_);
    return failure_.ok() ? absl::CancelledError("training was stopped") : failure_;
  }

  void SetTasks(const std::vector<TaskAssignment>& tasks) override {
    absl::MutexLock lock(&mu_);
    std::map<uint64_t, uint32_t> assigned;  // task -> lane
    for (const TaskAssignment& t : tasks) assigned[t.task()] = t.lane();
    const auto given = [&](uint64_t task, uint32_t lane) {
      const auto it = assigned.find(task);
      return it != assigned.end() && it->second == lane;
    };
    for (auto& [number, lane] : lanes_) {
      std::erase_if(lane->waiting,
                    [&, n = number](const TaskAssignment& t) { return !given(t.task(), n); });
      // Given to another lane meanwhile, which answers for it at cuts. What was applied of it is
      // dropped there as a repetition.
      if (lane->running && !given(lane->current, number)) lane->cancelled = true;
    }
    for (const TaskAssignment& t : tasks) {
      const auto [it, fresh] = seen_.try_emplace(t.task(), t.lane());
      if (!fresh && it->second == t.lane()) continue;
      it->second = t.lane();
      LaneOf(t.lane()).waiting.push_back(t);
    }
    std::erase_if(seen_, [&](const auto& seen) { return !assigned.contains(seen.first); });
    o_.stats->KeepDoneTasks([&](uint64_t task) { return assigned.contains(task); });
  }

  void SetCut(uint64_t cut, const std::vector<uint32_t>& lanes) override {
    absl::MutexLock lock(&mu_);
    cut_ = std::max(cut_, cut);
    hosted_ = {lanes.begin(), lanes.end()};
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
    std::unique_ptr<BatchStep> step;
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

  // Whether the lane has a cut to mark. One that moved to another worker is marked there.
  bool MustMark(const Lane& lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return lane.marked < cut_ && hosted_.contains(lane.number);
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
    bench.step =
        std::make_unique<BatchStep>(o_.exchange, bench.model.get(), bench.parallel.get(), o_.stats);
    while (true) {
      TaskAssignment task;
      task.set_task(kNoTask);
      bool marks = false;
      {
        absl::MutexLock lock(&mu_);
        const auto some = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
          return stop_ || MustMark(lane) || !lane.waiting.empty();
        };
        mu_.Await(absl::Condition(&some));
        if (stop_) return;
        marks = MustMark(lane);
        if (!lane.waiting.empty()) task = lane.waiting.front();
        if (!marks) {
          lane.waiting.pop_front();
          lane.running = true;
          lane.current = task.task();
          lane.cancelled = false;
        }
      }
      absl::Status s = marks ? MarkCut(lane, client, task.task(), task.first_window())
                             : RunTask(lane, client, bench, task);
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
      if (lane.number != 0) continue;
      if (absl::Status s = Boundary(); !s.ok()) return s;
    }
    o_.stats->OnDoneTask(task.task());
    return absl::OkStatus();
  }

  absl::Status MarkCut(Lane& lane, ParameterClient& client, uint64_t task, uint64_t window) {
    uint64_t cut;
    {
      absl::MutexLock lock(&mu_);
      if (!MustMark(lane)) return absl::OkStatus();
      cut = cut_;
    }
    if (absl::Status s = client.Mark(LaneId(lane.number), cut, TaskId(task), window); !s.ok()) {
      return s;
    }
    absl::MutexLock lock(&mu_);
    lane.marked = std::max(lane.marked, cut);
    uint64_t all = cut;
    for (uint32_t hosted : hosted_) all = std::min(all, LaneOf(hosted).marked);
    o_.stats->SetMarkedCut(all);
    return absl::OkStatus();
  }

  // Lanes work at their own pace: lane 0's windows, times the lanes, stand for the job's.
  absl::Status Boundary() {
    absl::MutexLock lock(&boundary_mu_);
    windows_ = std::min(windows_ + o_.plan->lanes, o_.total_windows - 1);
    return o_.boundary->OnBoundary(Step(windows_), false).status();
  }

  absl::Status End() {
    absl::MutexLock lock(&boundary_mu_);
    if (absl::Status s = o_.boundary->OnBoundary(Step(o_.total_windows), true).status(); !s.ok()) {
      return s;
    }
    o_.stats->OnFinished();
    return absl::OkStatus();
  }

  absl::Status RunWindow(Lane& lane, ParameterClient& client, Bench& bench, uint64_t task,
                         uint64_t window) {
    if (absl::Status s = o_.source->ReadWindow(TaskId(task), window, &bench.batch); !s.ok()) {
      return s;
    }
    bench.router.Route(o_.plan->tables.tables[0], bench.batch.keys, &bench.routed);
    const KeyList keys{bench.routed.keys, bench.routed.positions};
    if (bench.batch.size > 0) {
      if (absl::Status s = client.Pull(Step(0), keys, &bench.weights); !s.ok()) return s;
    }
    std::shared_ptr<const Gradient> gradient = Compute(bench);
    wire::PushFields fields;
    fields.task = TaskId(task);
    fields.window = window;
    fields.lane = LaneId(lane.number);
    {
      absl::MutexLock lock(&mu_);
      fields.cut = lane.marked;
    }
    if (absl::Status s = client.Push(fields, std::move(gradient)); !s.ok()) return s;
    o_.stats->OnStep(pushed_.fetch_add(1) + 1, absl::Now());
    return absl::OkStatus();
  }

  // At most `concurrent_lanes` lanes compute at a time: more would only share the cores.
  std::shared_ptr<const Gradient> Compute(Bench& bench) {
    {
      absl::MutexLock lock(&compute_mu_);
      const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(compute_mu_) { return slots_ > 0; };
      compute_mu_.Await(absl::Condition(&free));
      --slots_;
    }
    auto gradient = bench.step->Run(bench.batch, bench.routed, bench.weights.rows.data(),
                                    bench.weights.dense.data());
    absl::MutexLock lock(&compute_mu_);
    ++slots_;
    return gradient;
  }

  const AsyncTrainerOptions o_;
  absl::Mutex mu_;
  std::map<uint32_t, std::unique_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, uint32_t> seen_ ABSL_GUARDED_BY(mu_);  // assigned task -> its lane
  std::set<uint32_t> hosted_ ABSL_GUARDED_BY(mu_);
  uint64_t cut_ ABSL_GUARDED_BY(mu_) = 0;
  bool all_done_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  absl::Mutex compute_mu_;
  uint32_t slots_ ABSL_GUARDED_BY(compute_mu_);
  std::atomic<uint64_t> pushed_{0};
  absl::Mutex boundary_mu_;
  uint64_t windows_ ABSL_GUARDED_BY(boundary_mu_);
};

}  // namespace

std::unique_ptr<AsyncTrainer> AsyncTrainer::Make(const AsyncTrainerOptions& options) {
  return std::make_unique<Trainer>(options);
}

}  // namespace strata
