#include "server/shard/runner.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata::server {
namespace {

absl::Status Refuse(GateVerdict verdict, Step step, const Shard& shard, LaneNode node) {
  if (verdict == GateVerdict::kTooNew && shard.behind()) {
    return absl::UnavailableError(
        absl::StrCat("push.step ", step.value, ": at shard ", shard.options().id.value, " step ",
                     shard.clock().value + 1, " is in the log and not applied yet; try again"));
  }
  if (verdict == GateVerdict::kTooNew) {
    return absl::FailedPreconditionError(absl::StrCat(
        "push.step ", step.value, ": shard ", shard.options().id.value, " is at clock ",
        shard.clock().value, " and takes step ", shard.clock().value + 1, " next"));
  }
  return absl::InvalidArgumentError(absl::StrCat("contribution [", node.first, ", ", node.end,
                                                 ") is not a node of the tree over ",
                                                 shard.options().lanes, " lanes"));
}

}  // namespace

ShardRunner::ShardRunner(std::unique_ptr<Shard> shard, Options options)
    : id_(shard->options().id),
      options_(std::move(options)),
      shard_(std::move(shard)),
      tidier_({.timer = options_.timer,
               .owner = this,
               .bytes_per_second = options_.tidy_bytes_per_second,
               .post = [this](std::function<void()> work) { Post(std::move(work)); },
               .tidy = [this](size_t rows) { return closed_.ok() ? shard_->Tidy(rows) : 0; },
               .failed = [this] { ++view_.disk_errors; }}),
      driver_({.post = [this](std::function<void()> work) { Post(std::move(work)); },
               .disk = options_.disk,
               .timer = options_.timer,
               .pace = options_.pace,
               .caught_up = [this] { RunDeferred(); }}) {
  told_clock_ = shard_->clock();
  told_commit_ = shard_->committed();
  view_.table_rows = std::vector<std::atomic<uint64_t>>(shard_->table_count());
  Publish();
}

ShardRunner::~ShardRunner() {
  options_.timer->Cancel(this);
  options_.timer->Cancel(&alarm_);
}

void ShardRunner::SetExecutor(Executor* executor) {
  absl::MutexLock lock(&mu_);
  executor_ = executor;
}

void ShardRunner::Post(std::function<void()> work) {
  absl::ReaderMutexLock lock(&mu_);
  if (executor_ != nullptr) executor_->Post(std::move(work));
}

void ShardRunner::Pull(std::shared_ptr<PullCall> call, size_t part) {
  Post([this, call = std::move(call), part] { RunPull(call, part); });
}

void ShardRunner::RunPull(const std::shared_ptr<PullCall>& call, size_t part) {
  if (!closed_.ok()) return call->Fail(closed_);
  if (shard_->behind()) Advance();
  if (call->step().value == 0) return ServePull(*call, part, false);
  switch (shard_->CheckPull(call->step())) {
    case PullVerdict::kServeCurrent:
      return ServePull(*call, part, false);
    case PullVerdict::kServePreimage:
      return ServePull(*call, part, true);
    case PullVerdict::kTooOld:
      return call->TooOld(shard_->committed(), shard_->ResumeStep());
    case PullVerdict::kWait:
      break;
  }
  if (options_.timer->Now() >= call->deadline()) return call->NotYet(shard_->committed());
  waiting_.push_back({call, part});
  WakeAt(call->deadline());
}

void ShardRunner::WakeAt(absl::Time deadline) {
  if (deadline >= alarm_) return;
  if (alarm_ != absl::InfiniteFuture()) options_.timer->Cancel(&alarm_);
  alarm_ = deadline;
  options_.timer->At(deadline, &alarm_, [this] { Post([this] { Expire(); }); });
}

void ShardRunner::ServePull(PullCall& call, size_t part, bool preimages) {
  if (driver_.busy()) driver_.Served();
  for (const size_t i : call.keys().parts[part]) {
    const RequestKeys::Group& g = call.keys().keys->groups[i];
    ReadAs as;
    if (shard_->options().tables[g.table.value].kind == TableKind::kHashed) {
      as.codec = call.codec(g.table);
    }
    as.kept = call.keys().Kept(i);
    as.there = call.there(i);
    absl::Status s = preimages ? shard_->ReadPreimages(g.table, g.positions, call.out(i), as)
                               : shard_->Read(g.table, g.positions, call.out(i), as);
    if (!s.ok()) {
      ReadFailed(s);
      return call.Fail(std::move(s));
    }
    call.Seal(i);
  }
  stalled_reads_.Succeeded(options_.timer->Now());
  Publish();
  call.Served(shard_->committed());
}

