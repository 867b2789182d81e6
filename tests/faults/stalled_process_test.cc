// Processes that stand still for longer than their lease, and come back as if nothing had happened
// (promise P8).
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
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
  const JobStatus reference = Train(job);
  ProcessCluster cluster({.folder = folder->path() + "/cluster", .lease_ms = 500});
  const auto check = [&](uint64_t id) {
    const JobStatus end = cluster.AwaitEnd(id);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.model_hash() == reference.model_hash());
    CHECK(end.result().auc() == reference.result().auc());
    CHECK(end.rollbacks() == 0);
  };
  // A commit of each of four shards is a step.
  const std::string midst = "server.commit.append=stop@400*1";
  for (const char* worker : {"worker-0", "worker-1"}) {
    INFO(worker);
    const uint64_t id = cluster.SubmitAndStop(job, "server-1", midst);
    cluster.process(worker).Signal(SIGSTOP);
    cluster.process("server-1").Signal(SIGCONT);
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
    const uint64_t id = cluster.SubmitAndStop(job, "server-1", midst);
    // Where it was, and what to do. A busy machine may miss the other one as well.
    const std::string silent =
        "server server-1 at " + cluster.ServerAddress("server-1") + " is silent since ";
    const JobStatus lost = cluster.Await(id, [&](const JobStatus& s) {
      return HasCondition(s, "ServerLost") && Conditions(s).find(silent) != std::string::npos;
    });
    CHECK(Conditions(lost).find("Start it again with the --name and --dir") != std::string::npos);
    cluster.process("server-1").Signal(SIGCONT);
    check(id);
  }
}

// The scheduler stands still as well, so that only the server can tell the worker.
TEST_CASE("a worker whose lanes were given to another is refused by its session", "[faults][p8]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(100);
  job.mutable_spec()->mutable_replicas()->set_workers(1);
  EmbeddedOptions embedded;
  embedded.job = job;
  auto reference = RunEmbedded(embedded);
  REQUIRE(reference.ok());
  // So long that a busy machine misses nobody else.
  ProcessCluster cluster({.servers = 1, .folder = folder->path() + "/cluster", .lease_ms = 2000});
  // Of the job's 1000 steps, each a commit of four shards, after the 100th and after the 150th.
  const uint64_t id = cluster.SubmitAndStop(
      job, "server-0", "server.commit.append=stop@400*1;server.commit.appended=stop@600*1");
  cluster.process("worker-0").Signal(SIGSTOP);
  cluster.process("server-0").Signal(SIGCONT);
  cluster.AwaitStopped("server-0");  // worker 1 has the lanes, and has made steps
  CHECK(HasCondition(cluster.Status(id), "WorkerJoined"));
  for (const char* name : {"scheduler", "worker-1"}) cluster.process(name).Signal(SIGSTOP);
  for (const char* name : {"server-0", "worker-0"}) cluster.process(name).Signal(SIGCONT);
  AwaitThat("the worker is refused", [&] {
    std::ifstream log(cluster.folder() + "/worker-0/log/strata-worker.INFO");
    const std::string text{std::istreambuf_iterator<char>(log), {}};
    return text.find(" hosts no lanes of the job") != std::string::npos;
  });
  for (const char* name : {"worker-1", "scheduler"}) cluster.process(name).Signal(SIGCONT);
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference->model_hash());
  CHECK(end.result().auc() == reference->result().auc());
  CHECK(end.rollbacks() == 0);
}

}  // namespace
}  // namespace strata::testing
