#include "server/protocol/cut_barrier.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "absl/time/time.h"

namespace strata::server {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1767225600);

TEST_CASE("pushes of the next cut wait for every lane's marker", "[cut]") {
  CutBarrier barrier(2, 0);
  REQUIRE(barrier.Push(0, 1, kNow));
  barrier.Mark(0, 1, {TaskId(3), 4});
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE_FALSE(barrier.Push(1, 2, kNow));  // lane 0, after its marker
  REQUIRE(barrier.Push(0, 3, kNow));        // lane 1, before its own
  REQUIRE(barrier.Release().empty());
  barrier.Mark(0, 1, {TaskId(3), 4});
  REQUIRE_FALSE(barrier.Ready());
  barrier.Mark(1, 1, {TaskId(5), 0});
  REQUIRE(barrier.Ready());
  REQUIRE(barrier.marks().at(1).task == TaskId(5));
  REQUIRE(barrier.Release().empty());  // not before it is taken
  barrier.Taken();
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE(barrier.Release() == std::vector<HeldPush>{2});
  REQUIRE(barrier.Push(1, 4, kNow));
}

TEST_CASE("a push that overtakes its lane's marker waits too", "[cut]") {
  CutBarrier barrier(1, 0);
  REQUIRE_FALSE(barrier.Push(1, 7, kNow));
  barrier.Mark(0, 1, {});
  barrier.Taken();
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7});
}

// Whatever number a client makes up, it changes nothing, and what is kept is of one cut.
TEST_CASE("no cut exists beyond the one after those that are over", "[cut]") {
  CutBarrier barrier(2, 3);
  REQUIRE(barrier.MayExist(0));
  REQUIRE(barrier.MayExist(3));
  REQUIRE(barrier.MayExist(4));  // lanes may have heard of it before this server
  REQUIRE_FALSE(barrier.MayExist(5));
  REQUIRE_FALSE(barrier.MayExist(uint64_t{1} << 60));
  REQUIRE_FALSE(barrier.MayExist(~uint64_t{0}));
  barrier.Mark(0, 4, {});
  REQUIRE_FALSE(barrier.MayExist(5));  // 4 is not over
  barrier.Begin(4);
  REQUIRE_FALSE(barrier.MayExist(5));
  barrier.Mark(1, 4, {});
  barrier.Taken();
  REQUIRE(barrier.MayExist(5));
  REQUIRE_FALSE(barrier.MayExist(6));
  barrier.End(9);
  REQUIRE(barrier.MayExist(10));
  REQUIRE_FALSE(barrier.MayExist(11));
  barrier.End(~uint64_t{0});
  REQUIRE(barrier.MayExist(~uint64_t{0}));
}

TEST_CASE("an order says that all cuts before it are over", "[cut]") {
  CutBarrier barrier(2, 0);
  barrier.Mark(0, 1, {});
  REQUIRE_FALSE(barrier.Push(1, 7, kNow));
  barrier.Begin(2);
  REQUIRE(barrier.over() == 1);
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7});
  barrier.Mark(1, 2, {});
  barrier.Mark(0, 1, {});  // stale
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE_FALSE(barrier.Push(2, 8, kNow));
  barrier.Mark(0, 2, {});
  REQUIRE(barrier.Ready());
  barrier.Taken();
  REQUIRE(barrier.taken() == 2);
  REQUIRE(barrier.over() == 2);
  barrier.Mark(0, 2, {});
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE(barrier.Release() == std::vector<HeldPush>{8});
}

TEST_CASE("a cut that is wanted gives up the pending one before any lane marks it", "[cut]") {
  CutBarrier barrier(2, 0);
  barrier.Mark(0, 1, {});
  REQUIRE_FALSE(barrier.Push(1, 7, kNow));  // lane 0 waits, so it could not mark cut 2
  barrier.Begin(2);
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7});
  barrier.Mark(1, 1, {});  // of the one given up
  barrier.Begin(1);
  REQUIRE(barrier.pending() == 2);
  barrier.Mark(0, 2, {});
  REQUIRE_FALSE(barrier.Ready());
  barrier.Begin(2);  // told again: markers stay
  barrier.Mark(1, 2, {});
  REQUIRE(barrier.Ready());
}

TEST_CASE("a lane that does not exist does not complete a cut", "[cut]") {
  CutBarrier barrier(1, 3);
  barrier.Mark(1, 4, {});
  REQUIRE_FALSE(barrier.Ready());
  barrier.Mark(0, 3, {});
  REQUIRE_FALSE(barrier.Ready());
  barrier.Mark(0, 4, {});
  REQUIRE(barrier.Ready());
}

// Two shards, two lanes. Shard 0 fails the cut before lane 1 has marked it; shard 1 holds what lane
// 0 pushes after its mark. No window can move, so no new cut comes that would open it.
TEST_CASE("what is given up is over, also when no cut follows", "[cut]") {
  CutBarrier barrier(2, 0);
  barrier.Begin(1);
  barrier.Mark(0, 1, {TaskId(0), 1});
  REQUIRE_FALSE(barrier.Push(1, 7, kNow));
  barrier.End(0);  // told again that no cut is over
  REQUIRE(barrier.Release().empty());
  barrier.End(1);
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7});
  REQUIRE(barrier.over() == 1);
  REQUIRE(barrier.taken() == 0);
  REQUIRE_FALSE(barrier.Deadline());
  barrier.Mark(1, 1, {TaskId(1), 1});  // lane 1 was told late
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE(barrier.Push(1, 8, kNow));  // and pushes with its tag
}

