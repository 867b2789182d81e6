#include "worker/bsp/lane_driver.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace strata {
namespace {

using Action = LaneDriver::Action;
using Kind = LaneDriver::Kind;

std::vector<Action> Of(const std::vector<Action>& actions, Kind kind) {
  std::vector<Action> out;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(out),
               [kind](const Action& a) { return a.kind == kind; });
  return out;
}

constexpr ServerIdentity kFirst{1, 1};

// Answers every pull of `actions` as served.
void ServeAll(LaneDriver& driver, const std::vector<Action>& actions) {
  for (const Action& a : Of(actions, Kind::kPull)) driver.OnServed(a.ticket, kFirst);
}

TEST_CASE("a lane pulls from every server, computes once, pushes and pulls the next step",
          "[lane_driver]") {
  LaneDriver driver(2, Step(2));
  driver.Host(0, Step(1));
  auto actions = driver.Next();
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].kind == Kind::kPull);
  CHECK(actions[0].lanes == std::vector<uint32_t>{0});
  driver.OnServed(actions[0].ticket, kFirst);
  CHECK(driver.Next().empty());  // one server alone is not enough
  driver.OnServed(actions[1].ticket, kFirst);
  actions = driver.Next();
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].kind == Kind::kCompute);
  CHECK(driver.Next().empty());  // computing is asked for once
  driver.OnComputed(Step(1), {0});
  actions = driver.Next();
  CHECK(Of(actions, Kind::kPush).size() == 2);
  const auto pulls = Of(actions, Kind::kPull);
  REQUIRE(pulls.size() == 2);
  CHECK(pulls[0].step == Step(2));
}

TEST_CASE("contributions are kept until every server answered the next pull", "[lane_driver]") {
  LaneDriver driver(2, Step(3));
  driver.Host(0, Step(1));
  ServeAll(driver, driver.Next());
  driver.Next();
  driver.OnComputed(Step(1), {0});
  const auto actions = driver.Next();
  for (const Action& a : Of(actions, Kind::kPush)) driver.OnAccepted(a.ticket, kFirst);
  const auto pulls = Of(actions, Kind::kPull);
  driver.OnServed(pulls[0].ticket, kFirst);
  CHECK(Of(driver.Next(), Kind::kDrop).empty());
  driver.OnServed(pulls[1].ticket, kFirst);
  const auto drops = Of(driver.Next(), Kind::kDrop);
  REQUIRE(drops.size() == 1);
  CHECK(drops[0].step == Step(1));
}

TEST_CASE("an OK counts for the incarnation that gave it only", "[lane_driver]") {
  LaneDriver driver(1, Step(3));
  driver.Host(0, Step(1));
  ServeAll(driver, driver.Next());
  driver.Next();
  driver.OnComputed(Step(1), {0});
  auto actions = driver.Next();
  driver.OnAccepted(Of(actions, Kind::kPush)[0].ticket, kFirst);
  CHECK(Of(driver.Next(), Kind::kPush).empty());
  // "Not yet" from a restarted server: it may have lost the push.
  driver.OnNotYet(Of(actions, Kind::kPull)[0].ticket, {2, 1});
  actions = driver.Next();
  const auto pushes = Of(actions, Kind::kPush);
  REQUIRE(pushes.size() == 1);
  CHECK(pushes[0].step == Step(1));
  CHECK(Of(actions, Kind::kPull).size() == 1);
  driver.OnAccepted(pushes[0].ticket, {2, 1});
  CHECK(Of(driver.Next(), Kind::kPush).empty());
  // A new map epoch alone has the same effect.
  driver.OnNotYet(Of(actions, Kind::kPull)[0].ticket, {2, 2});
  CHECK(Of(driver.Next(), Kind::kPush).size() == 1);
}

TEST_CASE("a broken call makes everything kept for that server due again", "[lane_driver]") {
  LaneDriver driver(2, Step(3));
  driver.Host(0, Step(1));
  ServeAll(driver, driver.Next());
  driver.Next();
  driver.OnComputed(Step(1), {0});
  auto actions = driver.Next();
  for (const Action& a : Of(actions, Kind::kPush)) driver.OnAccepted(a.ticket, kFirst);
  const auto pulls = Of(actions, Kind::kPull);
  driver.OnBroken(pulls[1].ticket);
  actions = driver.Next();
  const auto pushes = Of(actions, Kind::kPush);
  REQUIRE(pushes.size() == 1);
  CHECK(pushes[0].server == pulls[1].server);
}

TEST_CASE("a pull that is too old sends the lane to the server's clock", "[lane_driver]") {
  LaneDriver driver(2, Step(9));
  driver.Host(3, Step(4));
  auto actions = driver.Next();
  driver.OnTooOld(actions[0].ticket, kFirst, Step(6));
  actions = driver.Next();
  const auto pulls = Of(actions, Kind::kPull);
  REQUIRE(pulls.size() == 2);
  CHECK(pulls[0].step == Step(6));
  CHECK(driver.step() == Step(6));
}

