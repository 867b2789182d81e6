#include "server/protocol/lane_sessions.h"

#include <catch2/catch.hpp>

#include "proto/wire/session_error.h"

namespace strata::server {
namespace {

TEST_CASE("only sessions that host lanes are taken, once it is told which do", "[session]") {
  const LaneSessions untold;
  CHECK(untold.epoch() == 0);
  CHECK(untold.Check(SessionId(1)).ok());
  CHECK(untold.Check(SessionId(~0ull)).ok());

  const LaneSessions some(4, {SessionId(9), SessionId(2), SessionId(5)});
  CHECK(some.epoch() == 4);
  for (const uint64_t session : {2, 5, 9}) CHECK(some.Check(SessionId(session)).ok());
  for (const uint64_t session : {0, 1, 3, 8, 10}) {
    const absl::Status s = some.Check(SessionId(session));
    CHECK(wire::IsLanesGone(s));
    CHECK(s == wire::LanesGone(SessionId(session), 4));
  }

  const LaneSessions nobody(5, {});
  CHECK(wire::IsLanesGone(nobody.Check(SessionId(2))));
  CHECK(nobody.epoch() == 5);
}

}  // namespace
}  // namespace strata::server