// The marks of a cut that is given up are of lanes that stand elsewhere when the next one comes.
TEST_CASE("marks of a cut that was given up do not count for the next", "[cut]") {
  CutBarrier barrier(2, 0);
  barrier.Mark(0, 1, {TaskId(0), 1});
  barrier.End(1);
  barrier.Begin(2);
  barrier.Mark(1, 2, {TaskId(1), 1});
  REQUIRE_FALSE(barrier.Ready());
  barrier.Mark(0, 2, {TaskId(0), 2});
  REQUIRE(barrier.Ready());
  REQUIRE(barrier.marks().at(0).next_window == 2);
}

TEST_CASE("giving up earlier cuts leaves the pending one", "[cut]") {
  CutBarrier barrier(2, 0);
  barrier.Begin(3);
  barrier.Mark(0, 3, {});
  REQUIRE_FALSE(barrier.Push(3, 7, kNow));
  barrier.End(2);
  REQUIRE(barrier.Release().empty());
  barrier.Mark(1, 3, {});
  REQUIRE(barrier.Ready());
}

// A server that began again knows of no cut. Lanes push with the tag of one that was complete long
// ago, and no cut is pending.
TEST_CASE("a barrier that began again is told what is over", "[cut]") {
  CutBarrier barrier(2, 3);
  REQUIRE_FALSE(barrier.Push(4, 7, kNow));
  REQUIRE_FALSE(barrier.MayExist(6));
  barrier.End(6);
  REQUIRE(barrier.MayExist(6));
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7});
  REQUIRE(barrier.Push(6, 8, kNow));
}

TEST_CASE("a failed cut is over", "[cut]") {
  CutBarrier barrier(1, 0);
  REQUIRE_FALSE(barrier.Push(1, 7, kNow));
  barrier.Mark(0, 1, {});
  REQUIRE(barrier.Ready());
  barrier.End(1);
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7});
  REQUIRE(barrier.taken() == 0);
}

// The scheduler dies for good after it told lane 0 alone.
TEST_CASE("a cut whose marks do not come ends after a time", "[cut]") {
  CutBarrier barrier(2, 0);
  barrier.Mark(0, 1, {});
  REQUIRE_FALSE(barrier.Deadline());  // nobody waits
  REQUIRE_FALSE(barrier.EndOverdue(kNow + absl::Hours(1)));
  REQUIRE_FALSE(barrier.Push(1, 7, kNow));
  const absl::Time end = kNow + CutBarrier::kPatience;
  REQUIRE_FALSE(barrier.Push(1, 8, kNow + absl::Seconds(1)));
  REQUIRE(barrier.Deadline() == end);  // of the first
  REQUIRE_FALSE(barrier.EndOverdue(end - absl::Nanoseconds(1)));
  REQUIRE(barrier.Release().empty());
  REQUIRE(barrier.EndOverdue(end));
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7, 8});
  REQUIRE_FALSE(barrier.Deadline());
}

// A shard that lets pushes go, and still takes the cut when the last mark comes, writes a file that
// holds what was pushed after it.
TEST_CASE("a cut that ended by time has ended for good", "[cut]") {
  CutBarrier barrier(2, 0);
  barrier.Mark(0, 1, {});
  REQUIRE_FALSE(barrier.Push(1, 7, kNow));
  REQUIRE(barrier.EndOverdue(kNow + CutBarrier::kPatience));
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7});
  barrier.Begin(1);  // the scheduler is back, and orders it still
  barrier.Mark(0, 1, {});
  barrier.Mark(1, 1, {});
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE(barrier.taken() == 0);
  barrier.Mark(0, 2, {});
  barrier.Mark(1, 2, {});
  REQUIRE(barrier.Ready());  // the next one
}

// A barrier that began again has no pending cut, and holds what carries the tag of the next one.
TEST_CASE("pushes of a cut that is not pending do not wait for ever either", "[cut]") {
  CutBarrier barrier(2, 2);
  REQUIRE_FALSE(barrier.Push(3, 7, kNow));
  REQUIRE(barrier.EndOverdue(*barrier.Deadline()));
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7});
  REQUIRE(barrier.over() == 3);
}

// Lanes whose windows take longer than a shard waits would else never be in a cut.
TEST_CASE("patience grows until a cut is taken", "[cut]") {
  CutBarrier barrier(1, 0);
  absl::Duration patience = CutBarrier::kPatience;
  for (CutNumber cut = 1; cut <= 12; ++cut) {
    REQUIRE_FALSE(barrier.Push(cut, cut, kNow));
    REQUIRE(barrier.Deadline() == kNow + patience);
    REQUIRE(barrier.EndOverdue(kNow + patience));
    REQUIRE(barrier.Release().size() == 1);
    patience = std::min(2 * patience, CutBarrier::kMostPatience);
  }
  REQUIRE(barrier.patience() == CutBarrier::kMostPatience);
  barrier.Mark(0, 13, {});
  barrier.Taken();
  REQUIRE_FALSE(barrier.Push(14, 1, kNow));
  REQUIRE(barrier.Deadline() == kNow + CutBarrier::kPatience);
}

}  // namespace
}  // namespace strata::server
