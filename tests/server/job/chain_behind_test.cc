// A copy to be that stays behind: what is kept for it is bounded, and it begins anew.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "proto/strata/control.pb.h"
#include "tests/server/job/bench.h"
#include "tests/server/job/copies.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

// A chain of one, which writes an image whenever its log has grown a little, and a copy to be that
// has had everything up to step 3.
void JoinAndLose(Copies& copies) {
  copies[0].plan().log_bytes = 2000;
  copies.Open(0);
  copies.Tell(0, 1, {0});
  copies.OpenSession(0);
  for (uint64_t step = 1; step <= 3; ++step) copies.Push(0, step);
  copies.Run();
  copies.Open(1, /*joins=*/true);
  copies.Tell(0, 2, {0}, 1);
  copies.Tell(1, 2, {0}, 1);
  copies.Pass();
  REQUIRE(copies.Report(1).ends_size() == 3);
  REQUIRE(copies.Report(1).ends(0).step() == 3);
  copies.Kill(1);
}

void Push(Copies& copies, uint64_t first, uint64_t last) {
  for (uint64_t step = first; step <= last; ++step) {
    copies.Push(0, step);
    copies.Run();
    REQUIRE(copies.Clock(0) == step);  // nobody waits for who is no member
  }
}

// It is told that it is of no use, the head goes on, and under a new log id it becomes a copy.
void BeginsAnew(Copies& copies, uint64_t step) {
  copies.Pass();
  const ServerJobReport lost = copies.Job(1)->Report();
  CHECK(lost.state() == ServerJobReport::LOST);
  CHECK(absl::StrContains(lost.message(), "begins anew with a newer image"));
  CHECK(copies.Job(0)->Report().state() == ServerJobReport::OPEN);
  CHECK(copies.Report(0).next_ends_size() == 0);
  CHECK_FALSE(copies.Report(0).next_has_all());
  copies.Kill(1);
  copies.SetLog(1, "log-later");
  copies[1].plan().was_open = false;
  copies.Open(1, /*joins=*/true);
  copies.Tell(0, 3, {0}, 1);
  copies.Tell(1, 3, {0}, 1);
  copies.Pass();
  CHECK(copies.Job(1)->Report().state() == ServerJobReport::OPEN);
  REQUIRE(copies.Report(1).ends_size() == 3);
  CHECK(copies.Report(1).ends(0).step() == step);
  copies.TellAll(4, {0, 1}, std::nullopt, 1);
  copies.Run();
  CHECK(copies.Report(0).next_has_all());
  copies.Kill(0);
  copies.Tell(1, 5, {1});
  copies.Run();
  copies.OpenSession(1);
  REQUIRE(copies[1].Hash(step) == References(1, 1, step).back().Hash());
}

TEST_CASE("so much log is kept for a copy to be, and no more", "[chain]") {
  Copies copies(2);
  JoinAndLose(copies);
  Push(copies, 4, 60);
  const uint64_t few = copies.Job(0)->log_bytes();
  Push(copies, 61, 300);
  CHECK(copies.Job(0)->log_bytes() < 2 * few);
  copies[1].plan().was_open = true;
  copies.Open(1, /*joins=*/true);
  CHECK(copies[1].recovered_);
  copies.Tell(1, 2, {0}, 1);
  BeginsAnew(copies, 300);
}

TEST_CASE("a copy to be that the log does not reach back to is at fault, not the copy before it",
          "[chain]") {
  Copies copies(2);
  JoinAndLose(copies);
  copies.Tell(0, 3, {0});  // nobody is to be copied to for a while
  Push(copies, 4, 60);
  copies[1].plan().was_open = true;
  copies.Open(1, /*joins=*/true);
  CHECK(copies[1].recovered_);
  copies.Tell(0, 4, {0}, 1);
  copies.Tell(1, 4, {0}, 1);
  copies.Pass();
  const ServerJobReport lost = copies.Job(1)->Report();
  CHECK(lost.state() == ServerJobReport::LOST);
  CHECK(copies.Job(0)->Report().state() == ServerJobReport::OPEN);
  Push(copies, 61, 61);
}

}  // namespace
}  // namespace strata::server
