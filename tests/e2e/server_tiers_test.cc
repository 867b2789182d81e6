// Promise P3 where servers keep their rows in a GPU's memory, in the host's, on SSD, and in any mix
// of these: 100 steps with workers on the CPU give one model. And where a worker shares its
// server's device: steps repeat to the bit, in every precision, and are those of rows that go in
// messages. On the device where there is one, with its library's products, else on host threads.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"
#include "ops/cuda/products/host_blas.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "server/server.h"
#include "storage/gpu/device/backend.h"
#include "storage/gpu/host_backend.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "worker/device/worker_device.h"
#include "worker/worker.h"

namespace strata {
namespace {

using Gpu = storage::gpu::GpuBackendFactory;

Gpu On(ops::gpu::CudaApi* api) {
  return [api](const storage::gpu::GpuShape& shape) {
    return storage::gpu::MakeDeviceGpuBackend(api, shape, {.max_batch = 4096});
  };
}

Gpu OnHostThreads() {
  return [](const storage::gpu::GpuShape& shape) {
    return storage::gpu::MakeHostGpuBackend(shape, {.threads = 1});
  };
}

// The device of workers and servers, and how rows go between them.
struct Shared {
  const device::WorkerDevice* gpu = nullptr;  // null: workers are on the CPU
  device::RowPath path = device::RowPath::kDevice;
};

// A server for each of `gpus` (null: it has none), and workers.
class Cluster {
 public:
  Cluster(std::string folder, std::vector<Gpu> gpus, uint32_t workers, const Shared& shared)
      : folder_(std::move(folder)),
        gpus_(std::move(gpus)),
        shared_(shared),
        transport_(MakeInProcTransport()) {
    scheduler::SchedulerOptions options;
    options.store = scheduler::MakeMemoryMetadataStore();
    options.lease = absl::Milliseconds(500);
    options.tick_interval = kSyncWait;
    auto scheduler = scheduler::Scheduler::Start(std::move(options));
    REQUIRE(scheduler.ok());
    scheduler_ = *std::move(scheduler);
    servers_.resize(gpus_.size());
    for (size_t i = 0; i < gpus_.size(); ++i) StartServer(i);
    for (uint32_t i = 0; i < workers; ++i) {
      WorkerOptions w;
      w.caller = Caller::Nobody();
      w.name = absl::StrCat("worker-", i);
      w.scheduler = scheduler_.get();
      w.transport = transport_.get();
      w.sync_wait = kSyncWait;
      w.device = shared_.gpu;
      w.row_path = shared_.path;
      auto worker = Worker::Start(w);
      REQUIRE(worker.ok());
      workers_.push_back(*std::move(worker));
    }
  }

  scheduler::Scheduler& scheduler() { return *scheduler_; }
  uint64_t rows_there() const {
    uint64_t rows = 0;
    for (const auto& worker : workers_) rows += worker->Counters().rows_there;
    return rows;
  }

 private:
  static constexpr absl::Duration kSyncWait = absl::Milliseconds(20);

  void StartServer(size_t i) {
    server::ServerOptions options;
    options.name = absl::StrCat("server-", i);
    options.scheduler = scheduler_.get();
    options.transport = transport_.get();
    options.listen_address = options.name;
    options.directory = absl::StrCat(folder_, "/", options.name);
    options.sync_wait = kSyncWait;
    options.make_gpu = gpus_[i];
    if (gpus_[i]) options.device = absl::StrCat("GPU-", i);
    if (shared_.gpu != nullptr) options.device = shared_.gpu->uuid;
    auto server = server::Server::Start(options);
    REQUIRE(server.ok());
    servers_[i] = *std::move(server);
  }

