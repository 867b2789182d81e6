// Which tickets a worker holds of its servers in synchronous training, and when one may stand for
// keys (DESIGN.md section 5, "Tickets").
#ifndef STRATA_WORKER_CLIENT_TICKET_LEDGER_H_
#define STRATA_WORKER_CLIENT_TICKET_LEDGER_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "proto/core/ids.h"
#include "proto/wire/message.h"

namespace strata {

// A pure machine, one thread at a time. A ticket stands for the keys of the lanes that pulled (or
// prefetched) together. Whatever is sent again goes with keys: a push takes its ticket once, and
// anything that breaks at a server ends all of that server's. At most two steps x servers.
class TicketLedger {
 public:
  using Lanes = std::vector<uint32_t>;  // ascending

  // A reply gave `ticket` (none: nothing is learnt) for the keys of `lanes` at `step`.
  void Learn(Step step, uint32_t server, const Lanes& lanes, const wire::Ticket& ticket);
  // What a pull may name instead of its keys; none otherwise.
  wire::Ticket ForPull(Step step, uint32_t server, const Lanes& lanes) const;
  // The lanes of `step` are computed, and what they push has exactly the keys that they pulled.
  // Without this call a push never takes a ticket of the step.
  void SameKeys(Step step, const Lanes& lanes);
  // What a push of `lanes` may name; it is not given again.
  wire::Ticket TakeForPush(Step step, uint32_t server, const Lanes& lanes);
  // A call to the server broke or was refused.
  void Broken(uint32_t server);
  // Steps below `step` are over.
  void DropBelow(Step step);

 private:
  struct Entry {
    Lanes lanes;
    wire::Ticket ticket;
  };
  std::map<std::pair<Step, uint32_t>, Entry> entries_;  // (step, server)
  std::map<Step, Lanes> same_keys_;
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_TICKET_LEDGER_H_
