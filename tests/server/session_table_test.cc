#include "server/session_table.h"

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

}  // namespace
}  // namespace strata::server
