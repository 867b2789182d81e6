// Asynchronous jobs inside one process: every window takes effect exactly once, whatever dies.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/disturbed_run.h"
#include "tests/e2e/cluster/removed_keys.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/checkpoint/verify.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

// 608 lines in windows of 16: 38 windows a pass.
constexpr uint64_t kWindows = 38;
constexpr uint64_t kBadLines = 8;

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

// With a bad line after every 75th, and no more of them allowed than there are.
TrainingJob AsyncJob(const std::string& folder, uint32_t epochs) {
  TrainingJob job = testing::SmallJob(folder);
  const std::string path = job.spec().data().train(0);
  std::ifstream in(path);
  std::string line, text;
  for (uint64_t i = 1; std::getline(in, line); ++i) {
    absl::StrAppend(&text, line, i % 75 == 0 ? "\n1 x:1\n" : "\n");
  }
  std::ofstream(path) << text;
  job.mutable_spec()->mutable_data()->set_max_bad_lines(epochs * kBadLines);
  job.mutable_spec()->mutable_training()->set_mode("async");
  job.mutable_spec()->mutable_training()->set_epochs(epochs);
  return job;
}

void CheckComplete(const JobStatus& status, uint32_t epochs) {
  for (const JobCondition& c : status.conditions())
    UNSCOPED_INFO(c.reason() << ": " << c.message());
  REQUIRE(status.state() == SUCCEEDED);
  CHECK(status.step() == epochs * kWindows);
  CHECK(status.total_steps() == epochs * kWindows);
  CHECK(status.examples() == epochs * 600);
  CHECK(status.bad_lines() == epochs * kBadLines);
  CHECK(status.result().examples() == 200);
  CHECK(status.result().step() == epochs * kWindows);
  CHECK(status.model_hash().size() == 32);
}

JobStatus Train(const TrainingJob& job, bool resume = false) {
  EmbeddedOptions options;
  options.job = job;
  options.resume = resume;
  auto status = RunEmbedded(options);
  REQUIRE(status.ok());
  return *status;
}

TEST_CASE("async trains each window once, evaluates and keeps a checkpoint", "[e2e][async]") {
  const ScratchFolder folder = Folder();
  for (uint32_t workers : {1u, 2u}) {
    INFO(workers << " workers");
    TrainingJob job = AsyncJob(folder.path(), 3);
    JobSpec& spec = *job.mutable_spec();
    spec.mutable_replicas()->set_workers(workers);
    spec.mutable_replicas()->set_servers(workers);
    spec.mutable_checkpoint()->set_directory(folder.path() + "/ck-" + std::to_string(workers));
    spec.mutable_checkpoint()->set_every_steps(10);
    spec.mutable_evaluation()->set_every_steps(20);
    const JobStatus status = Train(job);
    CheckComplete(status, 3);
    CHECK(status.result().auc() > 0.55);
    CHECK(status.evaluations_size() >= 2);
    const auto verified = VerifyCheckpoint(status.checkpoint());
    REQUIRE(verified.ok());
    CHECK(verified->model_hash == status.model_hash());

    // Resumed, there is nothing left to train, and the model is the same one.
    const JobStatus again = Train(job, true);
    REQUIRE(again.state() == SUCCEEDED);
    CHECK(again.result().auc() == status.result().auc());
  }
}

TEST_CASE("an async job outlives its servers and workers", "[e2e][async]") {
  const ScratchFolder folder = Folder();
  constexpr uint32_t kEpochs = 20;
  TrainingJob job = AsyncJob(folder.path(), kEpochs);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  job.mutable_spec()->mutable_checkpoint()->set_every_steps(25);
  int round = 0;
  const auto finishes = [&](const std::string& what,
                            const std::function<void(EmbeddedCluster&)>& disturb) {
    INFO(what);
    for (uint64_t at : {3, 101, 400}) {
      const std::string run = folder.path() + "/run-" + std::to_string(round++);
      job.mutable_spec()->mutable_checkpoint()->set_directory(run + "-ck");
      const JobStatus status = testing::RunDisturbed(
          job, run, at, [&](EmbeddedCluster& c, const JobRef&) { disturb(c); });
      CheckComplete(status, kEpochs);
      const auto verified = VerifyCheckpoint(status.checkpoint());
      REQUIRE(verified.ok());
      CHECK(verified->model_hash == status.model_hash());
    }
  };
  finishes("the worker of lane 0", [](EmbeddedCluster& c) {
    c.StopWorker(0);
    REQUIRE(c.StartWorker(0).ok());
  });
  finishes("a worker that never comes back", [](EmbeddedCluster& c) { c.StopWorker(1); });
  finishes("the worker of lane 0, for good", [](EmbeddedCluster& c) { c.StopWorker(0); });
  finishes("a server", [](EmbeddedCluster& c) {
    c.StopServer(1);
    REQUIRE(c.StartServer(1).ok());
  });
  finishes("a server and a worker", [](EmbeddedCluster& c) {
    c.StopWorker(1);
    c.StopServer(0);
    REQUIRE(c.StartServer(0).ok());
    REQUIRE(c.StartWorker(1).ok());
  });
}