// A tier that cannot be read now leaves the rows where they are: the pull will say what is wrong.
void ShardRunner::Prefetch(std::shared_ptr<PrefetchCall> call, size_t part) {
  Post([this, call = std::move(call), part] {
    if (!closed_.ok()) return call->Fail(closed_);
    for (const size_t i : call->keys().parts[part]) {
      const RequestKeys::Group& g = call->keys().keys->groups[i];
      KeptRows* const kept = call->keys().Kept(i);
      if (kept == nullptr) continue;
      if (absl::Status s = shard_->Warm(g.table, g.positions, *kept); !s.ok()) {
        ++view_.disk_errors;
        break;
      }
    }
    call->Warmed(shard_->committed());
  });
}

void ShardRunner::Unpin(std::shared_ptr<RequestKeys> keys) {
  Post([this, keys = std::move(keys)] {
    for (RequestKeys::Group& g : keys->groups) {
      if (g.shard == id_) shard_->Unpin(g.table, g.positions, g.rows);
    }
    Publish();
  });
}

void ShardRunner::Expire() {
  const absl::Time now = options_.timer->Now();
  if (now < alarm_) return;  // one that came in front of the alarm that rang
  std::vector<WaitingPull> over;
  std::erase_if(waiting_, [&](WaitingPull& w) {
    if (w.call->deadline() > now) return false;
    over.push_back(std::move(w));
    return true;
  });
  alarm_ = absl::InfiniteFuture();
  absl::Time next = absl::InfiniteFuture();
  for (const WaitingPull& w : waiting_) next = std::min(next, w.call->deadline());
  WakeAt(next);
  for (const WaitingPull& w : over) w.call->NotYet(shard_->committed());
}

void ShardRunner::Push(std::shared_ptr<PushCall> call, PushPart part) {
  auto shared = std::make_shared<PushPart>(std::move(part));
  Post([this, call = std::move(call), shared] {
    if (!closed_.ok()) return call->Fail(closed_);
    absl::Status hosts = sessions_.Check(call->fields().header.session);
    if (!hosts.ok()) return call->Fail(std::move(hosts));
    FollowCommitted();
    if (driver_.busy()) driver_.Served();
    if (shard_->options().synchronous) {
      RunContributions(*call, *shared);
    } else {
      RunWindow(call, std::move(*shared));
    }
  });
}

void ShardRunner::RunContributions(PushCall& call, PushPart& part) {
  if (shard_->behind()) Advance();
  bool repeated = false;
  absl::Status refused;
  for (size_t i = 0; i < part.nodes.size(); ++i) {
    const GateAnswer answer =
        shard_->Contribute(call.fields().step, part.nodes[i], std::move(part.updates[i]));
    if (answer.mismatch) {
      ++view_.lane_mismatches;
      LOG(WARNING) << "contribution_differs job=" << shard_->options().job.value
                   << " shard=" << id_.value << " step=" << call.fields().step.value
                   << " first_lane=" << part.nodes[i].first << " end_lane=" << part.nodes[i].end
                   << " kept=first";
    }
    repeated |= answer.verdict == GateVerdict::kCovered || answer.verdict == GateVerdict::kOld;
    if (answer.verdict == GateVerdict::kTooNew || answer.verdict == GateVerdict::kInvalidNode) {
      refused = Refuse(answer.verdict, call.fields().step, *shard_, part.nodes[i]);
    }
  }
  if (refused.ok()) {
    call.Accepted(shard_->committed(), repeated);  // received; the commit is seen through the clock
  } else {
    call.Fail(std::move(refused));
  }
  Advance();
}

// Takes cuts that are due, applies what is in the log and commits what is complete, and answers the
// pulls that waited for it.
void ShardRunner::Advance() {
  for (;;) {
    TakeCuts();
    if (!shard_->WantsCommit()) break;
    if (driver_.NeedsPriority()) break;  // RunDeferred comes back here
    auto committed = shard_->TryCommit();
    if (!committed.ok()) {
      CommitFailed(committed.status());
      RetryLater();
      break;
    }
    if (!*committed) break;
    CommitWentThrough();
  }
  // Reads and images apply what is in the log as well.
  if (shard_->clock() != told_clock_ || shard_->committed() != told_commit_) AnswerWaiting();
}

