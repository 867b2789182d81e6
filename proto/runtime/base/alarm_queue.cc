#include "proto/runtime/base/alarm_queue.h"

#include <utility>

#include "absl/synchronization/mutex.h"

namespace strata {

bool AlarmQueue::Add(absl::Time when, const void* owner, std::function<void()> work) {
  MutexLock lock(&mu_);
  const Place place(when, added_++);
  const auto of_owner = of_owner_.emplace(owner, place);
  const auto added = alarms_.emplace(place, Alarm{of_owner, std::move(work)}).first;
  return added == alarms_.begin();
}

void AlarmQueue::Cancel(const void* owner) {
  MutexLock lock(&mu_);
  const auto idle = [this, owner]()
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return running_ != owner; };
  mu_.Await(absl::Condition(&idle));
  // After the wait: the alarm that ran may have set others.
  const auto [first, last] = of_owner_.equal_range(owner);
  for (auto it = first; it != last; ++it) alarms_.erase(it->second);
  of_owner_.erase(first, last);
}

absl::Time AlarmQueue::next() const {
  MutexLock lock(&mu_);
  return alarms_.empty() ? absl::InfiniteFuture() : alarms_.begin()->first.first;
}

size_t AlarmQueue::size() const {
  MutexLock lock(&mu_);
  return alarms_.size();
}

bool AlarmQueue::RunFirst(absl::Time now) {
  std::function<void()> work;
  {
    MutexLock lock(&mu_);
    if (alarms_.empty() || alarms_.begin()->first.first > now) return false;
    Alarm& first = alarms_.begin()->second;
    running_ = first.of_owner->first;
    work = std::move(first.work);
    of_owner_.erase(first.of_owner);
    alarms_.erase(alarms_.begin());
  }
  work();
  work = nullptr;  // what it holds goes before Cancel returns
  MutexLock lock(&mu_);
  running_ = nullptr;
  return true;
}

void AlarmQueue::AwaitSize(size_t n) {
  MutexLock lock(&mu_);
  const auto enough = [this, n]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return alarms_.size() >= n; };
  mu_.Await(absl::Condition(&enough));
}

}  // namespace strata
