// Promise P3 with real processes: one model hash whatever the cluster looks like and whatever is
// killed, at whatever moment.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/e2e/process_cluster.h"
#include "tests/e2e/removed_keys.h"
#include "tests/e2e/small_job.h"
#include "tests/skip.h"
#include "tools/cluster/embedded.h"
#include "tools/cluster/scratch_folder.h"

namespace strata::testing {
namespace {

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-e2e");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

JobStatus Embedded(const TrainingJob& job) {
  EmbeddedOptions options;
  options.job = job;
  auto status = RunEmbedded(options);
  REQUIRE(status.ok());
  REQUIRE(status->state() == SUCCEEDED);
  REQUIRE(status->model_hash().size() == 32);
  return *status;
}

TrainingJob Job(const std::string& folder, uint32_t servers, uint32_t workers, uint32_t epochs) {
  TrainingJob job = SmallJob(folder);
  job.mutable_spec()->mutable_replicas()->set_servers(servers);
  job.mutable_spec()->mutable_replicas()->set_workers(workers);
  job.mutable_spec()->mutable_training()->set_epochs(epochs);
  return job;
}

void CheckEnd(const JobStatus& end, const JobStatus& reference) {
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(end.result().auc() == reference.result().auc());
  CHECK(end.result().logloss() == reference.result().logloss());
  CHECK(end.examples() == reference.examples());
}

TEST_CASE("processes give the model of the embedded run, whatever their number", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path(), 1, 1, 2);
  const JobStatus reference = Embedded(job);
  CHECK(reference.step() == 20);
  ProcessCluster cluster({.servers = 3, .workers = 3, .folder = folder.path() + "/cluster"});
  const auto same = [&](const std::string& what, const std::function<void(JobSpec&)>& change) {
    INFO(what);
    TrainingJob other = job;
    change(*other.mutable_spec());
    CheckEnd(cluster.AwaitEnd(cluster.Submit(other)), reference);
  };
  same("as it is", [](JobSpec&) {});
  same("2 workers", [](JobSpec& s) { s.mutable_replicas()->set_workers(2); });
  same("3 workers", [](JobSpec& s) { s.mutable_replicas()->set_workers(3); });
  same("3 servers", [](JobSpec& s) { s.mutable_replicas()->set_servers(3); });
  same("3 servers, 3 workers, depth 1, 2 threads", [](JobSpec& s) {
    s.mutable_replicas()->set_servers(3);
    s.mutable_replicas()->set_workers(3);
    s.mutable_training()->set_pipeline_depth(1);
    s.mutable_training()->set_threads(2);
  });
  same("depth 1", [](JobSpec& s) { s.mutable_training()->set_pipeline_depth(1); });
  same("depth 4", [](JobSpec& s) { s.mutable_training()->set_pipeline_depth(4); });
  same("2 threads", [](JobSpec& s) { s.mutable_training()->set_threads(2); });
  same("no log", [](JobSpec& s) { s.mutable_storage()->set_durability("memory"); });

