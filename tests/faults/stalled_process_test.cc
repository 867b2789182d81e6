// Processes that stand still for longer than their lease, and come back as if nothing had happened
// (promise P8).
#include <catch2/catch.hpp>
#include <csignal>
#include <string>

#include "tests/e2e/process_cluster.h"
#include "tests/e2e/small_job.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

TEST_CASE("a worker or server that stands still beyond its lease does not change the model",
          "[faults][p8]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(100);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  EmbeddedOptions embedded;
  embedded.job = job;
  auto reference = RunEmbedded(embedded);
  REQUIRE(reference.ok());
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .lease_ms = 500});
  const auto check = [&](uint64_t id) {
    const JobStatus end = cluster.AwaitEnd(id);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.model_hash() == reference->model_hash());
    CHECK(end.result().auc() == reference->result().auc());
    CHECK(end.rollbacks() == 0);
  };
  for (const char* worker : {"worker-0", "worker-1"}) {
    INFO(worker);
    const uint64_t id = cluster.Submit(job);
    cluster.AwaitStep(id, 100);
    cluster.process(worker).Signal(SIGSTOP);
    const JobStatus lost =
        cluster.Await(id, [](const JobStatus& s) { return HasCondition(s, "WorkerLost"); });
    // The other does its lanes meanwhile; then it goes on where it stood, with lanes of others.
    cluster.AwaitStep(id, lost.step() + 50);
    cluster.process(worker).Signal(SIGCONT);
    check(id);
    cluster.AwaitRegistered();
  }
  {
    INFO("server-1");
    const uint64_t id = cluster.Submit(job);
    cluster.AwaitStep(id, 100);
    cluster.process("server-1").Signal(SIGSTOP);
    const JobStatus lost =
        cluster.Await(id, [](const JobStatus& s) { return HasCondition(s, "ServerLost"); });
    // Where it was, and what to do.
    CHECK(Conditions(lost).find("server server-1 at " + cluster.ServerAddress("server-1") +
                                " is silent since ") != std::string::npos);
    CHECK(Conditions(lost).find("Start it again with the --name and --dir") != std::string::npos);
    cluster.process("server-1").Signal(SIGCONT);
    check(id);
  }
}

}  // namespace
}  // namespace strata::testing
