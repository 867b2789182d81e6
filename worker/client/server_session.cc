#include "worker/client/server_session.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/wire/message_codec.h"

namespace strata {
namespace {

// By DataMethod: before a call is sent.
constexpr const char* kFailpoints[] = {"worker.session", "worker.pull", "worker.push",
                                       "worker.mark", "worker.prefetch"};
static_assert(std::size(kFailpoints) == static_cast<size_t>(DataMethod::kPrefetch) + 1);

absl::Status NoAddress(uint32_t server) {
  return absl::UnavailableError(absl::StrCat("server ", server, " has no address now"));
}

}  // namespace

ServerSession::ServerSession(ServerSessionOptions options)
    : o_(std::move(options)),
      machine_(o_.links->servers(), o_.device, o_.links->random()),
      deferred_(o_.links->servers()),
      alarm_(o_.links->servers(), absl::InfinitePast()) {}

ServerSession::~ServerSession() { o_.timer->Cancel(this); }

bool ServerSession::Ready(uint32_t server) {
  const absl::Time now = o_.timer->Now();
  const SessionMachine::Wait wait = machine_.WaitOf(server, now);
  if (wait == SessionMachine::Wait::kOpening) return false;
  if (wait == SessionMachine::Wait::kTime) {
    SetAlarm(server);
    return false;
  }
  const std::shared_ptr<DataChannel> channel = o_.links->Channel(server);
  if (channel == nullptr) {
    machine_.OnUnreachable(server, now);
    SetAlarm(server);
    o_.mailbox->Post([this, server] { SayNotOpen(server, NoAddress(server)); });
    return false;
  }
  if (wait == SessionMachine::Wait::kNothing) return true;
  SendOpen(server, channel);
  return false;
}

void ServerSession::SendOpen(uint32_t server, const std::shared_ptr<DataChannel>& channel) {
  machine_.OnOpenSent(server);
  channel->Call(
      DataMethod::kOpenSession,
      wire::EncodeOpenSessionRequest(wire::OpenSessionFor(o_.header.To(server), o_.identity)),
      o_.call_timeout,
      ToOwner(server, Mailbox::kNoRound, [this, server](Epoch, absl::StatusOr<Buffer> reply) {
        const absl::Status s = machine_.OnOpenAnswered(server, reply, o_.timer->Now());
        if (!s.ok()) SayNotOpen(server, s);
      }));
}

void ServerSession::SetAlarm(uint32_t server) {
  const absl::Time when = machine_.not_before(server);
  if (std::exchange(alarm_[server], when) == when) return;
  o_.timer->At(when, this, [mailbox = o_.mailbox] { mailbox->Post([] {}); });
}

void ServerSession::Call(uint32_t server, DataMethod method, Buffer request, Done done) {
  const Mailbox::Round round = o_.mailbox->round();
  const std::shared_ptr<DataChannel> channel = o_.links->Channel(server);
  absl::Status s = Failpoint(kFailpoints[static_cast<size_t>(method)]);
  if (s.ok() && channel == nullptr) s = NoAddress(server);
  if (!s.ok()) {
    o_.mailbox->PostIn(round,
                       [s = std::move(s), done = std::move(done)] { done(Epoch::kNotSent, s); });
    return;
  }
  channel->Call(method, std::move(request), o_.call_timeout,
                ToOwner(server, round, std::move(done)));
}

DataReply ServerSession::ToOwner(uint32_t server, Mailbox::Round round, Done done) const {
  return
      [mailbox = o_.mailbox, round, sent = machine_.epoch(server), server, timer = o_.timer,
       health = o_.links->health(), done = std::move(done)](absl::StatusOr<Buffer> reply) mutable {
        health->OnCall(server, reply.status(), timer->Now());
        mailbox->PostIn(round, [sent, done = std::move(done), reply = std::move(reply)]() mutable {
          done(sent, std::move(reply));
        });
      };
}

void ServerSession::DropDeferred() {
  for (auto& works : deferred_) works.clear();
}

bool ServerSession::RunDeferred() {
  bool ran = false;
  for (uint32_t server = 0; server < deferred_.size(); ++server) {
    if (deferred_[server].empty() || !Ready(server)) continue;
    ran = true;
    for (const auto& work : std::exchange(deferred_[server], {})) work();
  }
  return ran;
}

void ServerSession::Wait() {
  if (RunDeferred()) {
    o_.mailbox->Run();
  } else {
    o_.mailbox->WaitAndRun();
  }
}

}  // namespace strata
