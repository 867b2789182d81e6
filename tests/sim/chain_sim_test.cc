#include "tests/sim/chain_sim.h"

#include <catch2/catch.hpp>

#include "tests/seed.h"

namespace strata::testing {
namespace {

TEST_CASE("what a chain has committed every full member has, whatever is lost", "[sim][seeds]") {
  uint64_t commits = 0, removals = 0, joins = 0, closed = 0, late = 0;
  for (const uint64_t seed : Seeds("chain_sim", 1, 4000)) {
    for (const uint32_t replicas : {2u, 3u}) {
      ChainSim sim(seed, replicas);
      const std::string broke = sim.Run(1500);
      INFO("seed " << seed << ", " << replicas << " copies: " << broke);
      REQUIRE(broke.empty());
      commits += sim.commits();
      removals += sim.removals();
      joins += sim.joins();
      closed += sim.closed();
      late += sim.late();
    }
  }
  if (SeedsAreGiven()) return;
  CHECK(commits > 100000);
  CHECK(removals > 4000);
  CHECK(joins > 2000);
  CHECK(closed > 4000);
  CHECK(late > 100);
}

}  // namespace
}  // namespace strata::testing
