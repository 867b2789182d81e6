#include "proto/runtime/base/alarm_queue.h"

#include <utility>

#include "absl/synchronization/mutex.h"

namespace strata {

bool AlarmQueue::Add(absl::Time when, const void* owner, std::function<void()> work) {
  MutexLock lock(&mu_);
  const auto added = alarms_.emplace(when, Alarm{owner, std::move(work)});
  of_owner_.emplace(owner, added);
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
  return alarms_.empty() ? absl::InfiniteFuture() : alarms_.begin()->first;
}

size_t AlarmQueue::size() const {
  MutexLock lock(&mu_);
  return alarms_.size();
}

bool AlarmQueue::RunFirst(absl::Time now) {
  Alarm alarm;
  {
    MutexLock lock(&mu_);
    if (alarms_.empty() || alarms_.begin()->first > now) return false;
    alarm = std::move(alarms_.begin()->second);
    auto it = of_owner_.lower_bound(alarm.owner);
    while (it->second != alarms_.begin()) ++it;
    of_owner_.erase(it);
    alarms_.erase(alarms_.begin());
    running_ = alarm.owner;
  }
  alarm.work();
  alarm.work = nullptr;  // what it holds goes before Cancel returns
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
