#include "tests/sim/bsp_sim.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/seed.h"
#include "tests/sim/scratch.h"
#include "tests/skip.h"

namespace strata::sim {
namespace {

BspResult MustHold(const BspOptions& o) {
  const BspResult r = RunBsp(o);
  INFO("seed=" << o.seed << " servers=" << o.servers << " shards=" << o.shards
               << " workers=" << o.workers << " lanes=" << o.lanes << " kill_at=" << o.kill_at
               << " hbm=" << o.hbm << " victim=" << o.victim << " in_commit=" << o.in_commit
               << " events=" << r.events << " kills=" << r.kills);
  REQUIRE(r.error == "");
  return r;
}

TEST_CASE("one process dies at every event of a run", "[sim]") {
  uint64_t preimages = 0;
  for (const uint32_t servers : {2u, 3u}) {
    for (uint64_t seed = 0; seed < 2; ++seed) {
      BspOptions o;
      o.seed = seed;
      o.servers = servers;
      const uint64_t events = MustHold(o).events;
      for (o.kill_at = 1; o.kill_at <= events; ++o.kill_at) {
        for (o.victim = 0; o.victim < o.servers + o.workers; ++o.victim) {
          for (const bool in_commit : {false, true}) {
            o.in_commit = in_commit;
            preimages += MustHold(o).served_preimages;
          }
        }
      }
    }
  }
  REQUIRE(preimages > 0);  // a lost lane was recomputed from what the step before had
}

TEST_CASE("random faults, many seeds", "[sim][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("bsp_faults", 0, LongRun() ? 50000 : 1500);
  const Scratch scratch;
  uint64_t kills = 0, too_old = 0, preimages = 0, named = 0, stale = 0, images = 0;
  for (const uint64_t seed : seeds) {
    BspOptions o;
    o.seed = seed;
    o.servers = 2 + seed % 2;
    o.shards = 1 + seed / 2 % 3;
    o.workers = 1 + seed % 3;
    o.lanes = 2 + seed % 3;
    o.steps = 3 + seed % 3;
    o.drop = seed % 5 * 30;
    o.duplicate = seed % 4 * 60;
    o.kill_server = 15;
    o.kill_worker = 15;
    o.max_kills = 6;
    o.life_cycle = seed % 4 == 3;
    o.hbm = seed % 7 < 2;
    if (seed % 5 == 4) {
      o.folder = scratch.path() + "/bsp";
      o.image = 20;
    }
    const BspResult r = MustHold(o);
    kills += r.kills;
    too_old += r.too_old;
    preimages += r.served_preimages;
    named += r.named_tickets;
    stale += r.stale_tickets;
    images += r.recovered_images;
  }
  if (SeedsAreGiven()) return;
  REQUIRE(named > seeds.size());
  REQUIRE(stale > 0);
  REQUIRE(kills > seeds.size());
  REQUIRE(preimages > 0);
  REQUIRE(too_old > 0);
  REQUIRE(images > 0);
}

}  // namespace
}  // namespace strata::sim
