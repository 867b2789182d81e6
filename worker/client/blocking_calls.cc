#include "worker/client/blocking_calls.h"

#include <utility>

#include "proto/wire/device_values.h"
#include "worker/client/retry_policy.h"

namespace strata {

BlockingCalls::BlockingCalls(const BlockingCallsOptions& options)
    : o_(options), session_([this] {
        ServerSessionOptions session = o_.session;
        session.mailbox = mailbox_;
        session.on_not_open = [this](uint32_t, const absl::Status& why) { OnNotOpen(why); };
        return session;
      }()) {
  if (o_.cancelled != nullptr) o_.cancelled->Wakes(mailbox_);
}

bool BlockingCalls::OpenAndAllTakeRows() {
  const SessionMachine& servers = session_.machine();
  for (uint32_t s = 0; s < servers.servers(); ++s) {
    if (!servers.open(s)) session_.Ready(s);
  }
  bool all_open = true;
  for (uint32_t s = 0; s < servers.servers(); ++s) {
    while (servers.opening(s) && !cancelled()) mailbox_->WaitAndRun();
    all_open = all_open && servers.open(s);
  }
  mailbox_->Run();  // what is said of servers without an address is not of the call at hand
  return all_open && servers.all_take_rows();
}

absl::Status BlockingCalls::CallAll(std::vector<Request> requests, const Accept& accept) {
  requests_ = std::move(requests);
  accept_ = &accept;
  missing_ = requests_.size();
  in_flight_ = 0;
  last_success_ = o_.session.timer->Now();
  end_ = absl::OkStatus();
  tried_again_ = offer_ended_ = false;
  for (size_t i = 0; i < requests_.size() && !over(); ++i) Send(i);
  while (MustWait()) session_.Wait();
  session_.DropDeferred();
  accept_ = nullptr;
  requests_.clear();
  if (in_flight_ > 0) session_.ForgetCalls();  // it was cancelled; there may be no other for long
  if (offer_ended_) return absl::FailedPreconditionError("rows go in messages from now on");
  return end_;
}

void BlockingCalls::LookIfCancelled() {
  if (!over() && cancelled()) end_ = absl::CancelledError("stopped");
}

bool BlockingCalls::MustWait() {
  if (missing_ == 0) return false;
  LookIfCancelled();
  if (!over()) return true;
  session_.DropDeferred();
  return in_flight_ > 0 && !cancelled();
}

void BlockingCalls::Send(size_t index) {
  LookIfCancelled();
  if (over()) return;
  const Request& request = requests_[index];
  if (!session_.Ready(request.server)) {
    return session_.Defer(request.server, [this, index] { Send(index); });
  }
  if (request.bytes.device_values() != nullptr && !session_.machine().takes_rows(request.server)) {
    offer_ended_ = true;
    return;
  }
  ++in_flight_;
  // So small that std::function needs no memory for it.
  const auto done = [this, index](ServerSession::Epoch sent, absl::StatusOr<Buffer> reply) {
    OnReply(index, sent, reply);
  };
  static_assert(sizeof(done) <= 2 * sizeof(void*));
  session_.Call(request.server, request.method, request.bytes, done);
}

void BlockingCalls::OnReply(size_t index, ServerSession::Epoch sent,
                            const absl::StatusOr<Buffer>& reply) {
  --in_flight_;
  if (over()) return;
  const absl::Status s = reply.ok() ? (*accept_)(index, *reply) : reply.status();
  if (s.ok()) {
    session_.OnAnswered(requests_[index].server);
    last_success_ = o_.session.timer->Now();
    --missing_;
    return;
  }
  // The answer itself says that it is no use.
  if (reply.ok() && Classify(s) != ErrorClass::kRetry) {
    end_ = s;
    return;
  }
  tried_again_ |= SessionMachine::MayHaveArrived(sent, s);
  // At once: the server kept the call as long as it may.
  if (reply.ok() && absl::IsUnavailable(s)) return SendAgain(index);
  switch (session_.OnError(requests_[index].server, sent, s)) {
    case ServerSession::Retry::kNever:
      end_ = s;
      return;
    case ServerSession::Retry::kLater:
      MayGiveUp(s);
      break;
    case ServerSession::Retry::kAtOnce:
      break;
  }
  SendAgain(index);
}

// Whatever is sent again goes with keys, in as many parts as that takes.
void BlockingCalls::SendAgain(size_t index) {
  if (requests_[index].with_keys == nullptr) return Send(index);
  auto parts = std::exchange(requests_[index].with_keys, nullptr)();
  if (!parts.ok()) {
    end_ = parts.status();
    return;
  }
  const auto [server, method] = std::pair(requests_[index].server, requests_[index].method);
  requests_[index].bytes = std::move(parts->front());
  Send(index);
  for (size_t i = 1; i < parts->size(); ++i) {
    requests_.push_back({server, method, std::move((*parts)[i])});
    ++missing_;
    Send(requests_.size() - 1);
  }
}

void BlockingCalls::OnNotOpen(const absl::Status& why) {
  if (accept_ == nullptr) return;  // OpenAndAllTakeRows: the calls will try again
  if (Classify(why) != ErrorClass::kFatal) return MayGiveUp(why);
  if (end_.ok()) end_ = why;
}

void BlockingCalls::MayGiveUp(const absl::Status& why) {
  if (end_.ok() && o_.session.timer->Now() - last_success_ > o_.give_up_after) end_ = why;
}

}  // namespace strata
