// A machine is lost for good: its processes are killed, and their folders removed. With copies of
// its shards nothing is rolled back, and a synchronous job gives the model that it gives
// undisturbed; without, or when all copies are lost, the job goes back to its checkpoint on other
// servers. Or it is started anew: what its servers had open may lack its end, and what they hold
// while only processes begin again does not.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "server/job/boot_note.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// 400 steps on two servers.
TrainingJob LongJob(const std::string& folder, const std::string& name) {
  TrainingJob job = SmallJob(folder);
  job.mutable_metadata()->set_name(name);
  job.mutable_spec()->mutable_training()->set_epochs(40);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  job.mutable_spec()->mutable_checkpoint()->set_directory(absl::StrCat(folder, "/ckpt-", name));
  return job;
}

TrainingJob WithCopies(TrainingJob job) {
  job.mutable_spec()->mutable_storage()->set_durability("replicated");
  job.mutable_spec()->mutable_storage()->set_replicas(2);
  return job;
}

// Servers of the shards of the job's server `slot`, the head first.
std::vector<std::string> CopiesOf(ProcessCluster& cluster, uint64_t job, int slot) {
  JobRef ref;
  ref.set_job(job);
  const auto shards = cluster.scheduler().GetShards(ref, absl::Seconds(10));
  INFO(shards.status());
  REQUIRE(shards.ok());
  REQUIRE(shards->servers_size() > slot);
  std::vector<std::string> names;
  for (const CopyStatus& copy : shards->servers(slot).copies()) names.push_back(copy.server());
  if (names.empty()) names.push_back(shards->servers(slot).name());
  return names;
}

void Lose(ProcessCluster& cluster, const std::string& server) {
  cluster.Kill(server);
  std::filesystem::remove_all(cluster.folder() + "/" + server);
}

size_t Events(ProcessCluster& cluster, uint64_t job, const std::string& reason) {
  GetEventsRequest request;
  request.mutable_job()->set_job(job);
  const auto events = cluster.scheduler().GetEvents(request, absl::Seconds(10));
  INFO(events.status());
  REQUIRE(events.ok());
  return static_cast<size_t>(std::count_if(events->events().begin(), events->events().end(),
                                           [&](const Event& e) { return e.reason() == reason; }));
}

// As the start of the machine anew leaves it: what its copies had open was noted under another one.
void StartMachineAnew(const ProcessCluster& cluster, const std::string& server) {
  size_t noted = 0;
  const std::filesystem::path folder = cluster.folder() + "/" + server;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "BOOT") continue;
    REQUIRE(server::NoteLogOpen(entry.path().parent_path().string(), "another start").ok());
    ++noted;
  }
  REQUIRE(noted > 0);
}

