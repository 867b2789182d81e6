#include "worker/client/parameter_client.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/message_codec.h"
#include "worker/device/gradient_there.h"

namespace strata {
namespace {

constexpr uint32_t kWaitMs = 5000;

// A lane has one set of keys at a time: its tickets are those of one step, and of no named lanes.
constexpr Step kTickets(0);

BlockingCallsOptions CallsOf(const ParameterClientOptions& options) {
  BlockingCallsOptions calls;
  calls.session.links = options.links;
  calls.session.timer = options.timer;
  calls.session.header = options.header;
  calls.session.identity = options.identity;
  if (options.memory != nullptr) calls.session.device = options.memory->device();
  calls.session.call_timeout = options.call_timeout;
  calls.give_up_after = options.give_up_after;
  calls.cancelled = options.cancelled;
  return calls;
}

}  // namespace

ParameterClient::ParameterClient(const ParameterClientOptions& options)
    : options_(options), calls_(CallsOf(options)) {}

void ParameterClient::CountThere(Exchange::Shards shards, const KeyList& keys) const {
  uint64_t rows = 0;
  for (const Exchange::Part& part : options_.exchange->ShareOf(shards, keys)) rows += part.keys;
  options_.stats->OnRowsThere(rows);
}

bool ParameterClient::AsPulled(const Gradient& gradient) const {
  const SharedKeys& positions = gradient.positions;
  return gradient.runs == pulled_runs_ &&
         std::equal(positions.begin(), positions.end(), pulled_.begin(), pulled_.end());
}

absl::Status ParameterClient::Pull(Step step, const KeyList& keys, ParameterBlock* out) {
  const bool there = options_.memory != nullptr && calls_.OpenAndAllTakeRows();
  const absl::Status s = PullOnce(step, keys, there, out);
  return calls_.offer_ended() ? PullOnce(step, keys, false, out) : s;
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
  calls_.tickets().DropBelow(kTickets.Next());
  if (options_.tickets) {
    pulled_.assign(keys.positions.begin(), keys.positions.end());
    pulled_runs_.assign(keys.runs.begin(), keys.runs.end());
  }
  std::vector<BlockingCalls::Request> requests;
  std::vector<Exchange::Shards> asked;  // of each request
  std::vector<Exchange::Rows> rows;
  for (uint32_t s = 0; s < options_.links->servers(); ++s) {
    const auto parts = options_.exchange->SplitPull(
        s, keys, true, options_.codecs, there ? Exchange::Rows::kThere : Exchange::Rows::kInReply);
    if (!parts.ok()) return parts.status();
    // A ticket is of all of the server's shards.
    const bool ticket = options_.tickets && parts->size() == 1;
    for (const Exchange::Shards shards : *parts) {
      auto bytes = options_.exchange->EncodePull(shards, options_.header.To(s), step, kWaitMs, keys,
                                                 true, {ticket, options_.codecs, {}});
      if (!bytes.ok()) return bytes.status();
      if (there) {
        *bytes = bytes->With(options_.exchange->PlacesOfPull(
            shards, keys, true, options_.memory->device(), out->rows_there));
      }
      asked.push_back(shards);
      rows.push_back(Exchange::RowsOf(*bytes));
      requests.push_back({s, DataMethod::kPull, *std::move(bytes)});
    }
  }
  std::vector<uint32_t> server;  // of each request
  for (const BlockingCalls::Request& request : requests) server.push_back(request.server);
  return calls_.CallAll(std::move(requests), [&](size_t i, const Buffer& reply) -> absl::Status {
    auto answer = options_.exchange->DecodePull(asked[i], reply.span(), keys, true, out,
                                                options_.codecs, rows[i]);
    if (!answer.ok()) return answer.status();
    calls_.tickets().Learn(kTickets, server[i], {}, answer->ticket);
    switch (answer->outcome) {
      case wire::PullOutcome::kServed:
        if (rows[i] == Exchange::Rows::kThere) CountThere(asked[i], keys);
        return absl::OkStatus();
      case wire::PullOutcome::kNotYet:
        return absl::UnavailableError(
            absl::StrCat("server ", server[i], " has not committed step ", step.value - 1, " yet"));
      case wire::PullOutcome::kTooOld:
        return absl::FailedPreconditionError(absl::StrCat(
            "step ", step.value, " is older than clock ", answer->state.clock.value, " keeps"));
      default:
        return absl::InternalError(
            absl::StrCat("server ", server[i], " answered an unknown outcome"));
    }
  });
}

absl::Status ParameterClient::Push(wire::PushFields fields,
                                   std::shared_ptr<const Gradient> gradient, bool* theirs) {
  fields.header = options_.header;
  fields.sequence = options_.sequences->Next();
  const absl::Status s = PushOnce(fields, gradient, theirs);
  if (!calls_.offer_ended()) return s;
  // The same work by another number: what some servers have of it counts once.
  auto here = BringHere(options_.tables, options_.memory, *gradient);
  if (!here.ok()) return here.status();
  fields.sequence = options_.sequences->Next();
  return PushOnce(fields, std::make_shared<const Gradient>(*std::move(here)), theirs);
}

absl::Status ParameterClient::PushOnce(const wire::PushFields& fields,
                                       std::shared_ptr<const Gradient> gradient, bool* theirs) {
  const std::string device = options_.memory == nullptr ? "" : options_.memory->device();
  const Exchange::Contribution contribution{{fields.lane.value, fields.lane.value + 1},
                                            std::move(gradient)};
  std::vector<BlockingCalls::Request> requests;
  const bool as_pulled = AsPulled(*contribution.second);
  if (as_pulled) calls_.tickets().SameKeys(kTickets, {});
  for (uint32_t s = 0; s < options_.links->servers(); ++s) {
    wire::PushFields to_it = fields;
    to_it.header = fields.header.To(s);
    auto encode = [this, s, to_it, contribution, device](const wire::Ticket& ticket) {
      return options_.exchange->EncodePush(s, to_it, {&contribution, 1}, ticket, device);
    };
    const wire::Ticket ticket =
        as_pulled ? calls_.tickets().TakeForPush(kTickets, s, {}) : wire::Ticket();
    auto parts = encode(ticket);
    const bool named = parts.ok() && ticket && parts->size() == 1;
    if (ticket && !named) parts = encode({});
    if (!parts.ok()) return parts.status();
    for (Buffer& part : *parts) requests.push_back({s, DataMethod::kPush, std::move(part)});
    if (named) requests.back().with_keys = [encode] { return encode({}); };
  }
  bool repeated = false;
  absl::Status s = calls_.CallAll(std::move(requests), [&repeated](size_t, const Buffer& reply) {
    const auto answer = wire::ParsePushReply(reply.span());
    repeated |= answer.ok() && answer->repeated;
    return answer.status();
  });
  if (const Gradient& sent = *contribution.second; s.ok() && sent.rows_there != nullptr) {
    for (uint32_t server = 0; server < options_.links->servers(); ++server) {
      CountThere(options_.exchange->ShardsOf(server), {sent.keys, sent.positions, sent.runs});
    }
  }
  if (theirs != nullptr) *theirs = s.ok() && repeated && !calls_.tried_again();
  return s;
}

absl::Status ParameterClient::Mark(LaneId lane, uint64_t cut, TaskId task, uint64_t window) {
  wire::MarkRequest mark{options_.header, options_.sequences->Next(), lane, cut, task, window};
  std::vector<BlockingCalls::Request> requests;
  for (uint32_t s = 0; s < options_.links->servers(); ++s) {
    mark.header = options_.header.To(s);
    requests.push_back({s, DataMethod::kMark, wire::EncodeMarkRequest(mark)});
  }
  return calls_.CallAll(std::move(requests), [](size_t, const Buffer& reply) {
    return wire::ParseMarkReply(reply.span()).status();
  });
}

}  // namespace strata
