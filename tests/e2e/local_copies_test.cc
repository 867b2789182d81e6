// Modes with copies of the lanes' own, inside one process (ALGORITHMS.md section 2).
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/job/job_spec.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/serial_sgd.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/checkpoint/verify.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

TrainingJob DownpourJob(const std::string& folder, uint32_t n_fetch, uint32_t n_push) {
  TrainingJob job = testing::SmallJob(folder);
  TrainingSpec& training = *job.mutable_spec()->mutable_training();
  training.set_mode("downpour");
  training.set_n_fetch(n_fetch);
  training.set_n_push(n_push);
  job.mutable_spec()->mutable_checkpoint()->set_directory(folder + "/checkpoints");
  return job;
}

// The job with one lane and sgd of one rate.
void MakeSerial(JobSpec& spec) {
  spec.mutable_training()->set_lanes(1);
  for (OptimizerConfig* o :
       {spec.mutable_optimizer()->mutable_sparse(), spec.mutable_optimizer()->mutable_dense()}) {
    o->set_type("sgd");
    o->set_learning_rate(0.07f);
  }
}

// Largest distance of a weight of the job's checkpoint from the serial reference's.
double DistanceFromSerial(TrainingJob job, const std::string& checkpoint) {
  REQUIRE(ResolveJob(job).ok());
  const testing::Weights expected = testing::SerialSgd(job);
  const testing::Weights got = testing::CheckpointWeights(checkpoint);
  REQUIRE(expected.size() > 100);
  REQUIRE(got.size() == expected.size());
  double worst = 0;
  for (const auto& [place, row] : expected) {
    INFO("table " << place.first << ", position " << place.second);
    const auto is = got.find(place);
    REQUIRE(is != got.end());
    REQUIRE(is->second.size() == row.size());
    for (size_t e = 0; e < row.size(); ++e) {
      const double distance = std::abs(static_cast<double>(is->second[e]) - row[e]);
      REQUIRE(std::isfinite(distance));
      worst = std::max(worst, distance);
    }
  }
  return worst;
}

TEST_CASE("downpour with one lane is its equations in series, bit for bit", "[e2e][downpour]") {
  // With n = 1 that is serial SGD.
  const auto [n_fetch, n_push] =
      GENERATE(table<uint32_t, uint32_t>({{1, 1}, {4, 4}, {5, 2}, {2, 7}}));
  INFO("nFetch " << n_fetch << ", nPush " << n_push);
  const ScratchFolder folder = Folder();
  TrainingJob job = DownpourJob(folder.path(), n_fetch, n_push);
  MakeSerial(*job.mutable_spec());
  job.mutable_spec()->mutable_training()->set_local_learning_rate(0.2f);
  const JobStatus status = Train(job);
  CHECK(status.step() == 2 * ((38 + n_push - 1) / n_push));  // 38 batches a pass
  CHECK(DistanceFromSerial(job, status.checkpoint()) == 0);
}

TEST_CASE("easgd with one lane is its equations in series, to 1e-6", "[e2e][easgd]") {
  const uint32_t tau = GENERATE(1u, 4u);
  const ScratchFolder folder = Folder();
  TrainingJob job = DownpourJob(folder.path(), 1, 1);
  MakeSerial(*job.mutable_spec());
  TrainingSpec& training = *job.mutable_spec()->mutable_training();
  training.set_mode("easgd");
  training.clear_n_fetch();
  training.clear_n_push();
  training.set_tau(tau);
  training.set_alpha(0.3f);
  const JobStatus status = Train(job);
  CHECK(status.step() == 2 * ((38 + tau - 1) / tau));
  CHECK(DistanceFromSerial(job, status.checkpoint()) <= 1e-6);
}

