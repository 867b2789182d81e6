#include "server/snapshot/deadline_timer.h"

#include <map>
#include <utility>

#include "proto/runtime/base/timer.h"

namespace strata::server {
namespace {

struct Entry {
  const void* owner;
  std::function<void()> work;
};

// A Timer of its own: what a server calls back may take longer than other alarms can wait.
class RealTimer : public DeadlineTimer {
 public:
  void At(absl::Time when, const void* owner, std::function<void()> work) override {
    timer_->At(when, owner, std::move(work));
  }
  void Cancel(const void* owner) override { timer_->Cancel(owner); }
  absl::Time Now() override { return timer_->Now(); }

 private:
  const std::unique_ptr<Timer> timer_ = MakeTimer();
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
