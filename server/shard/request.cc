#include "server/shard/request.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace strata::server {

absl::StatusOr<std::shared_ptr<void>> RequestMemory::Take(uint64_t bytes) {
  if (bytes > limit_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a request takes ", bytes, " bytes with its reply, and this server holds at most ", limit_,
        " of all requests; start it with more --request-bytes, or set a smaller "
        "spec.training.batchSize or a larger spec.storage.shardsPerServer"));
  }
  const uint64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes > limit_) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return absl::ResourceExhaustedError(
        absl::StrCat("this server holds ", before, " bytes of requests and takes no further ",
                     bytes, ": its limit is ", limit_, "; retry later"));
  }
  return std::shared_ptr<void>(
      nullptr, [this, bytes](void*) { used_.fetch_sub(bytes, std::memory_order_relaxed); });
}

Call::Call(wire::ServerState identity, size_t parts, DataReply reply)
    : identity_(identity), reply_(std::move(reply)), parts_(parts) {}

void Call::Fail(absl::Status status) {
  {
    absl::MutexLock lock(&mu_);
    if (status_.ok()) status_ = std::move(status);
    if (!clock_.has_value()) clock_ = Step(0);
  }
  if (parts_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  absl::Status first;
  {
    absl::MutexLock lock(&mu_);
    first = status_;
  }
  Reply(std::move(first));
}

void Call::End(Step clock) {
  {
    absl::MutexLock lock(&mu_);
    if (!clock_.has_value() || clock < *clock_) clock_ = clock;
  }
  if (parts_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  wire::ServerState state = identity_;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    state.clock = *clock_;
    status = status_;
  }
  if (!status.ok()) {
    Reply(std::move(status));
  } else {
    Finish(state);
  }
}

PullCall::PullCall(wire::ServerState identity, Step step, absl::Time deadline,
                   wire::PullReplyEncoder encoder, wire::PullCodecs codecs, RequestedKeys keys,
                   std::shared_ptr<const DeviceValues> there, std::shared_ptr<void> memory,
                   DataReply reply)
    : Call(identity, keys.parts.size(), std::move(reply)),
      step_(step),
      deadline_(deadline),
      encoder_(std::move(encoder)),
      codecs_(std::move(codecs)),
      keys_(std::move(keys)),
      there_(std::move(there)),
      memory_(std::move(memory)) {}

void PullCall::NotYet(Step clock) {
  not_yet_.store(true, std::memory_order_relaxed);
  End(clock);
}

void PullCall::TooOld(Step clock, Step resume) {
  uint64_t seen = resume_.load(std::memory_order_relaxed);
  while (seen < resume.value && !resume_.compare_exchange_weak(seen, resume.value)) {
  }
  End(clock);
}

// Too old outweighs not yet: the lane must go on to where it is served. It goes to the largest step
// that a shard names, for a shard whose clock is lower serves that one too, or soon will.
void PullCall::Finish(const wire::ServerState& state) {
  const uint64_t resume = resume_.load(std::memory_order_relaxed);
  const bool not_yet = not_yet_.load(std::memory_order_relaxed);
  if (resume == 0 && !not_yet) {
    Reply(encoder_.Finish(state, wire::PullOutcome::kServed, keys_.ticket));
    return;
  }
  auto empty = wire::PullReplyEncoder::Make({});
  if (!empty.ok()) {
    Reply(empty.status());
    return;
  }
  wire::ServerState answer = state;
  if (resume != 0) answer.clock = Step(resume);
  const auto outcome = resume != 0 ? wire::PullOutcome::kTooOld : wire::PullOutcome::kNotYet;
  Reply(empty->Finish(answer, outcome, keys_.ticket));
}

void PrefetchCall::Finish(const wire::ServerState& state) {
  Reply(wire::EncodePrefetchReply({state, keys_.ticket}));
}

void PushCall::Finish(const wire::ServerState& state) {
  Reply(wire::EncodePushReply({state, repeated_.load(std::memory_order_relaxed)}));
}

void MarkCall::Finish(const wire::ServerState& state) { Reply(wire::EncodeMarkReply({state})); }

}  // namespace strata::server
