#include "scheduler/nodes/troubles.h"

#include <catch2/catch.hpp>

namespace strata::scheduler {
namespace {

using Standing = google::protobuf::RepeatedPtrField<StandingTrouble>;
using Reported = google::protobuf::RepeatedPtrField<Trouble>;

Reported Only(const std::string& reason, const std::string& message, int64_t since) {
  Reported reported;
  Trouble* t = reported.Add();
  t->set_reason(reason);
  t->set_message(message);
  t->set_since_unix_ms(since);
  return reported;
}

TEST_CASE("the beginning and the end of a trouble are news, each once", "[troubles]") {
  Standing standing;
  const Reported none, full = Only("DiskFull", "/log is full", 61000);
  CHECK(FollowTroubles("server-0", none, 60000, standing).empty());
  auto news = FollowTroubles("server-0", full, 62000, standing);
  REQUIRE(news.size() == 1);
  CHECK(news[0].reason == "DiskFull");
  CHECK(news[0].message == "server-0: /log is full (since 00:01:01 UTC)");
  CHECK(FollowTroubles("server-0", full, 63000, standing).empty());
  // Another text of the same trouble.
  CHECK(FollowTroubles("server-0", Only("DiskFull", "2 shards", 61000), 63000, standing).empty());
  // Another node's report says nothing of this one's.
  CHECK(FollowTroubles("server-1", none, 64000, standing).empty());
  CHECK(FollowTroubles("server-1", full, 64000, standing).size() == 1);
  CHECK(standing.size() == 2);
  news = FollowTroubles("server-0", none, 73000, standing);
  REQUIRE(news.size() == 1);
  CHECK(news[0].reason == kTroubleOver);
  CHECK(news[0].message == "server-0: DiskFull is over after 11s");
  CHECK(FollowTroubles("server-0", none, 74000, standing).empty());
  CHECK(standing.size() == 1);
}

TEST_CASE("how long a trouble stood is counted by one clock, whatever a node's shows",
          "[troubles]") {
  for (const int64_t off : {-3600000, 3600000}) {
    INFO(off);
    Standing standing;
    FollowTroubles("a", Only("DiskFull", "x", 10000000 + off), 10000500, standing);
    const auto news = FollowTroubles("a", {}, 10005500, standing);
    REQUIRE(news.size() == 1);
    CHECK(news[0].message == "a: DiskFull is over after 5s");
  }
}

TEST_CASE("a trouble that turns into another ends and begins", "[troubles]") {
  Standing standing;
  FollowTroubles("a", Only("DiskFull", "x", 1000), 1000, standing);
  const auto news = FollowTroubles("a", Only("DiskFailing", "y", 2000), 2000, standing);
  REQUIRE(news.size() == 2);
  CHECK(news[0].reason == kTroubleOver);
  CHECK(news[1].reason == "DiskFailing");
}

TEST_CASE("what a node says of its input does not pass, and is told once", "[troubles]") {
  for (const char* reason : {kLinesAreBad, kHeldOutLinesAreBad}) {
    Standing standing;
    const Reported bad = Only(reason, "the first bad line is a:1:1: x", 1000);
    CHECK(FollowTroubles("a", bad, 1000, standing).size() == 1);
    CHECK(FollowTroubles("a", {}, 2000, standing).empty());  // the next generation begins
    CHECK(FollowTroubles("a", bad, 3000, standing).empty());
    CHECK(EndTroubles(4000, standing).empty());
    CHECK(standing.empty());
  }
}

TEST_CASE("a node that has left is forgotten without a word", "[troubles]") {
  Standing standing;
  FollowTroubles("a", Only("DiskFull", "x", 1000), 1000, standing);
  FollowTroubles("b", Only("DiskFull", "x", 1000), 1000, standing);
  ForgetTroubles("a", standing);
  REQUIRE(standing.size() == 1);
  CHECK(standing[0].node() == "b");
  CHECK(FollowTroubles("a", {}, 2000, standing).empty());
}

TEST_CASE("when the job is done all troubles are over", "[troubles]") {
  google::protobuf::RepeatedPtrField<StandingTrouble> standing;
  for (const char* node : {"server-0", "worker-1"}) {
    StandingTrouble* t = standing.Add();
    t->set_node(node);
    t->set_reason("DiskFull");
    t->set_since_unix_ms(1000);
  }
  const std::vector<TroubleNews> news = EndTroubles(3500, standing);
  REQUIRE(news.size() == 2);
  CHECK(news[0].reason == kTroubleOver);
  CHECK(news[0].message == "server-0: DiskFull is over after 2.5s");
  CHECK(news[1].message == "worker-1: DiskFull is over after 2.5s");
  CHECK(standing.empty());
  CHECK(EndTroubles(4000, standing).empty());
}

TEST_CASE("a flood of troubles is cut off", "[troubles]") {
  Standing standing;
  Reported many;
  for (int i = 0; i < 1000; ++i) many.Add()->set_reason("R" + std::to_string(i));
  CHECK(FollowTroubles("a", many, 0, standing).size() == kMaxTroubles);
  CHECK(standing.size() == kMaxTroubles);
}

}  // namespace
}  // namespace strata::scheduler
