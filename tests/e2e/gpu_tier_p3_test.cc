// Promise P3 where the hottest rows lie in a GPU tier, which runs on the host's threads here: the
// model of a run that kept all rows in DRAM, whatever lies below, whatever dies.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "proto/runtime/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/disturbed_run.h"
#include "tests/e2e/embedded_training.h"
#include "tests/e2e/small_job.h"
#include "tools/cluster/embedded_cluster.h"
#include "tools/cluster/scratch_folder.h"
#include "tools/cluster/verify.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using Change = std::function<void(JobSpec&)>;

// 80 steps over some 5000 features with rows of 144 bytes.
TrainingJob Job(const std::string& folder) { return testing::ManyFeaturesJob(folder, 16, 4); }

// Two buckets a shard of four: room for some 500 rows on each server.
void InHbm(JobSpec& s) {
  s.mutable_storage()->set_gpu_bytes_per_server("128KiB");
  s.mutable_storage()->set_gpu_backend("host");
  s.mutable_storage()->set_shards_per_server(4);
}
void BelowDram(JobSpec& s, const char* ssd) {
  InHbm(s);
  s.mutable_storage()->set_dram_bytes_per_server("192KiB");
  s.mutable_storage()->set_ssd(ssd);
}
void ThreeByThree(JobSpec& s) {
  s.mutable_replicas()->set_servers(3);
  s.mutable_replicas()->set_workers(3);
}

TEST_CASE("the model does not depend on a GPU tier", "[e2e][p3][gpu]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path());
  const JobStatus reference = Train(job);
  REQUIRE(reference.step() == 80);
  const auto same = [&](const std::string& what, const Change& change) {
    TrainingJob other = job;
    change(*other.mutable_spec());
    const JobStatus status = Train(other);
    INFO(what);
    CHECK(status.model_hash() == reference.model_hash());
    CHECK(status.result().auc() == reference.result().auc());
    CHECK(status.result().logloss() == reference.result().logloss());
  };
  same("above DRAM", InHbm);
  same("above DRAM, with room for all", [](JobSpec& s) {
    InHbm(s);
    s.mutable_storage()->set_gpu_bytes_per_server("16MiB");
  });
  same("above DRAM and a row file", [](JobSpec& s) { BelowDram(s, "rowfile"); });
  same("above DRAM and RocksDB", [](JobSpec& s) { BelowDram(s, "rocksdb"); });
  same("3 servers, 3 workers", [](JobSpec& s) {
    BelowDram(s, "rowfile");
    ThreeByThree(s);
  });
  for (const char* eviction : {"lru", "lfu"}) {
    same(eviction, [&](JobSpec& s) {
      BelowDram(s, "rowfile");
      s.mutable_storage()->set_eviction(eviction);
    });
  }
  same("no log, pipeline depth 1, 2 threads", [](JobSpec& s) {
    BelowDram(s, "rowfile");
    s.mutable_storage()->set_durability("memory");
    s.mutable_training()->set_pipeline_depth(1);
    s.mutable_training()->set_threads(2);
  });
  same("a base image after every few steps", [](JobSpec& s) {
    BelowDram(s, "rowfile");
    s.mutable_storage()->set_log_bytes_per_server("64KiB");
  });
}

TEST_CASE("a life cycle is the same with a GPU tier", "[e2e][p3][gpu]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = Job(folder.path());
  LifeCycleSpec& life = *job.mutable_spec()->mutable_life_cycle();
  life.mutable_admission()->set_type("exact");
  life.mutable_admission()->set_min_steps(2);
  life.mutable_removal()->set_ttl_steps(8);
  life.mutable_removal()->set_every_steps(4);
  const JobStatus reference = Train(job);
  REQUIRE(reference.life_cycle().removed_by_ttl() > 0);
  for (const bool three : {false, true}) {
    TrainingJob other = job;
    BelowDram(*other.mutable_spec(), "rowfile");
    if (three) ThreeByThree(*other.mutable_spec());
    const JobStatus status = Train(other);
    CHECK(status.model_hash() == reference.model_hash());
    CHECK(status.life_cycle().removed_by_ttl() == reference.life_cycle().removed_by_ttl());
  }
}

// What the shards of a running job say of their GPU tier.
void CheckHbmUsed(EmbeddedCluster& cluster, const JobRef& ref) {
  const auto shards = cluster.scheduler().GetShards(ref, absl::Seconds(10));
  REQUIRE(shards.ok());
  uint64_t hits = 0;
  for (const ShardStatus& s : shards->shards()) {
    CHECK(s.report().hbm_bytes() <= (128 << 10) / 4);
    hits += s.report().hbm_hits();
  }
  CHECK(hits > 1000);
}

TEST_CASE("servers with a GPU tier that die, and checkpoints of it", "[e2e][p3][gpu]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = Job(folder.path());
  const JobStatus reference = Train(job);

  JobSpec& spec = *job.mutable_spec();
  const std::string checkpoints = folder.path() + "/checkpoints";
  BelowDram(spec, "rowfile");
  spec.mutable_checkpoint()->set_directory(checkpoints);
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  // All that the servers hold in memory, dirty rows of the GPU tier with it, is lost in the middle.
  // Then a checkpoint.
  const JobStatus first = testing::RunDisturbed(
      job, folder.path() + "/cluster", 40, [&](EmbeddedCluster& cluster, const JobRef& ref) {
        CheckHbmUsed(cluster, ref);
        cluster.StopServer(0);
        cluster.StopServer(1);
        REQUIRE(cluster.StartServer(1).ok());
        REQUIRE(cluster.StartServer(0).ok());
        CreateCheckpointRequest request;
        *request.mutable_job() = ref;
        request.set_wait_ms(60'000);
        const auto taken = cluster.scheduler().CreateCheckpoint(request, absl::Seconds(65));
        INFO(taken.status());
        REQUIRE(taken.ok());
      });
  REQUIRE(first.state() == SUCCEEDED);
  CHECK(first.model_hash() == reference.model_hash());
  CHECK(first.result().auc() == reference.result().auc());

  // From the middle, on other numbers of servers, with the tier and without.
  for (const uint32_t servers : {3u, 1u}) {
    INFO(servers << " servers");
    fs::remove_all(checkpoints + "/step-000000000080");
    const auto middle = VerifyCheckpoint(checkpoints);
    REQUIRE(middle.ok());
    REQUIRE(middle->step >= 40);
    REQUIRE(middle->step < 80);
    spec.mutable_replicas()->set_servers(servers);
    if (servers == 1) spec.mutable_storage()->clear_gpu_bytes_per_server();
    if (servers == 1) spec.mutable_storage()->clear_gpu_backend();
    const JobStatus status = Train(job, /*resume=*/true);
    CHECK(status.step() == 80);
    CHECK(status.model_hash() == reference.model_hash());
    CHECK(status.result().auc() == reference.result().auc());
  }
}

}  // namespace
}  // namespace strata