  TrainingJob other = job;
  other.mutable_spec()->mutable_training()->set_seed(2);
  const JobStatus differs = cluster.AwaitEnd(cluster.Submit(other));
  CHECK(differs.state() == SUCCEEDED);
  CHECK(differs.model_hash() != reference.model_hash());
}

// Ends a server by itself at one named place and hit, restarts it, and compares.
void KillAt(ProcessCluster& cluster, const TrainingJob& job, const JobStatus& reference,
            const std::string& server, const std::string& point, bool and_worker) {
  INFO(server << " " << point << (and_worker ? " and worker-0" : ""));
  const uint64_t id = cluster.SubmitAndLose(job, server, point);
  if (and_worker) cluster.Kill("worker-0");
  cluster.Start(server);
  if (and_worker) cluster.Start("worker-0");
  const JobStatus end = cluster.AwaitEnd(id);
  CheckEnd(end, reference);
  CHECK(end.rollbacks() == 0);
}

// The smallest limit that a job is admitted with, in KiB, by halving and bisecting.
TEST_CASE("the smallest admitted DRAM limit gives the same model", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path(), 1, 1, 2);
  const JobStatus reference = Embedded(job);
  ProcessCluster cluster({.servers = 1, .workers = 1, .folder = folder.path() + "/cluster"});
  int refused_at_submit = 0;
  const auto run = [&](int kib) {
    TrainingJob other = job;
    other.mutable_spec()->mutable_storage()->set_dram_bytes_per_server(std::to_string(kib) + "KiB");
    try {
      return cluster.AwaitEnd(cluster.Submit(other));
    } catch (const std::runtime_error& at_submit) {
      JobStatus end;
      end.set_state(FAILED);
      end.add_conditions()->set_message(at_submit.what());
      ++refused_at_submit;
      return end;
    }
  };
  int refused = 0, admitted = 256;
  CheckEnd(run(admitted), reference);
  while (admitted - refused > 1) {
    const int middle = (admitted + refused) / 2;
    const JobStatus end = run(middle);
    if (end.state() == SUCCEEDED) {
      CheckEnd(end, reference);
      admitted = middle;
    } else {
      INFO(Conditions(end));
      CHECK(Conditions(end).find("dramBytesPerServer") != std::string::npos);
      refused = middle;
    }
  }
  INFO("smallest limit admitted: " << admitted << " KiB");
  CHECK(admitted < 256);
  CHECK(run(8).state() == FAILED);
  CHECK(refused_at_submit > 0);
  CHECK(refused > 0);
  // Rows lie on SSD with it: the server ends where it has read some.
  TrainingJob smallest = job;
  smallest.mutable_spec()->mutable_storage()->set_dram_bytes_per_server(std::to_string(admitted) +
                                                                        "KiB");
  KillAt(cluster, smallest, reference, "server-0", "tier.read=kill@20", false);
}

TEST_CASE("a server killed between push and commit of any shard", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path(), 2, 2, 2);
  const JobStatus reference = Embedded(job);
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  // 4 shards a server and 20 steps: hits 1 to 80. STRATA_LONG takes them all.
  std::vector<int> hits = {1, 2, 3, 40, 41, 80};
  if (LongRun()) {
    hits.clear();
    for (int hit = 1; hit <= 80; ++hit) hits.push_back(hit);
  }
  int round = 0;
  for (const char* point :
       {"server.commit.append", "server.commit.appended", "server.commit.applied"}) {
    for (int hit : hits) {
      ++round;
      KillAt(cluster, job, reference, round % 2 == 0 ? "server-0" : "server-1",
             std::string(point) + "=kill@" + std::to_string(hit), round % 3 == 0);
    }
  }
}

TEST_CASE("a server killed that keeps rows on SSD and takes base images", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = Job(folder.path(), 2, 2, 10);
  // Some 1,350 rows on each server, which has room for less than half of them.
  WriteLibfm(folder.path() + "/train.libfm", 1, 600, 6, 1000);
  const JobStatus reference = Embedded(job);
  job.mutable_spec()->mutable_storage()->set_dram_bytes_per_server("96KiB");
  job.mutable_spec()->mutable_storage()->set_log_bytes_per_server("64KiB");
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  bool worker = false;
  // The first and the last place tell that rows were read from SSD.
  for (const char* point :
       {"tier.read=kill@1", "server.image=kill@1", "server.snapshot.finish=kill@6",
        "server.commit.append=kill@150", "server.commit.appended=kill@251",
        "server.commit.applied=kill@390", "tier.read=kill@300"}) {
    KillAt(cluster, job, reference, worker ? "server-0" : "server-1", point, worker);
    worker = !worker;
  }
}

