#include "worker/parameter_client.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/core/device_values.h"
#include "worker/gradient_there.h"
#include "worker/retry_policy.h"

namespace strata {
namespace {

constexpr uint32_t kWaitMs = 5000;

// Replies of one round of calls; outlives the calls that a caller no longer waits for.
struct Round {
  explicit Round(size_t n) : replies(n), missing(n) {}
  absl::Mutex mu;
  std::vector<std::optional<absl::StatusOr<Buffer>>> replies ABSL_GUARDED_BY(mu);
  size_t missing ABSL_GUARDED_BY(mu);
};

}  // namespace

ParameterClient::ParameterClient(const ParameterClientOptions& options)
    : options_(options),
      tickets_(options.links->servers()),
      open_(options.links->servers(), false),
      takes_(options.links->servers(), false) {}

absl::Status ParameterClient::Open(uint32_t server) {
  std::shared_ptr<DataChannel> channel = options_.links->Channel(server);
  if (channel == nullptr) {
    return absl::UnavailableError(absl::StrCat("server ", server, " has no address now"));
  }
  auto reply = channel->CallAndWait(DataMethod::kOpenSession,
                                    wire::EncodeOpenSessionRequest({options_.header}),
                                    options_.call_timeout);
  if (!reply.ok()) return reply.status();
  open_[server] = true;
  const auto& offer = reply->device_values();
  takes_[server] =
      options_.memory != nullptr && offer != nullptr && offer->device == options_.memory->device();
  return absl::OkStatus();
}

// One that cannot be opened now takes none: the call at hand will try to open it.
bool ParameterClient::AllTakeRowsThere() {
  if (options_.memory == nullptr) return false;
  for (uint32_t s = 0; s < open_.size(); ++s) {
    if (!open_[s] && !Open(s).ok()) return false;
  }
  return std::find(takes_.begin(), takes_.end(), false) == takes_.end();
}

void ParameterClient::CountThere(uint32_t server, const KeyList& keys) const {
  uint64_t rows = 0;
  for (const auto& [begin, end] : options_.exchange->ShareOf(server, keys)) rows += end - begin;
  options_.stats->OnRowsThere(rows);
}

absl::Status ParameterClient::CallAll(std::vector<Request> requests, const Accept& accept) {
  tried_again_ = offer_ended_ = false;
  RetryPolicy retry;
  absl::Time last_success = absl::Now();
  std::vector<size_t> todo(requests.size());
  for (size_t i = 0; i < todo.size(); ++i) todo[i] = i;
  absl::Status last = absl::OkStatus();
  while (!todo.empty()) {
    if (Cancelled()) return absl::CancelledError("stopped");
    auto round = std::make_shared<Round>(todo.size());
    for (size_t k = 0; k < todo.size(); ++k) {
      const Request& request = requests[todo[k]];
      std::shared_ptr<DataChannel> channel;
      absl::Status ready = open_[request.server] ? absl::OkStatus() : Open(request.server);
      if (ready.ok()) channel = options_.links->Channel(request.server);
      if (ready.ok() && request.bytes.device_values() != nullptr && !takes_[request.server]) {
        offer_ended_ = true;
        ready = absl::FailedPreconditionError("the server takes no rows on a device any more");
      }
      if (ready.ok() && channel == nullptr) {
        ready = absl::UnavailableError(absl::StrCat("server ", request.server, " has no address"));
      }
      auto done = [round, k](absl::StatusOr<Buffer> reply) {
        absl::MutexLock lock(&round->mu);
        round->replies[k] = std::move(reply);
        --round->missing;
      };
      if (!ready.ok()) {
        done(ready);
      } else {
        channel->Call(request.method, request.bytes, options_.call_timeout, done);
      }
    }
    std::vector<std::optional<absl::StatusOr<Buffer>>> replies;
    {
      absl::MutexLock lock(&round->mu);
      const auto all = [&round]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(round->mu) { return round->missing == 0; };
      round->mu.Await(absl::Condition(&all));
      replies = std::move(round->replies);
    }
    if (offer_ended_) return absl::FailedPreconditionError("rows go in messages from now on");
    std::vector<size_t> again;
    bool waiting_only = true;
    for (size_t k = 0; k < todo.size(); ++k) {
      absl::Status s = replies[k]->status();
      if (s.ok()) {
        s = accept(todo[k], **replies[k]);
        if (s.ok()) {
          last_success = absl::Now();
          continue;
        }
      } else {
        waiting_only = waiting_only && wire::IsTicketError(s);
      }
      if (absl::Status keys = SendKeys(todo[k], requests, again); !keys.ok()) return keys;
      if (wire::IsTicketError(s)) {
        again.push_back(todo[k]);
        continue;
      }
      switch (Classify(s)) {
        case ErrorClass::kFatal:
          return s;
        case ErrorClass::kReopen:
          if (replies[k]->ok()) return s;  // the reply itself says that it is no use
          open_[requests[todo[k]].server] = false;
          break;
        case ErrorClass::kRetry:
          break;
      }
      tried_again_ = true;
      last = s;
      again.push_back(todo[k]);
    }
    todo = std::move(again);
    if (todo.empty() || waiting_only) continue;
    if (absl::Now() - last_success > options_.give_up_after) return last;
    absl::SleepFor(retry.OnFailure());
  }
  return absl::OkStatus();
}

// Whatever is sent again goes with keys, in as many parts as that takes.
absl::Status ParameterClient::SendKeys(size_t index, std::vector<Request>& requests,
                                       std::vector<size_t>& again) {
  if (requests[index].with_keys == nullptr) return absl::OkStatus();
  auto parts = std::exchange(requests[index].with_keys, nullptr)();
  if (!parts.ok()) return parts.status();
  const Request all = requests[index];
  requests[index].bytes = std::move(parts->front());
  for (size_t i = 1; i < parts->size(); ++i) {
    again.push_back(requests.size());
    requests.push_back({all.server, all.method, std::move((*parts)[i])});
  }
  return absl::OkStatus();
}

std::vector<wire::Ticket> ParameterClient::TakeTickets(std::span<const uint64_t> positions) {
  std::vector<wire::Ticket> tickets(options_.links->servers());
  if (std::equal(positions.begin(), positions.end(), pulled_.begin(), pulled_.end())) {
    tickets = std::exchange(tickets_, tickets);
  }
  return tickets;
}

absl::Status ParameterClient::Pull(Step step, const KeyList& keys, ParameterBlock* out) {
  const absl::Status s = PullOnce(step, keys, AllTakeRowsThere(), out);
  return offer_ended_ ? PullOnce(step, keys, false, out) : s;
}

// A call that broke may still be at work on a server when it is made again, and writes the same
// memory; but a shard takes calls in their order, so before it answers the later one it has done
// with the earlier.
absl::Status ParameterClient::PullOnce(Step step, const KeyList& keys, bool there,
                                       ParameterBlock* out) {
  out->rows_there = nullptr;
  if (there) {
    absl::Status s = options_.exchange->PrepareThere(keys, options_.memory, out);
    if (!s.ok()) return s;
  } else {
    options_.exchange->Prepare(keys, out);
  }
  tickets_.assign(options_.links->servers(), {});
  if (options_.tickets) pulled_.assign(keys.positions.begin(), keys.positions.end());
  std::vector<Request> requests;
  std::vector<Exchange::Rows> rows;
  for (uint32_t s = 0; s < options_.links->servers(); ++s) {
    auto bytes = options_.exchange->EncodePull(s, options_.header, step, kWaitMs, keys, true,
                                               {options_.tickets, options_.codec, {}});
    if (!bytes.ok()) return bytes.status();
    if (there) {
      *bytes = bytes->With(options_.exchange->PlacesOfPull(s, keys, true, options_.memory->device(),
                                                           out->rows_there));
    }
    rows.push_back(Exchange::RowsOf(*bytes));
    requests.push_back({s, DataMethod::kPull, *std::move(bytes)});
  }
  return CallAll(std::move(requests), [&](size_t i, const Buffer& reply) -> absl::Status {
    const auto server = static_cast<uint32_t>(i);
    auto answer = options_.exchange->DecodePull(server, reply.span(), keys, true, out,
                                                options_.codec, rows[i]);
    if (!answer.ok()) return answer.status();
    tickets_[i] = answer->ticket;
    switch (answer->outcome) {
      case wire::PullOutcome::kServed:
        if (rows[i] == Exchange::Rows::kThere) CountThere(server, keys);
        return absl::OkStatus();
      case wire::PullOutcome::kNotYet:
        return absl::UnavailableError(
            absl::StrCat("server ", i, " has not committed step ", step.value - 1, " yet"));
      case wire::PullOutcome::kTooOld:
        return absl::FailedPreconditionError(absl::StrCat(
            "step ", step.value, " is older than clock ", answer->state.clock.value, " keeps"));
      default:
        return absl::InternalError(absl::StrCat("server ", i, " answered an unknown outcome"));
    }
  });
}

absl::Status ParameterClient::Push(wire::PushFields fields,
                                   std::shared_ptr<const Gradient> gradient, bool* theirs) {
  fields.header = options_.header;
  fields.sequence = options_.sequences->Next();
  const absl::Status s = PushOnce(fields, gradient, theirs);
  if (!offer_ended_) return s;
  // The same work by another number: what some servers have of it counts once.
  auto here = BringHere(*options_.features, options_.memory, *gradient);
  if (!here.ok()) return here.status();
  fields.sequence = options_.sequences->Next();
  return PushOnce(fields, std::make_shared<const Gradient>(*std::move(here)), theirs);
}

absl::Status ParameterClient::PushOnce(const wire::PushFields& fields,
                                       std::shared_ptr<const Gradient> gradient, bool* theirs) {
  const std::string device = options_.memory == nullptr ? "" : options_.memory->device();
  const Exchange::Contribution contribution{{fields.lane.value, fields.lane.value + 1},
                                            std::move(gradient)};
  std::vector<Request> requests;
  const std::vector<wire::Ticket> tickets = TakeTickets(contribution.second->positions);
  for (uint32_t s = 0; s < options_.links->servers(); ++s) {
    auto encode = [this, s, fields, contribution, device](const wire::Ticket& ticket) {
      return options_.exchange->EncodePush(s, fields, {&contribution, 1}, ticket, device);
    };
    auto parts = encode(tickets[s]);
    const bool named = parts.ok() && tickets[s] && parts->size() == 1;
    if (tickets[s] && !named) parts = encode({});
    if (!parts.ok()) return parts.status();
    for (Buffer& part : *parts) requests.push_back({s, DataMethod::kPush, std::move(part)});
    if (named) requests.back().with_keys = [encode] { return encode({}); };
  }
  bool repeated = false;
  absl::Status s = CallAll(std::move(requests), [&repeated](size_t, const Buffer& reply) {
    const auto answer = wire::ParsePushReply(reply.span());
    repeated |= answer.ok() && answer->repeated;
    return answer.status();
  });
  if (s.ok() && contribution.second->rows_there != nullptr) {
    for (uint32_t server = 0; server < takes_.size(); ++server) {
      CountThere(server, {contribution.second->keys, contribution.second->positions});
    }
  }
  if (theirs != nullptr) *theirs = s.ok() && repeated && !tried_again_;
  return s;
}

absl::Status ParameterClient::Mark(LaneId lane, uint64_t cut, TaskId task, uint64_t window) {
  const wire::MarkRequest mark{options_.header, options_.sequences->Next(), lane, cut, task,
                               window};
  std::vector<Request> requests;
  for (uint32_t s = 0; s < options_.links->servers(); ++s) {
    requests.push_back({s, DataMethod::kMark, wire::EncodeMarkRequest(mark)});
  }
  return CallAll(std::move(requests), [](size_t, const Buffer& reply) {
    return wire::ParseMarkReply(reply.span()).status();
  });
}

}  // namespace strata
