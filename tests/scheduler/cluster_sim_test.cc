// ClusterState under everything that can happen to it (tests/scheduler/cluster_sim.h). A failing
// seed is printed and replays exactly.
#include "tests/scheduler/cluster_sim.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/seed.h"
#include "tests/skip.h"

namespace strata::scheduler {
namespace {

SimSetup Any(uint64_t seed) {
  SimSetup s;
  s.bsp = seed % 2 == 0;
  s.memory = seed % 5 == 0;
  s.servers = 1 + seed % 3;
  s.workers = 1 + (seed / 3) % 4;
  s.every_steps = (seed / 7) % 3 == 0 ? 0 : 1 + seed % 6;
  if (seed % 11 == 0) s.directory.clear();
  return s;
}

// Whether the job succeeded. It may fail: after ten roll-backs without a step forward, without room
// for its last checkpoint three times, or with all of its checkpoints damaged.
bool EndsAsItMay(ClusterSim& sim) {
  if (sim.job().state().state() == FAILED) {
    const std::string reason = sim.job().state().conditions().rbegin()->reason();
    REQUIRE((reason == "TooManyRollBacks" || reason == "CheckpointFailed" ||
             reason == "CheckpointDamaged"));
    return false;
  }
  sim.CheckResult();
  sim.CheckClosed();
  return true;
}

TEST_CASE("a job runs to its end without faults", "[scheduler][sim]") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    ClusterSim sim(seed, Any(seed));
    sim.Run(0, 0);
    sim.CheckResult();
    sim.CheckClosed();
    REQUIRE(sim.job().state().rollbacks() == 0);
  }
}

TEST_CASE("a scheduler that stops and refuses evicts nobody who is alive",
          "[scheduler][sim][seeds]") {
  for (const uint64_t seed : Seeds("cluster_deaf", 0, LongRun() ? 5000 : 200)) {
    INFO("seed " << seed);
    ClusterSim sim(seed, Any(seed));
    sim.RunDeaf(20);
    sim.CheckResult();
    sim.CheckClosed();
  }
}

TEST_CASE("a job survives kills, lost messages and restarts of the scheduler",
          "[scheduler][sim][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("cluster_faults", 0, LongRun() ? 20000 : 550);
  uint64_t succeeded = 0, rollbacks = 0;
  for (const uint64_t seed : seeds) {
    INFO("seed " << seed);
    ClusterSim sim(seed, Any(seed));
    sim.Run(600, 12);
    rollbacks += sim.job().state().rollbacks();
    succeeded += EndsAsItMay(sim);
  }
  if (SeedsAreGiven()) return;
  REQUIRE(succeeded > seeds.size() * 95 / 100);
  REQUIRE(rollbacks > seeds.size() / 10);  // the faults do bite
}

// Nodes that the scheduler takes for dead work on, servers among them.
TEST_CASE("lanes go to another when no server takes pushes of who had them, whoever is cut off",
          "[scheduler][sim][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("cluster_cut_off", 0, LongRun() ? 5000 : 150);
  uint64_t succeeded = 0;
  for (const uint64_t seed : seeds) {
    INFO("seed " << seed);
    SimSetup setup = Any(seed);
    setup.cut_off = true;
    ClusterSim sim(seed, setup);
    sim.Run(1500, 60);
    succeeded += EndsAsItMay(sim);
  }
  if (!SeedsAreGiven()) REQUIRE(succeeded > seeds.size() * 9 / 10);
}

// Faults come more seldom than above, where most jobs end in peace.
TEST_CASE("a job ends whole in the midst of faults", "[scheduler][sim][seeds]") {
  const std::vector<uint64_t> seeds = Seeds("cluster_ends", 0, LongRun() ? 5000 : 50);
  uint64_t succeeded = 0;
  for (const uint64_t seed : seeds) {
    INFO("seed " << seed);
    ClusterSim sim(seed, Any(seed));
    sim.Run(20000, 60);
    succeeded += EndsAsItMay(sim);
  }
  if (!SeedsAreGiven()) REQUIRE(succeeded > seeds.size() * 95 / 100);
}

}  // namespace
}  // namespace strata::scheduler