TEST_CASE("a server killed while features come and go", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = Job(folder.path(), 2, 2, 10);
  WriteLibfm(folder.path() + "/train.libfm", 1, 600, 6, 300);
  LifeCycleSpec& life = *job.mutable_spec()->mutable_life_cycle();
  life.mutable_admission()->set_type("exact");
  life.mutable_admission()->set_min_steps(4);
  life.mutable_removal()->set_every_steps(5);
  life.mutable_removal()->mutable_score()->set_below(1.5f);
  life.mutable_removal()->mutable_score()->set_decay(0.7f);
  life.mutable_removal()->mutable_score()->set_decay_steps(3);
  std::string gone = folder.path() + "/gone";
  job.mutable_spec()->mutable_output()->set_removed(gone);
  const JobStatus reference = Embedded(job);
  CHECK(reference.life_cycle().removed_by_score() > 0);
  const auto removed = RemovedKeysIn(gone);
  CHECK(removed.size() == reference.life_cycle().removed_by_score());
  job.mutable_spec()->mutable_storage()->set_dram_bytes_per_server("80KiB");
  job.mutable_spec()->mutable_storage()->set_log_bytes_per_server("64KiB");
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  bool worker = false;
  // The last place tells that rows were read from SSD.
  for (const char* point :
       {"server.image=kill@6", "server.commit.appended=kill@251", "removed.ended=kill@40",
        "server.commit.applied=kill@390", "tier.read=kill@100"}) {
    gone += "-again";
    job.mutable_spec()->mutable_output()->set_removed(gone);
    KillAt(cluster, job, reference, worker ? "server-0" : "server-1", point, worker);
    CHECK(RemovedKeysIn(gone) == removed);
    worker = !worker;
  }
}

// Segments written around the page cache: padding behind the last record, and, after a kill, a
// segment that goes on buffered. Several segments are begun between two kills.
TEST_CASE("a server killed that writes its log around the page cache", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = Job(folder.path(), 2, 2, 10);
  const JobStatus reference = Embedded(job);
  job.mutable_spec()->mutable_storage()->set_log_bytes_per_server("64KiB");
  ProcessCluster cluster(
      {.folder = folder.path() + "/cluster", .server_flags = {"--log-direct-from-bytes=0"}});
  {
    const uint64_t id = cluster.Submit(job);
    bool direct = false;
    const JobStatus end = cluster.Await(id, [&](const JobStatus& s) {
      direct = direct || cluster.process("server-0").WritesDirectly("/log/");
      return s.state() != RUNNING && s.state() != PENDING;
    });
    CheckEnd(end, reference);
    if (!direct) STRATA_SKIP("this file system takes no direct writes");
  }
  bool worker = false;
  for (const char* point : {"server.commit.append=kill@3", "server.commit.appended=kill@50",
                            "server.commit.applied=kill@151", "server.image=kill@3",
                            "server.commit.appended=kill@390"}) {
    KillAt(cluster, job, reference, worker ? "server-0" : "server-1", point, worker);
    worker = !worker;
  }
  // kill -9 from outside, wherever the writes are.
  std::mt19937_64 random(7);
  for (int round = 0; round < (LongRun() ? 30 : 4); ++round) {
    const uint64_t id = cluster.Submit(job);
    const JobStatus at = cluster.AwaitStep(id, 1 + random() % 80);
    INFO("round " << round << ": both servers killed at step " << at.step());
    cluster.KillAndStart({"server-0", "server-1"});
    const JobStatus end = cluster.AwaitEnd(id);
    CheckEnd(end, reference);
    CHECK(end.rollbacks() == 0);
  }
}

TEST_CASE("commits that fail for a while, at each of their places", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path(), 2, 2, 2);
  const JobStatus reference = Embedded(job);
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  for (const char* points :
       {"server.commit.append=error(RESOURCE_EXHAUSTED)@5*3",
        "server.commit.appended=error(RESOURCE_EXHAUSTED)@21*2",
        "server.commit.append=error(UNAVAILABLE)@9*1;server.commit.applied=error(UNAVAILABLE)@33*"
        "2"}) {
    INFO(points);
    cluster.Kill("server-0");
    cluster.Start("server-0", points);
    cluster.AwaitRegistered();
    const JobStatus end = cluster.AwaitEnd(cluster.Submit(job));
    CheckEnd(end, reference);
    CHECK(end.rollbacks() == 0);
  }
}

