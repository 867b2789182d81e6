// Jobs whose workers compute with a GPU's code, which runs on the host's threads here: they learn
// what the CPU learns, and keep promise P3 among workers of one class; other classes are refused.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/host_blas.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/ops/cuda/api/failing_api.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "worker/device/worker_device.h"

namespace strata {
namespace {

using Change = std::function<void(JobSpec&)>;

TrainingJob Job(const std::string& folder, const std::string& model) {
  TrainingJob job = testing::SmallJob(folder);
  ModelSpec& m = *job.mutable_spec()->mutable_model();
  m.set_type(model);
  if (model == "lr" || model == "fm") m.clear_hidden();
  if (model == "lr") m.clear_embedding_dim();
  job.mutable_spec()->mutable_training()->set_epochs(4);
  return job;
}

JobStatus TrainOn(TrainingJob job, const std::string& device, const Change& change = nullptr) {
  job.mutable_spec()->mutable_worker()->set_device(device);
  if (change) change(*job.mutable_spec());
  return Train(job);
}

TEST_CASE("a model learns with a GPU's code what it learns on the CPU", "[e2e][device]") {
  for (const char* model : {"lr", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom"}) {
    INFO(model);
    const ScratchFolder folder = Folder();
    const TrainingJob job = Job(folder.path(), model);
    const JobStatus cpu = TrainOn(job, "cpu");
    const JobStatus host = TrainOn(job, "host");
    CHECK(std::fabs(cpu.result().auc() - host.result().auc()) < 0.005);
    CHECK(std::fabs(cpu.result().logloss() - host.result().logloss()) < 0.005);
    CHECK(host.step() == cpu.step());
    // Auto, on workers without a GPU.
    CHECK(TrainOn(job, "auto").model_hash() == cpu.model_hash());
  }
}

TEST_CASE("workers with a GPU's code give one model, however many there are", "[e2e][p3][device]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path(), "deepfm");
  const JobStatus reference = TrainOn(job, "host");
  const auto same = [&](const std::string& what, const Change& change) {
    const JobStatus status = TrainOn(job, "host", change);
    INFO(what);
    CHECK(status.model_hash() == reference.model_hash());
    CHECK(status.result().auc() == reference.result().auc());
  };
  same("again", nullptr);
  same("3 servers, 3 workers", [](JobSpec& s) {
    s.mutable_replicas()->set_servers(3);
    s.mutable_replicas()->set_workers(3);
  });
  same("2 threads, depth 1", [](JobSpec& s) {
    s.mutable_training()->set_threads(2);
    s.mutable_training()->set_pipeline_depth(1);
  });
  // Products whose factors are rounded give another model.
  for (const char* precision : {"tf32", "bf16"}) {
    const JobStatus status =
        TrainOn(job, "host", [&](JobSpec& s) { s.mutable_worker()->set_precision(precision); });
    CHECK(status.model_hash() != reference.model_hash());
    CHECK(std::fabs(status.result().auc() - reference.result().auc()) < 0.05);
  }
}

TEST_CASE("lanes of the asynchronous modes share a device", "[e2e][device]") {
  for (const char* mode : {"async", "downpour", "easgd"}) {
    INFO(mode);
    const ScratchFolder folder = Folder();
    TrainingJob job = Job(folder.path(), "deepfm");
    job.mutable_spec()->mutable_training()->set_mode(mode);
    const JobStatus status = TrainOn(job, "host");
    CHECK(status.result().auc() > 0.55);
  }
}

// Host threads that workers take for a GPU; `failing`: the call at which it is lost.
struct FakeGpu {
  explicit FakeGpu(uint64_t failing = UINT64_MAX) : api(failing, true) {
    api.WhenLost([this](const absl::Status&) { lost = true; });
    device.api = &api;
    device.open_blas = [this](ops::gpu::Arena*) { return ops::gpu::MakeHostBlas(&api); };
    device.uuid = "GPU-0123";
    device.numerics_id = "a GPU of host threads";
    device.lost_ends_process = true;
  }
  ops::gpu::testing::FailingApi api;
  device::WorkerDevice device;
  std::atomic<bool> lost{false};
};

bool Registered(const EmbeddedCluster& cluster, uint32_t worker) {
  return cluster.worker(worker)->Counters().registered;
}

// Two workers with these devices (null: none), registered.
std::unique_ptr<EmbeddedCluster> StartWith(const std::string& folder,
                                           std::vector<const device::WorkerDevice*> devices) {
  EmbeddedClusterOptions options;
  options.workers = 2;
  options.directory = folder + "/cluster";
  options.lease = absl::Milliseconds(500);
  options.devices = std::move(devices);
  auto cluster = EmbeddedCluster::Start(options);
  REQUIRE(cluster.ok());
  while (!Registered(**cluster, 0) || !Registered(**cluster, 1)) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  return *std::move(cluster);
}

absl::StatusOr<SubmitReply> Submit(EmbeddedCluster& cluster, const TrainingJob& job) {
  SubmitRequest submit;
  *submit.mutable_job() = job;
  submit.set_request_id("test");
  return cluster.scheduler().Submit(submit, absl::Seconds(10));
}

// The final status of a job on such workers. `often` is called while it runs.
JobStatus RunWith(TrainingJob job, const std::string& folder,
                  std::vector<const device::WorkerDevice*> devices, const Change& change,
                  const std::function<void(EmbeddedCluster&)>& often = nullptr) {
  change(*job.mutable_spec());
  const auto cluster = StartWith(folder, std::move(devices));
  auto id = Submit(*cluster, job);
  REQUIRE(id.ok());
  JobRef ref;
  ref.set_job(id->job());
  while (true) {
    auto status = cluster->scheduler().GetJob(ref, absl::Seconds(10));
    REQUIRE(status.ok());
    const JobState state = status->state();
    if (state == SUCCEEDED || state == FAILED || state == CANCELLED) return *status;
    if (often) often(*cluster);
    absl::SleepFor(absl::Milliseconds(1));
  }
}

std::string LastMessage(const JobStatus& status) {
  return status.conditions_size() == 0 ? ""
                                       : status.conditions(status.conditions_size() - 1).message();
}

Change On(const char* device, uint32_t workers) {
  return [=](JobSpec& s) {
    s.mutable_worker()->set_device(device);
    s.mutable_replicas()->set_workers(workers);
  };
}

TEST_CASE("workers with and without a GPU", "[e2e][device]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path(), "deepfm");
  const std::string cpu = TrainOn(job, "cpu").model_hash();
  const std::string gpu = TrainOn(job, "host").model_hash();
  FakeGpu fake;
  const auto run = [&](const Change& change) {
    return RunWith(job, folder.path(), {&fake.device}, change);
  };
  // Auto takes the GPU, and the only worker that has it is enough.
  CHECK(run(On("auto", 1)).model_hash() == gpu);
  CHECK(run(On("cuda:GPU-01", 1)).model_hash() == gpu);
  CHECK(run(On("cpu", 2)).model_hash() == cpu);
  const JobStatus mixed = run(On("auto", 2));
  CHECK(mixed.state() == FAILED);
  CHECK_THAT(LastMessage(mixed), Catch::Contains("worker-0 computes on a GPU of host threads") &&
                                     Catch::Contains("worker worker-1 on cpu"));
  CHECK(RunWith(job, folder.path(), {&fake.device, &fake.device}, On("auto", 2)).model_hash() ==
        gpu);
}

TEST_CASE("a precision that no worker has is refused, and says why", "[e2e][device]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = Job(folder.path(), "deepfm");
  job.mutable_spec()->mutable_worker()->set_precision("bf16");
  const auto cluster = StartWith(folder.path(), {});
  const absl::Status refused = Submit(*cluster, job).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()),
             Catch::Contains("spec.worker.precision is bf16") && Catch::Contains("2 workers"));
}

TEST_CASE("a job goes on when a worker's GPU is lost and its process ends", "[e2e][p3][device]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path(), "deepfm");
  const std::string gpu = TrainOn(job, "host").model_hash();
  for (const uint64_t failing : {300u, 1000u}) {
    FakeGpu good, bad(failing);
    bool restarted = false;
    const JobStatus status = RunWith(job, folder.path(), {&good.device, &bad.device}, On("auto", 2),
                                     [&](EmbeddedCluster& cluster) {
                                       if (!bad.lost || restarted) return;
                                       restarted = true;  // what the process would do
                                       cluster.StopWorker(1);
                                       REQUIRE(cluster.StartWorker(1).ok());
                                     });
    INFO(LastMessage(status));
    CHECK(restarted);
    CHECK(status.state() == SUCCEEDED);
    CHECK(status.model_hash() == gpu);
  }
}

}  // namespace
}  // namespace strata