TEST_CASE("downpour trains every batch once with any n, and resumes", "[e2e][downpour]") {
  for (const auto& [n_fetch, n_push] : {std::pair{1u, 1u}, {4u, 4u}, {5u, 2u}, {2u, 7u}}) {
    INFO("nFetch " << n_fetch << ", nPush " << n_push);
    const ScratchFolder folder = Folder();
    TrainingJob job = DownpourJob(folder.path(), n_fetch, n_push);
    JobSpec& spec = *job.mutable_spec();
    spec.mutable_training()->set_epochs(3);
    spec.mutable_replicas()->set_workers(2);
    spec.mutable_replicas()->set_servers(2);
    spec.mutable_checkpoint()->set_every_steps(10);
    const JobStatus status = Train(job);
    CHECK(status.step() == 3 * ((38 + n_push - 1) / n_push));
    CHECK(status.total_steps() == status.step());
    CHECK(status.examples() == 3 * 600);
    CHECK(status.result().auc() > 0.55);
    CHECK(status.lost_local_steps() == 0);
    const auto verified = VerifyCheckpoint(status.checkpoint());
    REQUIRE(verified.ok());
    CHECK(verified->model_hash == status.model_hash());
    CHECK(Train(job, true).result().auc() == status.result().auc());
  }
}

TEST_CASE("easgd trains every batch once, and resumes", "[e2e][easgd]") {
  for (const auto& [tau, optimizer] : {std::pair{1u, "sgd"}, {4u, "adagrad"}, {100u, "adam"}}) {
    INFO("tau " << tau << ", " << optimizer);
    const ScratchFolder folder = Folder();
    TrainingJob job = DownpourJob(folder.path(), 1, 1);
    JobSpec& spec = *job.mutable_spec();
    spec.mutable_training()->set_mode("easgd");
    spec.mutable_training()->clear_n_fetch();
    spec.mutable_training()->clear_n_push();
    spec.mutable_training()->set_tau(tau);
    spec.mutable_training()->set_epochs(4);
    spec.mutable_optimizer()->mutable_sparse()->set_type(optimizer);
    spec.mutable_replicas()->set_workers(2);
    spec.mutable_replicas()->set_servers(2);
    spec.mutable_checkpoint()->set_every_steps(10);
    const JobStatus status = Train(job);
    CHECK(status.step() == 4 * ((38 + tau - 1) / tau));
    CHECK(status.total_steps() == status.step());
    CHECK(status.examples() == 4 * 600);
    CHECK(status.lost_local_steps() == 0);
    CHECK(status.result().auc() > 0.5);
    const auto verified = VerifyCheckpoint(status.checkpoint());
    REQUIRE(verified.ok());
    CHECK(verified->model_hash == status.model_hash());
    CHECK(Train(job, true).result().auc() == status.result().auc());
  }
}

TEST_CASE("warm start: lane 0 works alone first", "[e2e][downpour]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = DownpourJob(folder.path(), 1, 2);
  job.mutable_spec()->mutable_checkpoint()->clear_directory();
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  TrainingSpec& training = *job.mutable_spec()->mutable_training();
  training.set_epochs(40);  // a task each, of 38 batches in 19 pushes
  constexpr uint64_t kWarm = 300;
  training.set_warm_start_steps(kWarm);
  EmbeddedClusterOptions options;
  options.workers = 2;
  options.directory = folder.path() + "/cluster";
  const auto cluster = EmbeddedCluster::Start(options);
  REQUIRE(cluster.ok());
  SubmitRequest submit;
  *submit.mutable_job() = job;
  submit.set_request_id("test");
  SchedulerClient& scheduler = (*cluster)->scheduler();
  const auto id = scheduler.Submit(submit, absl::Seconds(10));
  REQUIRE(id.ok());
  JobRef ref;
  ref.set_job(id->job());
  uint64_t warm = 0;  // pushes before the worker of lanes 2 and 3 had done anything
  while (true) {
    const uint64_t others = (*cluster)->worker(1)->Counters().examples;
    const auto status = scheduler.GetJob(ref, absl::Seconds(10));
    REQUIRE(status.ok());
    // Looked at again: it may have begun between the two.
    if ((*cluster)->worker(1)->Counters().examples == 0) warm = std::max(warm, status->step());
    if (others > 0) REQUIRE(status->step() * 2 >= kWarm);
    if (status->state() == SUCCEEDED) {
      CHECK(status->step() == 40 * 19);
      CHECK(others > 0);
      break;
    }
    REQUIRE(status->state() != FAILED);
    absl::SleepFor(absl::Milliseconds(1));
  }
  CHECK(warm < 40 * 19);
}

}  // namespace
}  // namespace strata