TEST_CASE("both servers killed together, on different shards", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path(), 2, 2, 2);
  const JobStatus reference = Embedded(job);
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  std::mt19937_64 random(5);
  const char* points[] = {"server.commit.append", "server.commit.appended",
                          "server.commit.applied"};
  for (int round = 0; round < (LongRun() ? 40 : 6); ++round) {
    // Both in the same step; whoever comes first holds the other up at most one step later.
    const int step = static_cast<int>(1 + random() % 18);
    const auto point = [&] {
      return std::string(points[random() % 3]) + "=kill@" +
             std::to_string(4 * step + 1 + static_cast<int>(random() % 4));
    };
    const std::string first = point(), second = point();
    INFO("round " << round << ": server-0 " << first << ", server-1 " << second);
    cluster.Kill("server-0");
    cluster.Kill("server-1");
    cluster.Start("server-0", first);
    cluster.Start("server-1", second);
    cluster.AwaitRegistered();
    const uint64_t id = cluster.Submit(job);
    // The one may end before the other has come to its own place: then it is killed there.
    AwaitThat("a server ends",
              [&] { return !cluster.Running("server-0") || !cluster.Running("server-1"); });
    cluster.Kill("server-0");
    cluster.Kill("server-1");
    cluster.Start("server-1");
    cluster.Start("server-0");
    const JobStatus end = cluster.AwaitEnd(id);
    CheckEnd(end, reference);
    CHECK(end.rollbacks() == 0);
  }
}

TEST_CASE("anything killed at random moments", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = Job(folder.path(), 2, 2, 30);
  const JobStatus reference = Embedded(job);
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  const std::vector<std::vector<std::string>> victims = {
      {"worker-0"},
      {"worker-1"},
      {"server-0"},
      {"server-1"},
      {"server-0", "worker-1"},
      {"server-1", "worker-0", "worker-1"},
      {"scheduler"},
      {"server-0", "server-1", "worker-0", "worker-1"}};
  for (int round = 0; round < (LongRun() ? 30 : 3); ++round) {
    std::mt19937_64 random(static_cast<uint64_t>(round) + 11);
    const uint64_t id = cluster.Submit(job);
    uint64_t at = 0;
    std::string story = "round " + std::to_string(round);
    for (int kills = 0; kills < 4; ++kills) {
      at += 1 + random() % 60;
      const JobStatus status = cluster.AwaitStep(id, at);
      const auto& who = victims[random() % victims.size()];
      cluster.KillAndStart(who);
      for (const std::string& name : who) story += " " + std::to_string(status.step()) + ":" + name;
    }
    INFO(story);
    const JobStatus end = cluster.AwaitEnd(id);
    CheckEnd(end, reference);
    CHECK(end.rollbacks() == 0);
  }
}

TEST_CASE("a server lost at level memory rolls the job back to the same model", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = Job(folder.path(), 2, 2, 20);
  job.mutable_spec()->mutable_storage()->set_durability("memory");
  const JobStatus reference = Embedded(job);
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  for (const bool with_checkpoint : {false, true}) {
    INFO((with_checkpoint ? "to a checkpoint" : "to the beginning"));
    if (with_checkpoint) {
      job.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/checkpoints");
      job.mutable_spec()->mutable_checkpoint()->set_every_steps(20);
    }
    const uint64_t id = cluster.Submit(job);
    cluster.Await(id, [&](const JobStatus& s) {
      return s.step() >= 50 && (!with_checkpoint || !s.checkpoint().empty());
    });
    cluster.Kill("server-1");
    cluster.Start("server-1");
    const JobStatus end = cluster.AwaitEnd(id);
    CheckEnd(end, reference);
    CHECK(end.rollbacks() == 1);
    CHECK(end.generation() == 2);
    CHECK(HasCondition(end, "RolledBack"));
    CHECK(Conditions(end).find(with_checkpoint ? "starts from checkpoint"
                                               : "starts from the beginning") != std::string::npos);
  }
}

}  // namespace
}  // namespace strata::testing
