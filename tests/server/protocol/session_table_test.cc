#include "server/protocol/session_table.h"

#include <catch2/catch.hpp>

namespace strata::server {
namespace {

TEST_CASE("sessions are known once opened, and bounded", "[session]") {
  SessionTable table;
  REQUIRE_FALSE(table.Known(SessionId(1)));
  for (uint64_t i = 1; i <= SessionTable::kMaxSessions; ++i) table.Open(SessionId(i));
  table.Open(SessionId(1));
  REQUIRE(table.Known(SessionId(1)));
  table.Open(SessionId(~0ull));
  REQUIRE(table.size() == SessionTable::kMaxSessions);
  REQUIRE_FALSE(table.Known(SessionId(1)));
  REQUIRE(table.Known(SessionId(2)));
  // And so on, in the order of opening.
  table.Open(SessionId(~1ull));
  REQUIRE(table.size() == SessionTable::kMaxSessions);
  REQUIRE_FALSE(table.Known(SessionId(2)));
  REQUIRE(table.Known(SessionId(3)));
}

TEST_CASE("a number stands for one work as long as it is remembered", "[session]") {
  constexpr uint64_t kAll = SessionTable::kRemembered;
  SessionTable table;
  table.Open(SessionId(1));
  table.Open(SessionId(2));
  const auto use = [&](uint64_t session, uint64_t number, uint64_t work) {
    return table.Use(SessionId(session), Sequence(number), work);
  };
  // Out of order, each twice: lanes push side by side, and again.
  for (const uint64_t number : {3, 1, 2, 3, 1, 2}) REQUIRE(use(1, number, 10 * number));
  for (const uint64_t number : {1, 2, 3}) REQUIRE_FALSE(use(1, number, 7));
  REQUIRE(use(1, 2, 20));  // a refused work takes nobody's place
  REQUIRE(use(2, 2, 7));   // another session counts by itself
  for (uint64_t number = 4; number <= kAll; ++number) REQUIRE(use(1, number, 10 * number));
  for (uint64_t number = 1; number <= kAll; ++number) REQUIRE_FALSE(use(1, number, 7));
  // One more, and the first is forgotten, no other; what comes late does not come back for it.
  REQUIRE(use(1, kAll + 1, 5));
  REQUIRE(use(1, 1, 7));
  REQUIRE(use(1, 1, 8));
  REQUIRE_FALSE(use(1, kAll + 1, 7));
  for (uint64_t number = 2; number <= kAll; ++number) REQUIRE_FALSE(use(1, number, 7));
  // Opened again it is the same session; forgotten, it is a new one.
  table.Open(SessionId(1));
  REQUIRE_FALSE(use(1, kAll, 7));
  for (uint64_t i = 1; i <= SessionTable::kMaxSessions; ++i) table.Open(SessionId(100 + i));
  REQUIRE(use(1, kAll, 7));
  table.Open(SessionId(1));
  REQUIRE(use(1, kAll, 7));
}

}  // namespace
}  // namespace strata::server
