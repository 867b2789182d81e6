// Promise P3 where features come and go: one model and one stream of removals, whatever the cluster
// looks like and whatever dies.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "tests/e2e/embedded_training.h"
#include "tests/e2e/removed_keys.h"
#include "tests/e2e/small_job.h"
#include "tools/cluster/embedded_cluster.h"
#include "tools/cluster/scratch_folder.h"

namespace strata {
namespace {

// Every way of admission that refuses, and every rule of removal, in three jobs: "score", "counts"
// and "exact".
void UseLifeCycle(JobSpec& spec, const std::string& rules) {
  AdmissionSpec& a = *spec.mutable_life_cycle()->mutable_admission();
  RemovalSpec& r = *spec.mutable_life_cycle()->mutable_removal();
  r.set_every_steps(7);
  if (rules == "exact") {
    a.set_type("exact");
    a.set_min_steps(3);
    a.set_filter_bytes("256KiB");
    r.set_ttl_steps(8);
  } else if (rules == "score") {
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
  for (const std::string rules : {"counts", "score", "exact"}) {
    INFO(rules);
    TrainingJob job = testing::SmallJob(folder.path());
    testing::WriteLibfm(folder.path() + "/train.libfm", 1, 600, 6, 300);  // features that rest
    job.mutable_spec()->mutable_training()->set_epochs(8);
    const std::string without = Train(job).model_hash();
    UseLifeCycle(*job.mutable_spec(), rules);
    int round = 0;
    const auto fresh_removed = [&](TrainingJob& run) {
      const std::string path = folder.path() + "/gone-" + rules + "-" + std::to_string(round++);
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
    if (rules == "score") {
      CHECK(counts.removed_by_score() > 0);
      CHECK(counts.removed_by_bytes() > 0);
    } else {
      CHECK(counts.removed_by_ttl() > 0);
    }
    if (rules == "counts") {
      CHECK(counts.removed_by_count() > 0);
      CHECK(counts.removed_by_norm() > 0);
    }
    CHECK(removed.size() == counts.removed_by_ttl() + counts.removed_by_count() +
                                counts.removed_by_score() + counts.removed_by_norm() +
                                counts.removed_by_bytes());
    TrainingJob other = job;
    other.mutable_spec()->mutable_replicas()->set_servers(3);
    other.mutable_spec()->mutable_replicas()->set_workers(3);
    other.mutable_spec()->mutable_storage()->set_dram_bytes_per_server("80KiB");
    other.mutable_spec()->mutable_storage()->set_ssd(rules == "score" ? "rowfile" : "rocksdb");
    gone = fresh_removed(other);
    const JobStatus spread = TrainBelowDram(other);
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
      if (rules == "exact" && at == 3) continue;
      const std::string dir = folder.path() + "/run-" + std::to_string(at) + "-" + rules;
      gone = fresh_removed(other);
      if (at == 59) {
        other.mutable_spec()->mutable_storage()->set_durability("memory");
        other.mutable_spec()->mutable_checkpoint()->set_directory(dir + "-checkpoints");
        other.mutable_spec()->mutable_checkpoint()->set_every_steps(12);
      }
      const JobStatus status = TrainDisturbed(other, dir, at, testing::RestartNearlyAll);
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
    UseLifeCycle(*job.mutable_spec(), std::string(mode) == "easgd" ? "counts" : "score");
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