TEST_CASE("machines are lost for good", "[faults][p1][p3]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  ProcessCluster cluster({.servers = 4, .folder = folder->path() + "/cluster"});
  const JobStatus reference = Train(LongJob(folder->path(), "reference"));

  SECTION("one that heads shards, with copies: no roll-back, the same model") {
    const uint64_t job = cluster.Submit(WithCopies(LongJob(folder->path(), "copies")));
    cluster.AwaitStep(job, 40);
    const std::vector<std::string> copies = CopiesOf(cluster, job, 0);
    REQUIRE(copies.size() == 2);
    Lose(cluster, copies[0]);
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 0);
    CHECK(end.model_hash() == reference.model_hash());
    CHECK(HasCondition(end, "Promoted"));
  }

  SECTION("one that has a copy alone: no roll-back, the same model") {
    const uint64_t job = cluster.Submit(WithCopies(LongJob(folder->path(), "backup")));
    cluster.AwaitStep(job, 40);
    Lose(cluster, CopiesOf(cluster, job, 1).at(1));
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 0);
    CHECK(end.model_hash() == reference.model_hash());
  }

  SECTION("one that heads shards of an asynchronous job, with copies: each window counts once") {
    TrainingJob spec = WithCopies(LongJob(folder->path(), "async"));
    spec.mutable_spec()->mutable_training()->set_mode("async");
    const uint64_t job = cluster.Submit(spec);
    cluster.AwaitStep(job, 40);
    Lose(cluster, CopiesOf(cluster, job, 0).at(0));
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 0);
    CHECK(end.examples() == end.total_examples());
    CHECK(end.step() == end.total_steps());
    CHECK(HasCondition(end, "Promoted"));
  }

  SECTION("two at once, of which each heads shards: no roll-back, the same model") {
    const uint64_t job = cluster.Submit(WithCopies(LongJob(folder->path(), "two")));
    cluster.AwaitStep(job, 40);
    const std::vector<std::string> first = CopiesOf(cluster, job, 0);
    const std::vector<std::string> second = CopiesOf(cluster, job, 1);
    // No shard has both its copies on them.
    REQUIRE(std::count(second.begin(), second.end(), first[0]) == 0);
    REQUIRE(std::count(first.begin(), first.end(), second[0]) == 0);
    cluster.Kill(first[0]);
    Lose(cluster, second[0]);
    Lose(cluster, first[0]);
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 0);
    CHECK(end.model_hash() == reference.model_hash());
    CHECK(HasCondition(end, "Promoted"));
  }

  SECTION("a worker's: its lanes go to the other, and it is not waited for") {
    const uint64_t job = cluster.Submit(LongJob(folder->path(), "worker"));
    cluster.AwaitStep(job, 40);
    Lose(cluster, "worker-0");
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 0);
    CHECK(end.model_hash() == reference.model_hash());
    CHECK(HasCondition(end, "WorkerLost"));
  }

  SECTION("the scheduler's: with a copy of its folder from before, jobs go on") {
    TrainingJob spec = WithCopies(LongJob(folder->path(), "scheduler"));
    spec.mutable_spec()->mutable_checkpoint()->set_every_steps(20);
    const uint64_t job = cluster.Submit(spec);
    cluster.AwaitStep(job, 40);
    const std::string own = cluster.folder() + "/scheduler", copy = own + ".copy";
    cluster.Kill("scheduler");
    std::filesystem::copy(own, copy, std::filesystem::copy_options::recursive);
    cluster.Start("scheduler");
    cluster.AwaitStep(job, 100);
    // Since the copy was made a server has lost its shards, which the copy does not know.
    Lose(cluster, CopiesOf(cluster, job, 0).at(0));
    cluster.Await(job, [](const JobStatus& s) { return HasCondition(s, "Promoted"); });
    Lose(cluster, "scheduler");
    std::filesystem::rename(copy, own);
    cluster.Start("scheduler", "", {"--restored"});
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.model_hash() == reference.model_hash());
  }

  SECTION("one without copies: another takes its place, and the job goes back to its checkpoint") {
    TrainingJob spec = LongJob(folder->path(), "alone");
    spec.mutable_spec()->mutable_checkpoint()->set_every_steps(20);
    spec.mutable_spec()->mutable_recovery()->set_replace_after("1s");
    const uint64_t job = cluster.Submit(spec);
    cluster.AwaitStep(job, 60);
    const std::string lost = CopiesOf(cluster, job, 0).at(0);
    Lose(cluster, lost);
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 1);
    CHECK(end.model_hash() == reference.model_hash());
    CHECK(absl::StrContains(Conditions(end), absl::StrCat("server ", lost, " stayed away")));
  }

  SECTION("both that have the copies: what is lost is told, with the checkpoint to go back to") {
    TrainingJob spec = WithCopies(LongJob(folder->path(), "both"));
    spec.mutable_spec()->mutable_checkpoint()->set_every_steps(20);
    spec.mutable_spec()->mutable_recovery()->set_replace_after("1s");
    const uint64_t job = cluster.Submit(spec);
    cluster.AwaitStep(job, 60);
    for (const std::string& server : CopiesOf(cluster, job, 0)) Lose(cluster, server);
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 1);
    CHECK(end.model_hash() == reference.model_hash());
    CHECK(absl::StrContains(Conditions(end), "are lost"));
    CHECK(absl::StrContains(Conditions(end), "from checkpoint"));
  }
}

