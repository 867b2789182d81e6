// Promise P3 inside one process: one model hash whatever the cluster looks like and whatever dies.
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "absl/time/time.h"
#include "ops/cpu_features.h"
#include "proto/runtime/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/disturbed_run.h"
#include "tests/e2e/embedded_training.h"
#include "tests/e2e/small_job.h"
#include "tools/cluster/embedded_cluster.h"
#include "tools/cluster/scratch_folder.h"

namespace strata {
namespace {

// The model hash of SmallJob on every machine, with AVX-512 or without. It changes with whatever is
// meant to change a model or its hash, and with nothing else.
constexpr char kSmallJobHash[] = "88779caab928356eac48e2b9cec18bd7";

TEST_CASE("the model does not depend on the cluster", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = testing::SmallJob(folder.path());
  const JobStatus reference = Train(job);
  CHECK(reference.result().auc() > 0.55);
  CHECK(reference.step() == 20);
  CHECK(reference.model_hash() == kSmallJobHash);

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

TEST_CASE("the model does not depend on where rows lie below memory", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  // Some 2,700 rows: more than the limit holds, also on three servers.
  testing::WriteLibfm(folder.path() + "/train.libfm", 1, 600, 6, 1000);
  const JobStatus reference = Train(job);
  job.mutable_spec()->mutable_storage()->set_dram_bytes_per_server("96KiB");
  const auto same = [&](const std::string& what, const std::function<void(JobSpec&)>& change) {
    TrainingJob below = job;
    change(*below.mutable_spec());
    INFO(what);
    const JobStatus status = TrainBelowDram(below);
    CHECK(status.model_hash() == reference.model_hash());
    CHECK(status.result().auc() == reference.result().auc());
    CHECK(status.result().logloss() == reference.result().logloss());
  };
  for (const char* ssd : {"rocksdb", "rowfile"}) {
    same(ssd, [&](JobSpec& s) { s.mutable_storage()->set_ssd(ssd); });
    same(std::string("3 servers, 2 workers, ") + ssd, [&](JobSpec& s) {
      s.mutable_replicas()->set_servers(3);
      s.mutable_replicas()->set_workers(2);
      s.mutable_storage()->set_ssd(ssd);
    });
  }
  for (const char* eviction : {"lru", "lfu"}) {
    same(eviction, [&](JobSpec& s) { s.mutable_storage()->set_eviction(eviction); });
  }
}

// "label,age,price,user,tags" lines; tags hold none to three values.
void WriteCsv(const std::string& path, uint64_t seed, int lines) {
  std::mt19937_64 random(seed);
  std::ofstream out(path);
  out << "label,age,price,user,tags\n";
  for (int l = 0; l < lines; ++l) {
    const uint64_t user = random() % 30, age = random() % 7;
    out << (user + age) % 2 << ',' << age << ',' << random() % 100 * 0.01 << ",u" << user << ',';
    for (uint64_t tags = random() % 4, t = 0; t < tags; ++t) {
      out << (t > 0 ? "|" : "") << 't' << random() % 12;
    }
    out << '\n';
  }
}

TEST_CASE("no model depends on the cluster, nor fields of several values", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  WriteCsv(folder.path() + "/train.csv", 1, 500);
  WriteCsv(folder.path() + "/eval.csv", 2, 100);
  TrainingJob job = testing::SmallJob(folder.path());
  DataSpec& data = *job.mutable_spec()->mutable_data();
  data.set_format("csv");
  data.set_train(0, folder.path() + "/train.csv");
  data.set_eval(0, folder.path() + "/eval.csv");
  ColumnsSpec& columns = *data.mutable_columns();
  columns.set_label("label");
  columns.add_numeric("age");
  columns.add_numeric("price");
  columns.add_categorical("user");
  columns.add_multi_valued()->set_column("tags");
  struct Case {
    const char* type;
    const char* pooling;
    uint32_t cross_rank = 0;
  };
  for (const Case& c :
       {Case{"lr", "sum"}, Case{"fm", "sum"}, Case{"wide_deep", "sum"}, Case{"deepfm", "mean"},
        Case{"dcn_v2", "sum"}, Case{"dcn_v2", "mean", 5}, Case{"dlrm", "sum"}}) {
    INFO(c.type << ", pooling " << c.pooling);
    columns.mutable_multi_valued(0)->set_pooling(c.pooling);
    ModelSpec& model = *job.mutable_spec()->mutable_model();
    model.set_type(c.type);
    model.clear_bottom_hidden();
    model.clear_cross_rank();
    if (model.type() == "dlrm") model.add_bottom_hidden(12);
    if (model.type() == "dcn_v2") model.set_cross_rank(c.cross_rank);
    const JobStatus reference = Train(job);
    CHECK(reference.refused_rows() == 0);
    TrainingJob spread = job;
    spread.mutable_spec()->mutable_replicas()->set_servers(2);
    spread.mutable_spec()->mutable_replicas()->set_workers(3);
    spread.mutable_spec()->mutable_training()->set_threads(2);
    CHECK(Train(spread).model_hash() == reference.model_hash());
    const ops::IsaLevel before = ops::SetActiveIsaLevel(ops::IsaLevel::kV3);
    const JobStatus avx2 = Train(job);
    ops::SetActiveIsaLevel(before);
    CHECK(avx2.model_hash() == reference.model_hash());
    CHECK(avx2.result().logloss() == reference.result().logloss());
  }
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

// Rows that were read from below memory so far.
uint64_t SsdReads(EmbeddedCluster& cluster, const JobRef& ref) {
  const auto shards = cluster.scheduler().GetShards(ref, absl::Seconds(10));
  REQUIRE(shards.ok());
  uint64_t reads = 0;
  for (const ShardStatus& s : shards->shards()) reads += s.report().ssd_reads();
  return reads;
}

TEST_CASE("models with rows below memory survive lost servers", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  testing::WriteLibfm(folder.path() + "/train.libfm", 1, 600, 6, 1000);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_training()->set_epochs(6);
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  for (const std::string type : {"dlrm", "dcn_v2"}) {
    INFO(type);
    spec.mutable_model()->set_type(type);
    const JobStatus reference = Train(job);
    TrainingJob below = job;
    below.mutable_spec()->mutable_storage()->set_dram_bytes_per_server("128KiB");
    below.mutable_spec()->mutable_storage()->set_ssd(type == "dlrm" ? "rocksdb" : "rowfile");
    below.mutable_spec()->mutable_storage()->set_shards_per_server(1);
    uint64_t reads = 0;
    const JobStatus status = testing::RunDisturbed(
        below, folder.path() + "/" + type, 30, [&](EmbeddedCluster& cluster, const JobRef& ref) {
          reads = SsdReads(cluster, ref);
          testing::RestartNearlyAll(cluster);
        });
    for (const JobCondition& c : status.conditions()) {
      UNSCOPED_INFO(c.reason() << ": " << c.message());
    }
    REQUIRE(status.state() == SUCCEEDED);
    CHECK(reads > 0);
    CHECK(status.model_hash() == reference.model_hash());
    CHECK(status.result().logloss() == reference.result().logloss());
  }
}

// Everything whose update depends on the step's number or on a row's state, at once: four
// optimizers, three schedules, decay, both clips.
void UseManyOptimizers(JobSpec& spec) {
  OptimizersSpec& o = *spec.mutable_optimizer();
  o.Clear();
  o.mutable_sparse()->set_type("rowwise_adagrad");
  o.mutable_sparse()->set_clip_norm(0.002f);
  o.mutable_sparse()->set_weight_decay(1e-3f);
  ScheduleSpec& sparse = *o.mutable_sparse()->mutable_schedule();
  sparse.set_type("cosine");
  sparse.set_warmup_steps(5);
  sparse.set_decay_steps(100);
  sparse.set_final_factor(0.1f);
  o.mutable_linear()->set_type("ftrl");
  o.mutable_linear()->set_learning_rate(0.5f);
  o.mutable_linear()->set_l1(0.01f);
  o.mutable_linear()->set_l2(0.01f);
  ScheduleSpec& linear = *o.mutable_linear()->mutable_schedule();
  linear.set_type("poly");
  linear.set_decay_steps(150);
  linear.set_power(0.7f);
  linear.set_final_factor(0.2f);
  o.mutable_dense()->set_type("momentum");
  o.mutable_dense()->set_nesterov(true);
  o.mutable_dense()->set_clip_value(0.05f);
  o.mutable_dense()->set_weight_decay(1e-4f);
  ScheduleSpec& dense = *o.mutable_dense()->mutable_schedule();
  dense.set_type("step");
  dense.set_decay_steps(30);
  dense.set_gamma(0.7f);
}

TEST_CASE("schedules, ftrl, momentum, decay and clipping do not depend on the cluster",
          "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  UseManyOptimizers(*job.mutable_spec());
  job.mutable_spec()->mutable_training()->set_epochs(16);
  const JobStatus reference = Train(job);
  CHECK(reference.result().auc() > 0.6);
  CHECK(reference.clipped_rows() > 0);
  CHECK(reference.refused_rows() == 0);

  const ops::IsaLevel before = ops::SetActiveIsaLevel(ops::IsaLevel::kV3);
  CHECK(Train(job).model_hash() == reference.model_hash());
  ops::SetActiveIsaLevel(before);
  TrainingJob other = job;
  other.mutable_spec()->mutable_replicas()->set_servers(3);
  other.mutable_spec()->mutable_replicas()->set_workers(3);
  const JobStatus spread = Train(other);
  CHECK(spread.model_hash() == reference.model_hash());
  CHECK(spread.clipped_rows() == reference.clipped_rows());
  // Memory is lost in the middle of every schedule: base images are replayed from.
  other = job;
  other.mutable_spec()->mutable_replicas()->set_servers(2);
  other.mutable_spec()->mutable_replicas()->set_workers(2);
  other.mutable_spec()->mutable_storage()->set_log_bytes_per_server("64KiB");
  for (uint64_t at : {3, 57, 130}) {
    const std::string dir = folder.path() + "/run-" + std::to_string(at);
    const JobStatus status = TrainDisturbed(other, dir, at, testing::RestartNearlyAll);
    CHECK(status.model_hash() == reference.model_hash());
  }
  // Each of them has an effect.
  const auto differs = [&](const std::string& what,
                           const std::function<void(OptimizersSpec&)>& change) {
    TrainingJob changed = job;
    change(*changed.mutable_spec()->mutable_optimizer());
    INFO(what);
    CHECK(Train(changed).model_hash() != reference.model_hash());
  };
  differs("sparse schedule", [](auto& o) { o.mutable_sparse()->clear_schedule(); });
  differs("sparse decay", [](auto& o) { o.mutable_sparse()->clear_weight_decay(); });
  differs("sparse clipping", [](auto& o) { o.mutable_sparse()->clear_clip_norm(); });
  differs("linear schedule", [](auto& o) { o.mutable_linear()->clear_schedule(); });
  differs("linear l1", [](auto& o) { o.mutable_linear()->set_l1(0); });
  differs("dense schedule", [](auto& o) { o.mutable_dense()->clear_schedule(); });
  differs("nesterov", [](auto& o) { o.mutable_dense()->set_nesterov(false); });
}

TEST_CASE("schedules, ftrl, momentum, decay and clipping work on rows below memory", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  testing::WriteLibfm(folder.path() + "/train.libfm", 1, 600, 6, 1000);
  UseManyOptimizers(*job.mutable_spec());
  job.mutable_spec()->mutable_training()->set_epochs(6);
  const JobStatus reference = Train(job);
  CHECK(reference.clipped_rows() > 0);
  job.mutable_spec()->mutable_replicas()->set_servers(3);
  job.mutable_spec()->mutable_replicas()->set_workers(3);
  job.mutable_spec()->mutable_storage()->set_dram_bytes_per_server("80KiB");
  const JobStatus spread = TrainBelowDram(job);
  CHECK(spread.model_hash() == reference.model_hash());
  CHECK(spread.clipped_rows() == reference.clipped_rows());
}

}  // namespace
}  // namespace strata
