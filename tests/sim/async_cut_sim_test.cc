// Promise P5 for asynchronous jobs, and P2: a checkpoint's cut holds each window before it exactly
// once on every shard, and nothing after it, whatever the network and the processes do.
#include "tests/sim/async_cut_sim.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/seed.h"
#include "tests/sim/scratch.h"
#include "tests/skip.h"

namespace strata::sim {
namespace {

AsyncCutOptions Shape(uint64_t seed, const std::string& folder) {
  AsyncCutOptions o;
  o.seed = seed;
  o.shards = 1 + static_cast<uint32_t>(seed % 3);
  o.lanes = 1 + static_cast<uint32_t>(seed / 3 % 3);
  o.pipeline = 1 + seed / 9 % 3;
  o.hbm = seed % 7 < 2;
  if (o.hbm) o.tasks_per_lane = 12;  // with 2 lanes or 3 more rows than the tier has room for, 64
  o.folder = folder;
  return o;
}

TEST_CASE("cuts of a network that delays and reorders", "[sim][async][seeds]") {
  const Scratch scratch;
  uint64_t cuts = 0, ahead = 0, hbm_updated = 0, hbm_evicted = 0;
  for (const uint64_t seed : Seeds("async_cuts", 0, 200)) {
    const AsyncCutResult r = RunAsyncCuts(Shape(seed, scratch.path()));
    INFO("seed " << seed << " after " << r.events << " events");
    REQUIRE(r.error == "");
    cuts += r.cuts;
    ahead += r.ahead;
    hbm_updated += r.hbm_updated;
    hbm_evicted += r.hbm_evicted;
  }
  if (SeedsAreGiven()) return;
  CHECK(hbm_updated > 500);
  CHECK(hbm_evicted > 500);
  CHECK(cuts > 300);
  CHECK(ahead > 300);
}

TEST_CASE("cuts with messages lost and repeated, and shards and lanes killed",
          "[sim][async][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("async_faults", 1000, LongRun() ? 20000 : 400);
  const Scratch scratch;
  uint64_t kills = 0, aborted = 0, cuts = 0, hbm_evicted = 0;
  for (const uint64_t seed : seeds) {
    AsyncCutOptions o = Shape(seed, scratch.path());
    o.drop = 60;
    o.duplicate = 60;
    o.kill_shard = 8;
    o.kill_lane = 8;
    o.max_kills = 6;
    const AsyncCutResult r = RunAsyncCuts(o);
    INFO("seed " << seed << " after " << r.events << " events, " << r.kills << " kills");
    REQUIRE(r.error == "");
    kills += r.kills;
    aborted += r.aborted;
    cuts += r.cuts;
    hbm_evicted += r.hbm_evicted;
  }
  if (SeedsAreGiven()) return;
  CHECK(hbm_evicted > seeds.size());
  CHECK(kills > seeds.size() * 3);
  CHECK(aborted > seeds.size() / 2);
  CHECK(cuts > seeds.size());
}

TEST_CASE("cuts that fail, shards that lose patience, and a scheduler that says nothing",
          "[sim][async][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("async_given_up", 5000, LongRun() ? 20000 : 300);
  const Scratch scratch;
  uint64_t aborted = 0, refused = 0, cuts = 0;
  for (const uint64_t seed : seeds) {
    AsyncCutOptions o = Shape(seed, scratch.path());
    o.drop = 30;
    o.duplicate = 30;
    o.kill_shard = o.kill_lane = 3;
    o.max_kills = 3;
    o.fail_cut = 200;
    o.stop_scheduler = 4;
    o.pass_time = 20;
    const AsyncCutResult r = RunAsyncCuts(o);
    INFO("seed " << seed << " after " << r.events << " events, " << r.aborted << " given up");
    REQUIRE(r.error == "");
    aborted += r.aborted;
    refused += r.refused;
    cuts += r.cuts;
  }
  if (SeedsAreGiven()) return;
  CHECK(refused > seeds.size() / 4);
  CHECK(aborted > refused + seeds.size() / 4);
  CHECK(cuts > seeds.size());
}

// Of a job that is trained the last cut is all that is missing: whatever stands in its way and goes
// again, it is tried anew, and holds everything.
TEST_CASE("the last cut is refused, fails, and is taken in the end", "[sim][async][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("async_last", 9000, LongRun() ? 10000 : 250);
  const Scratch scratch;
  uint64_t tries = 0, aborted = 0, refused = 0, most = 0;
  for (const uint64_t seed : seeds) {
    AsyncCutOptions o = Shape(seed, scratch.path());
    o.hbm = false;
    o.tasks_per_lane = 2;
    o.last_faults = 12;
    if (seed % 2 == 0) {
      o.drop = o.duplicate = 30;
      o.fail_cut = 100;
      o.stop_scheduler = 2;
      o.pass_time = 10;
      o.kill_shard = o.kill_lane = 2;
      o.max_kills = 2;
    }
    const AsyncCutResult r = RunAsyncCuts(o);
    INFO("seed " << seed << " after " << r.events << " events, " << r.tries_of_last << " tries");
    REQUIRE(r.error == "");
    tries += r.tries_of_last;
    aborted += r.aborted;
    refused += r.refused;
    most = std::max(most, r.tries_of_last);
  }
  if (SeedsAreGiven()) return;
  CHECK(tries > 5 * seeds.size());
  CHECK(most >= 12);
  CHECK(aborted > 4 * seeds.size());
  CHECK(refused > seeds.size() / 4);
}

TEST_CASE("cuts that cannot exist are named all the time, and hold up nothing",
          "[sim][async][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("async_impossible", 7000, LongRun() ? 10000 : 150);
  const Scratch scratch;
  uint64_t cuts = 0, impossible = 0;
  for (const uint64_t seed : seeds) {
    AsyncCutOptions o = Shape(seed, scratch.path());
    o.impossible = 100;
    o.drop = o.duplicate = 30;
    o.kill_lane = 4;
    o.kill_shard = seed % 2 == 0 ? 4 : 0;
    o.max_kills = 3;
    const AsyncCutResult r = RunAsyncCuts(o);
    INFO("seed " << seed << " after " << r.events << " events, " << r.kills << " kills");
    REQUIRE(r.error == "");
    cuts += r.cuts;
    impossible += r.impossible;
  }
  if (SeedsAreGiven()) return;
  CHECK(cuts > seeds.size());
  CHECK(impossible > 10 * seeds.size());
}

}  // namespace
}  // namespace strata::sim
