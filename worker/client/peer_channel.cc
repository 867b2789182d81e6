#include "worker/client/peer_channel.h"

namespace strata {

absl::StatusOr<uint64_t> PeerCalls::Begin(bool there, DataReply& done) {
  MutexLock lock(&mu_);
  if (!replaced_.ok()) return replaced_;
  (there ? there_ : plain_).emplace(next_, std::move(done));
  return next_++;
}

// None of the two has it: it ended before.
void PeerCalls::Answer(uint64_t call, absl::StatusOr<Buffer> reply) {
  DataReply done;
  {
    MutexLock lock(&mu_);
    auto taken = plain_.extract(call);
    if (taken.empty()) taken = there_.extract(call);
    if (taken.empty()) return;
    done = std::move(taken.mapped());
    if (!replaced_.ok()) reply = replaced_;
  }
  done(std::move(reply));
}

void PeerCalls::Replace(const absl::Status& why) {
  std::map<uint64_t, DataReply> ended;
  {
    MutexLock lock(&mu_);
    if (!replaced_.ok()) return;
    replaced_ = why;
    ended.swap(plain_);
  }
  for (const auto& [call, done] : ended) done(why);
}

void PeerChannel::Call(DataMethod method, Buffer request, absl::Duration timeout, DataReply done) {
  const auto call = calls_->Begin(request.device_values() != nullptr, done);
  if (!call.ok()) return done(call.status());
  channel_->Call(method, std::move(request), timeout,
                 [calls = calls_, call = *call](absl::StatusOr<Buffer> reply) {
                   calls->Answer(call, std::move(reply));
                 });
}

}  // namespace strata
