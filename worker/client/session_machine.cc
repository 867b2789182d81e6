#include "worker/client/session_machine.h"

#include <algorithm>
#include <utility>

#include "proto/wire/device_values.h"
#include "proto/wire/message_codec.h"

namespace strata {

SessionMachine::SessionMachine(uint32_t servers, std::string device, IdSource* random)
    : device_(std::move(device)), servers_(servers) {
  for (Server& server : servers_) server.retry = RetryPolicy(random);
}

SessionMachine::Wait SessionMachine::WaitOf(uint32_t server, absl::Time now) const {
  const Server& s = servers_[server];
  if (s.phase == Phase::kOpening) return Wait::kOpening;
  if (now < s.not_before) return Wait::kTime;
  return s.phase == Phase::kOpen ? Wait::kNothing : Wait::kClosed;
}

bool SessionMachine::all_take_rows() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const Server& s) { return s.takes_rows; });
}

bool SessionMachine::MayHaveArrived(Epoch sent, const absl::Status& status) {
  return sent != Epoch::kNotSent && Classify(status) != ErrorClass::kReopen;
}

void SessionMachine::OnOpenSent(uint32_t server) {
  Server& s = servers_[server];
  s.phase = Phase::kOpening;
  s.epoch = Next(s.epoch);
}

absl::Status SessionMachine::OnOpenAnswered(uint32_t server, const absl::StatusOr<Buffer>& reply,
                                            absl::Time now) {
  Server& s = servers_[server];
  s.phase = Phase::kClosed;
  const auto parsed = reply.ok() ? wire::ParseOpenSessionReply(reply->span()) : reply.status();
  if (!parsed.ok()) {
    tickets_.Broken(server);
    if (Classify(parsed.status()) != ErrorClass::kFatal) BackOff(s, now);
    return parsed.status();
  }
  const wire::ServerState before = std::exchange(s.state, parsed->state);
  if (s.state.incarnation != before.incarnation || s.state.map_epoch != before.map_epoch) {
    tickets_.Broken(server);
  }
  const auto& offer = reply->device_values();
  s.takes_rows = !device_.empty() && offer != nullptr && offer->device == device_;
  s.phase = Phase::kOpen;
  s.opened = s.epoch = Next(s.epoch);
  return absl::OkStatus();
}

void SessionMachine::BackOff(Server& server, absl::Time now) {
  server.not_before = now + server.retry.OnFailure();
  server.epoch = Next(server.epoch);
}

void SessionMachine::OnUnreachable(uint32_t server, absl::Time now) {
  BackOff(servers_[server], now);
}

SessionMachine::Retry SessionMachine::OnError(uint32_t server, Epoch sent,
                                              const absl::Status& status, absl::Time now) {
  tickets_.Broken(server);
  if (wire::IsTicketError(status)) return Retry::kAtOnce;
  Server& s = servers_[server];
  switch (Classify(status)) {
    case ErrorClass::kFatal:
      return Retry::kNever;
    case ErrorClass::kReopen:
      if (s.phase == Phase::kOpen && sent >= s.opened) s.phase = Phase::kClosed;
      break;
    case ErrorClass::kRetry:
      break;
  }
  if (sent == s.epoch) BackOff(s, now);
  return Retry::kLater;
}

void SessionMachine::CloseAll() {
  for (Server& s : servers_) {
    if (s.phase == Phase::kOpen) s.phase = Phase::kClosed;
  }
}

}  // namespace strata