TEST_CASE("machines and processes begin again", "[faults][p1][p3]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  ProcessCluster cluster({.servers = 3, .folder = folder->path() + "/cluster"});
  const JobStatus reference = Train(LongJob(folder->path(), "reference"));

  SECTION("both processes that have the copies, while a third one sees it: nothing is lost") {
    const uint64_t job = cluster.Submit(WithCopies(LongJob(folder->path(), "two")));
    cluster.AwaitStep(job, 40);
    const std::vector<std::string> copies = CopiesOf(cluster, job, 0);
    REQUIRE(copies.size() == 2);
    // The third has a copy beside one of them: whether that one leaves is a matter of who is heard
    // first, its new process or the word that the old one has ended.
    cluster.KillAndStart(copies);
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 0);
    CHECK(end.model_hash() == reference.model_hash());
  }

  SECTION("one machine: its copies are none, others go on, and copies are made anew") {
    const uint64_t job = cluster.Submit(WithCopies(LongJob(folder->path(), "power")));
    cluster.AwaitStep(job, 40);
    const std::string server = CopiesOf(cluster, job, 0).at(0);
    cluster.Kill(server);
    StartMachineAnew(cluster, server);
    cluster.Start(server);
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 0);
    CHECK(end.model_hash() == reference.model_hash());
  }

  SECTION("all machines of a chain: what may be gone is told, and the job goes back") {
    TrainingJob spec = WithCopies(LongJob(folder->path(), "blip"));
    spec.mutable_spec()->mutable_checkpoint()->set_every_steps(20);
    const uint64_t job = cluster.Submit(spec);
    cluster.AwaitStep(job, 60);
    const std::vector<std::string> servers = {"server-0", "server-1", "server-2"};
    for (const std::string& server : servers) cluster.Kill(server);
    for (const std::string& server : servers) StartMachineAnew(cluster, server);
    for (const std::string& server : servers) cluster.Start(server);
    const JobStatus end = cluster.AwaitEnd(job);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.rollbacks() == 1);
    CHECK(end.model_hash() == reference.model_hash());
    CHECK(absl::StrContains(Conditions(end), "the machine was started anew"));
    CHECK(absl::StrContains(Conditions(end), "from checkpoint"));
  }
}

TEST_CASE("all processes that have copies begin again: they are waited for, no copy is made anew",
          "[faults][p1][p3]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  // So that nobody is silent for a lease while others start.
  ProcessCluster cluster({.servers = 3, .folder = folder->path() + "/cluster", .lease_ms = 30'000});
  const JobStatus reference = Train(LongJob(folder->path(), "reference"));
  const uint64_t job = cluster.Submit(WithCopies(LongJob(folder->path(), "together")));
  cluster.AwaitStep(job, 40);
  // Nobody sees another one's end: all stand still before the first is killed, and each new process
  // stands still with what it recovers until all are known to the scheduler.
  const std::vector<std::string> servers = {"server-0", "server-1", "server-2"};
  for (const std::string& server : servers) {
    cluster.process(server).Signal(SIGSTOP);
    cluster.AwaitStopped(server);
  }
  for (const std::string& server : servers) cluster.Kill(server);
  for (const std::string& server : servers) cluster.Start(server, "server.recover=stop@1*1");
  for (const std::string& server : servers) cluster.AwaitStopped(server);
  for (const std::string& server : servers) cluster.process(server).Signal(SIGCONT);
  const JobStatus end = cluster.AwaitEnd(job);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.rollbacks() == 0);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(Events(cluster, job, "UnderReplicated") == 0);
  CHECK(Events(cluster, job, "CopyBegun") == 0);
}

TEST_CASE("the last copy is lost, and no server is left that could take its place",
          "[faults][p1][p3]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  ProcessCluster cluster({.servers = 2, .folder = folder->path() + "/cluster"});
  const JobStatus reference = Train(LongJob(folder->path(), "reference"));
  TrainingJob spec = WithCopies(LongJob(folder->path(), "last"));
  spec.mutable_spec()->mutable_checkpoint()->set_every_steps(20);
  spec.mutable_spec()->mutable_recovery()->set_replace_after("1s");
  const uint64_t job = cluster.Submit(spec);
  cluster.AwaitStep(job, 60);
  Lose(cluster, "server-1");
  cluster.Await(job, [](const JobStatus& s) { return HasCondition(s, "UnderReplicated"); });
  Lose(cluster, "server-0");
  const JobStatus waits = cluster.Await(job, [](const JobStatus& s) {
    return HasCondition(s, "ServerLost") && s.concerns_size() > 0;
  });
  INFO(Conditions(waits));
  CHECK(waits.state() == RUNNING);
  CHECK(absl::StrContains(Conditions(waits), "the last copies of shards 0-3 are away"));
  CHECK(absl::StrContains(Conditions(waits), "start another server, which takes their place"));
  CHECK(absl::StrContains(Conditions(waits),
                          absl::StrCat("from checkpoint ", folder->path(), "/ckpt-last/step-")));
  cluster.Start("server-0");
  cluster.Start("server-1");
  const JobStatus end = cluster.AwaitEnd(job);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  // One, or, where one server is there before the other, one for the shards of each.
  CHECK(end.rollbacks() >= 1);
  CHECK(end.rollbacks() <= 2);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(absl::StrContains(Conditions(end), " are lost, with "));
}

}  // namespace
}  // namespace strata::testing
