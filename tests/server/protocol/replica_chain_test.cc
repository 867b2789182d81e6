#include "server/protocol/replica_chain.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

namespace strata::server {
namespace {

using Ends = std::vector<std::optional<NextEnd>>;

ChainConfiguration Head(uint64_t epoch, uint32_t members, const std::string& next) {
  ChainConfiguration c;
  c.epoch = epoch;
  c.members = members;
  c.full = members;
  c.next = next;
  return c;
}

NextEnd At(LogEnd end, LogEnd committed) { return {false, end, committed, 0, 0}; }

TEST_CASE("an entry fits behind the end of the log alone", "[chain]") {
  CHECK(FitOfStep({4, 1}, 5) == EntryFit::kNext);
  CHECK(FitOfStep({4, 1}, 4) == EntryFit::kHave);
  CHECK(FitOfStep({4, 1}, 6) == EntryFit::kGap);
  CHECK(FitOfCut({4, 1}, {4, 2}) == EntryFit::kNext);
  CHECK(FitOfCut({4, 1}, {4, 1}) == EntryFit::kHave);
  CHECK(FitOfCut({4, 1}, {3, 1}) == EntryFit::kHave);
  CHECK(FitOfCut({4, 1}, {5, 2}) == EntryFit::kGap);
}

TEST_CASE("a head asks first, sends what is missing, and commits what the tail has", "[chain]") {
  ReplicaChain chain({{3, 0}}, {{2, 0}});
  CHECK_FALSE(chain.Next(true));  // nobody said who is after it
  REQUIRE(chain.Configure(Head(7, 2, "b")));
  CHECK(chain.committed(0) == LogEnd{2, 0});  // R10
  auto ask = chain.Next(true);
  REQUIRE(ask);
  CHECK(ask->parts.empty());
  CHECK(ask->epoch == 7);
  CHECK_FALSE(chain.Next(true));
  chain.Replied(ask->id, 7, Ends{At({2, 0}, {2, 0})});
  auto send = chain.Next(true);
  REQUIRE(send);
  REQUIRE(send->parts.size() == 1);
  CHECK(send->parts[0].after == LogEnd{2, 0});
  chain.Appended(0, {4, 0});  // goes with the next call
  CHECK_FALSE(chain.Next(true));
  chain.Replied(send->id, 7, Ends{At({3, 0}, {3, 0})});
  CHECK(chain.committed(0) == LogEnd{3, 0});
  send = chain.Next(true);
  REQUIRE(send);
  CHECK(send->parts[0].after == LogEnd{3, 0});
  chain.Replied(send->id, 7, Ends{At({4, 0}, {4, 0})});
  CHECK(chain.committed(0) == LogEnd{4, 0});
  CHECK_FALSE(chain.Next(true));
}

TEST_CASE("a middle that has an entry is no tail: the head waits for what that one tells",
          "[chain]") {
  ReplicaChain chain({{1, 0}}, {{0, 0}});
  chain.Configure(Head(1, 3, "b"));
  auto call = chain.Next(true);
  chain.Replied(call->id, 1, Ends{At({1, 0}, {0, 0})});
  CHECK(chain.committed(0) == LogEnd{0, 0});
  call = chain.Next(true);
  REQUIRE(call);
  CHECK(call->parts.empty());
  CHECK(call->wait);
  CHECK_FALSE(chain.Next(true));  // one question at a time
  chain.Replied(call->id, 1, Ends{At({1, 0}, {1, 0})});
  CHECK(chain.committed(0) == LogEnd{1, 0});
}

TEST_CASE("a broken call, and a change, have all asked anew", "[chain]") {
  ReplicaChain chain({{5, 0}}, {{5, 0}});
  chain.Configure(Head(1, 2, "b"));
  auto ask = chain.Next(true);
  chain.Replied(ask->id, 1, Ends{At({4, 0}, {4, 0})});
  auto send = chain.Next(true);
  chain.Broken(send->id);
  ask = chain.Next(true);
  REQUIRE(ask);
  CHECK(ask->parts.empty());
  chain.Replied(send->id, 1, Ends{At({5, 0}, {5, 0})});  // of before: not looked at
  CHECK_FALSE(chain.next(0));
  chain.Replied(ask->id, 1, Ends{At({5, 0}, {5, 0})});
  CHECK(chain.next(0)->end == LogEnd{5, 0});
  // The middle is gone: the one after it may lack what died with it.
  chain.Configure(Head(2, 2, "c"));
  CHECK_FALSE(chain.next(0));
  ask = chain.Next(true);
  REQUIRE(ask);
  chain.Replied(ask->id, 2, Ends{At({3, 0}, {3, 0})});
  send = chain.Next(true);
  CHECK(send->parts[0].after == LogEnd{3, 0});
}

TEST_CASE("an answer of another epoch counts for nothing", "[chain]") {
  ReplicaChain chain({{1, 0}}, {{0, 0}});
  chain.Configure(Head(4, 2, "b"));
  const auto ask = chain.Next(true);
  chain.Replied(ask->id, 3, Ends{At({1, 0}, {1, 0})});
  CHECK(chain.committed(0) == LogEnd{0, 0});
  CHECK(chain.Next(true));  // it is asked again
}

TEST_CASE("who is alone commits what it appended; too few full copies commit nothing", "[chain]") {
  ReplicaChain chain({{1, 0}}, {{0, 0}});
  ChainConfiguration alone = Head(1, 1, "");
  alone.min_replicas = 2;
  chain.Configure(alone);
  chain.Appended(0, {2, 0});
  CHECK(chain.committed(0) == LogEnd{0, 0});
  alone.min_replicas = 1;
  chain.Configure(alone);
  CHECK(chain.committed(0) == LogEnd{2, 0});
  chain.Appended(0, {3, 0});
  CHECK(chain.committed(0) == LogEnd{3, 0});
  // Somebody is copied to: no commit waits for that.
  ChainConfiguration joining = Head(2, 1, "c");
  chain.Configure(joining);
  chain.Appended(0, {4, 0});
  CHECK(chain.committed(0) == LogEnd{4, 0});
  CHECK_FALSE(chain.Configure(alone));  // older
}

TEST_CASE("one that has nothing gets an image, then what came after it", "[chain]") {
  ReplicaChain chain({{9, 0}}, {{9, 0}});
  chain.Configure(Head(2, 1, "c"));
  auto ask = chain.Next(false);
  chain.Replied(ask->id, 2, Ends{NextEnd{true, {}, {}, 0, 0}});
  CHECK_FALSE(chain.Next(false));  // not now: so many bytes a second
  auto send = chain.Next(true);
  REQUIRE(send);
  CHECK(send->parts[0].image);
  chain.Replied(send->id, 2, Ends{NextEnd{true, {}, {}, 77, 100}});
  send = chain.Next(true);
  CHECK(send->parts[0].next.image == 77);
  CHECK(send->parts[0].next.image_bytes == 100);
  CHECK_FALSE(chain.NextHasAll());
  chain.Replied(send->id, 2, Ends{At({8, 0}, {8, 0})});
  send = chain.Next(true);
  CHECK_FALSE(send->parts[0].image);
  CHECK(send->parts[0].after == LogEnd{8, 0});
  CHECK_FALSE(chain.NextHasAll());
  chain.Appended(0, {10, 0});
  chain.Replied(send->id, 2, Ends{At({9, 0}, {9, 0})});
  CHECK(chain.NextHasAll());  // what was there when the configuration came
}

TEST_CASE("a copy that has more than the one before it says that this log lost its end",
          "[chain]") {
  ReplicaChain chain({{3, 0}}, {{2, 0}});
  chain.Configure(Head(1, 2, "b"));
  const auto ask = chain.Next(true);
  chain.Replied(ask->id, 1, Ends{At({4, 0}, {4, 0})});
  CHECK(chain.lost_end());
  CHECK_FALSE(chain.Next(true));
}

}  // namespace
}  // namespace strata::server
