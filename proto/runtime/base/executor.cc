#include "proto/runtime/base/executor.h"

#include <pthread.h>

#include <cstddef>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/mutex.h"

namespace strata {
namespace {

using Work = std::function<void()>;

class ThreadPool : public Executor {
 public:
  // Twice the threads: each that is in a blocking section has one to take its place. More are made
  // when more are in one, as where a disk hangs.
  ThreadPool(size_t threads, const std::string& name, Work at_start)
      : at_start_(std::move(at_start)),
        name_(name.substr(0, 15)),  // Linux keeps 15 characters
        places_(threads),
        free_(static_cast<ptrdiff_t>(threads)) {
    MutexLock lock(&mu_);
    for (size_t i = 0; i < 2 * threads; ++i) Add();
  }

  ~ThreadPool() override {
    {
      MutexLock lock(&mu_);
      closing_ = true;
    }
    std::vector<std::thread> threads;
    {
      MutexLock lock(&mu_);
      threads.swap(threads_);  // none is added any more
    }
    for (std::thread& t : threads) t.join();
  }

  void Post(Work work) override {
    MutexLock lock(&mu_);
    queue_.push_back(std::move(work));
  }

  // The calling thread's place: given up, and taken again.
  void Leave() {
    MutexLock lock(&mu_);
    ++free_;
    if (made_ - ++away_ < places_ && !closing_) Add();
  }
  void Return() {
    MutexLock lock(&mu_);
    --free_;
    --away_;
  }
  // The pool that the calling thread belongs to, or null.
  static ThreadPool*& OfThisThread() {
    thread_local ThreadPool* pool = nullptr;
    return pool;
  }

 private:
  bool Ready() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return queue_.empty() ? closing_ : free_ > 0;
  }

  void Add() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ++made_;
    threads_.emplace_back([this] { Run(); });
    pthread_setname_np(threads_.back().native_handle(), name_.c_str());
  }

  void Run() {
    OfThisThread() = this;
    if (at_start_) at_start_();
    for (bool ran = false;; ran = true) {
      Work work;
      {
        MutexLock lock(&mu_);
        if (ran) ++free_;
        mu_.Await(absl::Condition(this, &ThreadPool::Ready));
        if (queue_.empty()) return;
        work = std::move(queue_.front());
        queue_.pop_front();
        --free_;
      }
      work();
    }
  }

  const Work at_start_;
  const std::string name_;
  const size_t places_;
  Mutex mu_;
  std::deque<Work> queue_ ABSL_GUARDED_BY(mu_);
  // Places to run in; below 0 for moments after a blocking section.
  ptrdiff_t free_ ABSL_GUARDED_BY(mu_);
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  size_t made_ ABSL_GUARDED_BY(mu_) = 0;
  size_t away_ ABSL_GUARDED_BY(mu_) = 0;  // in blocking sections
  // At most `places_` and as many as were ever away at a time, but for the first ones.
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

class Serial : public Executor {
 public:
  explicit Serial(Executor* base) : base_(base) {}

  ~Serial() override {
    MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &Serial::Idle));
  }

  void Post(Work work) override {
    {
      MutexLock lock(&mu_);
      queue_.push_back(std::move(work));
      if (scheduled_) return;
      scheduled_ = true;
    }
    base_->Post([this] { RunSome(); });
  }

 private:
  // Closures run before the thread is given back to other queues of the same base.
  static constexpr int kTurn = 16;

  bool Idle() const ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !scheduled_; }

  void RunSome() {
    for (int i = 0; i < kTurn; ++i) {
      Work work;
      {
        MutexLock lock(&mu_);
        if (queue_.empty()) {
          scheduled_ = false;  // after which *this may be destroyed
          return;
        }
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      work();
    }
    base_->Post([this] { RunSome(); });
  }

  Executor* const base_;
  Mutex mu_;
  std::deque<Work> queue_ ABSL_GUARDED_BY(mu_);
  bool scheduled_ ABSL_GUARDED_BY(mu_) = false;  // RunSome is posted or running
};

}  // namespace

BlockingSection::BlockingSection() {
  if (ThreadPool* pool = ThreadPool::OfThisThread()) pool->Leave();
}
BlockingSection::~BlockingSection() {
  if (ThreadPool* pool = ThreadPool::OfThisThread()) pool->Return();
}

std::unique_ptr<Executor> MakeThreadPool(size_t threads, std::string name, Work at_start) {
  return std::make_unique<ThreadPool>(threads, name, std::move(at_start));
}

std::unique_ptr<Executor> MakeSerial(Executor* base) { return std::make_unique<Serial>(base); }

struct ManualExecutor::State {
  mutable Mutex mu;
  std::deque<Work> queue ABSL_GUARDED_BY(mu);
};

ManualExecutor::ManualExecutor() : state_(std::make_unique<State>()) {}
ManualExecutor::~ManualExecutor() = default;

void ManualExecutor::Post(Work work) {
  MutexLock lock(&state_->mu);
  state_->queue.push_back(std::move(work));
}

bool ManualExecutor::RunOne() {
  Work work;
  {
    MutexLock lock(&state_->mu);
    if (state_->queue.empty()) return false;
    work = std::move(state_->queue.front());
    state_->queue.pop_front();
  }
  work();
  return true;
}

size_t ManualExecutor::RunAll() {
  size_t ran = 0;
  while (RunOne()) ++ran;
  return ran;
}

size_t ManualExecutor::waiting() const {
  MutexLock lock(&state_->mu);
  return state_->queue.size();
}

}  // namespace strata
