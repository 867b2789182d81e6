#include "worker/client/ticket_ledger.h"

#include <catch2/catch.hpp>

namespace strata {
namespace {

wire::Ticket Number(uint64_t n) { return {1, n, 10, 5}; }
const TicketLedger::Lanes kBoth = {0, 1}, kOne = {0};

TEST_CASE("a push takes its pull's ticket once, and only with the same keys", "[ticket]") {
  TicketLedger ledger;
  ledger.Learn(Step(1), 0, kBoth, Number(4));
  ledger.Learn(Step(1), 1, kBoth, {});                 // none was given
  CHECK_FALSE(ledger.TakeForPush(Step(1), 0, kBoth));  // not computed yet
  ledger.SameKeys(Step(1), kBoth);
  CHECK_FALSE(ledger.TakeForPush(Step(1), 0, kOne));
  CHECK_FALSE(ledger.TakeForPush(Step(2), 0, kBoth));
  CHECK_FALSE(ledger.TakeForPush(Step(1), 1, kBoth));
  CHECK(ledger.TakeForPush(Step(1), 0, kBoth) == Number(4));
  CHECK_FALSE(ledger.TakeForPush(Step(1), 0, kBoth));  // what is sent again goes with keys
}

TEST_CASE("a prefetch's ticket serves pulls of the same lanes", "[ticket]") {
  TicketLedger ledger;
  ledger.Learn(Step(2), 0, kBoth, Number(4));
  CHECK(ledger.ForPull(Step(2), 0, kBoth) == Number(4));
  CHECK(ledger.ForPull(Step(2), 0, kBoth) == Number(4));  // "not yet" was answered
  CHECK_FALSE(ledger.ForPull(Step(2), 0, kOne));          // a lane went elsewhere
  CHECK_FALSE(ledger.ForPull(Step(2), 1, kBoth));
  CHECK_FALSE(ledger.ForPull(Step(3), 0, kBoth));
  ledger.Learn(Step(2), 0, kOne, Number(6));
  CHECK_FALSE(ledger.ForPull(Step(2), 0, kBoth));
  CHECK(ledger.ForPull(Step(2), 0, kOne) == Number(6));
}

TEST_CASE("what breaks at a server ends its tickets; steps that are over end theirs", "[ticket]") {
  TicketLedger ledger;
  for (const uint64_t step : {1, 2}) {
    for (const uint32_t server : {0u, 1u}) {
      ledger.Learn(Step(step), server, kBoth, Number(10 * step + server + 1));
    }
    ledger.SameKeys(Step(step), kBoth);
  }
  ledger.Broken(0);
  CHECK_FALSE(ledger.TakeForPush(Step(1), 0, kBoth));
  CHECK_FALSE(ledger.ForPull(Step(2), 0, kBoth));
  CHECK(ledger.ForPull(Step(2), 1, kBoth) == Number(22));
  ledger.DropBelow(Step(2));
  CHECK_FALSE(ledger.TakeForPush(Step(1), 1, kBoth));
  CHECK(ledger.TakeForPush(Step(2), 1, kBoth) == Number(22));
}

}  // namespace
}  // namespace strata
