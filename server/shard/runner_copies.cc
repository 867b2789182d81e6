// ShardRunner: what waits for the shard's copies, and what comes of the copy before this one.
#include <memory>
#include <optional>
#include <utility>

#include "proto/core/mutation.h"
#include "server/shard/runner.h"

namespace strata::server {

void ShardRunner::SetCopies(bool waits, std::optional<Step> committed, std::function<void()> done) {
  Post([this, waits, committed, done = std::move(done)] {
    if (!closed_.ok()) return;
    shard_->WaitForCopies(waits, committed.value_or(shard_->committed()));
    AnswerCommitted();
    if (done) done();
  });
}

void ShardRunner::SetCommitted(Step step) {
  Post([this, step] {
    if (!closed_.ok()) return;
    shard_->CommitThrough(step);
    AnswerCommitted();
  });
}

// The next step may be complete already.
void ShardRunner::AnswerCommitted() {
  if (shard_->options().synchronous) Advance();
  const Step committed = shard_->committed();
  for (auto it = applied_.begin(); it != applied_.end();) {
    if (it->second.step > committed) {
      ++it;
      continue;
    }
    it->second.call->Accepted(committed, it->second.repeated);
    it = applied_.erase(it);
  }
  AnswerWaiting();
}

void ShardRunner::AnswerApplied(const std::shared_ptr<PushCall>& call, bool repeated) {
  const Step end = shard_->clock();
  if (shard_->committed() >= end || STRATA_MUTATION("chain.window_ok_at_append")) {
    return call->Accepted(shard_->committed(), repeated);
  }
  const wire::PushFields& f = call->fields();
  AppliedWindow& applied = applied_[{f.task.value, f.window}];
  if (applied.call != nullptr) {
    applied.call->Fail(
        absl::UnavailableError("this push was sent again while copies were awaited"));
    repeated = true;
  }
  applied = {call, end, repeated};
}

void ShardRunner::Receive(std::vector<storage::LogRecordView> records, Buffer bytes,
                          std::function<void(absl::Status)> done) {
  Post([this, records = std::move(records), bytes = std::move(bytes), done = std::move(done)] {
    if (!closed_.ok()) return done(closed_);
    // Who sends again waits for what it sent before no more.
    EndReceived(absl::AbortedError("these entries were sent again while they waited for an image"));
    if (driver_.busy()) driver_.Served();
    received_ = Received{records, bytes, done};
    TakeReceived();
  });
}

// Goes on until a snapshot is late: a backup keeps no more rows for it than a head does.
void ShardRunner::TakeReceived() {
  if (!received_) return;
  const Step before = shard_->clock();
  absl::Status status;
  while (received_->taken < received_->records.size() && status.ok()) {
    const bool late = driver_.NeedsPriority() && !STRATA_MUTATION("chain.backup_outruns_image");
    if (late) break;  // RunDeferred comes back here
    status = shard_->Take(received_->records[received_->taken++]);
  }
  if (!status.ok() && !absl::IsFailedPrecondition(status)) CommitFailed(status);
  if (status.ok() && received_->taken > 0) CommitWentThrough();
  if (shard_->clock() != before) AnswerWaiting();
  if (!status.ok() || received_->taken == received_->records.size()) EndReceived(status);
}

void ShardRunner::EndReceived(absl::Status status) {
  auto received = std::exchange(received_, std::nullopt);
  if (received) received->done(std::move(status));
}

void ShardRunner::Do(std::function<absl::Status(Shard&)> work,
                     std::function<void(absl::Status)> done) {
  Post([this, work = std::move(work), done = std::move(done)] {
    if (!closed_.ok()) return done(closed_);
    absl::Status status = work(*shard_);
    Publish();
    done(std::move(status));
  });
}

}  // namespace strata::server
