#include "proto/runtime/base/job_work.h"

#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/mutation.h"
#include "proto/core/mutex.h"

namespace strata {
namespace {

struct Piece {
  JobWork::Begins begins = JobWork::Begins::kInOrder;
  absl::Time posted;
  std::function<void()> work;
  JobWork::Flag cancelled;
};

struct Queue {
  std::deque<Piece> waiting;
  std::map<uint64_t, bool> running;  // by number: whether another one has passed it
};

bool Held(const Queue& queue, absl::Time now) {
  return !queue.waiting.empty() && now >= queue.waiting.front().posted + JobWork::kPatience;
}

bool IsCancelled(const Piece& piece) { return piece.cancelled != nullptr && *piece.cancelled; }

bool MayBegin(const Queue& queue, absl::Time now) {
  if (queue.waiting.empty()) return false;
  if (queue.running.empty() || IsCancelled(queue.waiting.front())) return true;
  return queue.waiting.front().begins == JobWork::Begins::kPassing && Held(queue, now) &&
         !STRATA_MUTATION("work.hangs_for_all") && queue.running.size() < JobWork::kMostThreads;
}

void Add(const Queue& queue, absl::Time now, JobWork::Load& load) {
  load.running += queue.running.size();
  load.waiting += queue.waiting.size();
  for (const auto& [number, passed] : queue.running) load.passed += passed;
  load.held |= Held(queue, now);
}

}  // namespace

struct JobWork::State : std::enable_shared_from_this<State> {
  explicit State(Timer* of_waits) : timer(of_waits) {}

  struct Ready {
    std::string job;
    uint64_t number = 0;  // 0: nobody wants it
    std::function<void()> work;
  };

  // Takes what may begin in the job's queue, and what nobody wants.
  void Take(const std::string& job, Queue& queue, std::vector<Ready>& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const absl::Time now = timer->Now();
    while (MayBegin(queue, now)) {
      Piece piece = std::move(queue.waiting.front());
      queue.waiting.pop_front();
      if (IsCancelled(piece)) {
        out.push_back({job, 0, std::move(piece.work)});
        continue;
      }
      for (auto& [number, passed] : queue.running) passed = true;
      out.push_back({job, ++last, std::move(piece.work)});
      queue.running.emplace(last, false);
    }
  }
  // Without the lock: what is dropped may take others.
  void Begin(std::vector<Ready> ready) {
    for (Ready& r : ready) {
      if (r.number == 0) continue;
      if (STRATA_MUTATION("work.by_who_asks")) {
        Run(std::move(r));
        continue;
      }
      std::thread([self = shared_from_this(), r = std::move(r)]() mutable {
        self->Run(std::move(r));
      }).detach();
    }
  }
  void Run(Ready r) {
    r.work();
    r.work = nullptr;  // what it held goes before it counts as ended
    std::vector<Ready> next;
    {
      MutexLock lock(&mu);
      const auto it = queues.find(r.job);
      it->second.running.erase(r.number);
      Take(r.job, it->second, next);
      if (it->second.running.empty()) queues.erase(it);  // then nothing waits
    }
    Begin(std::move(next));
  }
  bool Idle() const ABSL_SHARED_LOCKS_REQUIRED(mu) { return queues.empty(); }

  Timer* const timer;
  mutable Mutex mu;
  std::map<std::string, Queue> queues ABSL_GUARDED_BY(mu);  // none is empty
  uint64_t last ABSL_GUARDED_BY(mu) = 0;
};

JobWork::JobWork(Timer* timer) : state_(std::make_shared<State>(timer)) {}

JobWork::~JobWork() { Drain(); }

void JobWork::Post(const std::string& job, Begins begins, std::function<void()> work,
                   Flag cancelled) {
  std::vector<State::Ready> ready;
  {
    MutexLock lock(&state_->mu);
    Queue& queue = state_->queues[job];
    queue.waiting.push_back({begins, state_->timer->Now(), std::move(work), std::move(cancelled)});
    state_->Take(job, queue, ready);
    if (queue.running.empty()) state_->queues.erase(job);  // nobody wanted it
  }
  state_->Begin(std::move(ready));
}

void JobWork::Pump() {
  std::vector<State::Ready> ready;
  {
    MutexLock lock(&state_->mu);
    for (auto& [job, queue] : state_->queues) state_->Take(job, queue, ready);
  }
  state_->Begin(std::move(ready));
}

JobWork::Load JobWork::Of(const std::string& job) const {
  Load load;
  MutexLock lock(&state_->mu);
  const auto it = state_->queues.find(job);
  if (it != state_->queues.end()) Add(it->second, state_->timer->Now(), load);
  return load;
}

JobWork::Load JobWork::Sum() const {
  Load load;
  MutexLock lock(&state_->mu);
  for (const auto& [job, queue] : state_->queues) Add(queue, state_->timer->Now(), load);
  return load;
}

void JobWork::Drain() {
  MutexLock lock(&state_->mu);
  state_->mu.Await(absl::Condition(state_.get(), &State::Idle));
}

}  // namespace strata
