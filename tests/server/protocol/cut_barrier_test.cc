#include "server/protocol/cut_barrier.h"

#include <catch2/catch.hpp>

namespace strata::server {
namespace {

TEST_CASE("pushes of the next cut wait for every lane's marker", "[cut]") {
  CutBarrier barrier(2, 0);
  REQUIRE(barrier.Push(0, 1));
  barrier.Mark(0, 1, {TaskId(3), 4});
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE_FALSE(barrier.Push(1, 2));  // lane 0, after its marker
  REQUIRE(barrier.Push(0, 3));        // lane 1, before its own
  REQUIRE(barrier.Release().empty());
  barrier.Mark(0, 1, {TaskId(3), 4});
  REQUIRE_FALSE(barrier.Ready());
  barrier.Mark(1, 1, {TaskId(5), 0});
  REQUIRE(barrier.Ready());
  REQUIRE(barrier.Release().empty());  // not before it is taken
  barrier.Taken();
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE(barrier.Release() == std::vector<HeldPush>{2});
  REQUIRE(barrier.Push(1, 4));
  REQUIRE(barrier.marks().at(1).task == TaskId(5));
}

TEST_CASE("a push that overtakes its lane's marker waits too", "[cut]") {
  CutBarrier barrier(1, 0);
  REQUIRE_FALSE(barrier.Push(1, 7));
  barrier.Mark(0, 1, {});
  barrier.Taken();
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7});
}

TEST_CASE("a later cut aborts the pending one", "[cut]") {
  CutBarrier barrier(2, 0);
  barrier.Mark(0, 1, {});
  REQUIRE_FALSE(barrier.Push(1, 7));
  barrier.Mark(1, 2, {});
  REQUIRE(barrier.Release() == std::vector<HeldPush>{7});
  barrier.Mark(0, 1, {});  // stale
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE_FALSE(barrier.Push(2, 8));
  barrier.Mark(0, 2, {});
  REQUIRE(barrier.Ready());
  barrier.Taken();
  REQUIRE(barrier.done() == 2);
  barrier.Mark(0, 2, {});
  REQUIRE_FALSE(barrier.Ready());
  REQUIRE(barrier.Release() == std::vector<HeldPush>{8});
}

TEST_CASE("a cut that is wanted gives up the pending one before any lane marks it", "[cut]") {
  CutBarrier barrier(2, 0);
  barrier.Mark(0, 1, {});
  REQUIRE_FALSE(barrier.Push(1, 7));  // lane 0 waits, so it could not mark cut 2
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

}  // namespace
}  // namespace strata::server