// The clock moved, or what is committed did.
void ShardRunner::AnswerWaiting() {
  told_clock_ = shard_->clock();
  told_commit_ = shard_->committed();
  Publish();
  std::vector<WaitingPull> waiting;
  waiting.swap(waiting_);
  for (const WaitingPull& w : waiting) RunPull(w.call, w.part);
  options_.committed();
  tidier_.Wake();
}

// The worker that pulls is answered and asks again: nothing is retried here.
void ShardRunner::ReadFailed(const absl::Status& why) {
  ++view_.disk_errors;
  const uint64_t times = stalled_reads_.Failed(why, options_.timer->Now());
  if (times == 0) return;
  LOG(ERROR) << "reads_fail job=" << shard_->options().job.value << " shard=" << id_.value
             << " clock=" << shard_->clock().value << " failures=" << times << " error=\"" << why
             << '"';
}

void ShardRunner::CommitFailed(const absl::Status& why) {
  ++view_.disk_errors;
  const uint64_t times = stalled_commits_.Failed(why, options_.timer->Now());
  if (times == 0) return;
  LOG(ERROR) << "commit_waits job=" << shard_->options().job.value << " shard=" << id_.value
             << " clock=" << shard_->clock().value << " failures=" << times
             << " retry_ms=" << absl::ToInt64Milliseconds(kRetryAfter) << " error=\"" << why << '"';
}

void ShardRunner::CommitWentThrough() {
  const auto lasted = stalled_commits_.Succeeded(options_.timer->Now());
  if (!lasted) return;
  LOG(WARNING) << "commits_go_on job=" << shard_->options().job.value << " shard=" << id_.value
               << " waited_ms=" << absl::ToInt64Milliseconds(*lasted);
}

void ShardRunner::RetryLater() {
  if (retry_queued_) return;
  retry_queued_ = true;
  options_.timer->At(options_.timer->Now() + kRetryAfter, this, [this] {
    Post([this] {
      retry_queued_ = false;
      if (closed_.ok()) Advance();
    });
  });
}

void ShardRunner::Close(absl::Status status) {
  Post([this, status = std::move(status)] {
    closed_ = status;
    for (const WaitingPull& w : waiting_) w.call->Fail(status);
    for (const auto& [id, held] : held_) held.call->Fail(status);
    for (const HeldWindow& window : deferred_) window.call->Fail(status);
    for (const auto& [window, applied] : applied_) applied.call->Fail(status);
    EndReceived(status);
    waiting_.clear();
    held_.clear();
    deferred_.clear();
    applied_.clear();
    orders_.clear();
    images_.clear();
    taking_.clear();
    driver_.DropAll();
  });
}

void ShardRunner::Publish() {
  const storage::TableCounters c = shard_->counters();
  view_.clock = shard_->committed().value;
  view_.log_end = shard_->clock().value;
  view_.cuts_over = shard_->barrier().over();
  if (const uint64_t refused = shard_->refused_rows(); refused != view_.refused_rows) {
    absl::MutexLock lock(&refused_mu_);
    first_refused_ = shard_->first_refused();
    view_.refused_rows = refused;
  }
  view_.clipped_rows = shard_->clipped_rows();
  const LifeCycleCounters life = shard_->life_cycle();
  view_.admitted_keys = life.admitted;
  view_.refused_keys = life.refused;
  for (size_t r = 0; r < kRemovalRules; ++r) view_.removed_rows[r] = life.removed[r];
  view_.rows = c.rows;
  for (size_t t = 0; t < view_.table_rows.size(); ++t) view_.table_rows[t] = shard_->RowsOf(t);
  view_.dram_bytes = c.dram_bytes;
  view_.hbm_rows = c.hbm_rows;
  view_.hbm_bytes = c.hbm_bytes;
  view_.hbm_hits = c.hbm_hits;
  view_.hbm_evicted = c.hbm_evicted;
  view_.hbm_written_back = c.hbm_written_back;
  view_.hbm_gathered = c.hbm_gathered;
  view_.hbm_updated = c.hbm_updated;
  view_.hbm_extra_bytes = c.hbm_extra_bytes;
  view_.dram_hits = c.hits;
  view_.pinned = c.pinned;
  view_.ssd_reads = c.ssd_reads;
  view_.absent_reads = c.absent;
  view_.written_back = c.written_back;
  view_.written_ahead = c.written_ahead;
}

}  // namespace strata::server
