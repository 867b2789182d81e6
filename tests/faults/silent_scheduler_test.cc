// The scheduler's own silence is not the nodes' (promise P6): stopped for longer than their leases,
// with others there to take their places, it evicts nobody. What else can befall it:
// tests/scheduler/silence_test.cc.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// So long that a busy machine misses nobody who is there.
constexpr absl::Duration kLease = absl::Seconds(3);

// What was said of nodes that they are away, of whatever job; how often the scheduler noticed that
// it was.
struct Told {
  std::string evictions;
  int stalls = 0;
};
Told Events(ProcessCluster& cluster) {
  Told told;
  const auto events = cluster.scheduler().GetEvents({}, absl::Seconds(30));
  REQUIRE(events.ok());
  for (const Event& e : events->events()) {
    told.stalls += e.reason() == "SchedulerStalled";
    for (const char* reason : {"NodeLapsed", "NodeFenced", "ServerLost", "WorkerLost", "RolledBack",
                               "WorkerRestarted", "WorkerJoined"}) {
      if (e.reason() == reason) told.evictions += e.reason() + ": " + e.message() + "\n";
    }
  }
  return told;
}

TEST_CASE("a scheduler that is stopped for four leases evicts nobody and rolls nothing back",
          "[faults][p6]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  ProcessCluster cluster({.servers = 2,
                          .workers = 4,
                          .folder = folder->path() + "/cluster",
                          .lease_ms = static_cast<int>(absl::ToInt64Milliseconds(kLease))});
  // A job of each level, beside each other; a server and a worker to spare.
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(1'000'000);
  job.mutable_spec()->mutable_replicas()->set_servers(1);
  job.mutable_spec()->mutable_replicas()->set_workers(1);
  std::vector<uint64_t> ids;
  for (const char* level : {"memory", "logged", "synced"}) {
    job.mutable_metadata()->set_name(level);
    job.mutable_spec()->mutable_storage()->set_durability(level);
    ids.push_back(cluster.Submit(job));
  }
  for (const uint64_t id : ids) cluster.AwaitStep(id, 20);
  const int stalls = Events(cluster).stalls;
  const absl::Time until = absl::Now() + 4 * kLease;
  cluster.process("scheduler").Signal(SIGSTOP);
  AwaitThat("four leases", [&] { return absl::Now() > until; });
  cluster.process("scheduler").Signal(SIGCONT);
  const absl::Time after = absl::Now() + 2 * kLease;
  for (const uint64_t id : ids) cluster.AwaitStep(id, cluster.Status(id).step() + 20);
  AwaitThat("two leases", [&] { return absl::Now() > after; });
  const Told told = Events(cluster);
  CHECK(told.evictions.empty());
  CHECK(told.stalls > stalls);
  for (const uint64_t id : ids) {
    const JobStatus now = cluster.Status(id);
    INFO(now.name() << Conditions(now));
    CHECK(now.state() == RUNNING);
    CHECK(now.generation() == 1);
    CHECK(now.rollbacks() == 0);
  }
}

}  // namespace
}  // namespace strata::testing
