// ShardRunner: what waits for the shard's copies, and what comes of the copy before this one.
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "server/protocol/chain_handover.h"
#include "server/shard/runner.h"

namespace strata::server {

void ShardRunner::GoBy(uint64_t chain_epoch, std::function<void()> done) {
  Post([this, chain_epoch, done = std::move(done)] {
    if (!closed_.ok()) return;
    if (chain_epoch != chain_epoch_) {
      EndReceived(absl::FailedPreconditionError(
          absl::StrCat("shard ", id_.value, " goes by chain epoch ", chain_epoch, " meanwhile")));
    }
    chain_epoch_ = chain_epoch;
    done();
  });
}

absl::Status ShardRunner::CheckChain(uint64_t chain_epoch) const {
  if (!closed_.ok()) return closed_;
  if (ChainHandover::Takes(chain_epoch_, chain_epoch)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("forward.chain_epoch ", chain_epoch, ": shard ",
                                                    id_.value, " goes by ", chain_epoch_,
                                                    " meanwhile"));
}

void ShardRunner::SetCommitted(Step step) {
  uint64_t told = told_committed_.load(std::memory_order_relaxed);
  while (told < step.value && !told_committed_.compare_exchange_weak(told, step.value)) {
  }
  Post([this] { FollowCommitted(); });
}

// Also before each push: who waits for copies does not wait for the pushes in the queue.
void ShardRunner::FollowCommitted() {
  const Step told(told_committed_.load());
  if (!closed_.ok() || told <= followed_committed_) return;
  followed_committed_ = told;
  const Step before = shard_->committed();
  shard_->CommitThrough(told);
  if (shard_->committed() != before) AnswerCommitted();
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

void ShardRunner::Receive(uint64_t chain_epoch, std::vector<ReceivedRecord> records,
                          std::function<void(absl::Status)> done) {
  Post([this, chain_epoch, records = std::move(records), done = std::move(done)] {
    if (absl::Status s = CheckChain(chain_epoch); !s.ok()) return done(std::move(s));
    // Who sends again waits for what it sent before no more.
    EndReceived(absl::AbortedError("these entries were sent again while they waited for an image"));
    if (driver_.busy()) driver_.Served();
    received_ = Received{records, done};
    TakeReceived();
  });
}

// Goes on until a snapshot is late: a backup keeps no more rows for it than a head does. The copy
// before this one waits for the log alone (R3): it is told before the last entry's rows are worked
// out.
void ShardRunner::TakeReceived() {
  if (!received_) return;
  const Step before = shard_->clock();
  bool told = false;
  absl::Status status;
  while (received_->taken < received_->records.size() && status.ok()) {
    const bool late = driver_.NeedsPriority() && !STRATA_MUTATION("chain.backup_outruns_image");
    if (late) break;  // RunDeferred comes back here
    const ReceivedRecord& record = received_->records[received_->taken++];
    const auto tell = [&] {
      told = true;
      received_->done(absl::OkStatus());
    };
    const bool last = received_->taken == received_->records.size();
    status = last ? shard_->Take(record, tell) : shard_->Take(record);
  }
  const bool refused = absl::IsFailedPrecondition(status) || absl::IsAlreadyExists(status) ||
                       absl::IsDataLoss(status);
  if (!status.ok() && !refused) CommitFailed(status);
  // Who sent it has its answer and may never send more: this copy may lead by then.
  if (shard_->behind() && !STRATA_MUTATION("chain.taken_step_stays")) RetryLater();
  if (status.ok() && received_->taken > 0) CommitWentThrough();
  if (shard_->clock() != before) AnswerWaiting();
  if (told) {
    received_.reset();
  } else if (!status.ok() || received_->taken == received_->records.size()) {
    EndReceived(status);
  }
}

void ShardRunner::EndReceived(absl::Status status) {
  auto received = std::exchange(received_, std::nullopt);
  if (received) received->done(std::move(status));
}

void ShardRunner::Do(uint64_t chain_epoch, std::function<absl::Status(Shard&)> work,
                     std::function<void(absl::Status)> done) {
  Post([this, chain_epoch, work = std::move(work), done = std::move(done)] {
    if (absl::Status s = CheckChain(chain_epoch); !s.ok()) return done(std::move(s));
    absl::Status status = work(*shard_);
    Publish();
    done(std::move(status));
  });
}

}  // namespace strata::server
