#include "server/job/ticket_book.h"

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"

namespace strata::server {
namespace {

template <typename... Parts>
absl::Status Stale(const wire::Ticket& ticket, const Parts&... parts) {
  return absl::FailedPreconditionError(
      absl::StrCat(wire::kTicketError, ticket.number, ": ", parts..., "; send the keys"));
}

}  // namespace

wire::Ticket TicketBook::Add(SessionId session, Step step, uint32_t fingerprint, KeysPtr keys,
                             std::vector<KeysPtr>& dropped) {
  const uint64_t bytes = keys->TicketBytes();
  if (bytes > limits_.bytes || limits_.per_session == 0) return {};
  std::set<uint64_t>& mine = of_session_[session];
  if (mine.size() >= limits_.per_session) dropped.push_back(Remove(*mine.begin()));
  while (bytes_ + bytes > limits_.bytes) dropped.push_back(Remove(tickets_.begin()->first));
  const wire::Ticket ticket{incarnation_, next_++, keys->keys(), fingerprint};
  tickets_[ticket.number] = {session, step, bytes, ticket.keys, fingerprint, std::move(keys)};
  of_session_[session].insert(ticket.number);  // anew: making room may have removed the entry
  if (step.value != 0) by_step_.insert({step, ticket.number});
  bytes_ += bytes;
  return ticket;
}

absl::StatusOr<TicketBook::KeysPtr> TicketBook::Find(SessionId session,
                                                     const wire::Ticket& ticket) const {
  if (ticket.incarnation != incarnation_ && !STRATA_MUTATION("ticket.of_another_process")) {
    return Stale(ticket, "it is of incarnation ", ticket.incarnation, ", this server is ",
                 incarnation_);
  }
  const auto it = tickets_.find(ticket.number);
  if (it == tickets_.end() || it->second.session != session) {
    return Stale(ticket, "not held for session ", session.value);
  }
  const Entry& entry = it->second;
  if ((entry.key_count != ticket.keys || entry.fingerprint != ticket.fingerprint) &&
      !STRATA_MUTATION("ticket.other_keys")) {
    return Stale(ticket, "it stands for ", entry.key_count, " keys of fingerprint ",
                 entry.fingerprint, ", not for ", ticket.keys, " of ", ticket.fingerprint);
  }
  return entry.keys;
}

std::vector<TicketBook::KeysPtr> TicketBook::Committed(Step step) {
  std::vector<KeysPtr> ended;
  while (!by_step_.empty() && by_step_.begin()->first <= step) {
    ended.push_back(Remove(by_step_.begin()->second));
  }
  return ended;
}

std::vector<TicketBook::KeysPtr> TicketBook::Close(SessionId session) {
  std::vector<KeysPtr> ended;
  const auto it = of_session_.find(session);
  if (it == of_session_.end()) return ended;
  const std::set<uint64_t> numbers = it->second;
  for (const uint64_t number : numbers) ended.push_back(Remove(number));
  return ended;
}

std::vector<TicketBook::KeysPtr> TicketBook::CloseOthers(
    const std::function<bool(SessionId)>& stay) {
  std::vector<SessionId> others;
  for (const auto& [session, numbers] : of_session_) {
    if (!stay(session)) others.push_back(session);
  }
  std::vector<KeysPtr> ended;
  for (const SessionId session : others) {
    for (KeysPtr& keys : Close(session)) ended.push_back(std::move(keys));
  }
  return ended;
}

std::vector<TicketBook::KeysPtr> TicketBook::Clear() {
  std::vector<KeysPtr> ended;
  while (!tickets_.empty()) ended.push_back(Remove(tickets_.begin()->first));
  return ended;
}

TicketBook::KeysPtr TicketBook::Remove(uint64_t number) {
  auto node = tickets_.extract(number);
  const Entry& entry = node.mapped();
  bytes_ -= entry.bytes;
  by_step_.erase({entry.step, number});
  const auto mine = of_session_.find(entry.session);
  mine->second.erase(number);
  if (mine->second.empty()) of_session_.erase(mine);
  return std::move(node.mapped().keys);
}

}  // namespace strata::server