TEST_CASE("an adopted lane that is one behind is computed first and then joins", "[lane_driver]") {
  LaneDriver driver(1, Step(9));
  driver.Host(0, Step(5));
  const auto first = driver.Next();
  driver.Host(1, Step(4));
  const auto actions = driver.Next();
  const auto pulls = Of(actions, Kind::kPull);
  REQUIRE(pulls.size() == 1);
  CHECK(pulls[0].step == Step(4));
  CHECK(pulls[0].lanes == std::vector<uint32_t>{1});
  driver.OnServed(pulls[0].ticket, kFirst);
  CHECK(Of(driver.Next(), Kind::kCompute).size() == 1);
  driver.OnComputed(Step(4), {1});
  const auto joined = driver.Next();
  CHECK(Of(joined, Kind::kPush).size() == 1);
  const auto both = Of(joined, Kind::kPull);
  REQUIRE(both.size() == 1);
  CHECK(both[0].lanes == std::vector<uint32_t>{0, 1});
  // The answer to the lone lane's pull is stale now.
  driver.OnServed(first[0].ticket, kFirst);
  CHECK(driver.Next().empty());
}

TEST_CASE("the last step's commit is awaited before the end", "[lane_driver]") {
  LaneDriver driver(1, Step(1));
  driver.Host(0, Step(1));
  ServeAll(driver, driver.Next());
  driver.Next();
  driver.OnComputed(Step(1), {0});
  const auto actions = driver.Next();
  const auto pulls = Of(actions, Kind::kPull);
  REQUIRE(pulls.size() == 1);
  CHECK(pulls[0].step == Step(2));
  CHECK(pulls[0].lanes.empty());
  CHECK_FALSE(driver.done());
  driver.OnServed(pulls[0].ticket, kFirst);
  CHECK(Of(driver.Next(), Kind::kDone).size() == 1);
  CHECK(driver.done());
}

TEST_CASE("a lane given away is not pushed any more", "[lane_driver]") {
  LaneDriver driver(1, Step(5));
  driver.Host(0, Step(1));
  driver.Host(1, Step(1));
  ServeAll(driver, driver.Next());
  driver.Next();
  driver.OnComputed(Step(1), {0, 1});
  driver.Unhost(1);
  const auto actions = driver.Next();
  REQUIRE(Of(actions, Kind::kPush).size() == 1);
  CHECK(Of(actions, Kind::kPush)[0].lanes == std::vector<uint32_t>{0});
  CHECK(driver.lanes() == std::vector<uint32_t>{0});
}

TEST_CASE("a push that was put off is not made once its step is committed", "[worker][bsp]") {
  LaneDriver driver(1, Step(10));
  driver.Host(0, Step(1));
  ServeAll(driver, driver.Next());
  driver.Next();
  driver.OnComputed(Step(1), {0});
  const auto actions = driver.Next();
  const auto pushes = Of(actions, Kind::kPush);
  REQUIRE(pushes.size() == 1);
  CHECK(driver.StillWanted(pushes[0].ticket));
  // Another worker's push of the same lane came first: the answer to Pull(2) proves the commit.
  driver.OnServed(Of(actions, Kind::kPull)[0].ticket, {1, 1});
  REQUIRE(Of(driver.Next(), Kind::kDrop).size() == 1);
  CHECK_FALSE(driver.StillWanted(pushes[0].ticket));
  CHECK_FALSE(driver.StillWanted(pushes[0].ticket));
  // Its place is free for the next push.
  driver.OnComputed(Step(2), {0});
  CHECK(Of(driver.Next(), Kind::kPush).size() == 1);
}

TEST_CASE("when a lane leaves, the others ask again before they compute", "[worker][bsp]") {
  LaneDriver driver(2, Step(10));
  driver.Host(0, Step(1));
  driver.Host(1, Step(1));
  const auto first = driver.Next();
  const auto pulls = Of(first, Kind::kPull);
  REQUIRE(pulls.size() == 2);
  driver.OnServed(pulls[0].ticket, {1, 1});
  driver.Unhost(1);
  CHECK_FALSE(driver.StillWanted(pulls[1].ticket));
  driver.OnServed(pulls[1].ticket, {1, 1});  // for the keys of both lanes
  const auto again = driver.Next();
  CHECK(Of(again, Kind::kCompute).empty());
  REQUIRE(Of(again, Kind::kPull).size() == 2);
  CHECK(Of(again, Kind::kPull)[0].lanes == std::vector<uint32_t>{0});
  CHECK(driver.StillWanted(Of(again, Kind::kPull)[0].ticket));
}

}  // namespace
}  // namespace strata
