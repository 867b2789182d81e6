// Jobs whose servers and workers share a device, which is host threads here: rows of pulls and
// pushes stay in its memory, and the model is the one of the same job whose rows go in messages.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/host_blas.h"
#include "proto/core/ids.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/disturbed_run.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/row_updates.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "worker/device/worker_device.h"

namespace strata {
namespace {

using device::RowPath;
using Change = std::function<void(JobSpec&)>;

// 40 steps over some 5000 features, of which a server's GPU tier has room for some hundreds.
TrainingJob Job(const std::string& folder, const std::string& model = "deepfm") {
  TrainingJob job = testing::SmallJob(folder);
  testing::WriteLibfm(folder + "/train.libfm", 1, 1280, 6, 1000);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_model()->set_type(model);
  if (model == "fm") spec.mutable_model()->clear_hidden();
  spec.mutable_model()->set_embedding_dim(16);
  spec.mutable_worker()->set_device("host");
  spec.mutable_storage()->set_gpu_bytes_per_server("128KiB");
  spec.mutable_storage()->set_gpu_backend("host");
  return job;
}

Change Replicas(uint32_t servers, uint32_t workers) {
  return [=](JobSpec& s) {
    s.mutable_replicas()->set_servers(servers);
    s.mutable_replicas()->set_workers(workers);
  };
}

struct Ended {
  JobStatus status;
  uint64_t rows_there = 0;  // of its workers
};

// Called once, when the job has reached that step.
struct Disturbance {
  uint64_t at = 0;
  std::function<void(EmbeddedCluster&)> disturb;
};

// `gpu`: of the workers and the servers; null: what the job names.
Ended Run(const TrainingJob& job, RowPath path, const Disturbance& disturbance = {},
          const device::WorkerDevice* gpu = nullptr) {
  const ScratchFolder folder = Folder();
  EmbeddedClusterOptions options;
  options.servers = std::max(1u, job.spec().replicas().servers());
  options.workers = std::max(1u, job.spec().replicas().workers());
  options.directory = folder.path();
  options.lease = absl::Milliseconds(500);
  options.row_path = path;
  if (gpu != nullptr) {
    options.devices.assign(options.workers, gpu);
    options.server_device = gpu->api;
  }
  auto cluster = EmbeddedCluster::Start(options);
  REQUIRE(cluster.ok());
  SubmitRequest submit;
  *submit.mutable_job() = job;
  submit.set_request_id("test");
  auto id = (*cluster)->scheduler().Submit(submit, absl::Seconds(10));
  REQUIRE(id.ok());
  JobRef ref;
  ref.set_job(id->job());
  bool disturbed = disturbance.disturb == nullptr;
  while (true) {
    auto status = (*cluster)->scheduler().GetJob(ref, absl::Seconds(10));
    REQUIRE(status.ok());
    if (!disturbed && status->step() >= disturbance.at) {
      disturbed = true;
      disturbance.disturb(**cluster);
    }
    if (status->state() != SUCCEEDED && status->state() != FAILED) {
      absl::SleepFor(absl::Milliseconds(1));
      continue;
    }
    for (const JobCondition& c : status->conditions()) UNSCOPED_INFO(c.message());
    REQUIRE(status->state() == SUCCEEDED);
    REQUIRE(status->model_hash().size() == 32);
    CHECK(disturbed);
    Ended ended{*status};
    for (uint32_t w = 0; w < options.workers; ++w) {
      const Worker* const worker = (*cluster)->worker(w);
      if (worker != nullptr) ended.rows_there += worker->Counters().rows_there;
    }
    return ended;
  }
}

// Whether rows of the job stay on the device.
enum class Expect { kThere, kHere };

// The job gives one model on both paths. Returns its hash.
std::string CheckSame(TrainingJob job, const Change& change, Expect expect = Expect::kThere) {
  if (change) change(*job.mutable_spec());
  const Ended there = Run(job, RowPath::kDevice);
  const Ended here = Run(job, RowPath::kHost);
  CHECK(there.status.model_hash() == here.status.model_hash());
  CHECK(there.status.result().auc() == here.status.result().auc());
  CHECK(here.rows_there == 0);
  if (expect == Expect::kThere) {
    CHECK(there.rows_there > 10'000);
  } else {
    CHECK(there.rows_there == 0);
  }
  return there.status.model_hash();
}

TEST_CASE("rows that stay on a device give the model of rows in messages", "[e2e][p3][device]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path());
  std::string first;
  // Each two of what is given for servers, workers and durability.
  const struct {
    uint32_t servers, workers;
    const char* durability;
  } clusters[] = {{1, 1, "memory"}, {1, 2, "logged"}, {2, 1, "logged"}, {2, 2, "memory"}};
  for (const auto& c : clusters) {
    INFO(c.servers << " servers, " << c.workers << " workers, " << c.durability);
    const std::string hash = CheckSame(job, [&](JobSpec& s) {
      Replicas(c.servers, c.workers)(s);
      s.mutable_storage()->set_durability(c.durability);
    });
    if (first.empty()) first = hash;
    CHECK(hash == first);
  }
  // Without a GPU tier there is nowhere to stay.
  CHECK(CheckSame(
            job,
            [](JobSpec& s) {
              s.mutable_storage()->clear_gpu_backend();
              s.mutable_storage()->clear_gpu_bytes_per_server();
            },
            Expect::kHere) == first);
}

TEST_CASE("rows stay on a device whatever the model and the optimizer", "[e2e][p3][device]") {
  const ScratchFolder folder = Folder();
  const struct {
    const char *model, *sparse;
  } kinds[] = {{"fm", "sgd"},
               {"fm", "ftrl"},
               {"wide_deep", "adam"},
               {"dcn_v2", "momentum"},
               {"dlrm", "rowwise_adagrad"},
               {"dlrm", "adam"}};
  for (const auto& kind : kinds) {
    INFO(kind.model << ", " << kind.sparse);
    CheckSame(Job(folder.path(), kind.model), [&](JobSpec& s) {
      s.mutable_optimizer()->mutable_sparse()->set_type(kind.sparse);
      Replicas(2, 1)(s);
    });
  }
}

// Five tables of four widths; of some lanes' rows a worker gathers those that each wants.
TEST_CASE("rows of several widths stay on a device", "[e2e][p3][device]") {
  const ScratchFolder folder = Folder();
  for (const char* model : {"din", "mmoe"}) {
    INFO(model);
    TrainingJob job = Job(folder.path());
    testing::UseFiveTables(folder.path(), 1280, 1000, job);
    JobSpec& spec = *job.mutable_spec();
    if (spec.model().type() != model) {  // of the same fields, without the sequence
      spec.mutable_fields()->RemoveLast();
      spec.mutable_model()->Clear();
      spec.mutable_model()->set_type(model);
    }
    spec.mutable_storage()->set_gpu_bytes_per_server(
        "384KiB");  // the least of each table, and more
    for (TableConfig& table : *spec.mutable_tables()) {
      table.clear_pull_codec();
      table.clear_life_cycle();
    }
    const std::string hash = CheckSame(job, nullptr);
    CHECK(CheckSame(job, Replicas(2, 2)) == hash);
    CHECK(CheckSame(job, Replicas(1, 4)) == hash);
    // What the GPU's code learns, the CPU learns.
    const double auc = Train(job).result().auc();
    spec.mutable_worker()->set_device("cpu");
    CHECK(std::fabs(Train(job).result().auc() - auc) < 0.005);
  }
}

TEST_CASE("rows stay on a device whatever lies below", "[e2e][p3][device]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path());
  const auto below = [](JobSpec& s) {
    s.mutable_storage()->set_dram_bytes_per_server("256KiB");
    s.mutable_storage()->set_ssd("rowfile");
  };
  const std::string hash = CheckSame(job, below);
  CHECK(hash == CheckSame(job, [&](JobSpec& s) {
          below(s);
          Replicas(2, 2)(s);
          s.mutable_storage()->set_log_bytes_per_server("64KiB");
        }));
  // Room for all, one lane alone on a worker, and no look ahead.
  CHECK(hash == CheckSame(job, [&](JobSpec& s) {
          s.mutable_storage()->set_gpu_bytes_per_server("16MiB");
          Replicas(1, 4)(s);
          s.mutable_training()->set_pipeline_depth(1);
        }));
}

TEST_CASE("rows go in messages where a job needs them there", "[e2e][p3][device]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path());
  CheckSame(
      job, [](JobSpec& s) { s.mutable_training()->set_pull_codec("bf16"); }, Expect::kHere);
  CheckSame(
      job,
      [](JobSpec& s) {
        s.mutable_life_cycle()->mutable_admission()->set_type("exact");
        s.mutable_life_cycle()->mutable_admission()->set_min_steps(2);
      },
      Expect::kHere);
  CheckSame(
      job, [](JobSpec& s) { s.mutable_worker()->set_device("cpu"); }, Expect::kHere);
  CheckSame(
      job,
      [](JobSpec& s) {
        s.mutable_life_cycle()->mutable_removal()->set_ttl_steps(8);
        s.mutable_life_cycle()->mutable_removal()->set_every_steps(4);
      },
      Expect::kThere);
}

// With the kernels and calls of a GPU, on both sides.
TEST_CASE("servers and workers of a process share its GPU", "[e2e][p3][device]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = Job(folder.path());
  job.mutable_spec()->mutable_training()->set_epochs(1);
  job.mutable_spec()->mutable_worker()->set_device("auto");
  job.mutable_spec()->mutable_storage()->set_gpu_backend("cuda");
  ops::gpu::HostApi api({});
  device::WorkerDevice gpu;
  gpu.api = &api;
  gpu.open_blas = [&](ops::gpu::Arena*) { return ops::gpu::MakeHostBlas(&api); };
  gpu.uuid = api.properties().uuid;
  gpu.numerics_id = "a GPU of host threads";
  for (const uint32_t replicas : {1u, 2u}) {
    Replicas(replicas, replicas)(*job.mutable_spec());
    const Ended there = Run(job, RowPath::kDevice, {}, &gpu);
    const Ended here = Run(job, RowPath::kHost, {}, &gpu);
    CHECK(there.status.model_hash() == here.status.model_hash());
    CHECK(there.rows_there > 10'000);
    CHECK(here.rows_there == 0);
    CHECK(api.leaks() == 0);
  }
}

TEST_CASE("servers and workers that die while rows stay on a device", "[e2e][p3][device]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = Job(folder.path());
  job.mutable_spec()->mutable_training()->set_epochs(4);
  Replicas(2, 2)(*job.mutable_spec());
  const Ended whole = Run(job, RowPath::kHost);
  const std::pair<const char*, std::function<void(EmbeddedCluster&)>> disturbances[] = {
      {"a server",
       [](EmbeddedCluster& c) {
         c.StopServer(1);
         REQUIRE(c.StartServer(1).ok());
       }},
      {"a worker",
       [](EmbeddedCluster& c) {
         c.StopWorker(0);
         REQUIRE(c.StartWorker(0).ok());
       }},
      {"a worker that stays away", [](EmbeddedCluster& c) { c.StopWorker(1); }},
      {"nearly all", testing::RestartNearlyAll},
  };
  uint64_t at = 7;
  for (const auto& [what, disturb] : disturbances) {
    INFO(what << " at step " << at);
    const Ended ended = Run(job, RowPath::kDevice, {at, disturb});
    CHECK(ended.status.model_hash() == whole.status.model_hash());
    CHECK(ended.rows_there > 0);
    at = at == 7 ? 40 : 7;
  }
}

// One lane, so that what it pulls does not depend on anybody else.
TEST_CASE("windows of an asynchronous lane stay on a device", "[e2e][device]") {
  const ScratchFolder folder = Folder();
  const auto async = [](JobSpec& s) {
    s.mutable_training()->set_mode("async");
    s.mutable_training()->set_lanes(1);
  };
  for (const uint32_t servers : {1u, 2u}) {
    const char* durability = servers == 1 ? "logged" : "memory";
    INFO(servers << " servers, " << durability);
    CheckSame(Job(folder.path()), [&](JobSpec& s) {
      async(s);
      Replicas(servers, 1)(s);
      s.mutable_storage()->set_durability(durability);
    });
  }
  // A server that ends takes its rows' memory with it, and the next one offers its own: each window
  // is applied once.
  TrainingJob job = Job(folder.path());
  async(*job.mutable_spec());
  Replicas(2, 1)(*job.mutable_spec());
  job.mutable_spec()->mutable_storage()->set_durability("logged");
  const Ended undisturbed = Run(job, RowPath::kHost);
  const Ended disturbed = Run(job, RowPath::kDevice, {5, [](EmbeddedCluster& cluster) {
                                                        cluster.StopServer(1);
                                                        REQUIRE(cluster.StartServer(1).ok());
                                                      }});
  CHECK(disturbed.rows_there > 10'000);
  CHECK(disturbed.status.model_hash() == undisturbed.status.model_hash());
  // A lane's own copy is on the host.
  CheckSame(
      Job(folder.path()),
      [&](JobSpec& s) {
        async(s);
        s.mutable_training()->set_mode("downpour");
        s.mutable_training()->set_n_fetch(2);
        s.mutable_training()->set_n_push(2);
      },
      Expect::kHere);
}

// What a row weighs depends on the order of windows, and not how often it was updated.
TEST_CASE("windows of several asynchronous lanes are applied once", "[e2e][device]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = Job(folder.path());
  JobSpec& spec = *job.mutable_spec();
  for (int file = 2; file < 6; ++file) {  // each is a task of every epoch
    const std::string path = folder.path() + "/more-" + std::to_string(file);
    testing::WriteLibfm(path, file, 640, 6, 1000);
    spec.mutable_data()->add_train(path);
  }
  spec.mutable_training()->set_mode("async");
  spec.mutable_storage()->set_durability("logged");
  const auto run = [&](uint32_t lanes, uint32_t nodes, RowPath path,
                       const std::function<void(EmbeddedCluster&)>& disturb) {
    static int runs = 0;
    spec.mutable_training()->set_lanes(lanes);
    spec.mutable_checkpoint()->set_directory(folder.path() + "/ck-" + std::to_string(++runs));
    spec.mutable_checkpoint()->set_every_steps(30);
    Replicas(nodes, nodes)(spec);
    const Ended ended = Run(job, path, {20, disturb});
    CHECK((ended.rows_there > 0) == (path == RowPath::kDevice));
    return testing::RowUpdates(ended.status.checkpoint(), TableId(0));
  };
  const auto once = run(1, 1, RowPath::kHost, nullptr);
  CHECK(once.size() > 4000);
  CHECK(run(4, 2, RowPath::kDevice, nullptr) == once);
  const auto server = [](EmbeddedCluster& c) {
    c.StopServer(1);
    REQUIRE(c.StartServer(1).ok());
  };
  CHECK(run(4, 2, RowPath::kDevice, server) == once);
  const auto worker = [](EmbeddedCluster& c) {
    c.StopWorker(0);
    REQUIRE(c.StartWorker(0).ok());
  };
  CHECK(run(4, 2, RowPath::kDevice, worker) == once);
}

}  // namespace
}  // namespace strata
