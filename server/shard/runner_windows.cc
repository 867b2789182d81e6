// ShardRunner: windows of asynchronous modes, and what waits for a cut.
#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/protocol/window_ledger.h"
#include "server/shard/runner.h"

namespace strata::server {

void ShardRunner::RunWindow(const std::shared_ptr<PushCall>& call, PushPart part) {
  const wire::PushFields& f = call->fields();
  if (absl::Status s = shard_->CheckCut("push", f.cut); !s.ok()) return call->Fail(std::move(s));
  if (!shard_->barrier().Push(f.cut, next_held_, options_.timer->Now())) {
    // A retry takes the place of what it repeats, so that retries do not pile up.
    for (auto& [id, held] : held_) {
      const wire::PushFields& h = held.call->fields();
      if (h.task != f.task || h.window != f.window || h.cut != f.cut) continue;
      held.call->Fail(absl::UnavailableError("this push was sent again while it was held back"));
      held.call = call;
      shard_->barrier().Forget(next_held_++);
      return;
    }
    held_.emplace(next_held_++, HeldWindow{call, std::move(part)});
    WatchHeld();
    return;
  }
  if (!deferred_.empty() || driver_.NeedsPriority()) {
    deferred_.push_back({call, std::move(part)});  // bound: bytes in flight
    return;
  }
  ApplyWindow(call, part);
}

void ShardRunner::RunDeferred() {
  if (!closed_.ok()) return;
  TakeReceived();
  while (!deferred_.empty() && !driver_.NeedsPriority()) {
    HeldWindow window = std::move(deferred_.front());
    deferred_.pop_front();
    ApplyWindow(window.call, window.part);
  }
  if (shard_->options().synchronous || shard_->behind()) Advance();
}

void ShardRunner::ApplyWindow(const std::shared_ptr<PushCall>& call, PushPart& part) {
  const wire::PushFields& f = call->fields();
  const Step before = shard_->clock();
  auto result = shard_->ApplyWindow(f.task, f.window, f.lane, std::move(part.updates[0]));
  if (!result.ok()) {
    CommitFailed(result.status());
    if (shard_->behind()) RetryLater();
    call->Fail(result.status());
  } else if (*result == Shard::WindowResult::kTooFar) {
    call->Fail(absl::ResourceExhaustedError(absl::StrCat(
        "push.window ", f.window, " of task ", f.task.value, ": more than ",
        WindowLedger::kMaxAhead, " windows after the first that is missing, or of more ", "than ",
        WindowLedger::kMaxFar, " tasks far above those that are closed")));
  } else {
    if (*result == Shard::WindowResult::kApplied) CommitWentThrough();
    AnswerApplied(call, *result == Shard::WindowResult::kRepeated);
  }
  if (shard_->clock() == before) return;
  Publish();
  options_.committed();
  tidier_.Wake();
}

void ShardRunner::ApplyReleased() {
  for (const HeldPush id : shard_->barrier().Release()) {
    auto node = held_.extract(id);
    if (!node.empty()) ApplyWindow(node.mapped().call, node.mapped().part);
  }
}

// One alarm at a time, at the deadline of what waits the longest.
void ShardRunner::WatchHeld() {
  const auto deadline = shard_->barrier().Deadline();
  if (!deadline || watching_held_) return;
  watching_held_ = true;
  options_.timer->At(*deadline, this, [this] {
    Post([this] {
      watching_held_ = false;
      if (closed_.ok()) EndOverdue();
    });
  });
}

// The scheduler may have died after it told some lanes of the cut: the others never mark it.
void ShardRunner::EndOverdue() {
  CutBarrier& barrier = shard_->barrier();
  const absl::Duration patience = barrier.patience();
  const size_t marks = barrier.marks().size();
  if (barrier.EndOverdue(options_.timer->Now())) {
    LOG(WARNING) << "cut_given_up job=" << shard_->options().job.value << " shard=" << id_.value
                 << " cut=" << barrier.over() << " marks=" << marks
                 << " waited_ms=" << absl::ToInt64Milliseconds(patience);
    TakeCuts();
    ApplyReleased();
    Publish();
  }
  WatchHeld();
}

void ShardRunner::Mark(std::shared_ptr<MarkCall> call, uint32_t lane, CutNumber cut,
                       LaneMark mark) {
  Post([this, call = std::move(call), lane, cut, mark] {
    if (!closed_.ok()) return call->Fail(closed_);
    absl::Status hosts = sessions_.Check(call->session());
    if (!hosts.ok()) return call->Fail(std::move(hosts));
    if (absl::Status s = shard_->CheckCut("mark", cut); !s.ok()) return call->Fail(std::move(s));
    shard_->barrier().Mark(lane, cut, mark);
    call->Marked(shard_->committed());
    TakeCuts();
    ApplyReleased();
  });
}

void ShardRunner::CloseBelow(TaskId task) {
  Post([this, task] { shard_->CloseBelow(task); });
}

}  // namespace strata::server
