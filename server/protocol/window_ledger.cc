#include "server/protocol/window_ledger.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "proto/core/mutation.h"

namespace strata::server {
namespace {

void Put(std::string& out, uint64_t v) {
  char bytes[8];
  std::memcpy(bytes, &v, 8);
  out.append(bytes, 8);
}

bool Take(absl::string_view& in, uint64_t& v) {
  if (in.size() < 8) return false;
  std::memcpy(&v, in.data(), 8);
  in.remove_prefix(8);
  return true;
}

absl::Status Damaged() { return absl::DataLossError("window ledger: damaged bytes"); }

}  // namespace

WindowVerdict WindowLedger::Check(TaskId task, uint64_t window) const {
  if (task < closed_below_ && !STRATA_MUTATION("window.of_closed_task"))
    return WindowVerdict::kClosed;
  const auto it = tasks_.find(task);
  if (it == tasks_.end() && !HasRoomFor(task)) return WindowVerdict::kTooFar;
  const uint64_t next = it == tasks_.end() ? 0 : it->second.next;
  if (window < next && !STRATA_MUTATION("window.applied_twice")) return WindowVerdict::kRepeated;
  if (it != tasks_.end() && it->second.ahead.contains(window)) return WindowVerdict::kRepeated;
  if (window - next > kMaxAhead) return WindowVerdict::kTooFar;
  return WindowVerdict::kNew;
}

bool WindowLedger::HasRoomFor(TaskId task) const {
  if (task.value - closed_below_.value < kMaxSpread || STRATA_MUTATION("window.any_task_kept")) {
    return true;
  }
  if (closed_below_.value > ~uint64_t{0} - kMaxSpread) return false;
  const auto far = tasks_.lower_bound(TaskId(closed_below_.value + kMaxSpread));
  return static_cast<size_t>(std::distance(far, tasks_.end())) < kMaxFar;
}

void WindowLedger::Add(Task& task, uint64_t window) {
  if (window < task.next) return;
  if (window != task.next) {
    task.ahead.insert(window);
    return;
  }
  ++task.next;
  while (!task.ahead.empty() && *task.ahead.begin() == task.next) {
    task.ahead.erase(task.ahead.begin());
    ++task.next;
  }
}

void WindowLedger::Record(TaskId task, uint64_t window) {
  ++applied_;
  // A log that is replayed, or that a copy gets, may be behind what is closed.
  if (task >= closed_below_) Add(tasks_[task], window);
}

void WindowLedger::CloseBelow(TaskId task) {
  if (task <= closed_below_) return;
  closed_below_ = task;
  tasks_.erase(tasks_.begin(), tasks_.lower_bound(task));
}

std::string WindowLedger::Serialize() const {
  std::string out;
  Put(out, closed_below_.value);
  Put(out, applied_);
  Put(out, tasks_.size());
  for (const auto& [id, task] : tasks_) {
    Put(out, id.value);
    Put(out, task.next);
    Put(out, task.ahead.size());
    for (const uint64_t w : task.ahead) Put(out, w);
  }
  return out;
}

absl::StatusOr<WindowLedger> WindowLedger::Parse(absl::string_view bytes) {
  WindowLedger ledger;
  uint64_t count = 0;
  if (!Take(bytes, ledger.closed_below_.value) || !Take(bytes, ledger.applied_) ||
      !Take(bytes, count)) {
    return Damaged();
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t id = 0, ahead = 0;
    Task task;
    if (!Take(bytes, id) || !Take(bytes, task.next) || !Take(bytes, ahead)) return Damaged();
    if (ahead > bytes.size() / 8) return Damaged();
    for (uint64_t k = 0; k < ahead; ++k) {
      uint64_t window = 0;
      Take(bytes, window);
      const uint64_t floor = task.ahead.empty() ? task.next : *task.ahead.rbegin();
      if (window <= floor) return Damaged();
      task.ahead.insert(window);
    }
    const bool ascending = ledger.tasks_.empty() || ledger.tasks_.rbegin()->first.value < id;
    if (!ascending || id < ledger.closed_below_.value) return Damaged();
    ledger.tasks_.emplace(TaskId(id), std::move(task));
  }
  if (!bytes.empty()) return Damaged();
  return ledger;
}

void WindowLedger::Merge(const WindowLedger& other) {
  for (const auto& [id, theirs] : other.tasks_) {
    Task& mine = tasks_[id];
    std::set<uint64_t> all = mine.ahead;
    all.insert(theirs.ahead.begin(), theirs.ahead.end());
    mine.next = std::max(mine.next, theirs.next);
    mine.ahead.clear();
    for (const uint64_t w : all) {
      if (w >= mine.next) Add(mine, w);
    }
  }
  applied_ = std::max(applied_, other.applied_);
  CloseBelow(other.closed_below_);
  tasks_.erase(tasks_.begin(), tasks_.lower_bound(closed_below_));
}

}  // namespace strata::server