TEST_CASE("an async job that was cancelled goes on from its checkpoint", "[e2e][async]") {
  const ScratchFolder folder = Folder();
  constexpr uint32_t kEpochs = 60;
  TrainingJob job = AsyncJob(folder.path(), kEpochs);
  job.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/ck");
  job.mutable_spec()->mutable_checkpoint()->set_every_steps(25);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  const auto cancel = [](EmbeddedCluster& c, const JobRef& ref) {
    CreateCheckpointRequest checkpoint;
    *checkpoint.mutable_job() = ref;
    checkpoint.set_wait_ms(60000);
    REQUIRE(c.scheduler().CreateCheckpoint(checkpoint, absl::Seconds(65)).ok());
    REQUIRE(c.scheduler().CancelJob(ref, absl::Seconds(10)).ok());
  };
  const JobStatus cut = testing::RunDisturbed(job, folder.path() + "/run", 200, cancel);
  REQUIRE(cut.state() == CANCELLED);
  REQUIRE_FALSE(cut.checkpoint().empty());
  job.mutable_spec()->mutable_replicas()->set_servers(1);  // on another number of servers
  CheckComplete(Train(job, true), kEpochs);
}

TEST_CASE("async works with tickets that are lost", "[e2e][async][ticket]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = AsyncJob(folder.path(), 2);
  job.mutable_spec()->mutable_replicas()->set_servers(3);
  job.mutable_spec()->mutable_replicas()->set_workers(3);
  for (const uint64_t lost : {0, 2, 1}) {  // every n-th
    INFO(lost);
    std::atomic<uint64_t> named{0};
    const ScopedFailpoint find("server.ticket.find", {.act = [&] {
                                 const uint64_t i = ++named;
                                 if (lost == 0 || i % lost != 0) return absl::OkStatus();
                                 return absl::FailedPreconditionError("lost by the test");
                               }});
    const JobStatus status = Train(job);
    CheckComplete(status, 2);
    CHECK(status.result().auc() > 0.55);
    CHECK(named > 10);
  }
}

TEST_CASE("the life cycle works in asynchronous modes", "[e2e][async]") {
  const ScratchFolder folder = Folder();
  for (const std::string mode : {"async", "downpour", "easgd"}) {
    INFO(mode);
    TrainingJob job = AsyncJob(folder.path(), 4);
    TrainingSpec& training = *job.mutable_spec()->mutable_training();
    training.set_mode(mode);
    if (mode == "downpour") training.set_n_push(2);
    AdmissionSpec& admission = *job.mutable_spec()->mutable_life_cycle()->mutable_admission();
    admission.set_type("counting");
    admission.set_min_steps(2);
    admission.set_filter_bytes("256KiB");
    RemovalSpec& removal = *job.mutable_spec()->mutable_life_cycle()->mutable_removal();
    removal.set_every_steps(7);
    if (mode == "easgd") {
      removal.set_ttl_steps(8);
      removal.mutable_norm()->set_below(0.14f);
    } else {
      removal.mutable_score()->set_below(2.0f);
      removal.mutable_score()->set_decay(0.7f);
      removal.mutable_score()->set_decay_steps(5);
      removal.set_bytes_per_partition("96");
    }
    const std::string gone = folder.path() + "/gone-" + mode;
    job.mutable_spec()->mutable_output()->set_removed(gone);
    const JobStatus status = Train(job);
    REQUIRE(status.state() == SUCCEEDED);
    const LifeCycleCounts& counts = status.life_cycle();
    CHECK(testing::RemovedKeysIn(gone).size() ==
          counts.removed_by_ttl() + counts.removed_by_count() + counts.removed_by_score() +
              counts.removed_by_norm() + counts.removed_by_bytes());
    CHECK(counts.admitted() > 0);
    CHECK(counts.refused() > 0);
  }
}

}  // namespace
}  // namespace strata
