// Promise P3 inside one process: one model hash whatever the cluster looks like and whatever dies.
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "ops/cpu_features.h"
#include "tests/e2e/disturbed_run.h"
#include "tests/e2e/removed_keys.h"
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
  same("256 KiB of DRAM above a row file", [](JobSpec& s) {
    s.mutable_storage()->set_dram_bytes_per_server("256KiB");
    s.mutable_storage()->set_ssd("rowfile");
  });
  same("3 servers above row files", [](JobSpec& s) {
    s.mutable_replicas()->set_servers(3);
    s.mutable_storage()->set_dram_bytes_per_server("128KiB");
    s.mutable_storage()->set_ssd("rowfile");
  });
  for (const char* eviction : {"lru", "lfu"}) {
    same(eviction, [&](JobSpec& s) {
      s.mutable_storage()->set_dram_bytes_per_server("256KiB");
      s.mutable_storage()->set_eviction(eviction);
    });
  }
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
  other.mutable_spec()->mutable_storage()->set_dram_bytes_per_server("256KiB");
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
    const JobStatus status = TrainDisturbed(other, dir, at, [](EmbeddedCluster& c) {
      c.StopServer(0);
      c.StopServer(1);
      c.StopWorker(0);
      REQUIRE(c.StartServer(1).ok());
      REQUIRE(c.StartServer(0).ok());
      REQUIRE(c.StartWorker(0).ok());
    });
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

// Every way of admission, and every rule of removal, in two jobs.
void UseLifeCycle(JobSpec& spec, bool score) {
  AdmissionSpec& a = *spec.mutable_life_cycle()->mutable_admission();
  RemovalSpec& r = *spec.mutable_life_cycle()->mutable_removal();
  r.set_every_steps(7);
  if (score) {
    a.set_type("probability");
    a.set_probability(0.5f);
    r.mutable_score()->set_below(2.0f);
    r.mutable_score()->set_decay(0.7f);
    r.mutable_score()->set_decay_steps(5);
    r.set_bytes_per_partition("96");
  } else {
    a.set_type("counting");
    a.set_min_steps(2);
    a.set_filter_bytes("256KiB");
    r.set_ttl_steps(8);
    r.mutable_count()->set_below(3);
    r.mutable_count()->set_idle_steps(6);
    r.mutable_norm()->set_below(0.14f);
  }
}

TEST_CASE("the life cycle of features does not depend on the cluster", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  for (const bool score : {false, true}) {
    INFO((score ? "score" : "counts"));
    TrainingJob job = testing::SmallJob(folder.path());
    testing::WriteLibfm(folder.path() + "/train.libfm", 1, 600, 6, 300);  // features that rest
    job.mutable_spec()->mutable_training()->set_epochs(8);
    const std::string without = Train(job).model_hash();
    UseLifeCycle(*job.mutable_spec(), score);
    int round = 0;
    const auto fresh_removed = [&](TrainingJob& run) {
      const std::string path =
          folder.path() + (score ? "/gone-score-" : "/gone-counts-") + std::to_string(round++);
      run.mutable_spec()->mutable_output()->set_removed(path);
      return path;
    };
    std::string gone = fresh_removed(job);
    const JobStatus reference = Train(job);
    const auto removed = testing::RemovedKeysIn(gone);
    CHECK(reference.model_hash() != without);
    const LifeCycleCounts& counts = reference.life_cycle();
    INFO(counts.ShortDebugString());
    CHECK(counts.admitted() > 0);
    CHECK(counts.refused() > 0);
    if (score) {
      CHECK(counts.removed_by_score() > 0);
      CHECK(counts.removed_by_bytes() > 0);
    } else {
      CHECK(counts.removed_by_ttl() > 0);
      CHECK(counts.removed_by_count() > 0);
      CHECK(counts.removed_by_norm() > 0);
    }
    CHECK(removed.size() == counts.removed_by_ttl() + counts.removed_by_count() +
                                counts.removed_by_score() + counts.removed_by_norm() +
                                counts.removed_by_bytes());
    TrainingJob other = job;
    other.mutable_spec()->mutable_replicas()->set_servers(3);
    other.mutable_spec()->mutable_replicas()->set_workers(3);
    other.mutable_spec()->mutable_storage()->set_dram_bytes_per_server("256KiB");
    other.mutable_spec()->mutable_storage()->set_ssd("rowfile");
    gone = fresh_removed(other);
    const JobStatus spread = Train(other);
    CHECK(spread.model_hash() == reference.model_hash());
    CHECK(testing::RemovedKeysIn(gone) == removed);
    CHECK(spread.life_cycle().SerializeAsString() == counts.SerializeAsString());
    other = job;
    other.mutable_spec()->mutable_training()->set_pipeline_depth(1);
    other.mutable_spec()->mutable_training()->set_threads(2);
    other.mutable_spec()->mutable_storage()->set_durability("memory");
    fresh_removed(other);
    CHECK(Train(other).model_hash() == reference.model_hash());
    // Servers die: rows and filters come from images and the log, or, at level memory, from the
    // last checkpoint.
    other = job;
    other.mutable_spec()->mutable_replicas()->set_servers(2);
    other.mutable_spec()->mutable_replicas()->set_workers(2);
    other.mutable_spec()->mutable_storage()->set_log_bytes_per_server("64KiB");
    for (uint64_t at : {3, 41, 59}) {
      const std::string dir =
          folder.path() + "/run-" + std::to_string(at) + (score ? "-score" : "-counts");
      gone = fresh_removed(other);
      if (at == 59) {
        other.mutable_spec()->mutable_storage()->set_durability("memory");
        other.mutable_spec()->mutable_checkpoint()->set_directory(dir + "-checkpoints");
        other.mutable_spec()->mutable_checkpoint()->set_every_steps(12);
      }
      const JobStatus status = TrainDisturbed(other, dir, at, [](EmbeddedCluster& c) {
        c.StopServer(0);
        c.StopServer(1);
        c.StopWorker(0);
        REQUIRE(c.StartServer(1).ok());
        REQUIRE(c.StartServer(0).ok());
        REQUIRE(c.StartWorker(0).ok());
      });
      CHECK(status.model_hash() == reference.model_hash());
      CHECK(testing::RemovedKeysIn(gone) == removed);
      CHECK(status.rollbacks() == (at == 59 ? 1 : 0));
    }
  }
}

TEST_CASE("the life cycle works in asynchronous modes", "[e2e]") {
  const ScratchFolder folder = Folder();
  for (const char* mode : {"async", "downpour", "easgd"}) {
    INFO(mode);
    TrainingJob job = testing::SmallJob(folder.path());
    UseLifeCycle(*job.mutable_spec(), std::string(mode) != "easgd");
    if (std::string(mode) == "downpour") job.mutable_spec()->mutable_training()->set_n_push(2);
    job.mutable_spec()->mutable_training()->set_mode(mode);
    job.mutable_spec()->mutable_training()->set_epochs(4);
    const std::string gone = folder.path() + "/gone-" + mode;
    job.mutable_spec()->mutable_output()->set_removed(gone);
    const JobStatus status = Train(job);
    const LifeCycleCounts& counts = status.life_cycle();
    CHECK(testing::RemovedKeysIn(gone).size() ==
          counts.removed_by_ttl() + counts.removed_by_count() + counts.removed_by_score() +
              counts.removed_by_norm() + counts.removed_by_bytes());
    CHECK(status.life_cycle().admitted() > 0);
    CHECK(status.life_cycle().refused() > 0);
  }
}

}  // namespace
}  // namespace strata