  const std::string folder_;
  const std::vector<Gpu> gpus_;
  const Shared shared_;
  std::unique_ptr<DataTransport> transport_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::vector<std::unique_ptr<server::Server>> servers_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

struct Outcome {
  JobStatus status;
  uint64_t hbm_hits = 0;    // at a step in the job's second half
  uint64_t rows_there = 0;  // that went by the memory of a shared device
};

// The job on a cluster of its own.
Outcome Run(const TrainingJob& job, std::vector<Gpu> gpus, const Shared& shared = {}) {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  Cluster cluster(folder->path(), std::move(gpus), job.spec().replicas().workers(), shared);
  SubmitRequest submit;
  *submit.mutable_job() = job;
  submit.set_request_id("test");
  const auto id = cluster.scheduler().Submit(submit, absl::Seconds(10));
  INFO(id.status());
  REQUIRE(id.ok());
  JobRef ref;
  ref.set_job(id->job());
  Outcome outcome;
  while (true) {
    auto status = cluster.scheduler().GetJob(ref, absl::Seconds(10));
    REQUIRE(status.ok());
    const JobState state = status->state();
    if (state == SUCCEEDED || state == FAILED || state == CANCELLED) {
      outcome.status = *std::move(status);
      outcome.rows_there = cluster.rows_there();
      return outcome;
    }
    if (status->step() >= 50 && outcome.hbm_hits == 0) {
      const auto shards = cluster.scheduler().GetShards(ref, absl::Seconds(10));
      REQUIRE(shards.ok());
      for (const ShardStatus& s : shards->shards()) outcome.hbm_hits += s.report().hbm_hits();
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// 200 steps over some 5000 features with rows of 144 bytes.
TrainingJob Job(const std::string& folder) {
  TrainingJob job = testing::ManyFeaturesJob(folder, 16, 10);
  job.mutable_spec()->mutable_storage()->set_shards_per_server(2);
  return job;
}

// 100 steps of a din over five tables, of which two have life cycles.
TrainingJob FiveTablesJob(const std::string& folder) {
  TrainingJob job = testing::SmallJob(folder);
  testing::UseFiveTables(folder, 1280, 3000, job);
  testing::WidenTables(job);
  job.mutable_spec()->mutable_training()->set_epochs(5);
  job.mutable_spec()->mutable_storage()->set_shards_per_server(1);
  return job;
}

// "": no such tier.
TrainingJob WithTiers(TrainingJob job, const std::string& hbm, const std::string& dram,
                      uint32_t servers) {
  JobSpec& spec = *job.mutable_spec();
  if (!hbm.empty()) spec.mutable_storage()->set_gpu_bytes_per_server(hbm);
  if (!dram.empty()) spec.mutable_storage()->set_dram_bytes_per_server(dram);
  spec.mutable_replicas()->set_servers(servers);
  spec.mutable_replicas()->set_workers(servers);
  return job;
}

std::string LastMessage(const JobStatus& status) {
  return status.conditions_size() == 0 ? ""
                                       : status.conditions(status.conditions_size() - 1).message();
}

TEST_CASE("servers with a GPU, without, and with any mix of tiers give one model",
          "[e2e][p3][gpu]") {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  const TrainingJob job = FiveTablesJob(folder->path());
  const std::vector<ops::gpu::testing::TestApi> apis = ops::gpu::testing::Apis();
  const Gpu device = On(apis.back().api.get()), host = OnHostThreads(), none = nullptr;
  const JobStatus reference = Run(WithTiers(job, "", "", 1), {none}).status;
  REQUIRE(reference.state() == SUCCEEDED);
  REQUIRE(reference.step() == 100);
  REQUIRE(reference.model_hash().size() == 32);

  struct Mix {
    const char* name;
    const char* hbm;
    const char* dram;
    std::vector<Gpu> gpus;
  };
  const std::vector<Mix> mixes = {
      {"SSD below DRAM", "", "320KiB", {none}},
      {"all rows in HBM", "16MiB", "", {device}},
      {"HBM above DRAM", "1280KiB", "", {device}},
      {"HBM above DRAM and SSD", "1280KiB", "320KiB", {device}},
      {"a device, and host threads, above DRAM and SSD", "768KiB", "256KiB", {device, host}},
  };
  for (const Mix& mix : mixes) {
    const auto servers = static_cast<uint32_t>(mix.gpus.size());
    const Outcome outcome = Run(WithTiers(job, mix.hbm, mix.dram, servers), mix.gpus);
    INFO(mix.name << " on " << apis.back().name << ": " << LastMessage(outcome.status));
    CHECK(outcome.status.state() == SUCCEEDED);
    CHECK(outcome.status.step() == 100);
    CHECK(outcome.status.model_hash() == reference.model_hash());
    CHECK(outcome.status.result().auc() == reference.result().auc());
    CHECK((outcome.hbm_hits > 0) == (mix.hbm[0] != '\0'));
  }
}

device::WorkerDevice DeviceOf(const ops::gpu::testing::TestApi& test) {
  ops::gpu::CudaApi* const api = test.api.get();
  device::WorkerDevice gpu;
  gpu.api = api;
  gpu.uuid = api->properties().uuid;
  gpu.numerics_id = "the test's device";
  gpu.open_blas = [api](ops::gpu::Arena*) { return ops::gpu::MakeHostBlas(api); };
#ifdef STRATA_CUDA
  if (test.name == "device") {
    gpu.blas_bytes = ops::gpu::Blas::Options::kBytes;
    gpu.open_blas = [](ops::gpu::Arena* arena) { return ops::gpu::Blas::Open(arena, {}); };
  }
#endif
  return gpu;
}

TEST_CASE("steps on a shared device repeat, and are those of rows in messages", "[e2e][p3][gpu]") {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  TrainingJob job = WithTiers(Job(folder->path()), "128KiB", "", 1);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_training()->set_epochs(2);
  spec.mutable_model()->set_type("deepfm");
  for (const uint32_t width : {32, 8}) spec.mutable_model()->add_hidden(width);
  spec.mutable_worker()->set_device("auto");
  const std::vector<ops::gpu::testing::TestApi> apis = ops::gpu::testing::Apis();
  const device::WorkerDevice gpu = DeviceOf(apis.back());
  for (const char* precision : {"fp32", "tf32", "bf16"}) {
    spec.mutable_worker()->set_precision(precision);
    const auto run = [&](device::RowPath path) {
      const Outcome outcome = Run(job, {On(gpu.api)}, {&gpu, path});
      INFO(precision << " on " << apis.back().name << ": " << LastMessage(outcome.status));
      REQUIRE(outcome.status.state() == SUCCEEDED);
      REQUIRE(outcome.status.model_hash().size() == 32);
      return outcome;
    };
    const Outcome there = run(device::RowPath::kDevice), again = run(device::RowPath::kDevice);
    const Outcome here = run(device::RowPath::kHost);
    INFO(precision << " on " << apis.back().name);
    CHECK(there.rows_there > 10'000);
    CHECK(again.status.model_hash() == there.status.model_hash());
    CHECK(again.status.result().auc() == there.status.result().auc());
    CHECK(here.rows_there == 0);
    CHECK(here.status.model_hash() == there.status.model_hash());
  }
}

}  // namespace
}  // namespace strata
