#include "server/protocol/session_table.h"

#include "proto/core/mutation.h"

namespace strata::server {

std::optional<SessionId> SessionTable::Open(SessionId session) {
  if (!numbers_.try_emplace(session).second) return std::nullopt;
  order_.push_back(session);
  if (order_.size() <= kMaxSessions) return std::nullopt;
  const SessionId forgotten = order_.front();
  numbers_.erase(forgotten);
  order_.pop_front();
  return forgotten;
}

bool SessionTable::Use(SessionId session, Sequence number, uint64_t work) {
  const auto it = numbers_.find(session);
  if (it == numbers_.end()) return true;
  if (it->second == nullptr) it->second = std::make_unique<Numbers>();
  Used& used = (*it->second)[number.value % kRemembered];
  if (number.value == used.number)
    return work == used.work || STRATA_MUTATION("session.number_names_other_work");
  if (number.value > used.number) used = {number.value, work};
  return true;
}

}  // namespace strata::server
