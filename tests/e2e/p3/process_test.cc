// Promise P3 with real processes: one model hash whatever the cluster looks like and whatever is
// killed, at whatever moment. One table: its rows are drawn from the axes of process_axes.h such
// that every two values meet that may; with `tools/test --long` the full product of the main axes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/removed_keys.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/e2e/cluster/table_room.h"
#include "tests/e2e/p3/covering.h"
#include "tests/e2e/p3/models.h"
#include "tests/e2e/p3/process_axes.h"
#include "tests/skip.h"
#include "tools/cluster/checkpoint/verify.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

constexpr int kWorkers = 3;

ProcessClusterOptions OptionsOf(const Cluster& cluster, const std::string& folder) {
  ProcessClusterOptions options;
  options.servers = cluster.servers;
  options.workers = kWorkers;
  options.folder = folder;
  // Rows below DRAM reach files after a few steps.
  options.server_flags = {"--tier-memtable-bytes=65536"};
  if (cluster.direct_log) options.server_flags.push_back("--log-direct-from-bytes=0");
  return options;
}

std::string Server(int index) { return absl::StrCat("server-", index); }

void CheckEnd(const JobStatus& end, const JobStatus& reference) {
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(end.result().auc() == reference.result().auc());
  CHECK(end.result().logloss() == reference.result().logloss());
  CHECK(end.examples() == reference.examples());
}

// Kills of a server by itself at each of the places, then it stays. Number of the job.
uint64_t KillAt(ProcessCluster& cluster, const TrainingJob& job, const std::string& server,
                const std::vector<std::string>& places, bool and_worker) {
  const uint64_t id = cluster.SubmitAndLose(job, server, places.front());
  if (and_worker) cluster.KillAndStart({"worker-0"});
  cluster.LoseAgain(server, {places.begin() + 1, places.end()});
  cluster.Start(server);
  return id;
}

// Both in the same step; whoever comes first holds the other up at most one step later.
uint64_t KillTogether(ProcessCluster& cluster, const TrainingJob& job, int servers, int step,
                      std::mt19937_64& random) {
  const char* places[] = {"server.commit.append", "server.commit.appended",
                          "server.commit.applied"};
  const std::string victims[] = {Server(servers - 1), Server(servers - 2)};
  for (const std::string& victim : victims) cluster.Kill(victim);
  for (const std::string& victim : victims) {
    cluster.Start(victim,
                  absl::StrCat(places[random() % 3], "=kill@", 4 * step + 1 + random() % 4));
  }
  cluster.AwaitRegistered();
  const uint64_t id = cluster.Submit(job);
  // The one may end before the other has come to its own place: then it is killed there.
  AwaitThat("a server ends",
            [&] { return !cluster.Running(victims[0]) || !cluster.Running(victims[1]); });
  cluster.KillAndStart({victims[0], victims[1]});
  return id;
}

uint64_t KillAnything(ProcessCluster& cluster, const TrainingJob& job, int servers, int step,
                      std::mt19937_64& random) {
  std::vector<std::vector<std::string>> victims = {
      {"worker-0"}, {"worker-1"}, {"scheduler"}, {"worker-0", "worker-1", "worker-2"}};
  std::vector<std::string> all = {"worker-0", "worker-1", "worker-2"};
  for (int s = 0; s < servers; ++s) {
    victims.push_back({Server(s)});
    victims.push_back({Server(s), "worker-2"});
    all.push_back(Server(s));
  }
  victims.push_back(all);
  const uint64_t id = cluster.Submit(job);
  auto at = static_cast<uint64_t>(step);
  for (int kills = 0; kills < 3; ++kills) {
    cluster.AwaitStep(id, at);
    cluster.KillAndStart(victims[random() % victims.size()]);
    at += 1 + random() % 10;
  }
  return id;
}

uint64_t FailCommits(ProcessCluster& cluster, const TrainingJob& job, const std::string& server,
                     size_t when) {
  const char* errors[] = {
      "server.commit.append=error(RESOURCE_EXHAUSTED)@5*3",
      "server.commit.appended=error(RESOURCE_EXHAUSTED)@21*2",
      "server.commit.append=error(UNAVAILABLE)@9*1;server.commit.applied=error(UNAVAILABLE)@33*2"};
  cluster.Kill(server);
  cluster.Start(server, errors[when]);
  cluster.AwaitRegistered();
  return cluster.Submit(job);
}

