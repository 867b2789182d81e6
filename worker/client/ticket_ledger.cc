#include "worker/client/ticket_ledger.h"

#include "proto/core/mutation.h"

namespace strata {

void TicketLedger::Learn(Step step, uint32_t server, const Lanes& lanes,
                         const wire::Ticket& ticket) {
  if (ticket) entries_[{step, server}] = {lanes, ticket};
}

wire::Ticket TicketLedger::ForPull(Step step, uint32_t server, const Lanes& lanes) const {
  const auto it = entries_.find({step, server});
  return it != entries_.end() && it->second.lanes == lanes ? it->second.ticket : wire::Ticket();
}

void TicketLedger::SameKeys(Step step, const Lanes& lanes) { same_keys_[step] = lanes; }

wire::Ticket TicketLedger::TakeForPush(Step step, uint32_t server, const Lanes& lanes) {
  const auto same = same_keys_.find(step);
  if (!STRATA_MUTATION("ticket.for_other_lanes") &&
      (same == same_keys_.end() || same->second != lanes))
    return {};
  const wire::Ticket ticket = ForPull(step, server, lanes);
  if (ticket) entries_.erase({step, server});
  return ticket;
}

void TicketLedger::Broken(uint32_t server) {
  std::erase_if(entries_, [server](const auto& e) { return e.first.second == server; });
}

void TicketLedger::DropBelow(Step step) {
  entries_.erase(entries_.begin(), entries_.lower_bound({step, 0}));
  same_keys_.erase(same_keys_.begin(), same_keys_.lower_bound(step));
}

}  // namespace strata
