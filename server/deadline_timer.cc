#include "server/deadline_timer.h"

#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace strata::server {
namespace {

struct Entry {
  const void* owner;
  std::function<void()> work;
};

class RealTimer : public DeadlineTimer {
 public:
  RealTimer() : thread_([this] { Run(); }) {}

  ~RealTimer() override {
    {
      absl::MutexLock lock(&mu_);
      stopping_ = true;
      changed_.SignalAll();
    }
    thread_.join();
  }

  void At(absl::Time when, const void* owner, std::function<void()> work) override {
    absl::MutexLock lock(&mu_);
    entries_.emplace(when, Entry{owner, std::move(work)});
    changed_.SignalAll();
  }

  void Cancel(const void* owner) override {
    absl::MutexLock lock(&mu_);
    for (;;) {
      std::erase_if(entries_, [&](const auto& e) { return e.second.owner == owner; });
      if (running_ != owner) return;
      changed_.Wait(&mu_);  // its callback may add entries: look again
    }
  }

  absl::Time Now() override { return absl::Now(); }

 private:
  void Run() {
    absl::MutexLock lock(&mu_);
    while (!stopping_) {
      const absl::Time now = absl::Now();
      if (entries_.empty()) {
        changed_.Wait(&mu_);
      } else if (entries_.begin()->first > now) {
        const absl::Time next = entries_.begin()->first;
        changed_.WaitWithDeadline(&mu_, next);
      } else {
        RunFirst();
      }
    }
  }

  void RunFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Entry entry = std::move(entries_.begin()->second);
    entries_.erase(entries_.begin());
    running_ = entry.owner;
    mu_.Unlock();
    entry.work();
    entry.work = nullptr;
    mu_.Lock();
    running_ = nullptr;
    changed_.SignalAll();
  }

  absl::Mutex mu_;
  absl::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  const void* running_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::multimap<absl::Time, Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace

std::unique_ptr<DeadlineTimer> MakeDeadlineTimer() { return std::make_unique<RealTimer>(); }

struct ManualTimer::State {
  absl::Time now = absl::UnixEpoch();
  std::multimap<absl::Time, Entry> entries;
};

ManualTimer::ManualTimer() : state_(std::make_unique<State>()) {}
ManualTimer::~ManualTimer() = default;

void ManualTimer::At(absl::Time when, const void* owner, std::function<void()> work) {
  state_->entries.emplace(when, Entry{owner, std::move(work)});
}

void ManualTimer::Cancel(const void* owner) {
  std::erase_if(state_->entries, [&](const auto& e) { return e.second.owner == owner; });
}

absl::Time ManualTimer::Now() { return state_->now; }

void ManualTimer::Advance(absl::Duration by) {
  state_->now += by;
  while (!state_->entries.empty() && state_->entries.begin()->first <= state_->now) {
    Entry entry = std::move(state_->entries.begin()->second);
    state_->entries.erase(state_->entries.begin());
    entry.work();
  }
}

}  // namespace strata::server
