// The scheduler's own silence is not the nodes' (promise P6): stopped for longer than their leases,
// with others there to take their places, it evicts nobody. What else can befall it:
// tests/scheduler/silence_test.cc.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

constexpr absl::Duration kLease = absl::Milliseconds(500);

// What was said of nodes that they are away, of whatever job; how often the scheduler noticed that
// it was.
struct Told {
  std::string evictions;
  int stalls = 0;
};
Told Events(ProcessCluster& cluster) {
  Told told;
  const auto events = cluster.scheduler().GetEvents({}, absl::Seconds(5));
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
                          .workers = 2,
                          .folder = folder->path() + "/cluster",
                          .lease_ms = static_cast<int>(absl::ToInt64Milliseconds(kLease))});
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(100'000);
  job.mutable_spec()->mutable_replicas()->set_servers(1);  // one to spare
  job.mutable_spec()->mutable_replicas()->set_workers(1);  // likewise
  for (const char* level : {"memory", "logged", "synced"}) {
    INFO(level);
    job.mutable_spec()->mutable_storage()->set_durability(level);
    const uint64_t id = cluster.Submit(job);
    const int stalls = Events(cluster).stalls;
    cluster.AwaitStep(id, 20);
    const absl::Time until = absl::Now() + 4 * kLease;
    cluster.process("scheduler").Signal(SIGSTOP);
    AwaitThat("four leases", [&] { return absl::Now() > until; });
    cluster.process("scheduler").Signal(SIGCONT);
    const absl::Time after = absl::Now() + 2 * kLease;
    const uint64_t step = cluster.Status(id).step();
    AwaitThat("two leases and some steps",
              [&] { return absl::Now() > after && cluster.Status(id).step() > step + 20; });
    const JobStatus now = cluster.Status(id);
    const Told told = Events(cluster);
    INFO(Conditions(now));
    CHECK(told.evictions.empty());
    CHECK(told.stalls > stalls);
    CHECK(now.state() == RUNNING);
    CHECK(now.generation() == 1);
    CHECK(now.rollbacks() == 0);
    JobRef ref;
    ref.set_job(id);
    REQUIRE(cluster.scheduler().CancelJob(ref, absl::Seconds(5)).ok());
  }
}

}  // namespace
}  // namespace strata::testing