// Submits the row's job and does to the processes what the row says. Number of the job.
uint64_t Begin(const ProcessRow& row, const TrainingJob& job, ProcessCluster& cluster,
               std::mt19937_64& random) {
  const int servers = row.cluster.servers;
  const std::string last = Server(servers - 1);
  const int step = row.when == 0 ? 1 : static_cast<int>(25 * row.when);
  switch (row.story) {
    case Story::kCalm:
      break;
    case Story::kCommits:
    case Story::kFiles:
    case Story::kWorkerToo:
      return KillAt(cluster, job, last, PlacesOf(row), row.story == Story::kWorkerToo);
    case Story::kTogether:
      return KillTogether(cluster, job, servers, step, random);
    case Story::kAnything:
      return KillAnything(cluster, job, servers, step, random);
    case Story::kErrors:
      return FailCommits(cluster, job, last, row.when);
  }
  return cluster.Submit(job);
}

// What rows showed of their servers.
struct Seen {
  bool direct = false;    // logs written around the page cache
  uint64_t hbm_hits = 0;  // rows that one job found in its GPU tier, at most
  int mostly_below = 0;   // rows of the table with a job of which DRAM has room for less than half
};

void Look(const ProcessRow& row, uint64_t job, ProcessCluster& cluster, Seen& seen) {
  if (row.cluster.direct_log && !seen.direct) {
    seen.direct = cluster.process("server-0").WritesDirectly("/log/");
  }
  if (!row.hbm) return;
  JobRef ref;
  ref.set_job(job);
  const auto shards = cluster.scheduler().GetShards(ref, absl::Seconds(10));
  if (!shards.ok()) return;  // the scheduler may be the one that was killed
  uint64_t hits = 0;
  for (const ShardStatus& s : shards->shards()) hits += s.report().hbm_hits();
  seen.hbm_hits = std::max(seen.hbm_hits, hits);
}

void CheckRow(const ProcessRow& row, const Reference& reference, const std::string& folder,
              ProcessCluster& cluster, Seen& seen) {
  TrainingJob job = JobOf(row, reference.job);
  const std::string removed = folder + "/removed", checkpoints = folder + "/checkpoints";
  if (!reference.removed.empty()) job.mutable_spec()->mutable_output()->set_removed(removed);
  if (row.cuts > 0) job.mutable_spec()->mutable_checkpoint()->set_directory(checkpoints);
  std::mt19937_64 random(row.when + 11);
  const uint64_t id = Begin(row, job, cluster, random);
  const JobStatus end = cluster.Await(id, [&](const JobStatus& s) {
    Look(row, id, cluster, seen);
    return s.state() != RUNNING && s.state() != PENDING;
  });
  CheckEnd(end, reference.status);
  CHECK(end.rollbacks() == 0);
  if (row.ssd[0] != '\0' && row.cluster.servers < 3 && !reference.mostly_below.empty()) {
    const TableRoom room = RoomOf(reference.checkpoint, reference.mostly_below, job.spec());
    INFO(room.rows << " rows, at most " << room.most_in_dram << " in DRAM");
    CHECK(room.MostlyBelow());
    ++seen.mostly_below;
  }
  if (!reference.removed.empty()) CHECK(RemovedKeysIn(removed) == reference.removed);
  if (row.cuts == 0) return;
  const auto verified = VerifyCheckpoint(checkpoints);
  REQUIRE(verified.ok());
  CHECK(verified->model_hash == reference.status.model_hash());
}

TEST_CASE("a model depends neither on its processes nor on which of them is killed", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  std::map<std::string, Reference> references;
  for (const Model& model : Models()) {
    for (const std::string& name : ProcessModels()) {
      if (name == model.name) references[name] = MakeReference(model, folder.path(), 8);
    }
  }
  CHECK(references.at("score").removed.size() > 0);
  const Axes axes = ProcessAxes();
  const std::vector<Row> rows =
      LongRun() ? ProductRows(axes, kMainProcessAxes) : PairwiseRows(axes);
  Seen seen;
  for (size_t c = 0; c < Clusters().size(); ++c) {
    const Cluster& shape = Clusters()[c];
    ProcessCluster cluster(OptionsOf(shape, absl::StrCat(folder.path(), "/cluster-", c)));
    for (size_t i = 0; i < rows.size(); ++i) {
      const ProcessRow row = ProcessRowOf(rows[i]);
      if (row.cluster.servers != shape.servers) continue;
      INFO("row " << i << " of " << rows.size() << ": " << ToText(row));
      const absl::Time start = absl::Now();
      const ScratchFolder own = Folder();
      CheckRow(row, references.at(row.model), own.path(), cluster, seen);
      std::fprintf(stderr, "%zu of %zu, %.2f s: %s\n", i, rows.size(),
                   absl::ToDoubleSeconds(absl::Now() - start), ToText(row).c_str());
    }
  }
  CHECK(seen.hbm_hits > 1000);
  CHECK(seen.mostly_below > 0);
  if (!seen.direct) STRATA_SKIP("this file system takes no direct writes");
}

