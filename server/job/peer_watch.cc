#include "server/job/peer_watch.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/wire/message_codec.h"

namespace strata::server {

std::shared_ptr<DataChannel> ConnectToCopy(DataTransport& transport, const ChainMember& copy) {
  if (copy.data_address().empty()) return nullptr;
  // Between processes the certificate says which one calls; inside one nobody asks.
  return transport.Connect({copy.data_address(), copy.server()}, Caller::Nobody());
}

void PeerWatch::Watch(std::vector<Peer> peers) {
  std::vector<uint64_t> begun;
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return;
    std::vector<Watched> next;
    for (Peer& peer : peers) {
      const auto same = std::find_if(watched_.begin(), watched_.end(), [&](const Watched& w) {
        return w.peer.copy.SerializeAsString() == peer.copy.SerializeAsString();
      });
      if (same != watched_.end()) {
        next.push_back(std::move(*same));
        next.back().peer.question = std::move(peer.question);
        watched_.erase(same);
        continue;
      }
      Watched& w = next.emplace_back();
      w.number = ++last_;
      w.channel = ConnectToCopy(*transport_, peer.copy);
      w.peer = std::move(peer);
      if (w.channel != nullptr) begun.push_back(w.number);
    }
    watched_ = std::move(next);
  }
  for (const uint64_t number : begun) Ask(number);
}

void PeerWatch::Close() {
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    watched_.clear();
  }
  timer_->Cancel(this);
}

PeerWatch::Watched* PeerWatch::Find(uint64_t number) {
  for (Watched& w : watched_) {
    if (w.number == number) return &w;
  }
  return nullptr;
}

void PeerWatch::Ask(uint64_t number) {
  std::shared_ptr<DataChannel> channel;
  Buffer question;
  {
    absl::MutexLock lock(&mu_);
    const Watched* const w = Find(number);
    if (w == nullptr) return;
    channel = w->channel;
    question = w->peer.question;
  }
  channel->Call(DataMethod::kForward, std::move(question), kPatience,
                [self = weak_from_this(), number,
                 asked = timer_->Now()](const absl::StatusOr<Buffer>& reply) {
                  if (const auto watch = self.lock()) watch->Answered(number, asked, reply);
                });
}

void PeerWatch::AskAt(uint64_t number, absl::Time when) {
  timer_->At(when, this, [self = weak_from_this(), number] {
    if (const auto watch = self.lock()) watch->Ask(number);
  });
}

// Any answer but that nobody is there says that somebody is.
void PeerWatch::Answered(uint64_t number, absl::Time asked, const absl::StatusOr<Buffer>& reply) {
  absl::MutexLock lock(&mu_);
  Watched* const w = Find(number);
  if (w == nullptr || closed_) return;
  const absl::Time now = timer_->Now();
  const bool closed = absl::IsUnavailable(reply.status());
  if (!closed && !absl::IsDeadlineExceeded(reply.status())) {
    if (reply.ok()) {
      const auto message = wire::ParseForwardReply(reply->span());
      if (message.ok()) w->incarnation = message->state.incarnation;
    }
    w->failures = 0;
    w->bad_since.reset();
    // Until its process is known, of which a trouble tells.
    return AskAt(number, now + (w->incarnation == 0 ? kTryAgain : kPause));
  }
  if (!w->bad_since) w->bad_since = closed ? now : asked;
  ++w->failures;
  w->kind = closed ? PeerTrouble::CLOSED : PeerTrouble::SILENT;
  w->message = std::string(reply.status().message());
  AskAt(number, now + kTryAgain);
}

std::vector<PeerTrouble> PeerWatch::Troubles() const {
  std::vector<PeerTrouble> troubles;
  absl::MutexLock lock(&mu_);
  for (const Watched& w : watched_) {
    if (!w.bad_since) continue;
    if (w.kind == PeerTrouble::CLOSED && w.failures < 2) continue;
    PeerTrouble& out = troubles.emplace_back();
    out.set_name(w.peer.copy.server());
    out.set_role(NodeRole::SERVER);
    out.set_kind(w.kind);
    out.set_for_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(timer_->Now() - *w.bad_since)));
    out.set_message(w.message);
    out.set_incarnation(w.incarnation);
  }
  return troubles;
}

}  // namespace strata::server
