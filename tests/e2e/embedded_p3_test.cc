// Promise P3 inside one process: one model hash whatever the cluster looks like and whatever dies.
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "ops/cpu_features.h"
#include "tests/e2e/disturbed_run.h"
#include "tests/e2e/small_job.h"
#include "tools/cluster/embedded.h"
#include "tools/cluster/embedded_cluster.h"
#include "tools/cluster/scratch_folder.h"

namespace strata {
namespace {

JobStatus Train(const TrainingJob& job) {
  EmbeddedOptions options;
  options.job = job;
  auto status = RunEmbedded(options);
  REQUIRE(status.ok());
  for (const JobCondition& c : status->conditions())
    UNSCOPED_INFO(c.reason() << ": " << c.message());
  REQUIRE(status->state() == SUCCEEDED);
  REQUIRE(status->model_hash().size() == 32);
  return *status;
}

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

TEST_CASE("the model does not depend on the cluster", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = testing::SmallJob(folder.path());
  const JobStatus reference = Train(job);
  CHECK(reference.result().auc() > 0.55);
  CHECK(reference.step() == 20);

  const auto same = [&](const std::string& what, const std::function<void(JobSpec&)>& change) {
    TrainingJob other = job;
    change(*other.mutable_spec());
    const JobStatus status = Train(other);
    INFO(what);
    CHECK(status.model_hash() == reference.model_hash());
    CHECK(status.result().auc() == reference.result().auc());
    CHECK(status.result().logloss() == reference.result().logloss());
  };
  same("2 workers", [](JobSpec& s) { s.mutable_replicas()->set_workers(2); });
  same("3 workers", [](JobSpec& s) { s.mutable_replicas()->set_workers(3); });
  same("3 servers", [](JobSpec& s) { s.mutable_replicas()->set_servers(3); });
  same("3 servers, 3 workers", [](JobSpec& s) {
    s.mutable_replicas()->set_servers(3);
    s.mutable_replicas()->set_workers(3);
  });
  same("pipeline depth 1", [](JobSpec& s) { s.mutable_training()->set_pipeline_depth(1); });
  same("2 threads", [](JobSpec& s) { s.mutable_training()->set_threads(2); });
  same("256 KiB of DRAM",
       [](JobSpec& s) { s.mutable_storage()->set_dram_bytes_per_server("256KiB"); });
  same("no log", [](JobSpec& s) { s.mutable_storage()->set_durability("memory"); });
  same("a base image after every few steps",
       [](JobSpec& s) { s.mutable_storage()->set_log_bytes_per_server("64KiB"); });
  const ops::IsaLevel before = ops::SetActiveIsaLevel(ops::IsaLevel::kV3);
  same("AVX2 kernels", [](JobSpec&) {});
  ops::SetActiveIsaLevel(before);
  same("one shard per server", [](JobSpec& s) { s.mutable_storage()->set_shards_per_server(1); });

  TrainingJob other = job;
  other.mutable_spec()->mutable_training()->set_seed(2);
  CHECK(Train(other).model_hash() != reference.model_hash());
  other = job;
  other.mutable_spec()->mutable_training()->set_lanes(8);
  CHECK(Train(other).model_hash() != reference.model_hash());
}

// The final status of a job that must succeed although it was disturbed.
JobStatus TrainDisturbed(const TrainingJob& job, const std::string& folder, uint64_t at,
                         const std::function<void(EmbeddedCluster&)>& disturb) {
  const JobStatus status = testing::RunDisturbed(
      job, folder, at, [&](EmbeddedCluster& cluster, const JobRef&) { disturb(cluster); });
  for (const JobCondition& c : status.conditions()) {
    UNSCOPED_INFO(c.reason() << ": " << c.message());
  }
  REQUIRE(status.state() == SUCCEEDED);
  return status;
}

TEST_CASE("servers and workers that lose their memory do not change the model", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  job.mutable_spec()->mutable_training()->set_epochs(20);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  const std::string expected = Train(job).model_hash();
  int round = 0;
  const auto same = [&](const std::string& what,
                        const std::function<void(EmbeddedCluster&)>& disturb) {
    INFO(what);
    for (uint64_t at : {3, 41, 120}) {
      const std::string dir = folder.path() + "/run-" + std::to_string(round++);
      CHECK(TrainDisturbed(job, dir, at, disturb).model_hash() == expected);
    }
  };
  same("a server", [](EmbeddedCluster& c) {
    c.StopServer(1);
    REQUIRE(c.StartServer(1).ok());
  });
  same("both servers", [](EmbeddedCluster& c) {
    c.StopServer(0);
    c.StopServer(1);
    REQUIRE(c.StartServer(1).ok());
    REQUIRE(c.StartServer(0).ok());
  });
  same("a worker", [](EmbeddedCluster& c) {
    c.StopWorker(0);
    REQUIRE(c.StartWorker(0).ok());
  });
  same("a worker that never comes back", [](EmbeddedCluster& c) { c.StopWorker(1); });
  same("a server and a worker", [](EmbeddedCluster& c) {
    c.StopWorker(1);
    c.StopServer(0);
    REQUIRE(c.StartServer(0).ok());
    REQUIRE(c.StartWorker(1).ok());
  });
}

}  // namespace
}  // namespace strata
