#include "server/protocol/chain_handover.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

namespace strata::server {
namespace {

TEST_CASE("a copy goes by a configuration when its last shard does", "[chain]") {
  ChainHandover handover(2);
  const auto first = handover.Told(5);
  REQUIRE(first);
  CHECK_FALSE(handover.Handed(1, *first));
  CHECK(handover.Handed(0, *first));
  // Of one epoch, and of a later one: a shard may be two ahead.
  const auto second = handover.Told(5), third = handover.Told(7);
  REQUIRE((second && third));
  CHECK_FALSE(handover.Told(6));
  CHECK_FALSE(handover.Handed(0, *second));
  CHECK_FALSE(handover.Handed(0, *third));
  CHECK(handover.Handed(1, *second));
  CHECK(handover.Handed(1, *third));
}

// Every order in which three shards may run what they were handed.
void RunInEachOrder(const ChainHandover& handover, const std::vector<uint64_t>& at,
                    uint64_t gone_by) {
  constexpr uint64_t kLast = 3;
  for (size_t shard = 0; shard < at.size(); ++shard) {
    if (at[shard] == kLast) continue;
    ChainHandover next = handover;
    std::vector<uint64_t> then = at;
    ++then[shard];
    const bool all = next.Handed(shard, then[shard]);
    // It is the very next one, and everybody has it.
    for (const uint64_t number : then) {
      if (all) REQUIRE(number > gone_by);
    }
    RunInEachOrder(next, then, gone_by + (all ? 1 : 0));
  }
  const bool done = std::all_of(at.begin(), at.end(), [](uint64_t n) { return n == kLast; });
  if (done) REQUIRE(gone_by == kLast);
}

TEST_CASE("in whatever order shards run, a copy goes by each configuration in order", "[chain]") {
  ChainHandover handover(3);
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) REQUIRE(handover.Told(epoch) == epoch);
  RunInEachOrder(handover, {0, 0, 0}, 0);
}

TEST_CASE("a shard takes what was sent under the epoch that it goes by", "[chain]") {
  CHECK(ChainHandover::Takes(4, 4));
  CHECK_FALSE(ChainHandover::Takes(5, 4));
  CHECK_FALSE(ChainHandover::Takes(4, 5));
}

}  // namespace
}  // namespace strata::server
