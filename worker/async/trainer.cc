#include "worker/async/trainer.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ops/mxcsr.h"
#include "proto/job/job_plan.h"
#include "worker/async/lane_work.h"
#include "worker/client/cancel_flag.h"

namespace strata {
namespace {

// Where an idle lane stands at a cut: at no task.
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
      // Given to another lane meanwhile, which answers for it at cuts. What was applied of it, or
      // is on its way yet, counts once: the later of two is dropped as a repetition.
      if (lane->running && !given(lane->current, number)) lane->cancelled.Set();
    }
    for (const TaskAssignment& t : tasks) {
      const auto [it, fresh] = seen_.try_emplace(t.task(), t.lane());
      if (!fresh && it->second == t.lane()) continue;
      it->second = t.lane();
      LaneOf(t.lane()).waiting.push_back(t);
    }
    std::erase_if(seen_, [&](const auto& seen) { return !assigned.contains(seen.first); });
    o_.stats->KeepTasks([&](uint64_t task) { return assigned.contains(task); });
  }

  void SetCut(uint64_t cut, const std::vector<uint32_t>& lanes) override {
    absl::MutexLock lock(&mu_);
    cut_ = std::max(cut_, cut);
    hosted_ = {lanes.begin(), lanes.end()};
    for (uint32_t lane : lanes) LaneOf(lane);  // idle lanes mark too
  }

  void SetGivenUp(uint64_t cut) override {
    absl::MutexLock lock(&mu_);
    given_up_ = std::max(given_up_, cut);
  }

  void SetAllDone() override {
    o_.stats->OnTrained();
    absl::MutexLock lock(&mu_);
    all_done_ = true;
  }

  void Stop() override {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    for (auto& [number, lane] : lanes_) lane->cancelled.Set();
  }

 private:
  // One lane's queue and thread. Guarded by mu_ but for the flag.
  struct Lane {
    uint32_t number = 0;
    std::deque<TaskAssignment> waiting;
    bool running = false;
    uint64_t current = 0;
    uint64_t marked = 0;
    CancelFlag cancelled;
    std::thread thread;
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
    return lane.marked < cut_ && given_up_ < cut_ && hosted_.contains(lane.number);
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
    ops::RestoreExactFloatState();
    LaneWorkOptions options;
    options.plan = o_.plan;
    options.exchange = o_.exchange;
    options.links = o_.links;
    options.timer = o_.timer;
    options.source = o_.source;
    options.stats = o_.stats;
    options.sequences = o_.sequences;
    options.slots = &slots_;
    options.models = o_.models;
    options.rows = o_.rows;
    options.cancelled = &lane.cancelled;
    options.session = o_.session;
    options.lane = LaneId(lane.number);
    options.threads = o_.threads;
    auto made = LaneWork::Make(options);
    if (!made.ok()) return Fail(made.status());
    LaneWork& work = **made;
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
          lane.cancelled.Clear();
        }
      }
      absl::Status s =
          marks ? MarkCut(lane, work, task.task(), task.first_window()) : RunTask(lane, work, task);
      absl::MutexLock lock(&mu_);
      lane.running = false;
      if (absl::IsCancelled(s)) {
        if (!stop_) lane.cancelled.Clear();
      } else if (!s.ok()) {
        if (failure_.ok()) failure_ = s;
      }
    }
  }

  void Fail(const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    if (failure_.ok()) failure_ = status;
  }

  absl::Status RunTask(Lane& lane, LaneWork& work, const TaskAssignment& task) {
    const uint64_t batches = o_.batches_of(TaskId(task.task()));
    const uint64_t windows = WindowsOfTask(o_.plan->spec.training(), batches);
    if (task.first_window() < windows) {
      if (absl::Status s = MarkCut(lane, work, task.task(), task.first_window()); !s.ok()) return s;
    }
    LaneWork::Task todo;
    todo.id = TaskId(task.task());
    todo.batches = batches;
    todo.first_window = task.first_window();
    todo.cut = [this, &lane] {
      absl::MutexLock lock(&mu_);
      return lane.marked;
    };
    todo.window_done = [&](uint64_t next) -> absl::Status {
      o_.stats->OnStep(pushed_.fetch_add(1) + 1, o_.timer->Now());
      if (lane.number == 0) {
        if (absl::Status s = Boundary(); !s.ok()) return s;
      }
      return next < windows ? MarkCut(lane, work, task.task(), next) : absl::OkStatus();
    };
    if (absl::Status s = work.Run(todo); !s.ok()) return s;
    o_.stats->OnDoneTask(work.counts());
    return absl::OkStatus();
  }

  absl::Status MarkCut(Lane& lane, LaneWork& work, uint64_t task, uint64_t window) {
    uint64_t cut;
    {
      absl::MutexLock lock(&mu_);
      if (!MustMark(lane)) return absl::OkStatus();
      cut = cut_;
    }
    if (absl::Status s = work.Mark(cut, TaskId(task), window); !s.ok()) return s;
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

  const AsyncTrainerOptions o_;
  ComputeSlots slots_;
  absl::Mutex mu_;
  std::map<uint32_t, std::unique_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, uint32_t> seen_ ABSL_GUARDED_BY(mu_);  // assigned task -> its lane
  std::set<uint32_t> hosted_ ABSL_GUARDED_BY(mu_);
  uint64_t cut_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t given_up_ ABSL_GUARDED_BY(mu_) = 0;
  bool all_done_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::atomic<uint64_t> pushed_{0};
  absl::Mutex boundary_mu_;
  uint64_t windows_ ABSL_GUARDED_BY(boundary_mu_);
};

}  // namespace

std::unique_ptr<AsyncTrainer> AsyncTrainer::Make(const AsyncTrainerOptions& options) {
  return std::make_unique<Trainer>(options);
}

}  // namespace strata