TEST_CASE("a server killed between push and commit of any shard", "[e2e][p3]") {
  if (!LongRun()) STRATA_SKIP("every commit of every shard: tools/test --long");
  const ScratchFolder folder = Folder();
  TrainingJob job = SmallJob(folder.path());
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  const JobStatus reference = Train(job);
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  int round = 0;
  for (const char* place :
       {"server.commit.append", "server.commit.appended", "server.commit.applied"}) {
    for (int hit = 1; hit <= 80; ++hit) {  // 4 shards a server and 20 steps
      const std::string server = ++round % 2 == 0 ? "server-0" : "server-1";
      const std::string at = absl::StrCat(place, "=kill@", hit);
      INFO(server << " " << at);
      const JobStatus end = cluster.AwaitEnd(KillAt(cluster, job, server, {at}, round % 3 == 0));
      CheckEnd(end, reference);
      CHECK(end.rollbacks() == 0);
    }
  }
}

// What a server with few bytes of DRAM does to a job.
struct Limited {
  JobStatus end;
  bool at_submit = false;  // it was refused there
};

Limited TrainWith(TrainingJob job, int dram_kib) {
  job.mutable_spec()->mutable_storage()->set_dram_bytes_per_server(absl::StrCat(dram_kib, "KiB"));
  EmbeddedOptions options;
  options.job = job;
  const auto end = RunEmbedded(options);
  if (end.ok()) return {*end};
  Limited refused{.at_submit = true};
  refused.end.set_state(FAILED);
  refused.end.add_conditions()->set_message(std::string(end.status().message()));
  return refused;
}

// By bisecting, in KiB.
TEST_CASE("the smallest admitted DRAM limit gives the same model, also of a killed server",
          "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = SmallJob(folder.path());
  const JobStatus reference = Train(job);
  int refused_at_submit = 0, refused = 0, admitted = 256;
  const auto is_admitted = [&](int kib) {
    const Limited run = TrainWith(job, kib);
    INFO(kib << " KiB: " << Conditions(run.end));
    refused_at_submit += run.at_submit;
    if (run.end.state() == SUCCEEDED) {
      CheckEnd(run.end, reference);
      return true;
    }
    CHECK(Conditions(run.end).find("dramBytesPerServer") != std::string::npos);
    return false;
  };
  REQUIRE(is_admitted(admitted));
  while (admitted - refused > 1) {
    const int middle = (admitted + refused) / 2;
    (is_admitted(middle) ? admitted : refused) = middle;
  }
  INFO("smallest limit admitted: " << admitted << " KiB");
  CHECK_FALSE(is_admitted(8));
  CHECK(refused_at_submit > 0);
  CHECK(refused > 0);
  // Rows lie on SSD with it: the server ends where it has read some.
  job.mutable_spec()->mutable_storage()->set_dram_bytes_per_server(absl::StrCat(admitted, "KiB"));
  ProcessCluster cluster({.servers = 1, .workers = 1, .folder = folder.path() + "/cluster"});
  const JobStatus end =
      cluster.AwaitEnd(KillAt(cluster, job, "server-0", {"tier.read=kill@20"}, false));
  CheckEnd(end, reference);
  CHECK(end.rollbacks() == 0);
}

TEST_CASE("a server lost at level memory rolls the job back to the same model", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = SmallJob(folder.path());
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  job.mutable_spec()->mutable_training()->set_epochs(20);
  job.mutable_spec()->mutable_storage()->set_durability("memory");
  const JobStatus reference = Train(job);
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
    cluster.KillAndStart({"server-1"});
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
