// Promise P6: killing the scheduler stops nothing that runs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/skip.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

TrainingJob LongJob(const std::string& folder) {
  TrainingJob job = SmallJob(folder);
  job.mutable_spec()->mutable_training()->set_epochs(150);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  return job;
}

double Examples(const ProcessCluster& cluster) {
  return cluster.ExamplesOf("worker-0") + cluster.ExamplesOf("worker-1");
}

TEST_CASE("a scheduler that is killed and comes back: training goes on, nobody is evicted",
          "[faults][p6]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = LongJob(folder.path());
  job.mutable_spec()->mutable_training()->set_epochs(400);
  const JobStatus reference = Train(job);
  constexpr int kLeaseMs = 3000;  // so long that a busy machine misses nobody who is there
  ProcessCluster cluster({.folder = folder.path() + "/cluster", .lease_ms = kLeaseMs});
  const uint64_t id = cluster.Submit(job);
  for (int round = 1; round <= 3; ++round) {
    INFO("round " << round);
    cluster.AwaitStep(id, static_cast<uint64_t>(200 * round));
    cluster.Kill("scheduler");
    const double before = Examples(cluster);
    // 64 examples a step: two hundred steps without a scheduler, the last time for longer than a
    // lease.
    const absl::Time until = absl::Now() + absl::Milliseconds(round == 3 ? kLeaseMs : 0);
    AwaitThat("training goes on",
              [&] { return Examples(cluster) > before + 200 * 64 && absl::Now() > until; });
    cluster.Start("scheduler");
  }
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(end.generation() == 1);
  CHECK(end.rollbacks() == 0);
  for (const char* reason : {"WorkerLost", "WorkerRestarted", "WorkerJoined", "ServerLost"}) {
    CHECK_FALSE(HasCondition(end, reason));
  }
  for (const char* name : {"server-0", "server-1", "worker-0", "worker-1"}) {
    CHECK(cluster.Running(name));
  }
}

// Who waits gives up after a minute (job_watch_test has that of a shorter limit): --long sits it
// out.
TEST_CASE("a scheduler that is gone for good: submit --wait says so, and nothing spins",
          "[faults][p6]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = LongJob(folder.path());
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  const std::string file = folder.path() + "/job.json";
  WriteJobFile(file, job);
  const std::string log = folder.path() + "/submit";
  ChildProcess submit({Program("tools/cli/strata"), "submit", "-f", file, "--wait", "--scheduler",
                       cluster.address()},
                      log, folder.path());
  AwaitThat("training", [&] { return Examples(cluster) > 1000; });
  cluster.Kill("scheduler");
  // All that can be done without it is done: then the processes wait.
  AwaitThat("training to its end", [&] { return Examples(cluster) >= 600 * 150; });
  AwaitThat("submit to see it",
            [&] { return ReadFile(log + ".err").find("does not answer") != std::string::npos; });
  const char* names[] = {"server-0", "server-1", "worker-0", "worker-1"};
  absl::Duration used;
  for (const char* name : names) used -= cluster.process(name).CpuTime();
  const absl::Time start = absl::Now();
  if (LongRun()) {
    CHECK(submit.Wait(absl::Seconds(100)) == 3);
    CHECK(ReadFile(log + ".err").find("the scheduler was gone for") != std::string::npos);
    CHECK(ReadFile(log + ".err").find("The job goes on.") != std::string::npos);
  } else {
    // As long as it takes to see that nothing spins.
    const absl::Time until = start + absl::Seconds(3);
    AwaitThat("three seconds", [&] { return absl::Now() > until; });
    CHECK_FALSE(submit.Ended());
  }
  const absl::Duration passed = absl::Now() - start;
  for (const char* name : names) {
    CHECK(cluster.Running(name));
    used += cluster.process(name).CpuTime();
  }
  INFO(ReadFile(log + ".err"));
  // Four processes that only ask now and then; one that spins would use all of its time.
  INFO(absl::FormatDuration(used) << " of " << absl::FormatDuration(passed));
  CHECK(used < passed * 0.2);
}

// Whole checkpoints in a folder.
size_t Checkpoints(const std::string& directory) {
  size_t whole = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    whole += std::filesystem::exists(entry.path() / "MANIFEST.json");
  }
  return whole;
}

// The step of the newest whole checkpoint; 0: there is none.
uint64_t NewestCheckpoint(const std::string& directory) {
  uint64_t newest = 0;
  if (!std::filesystem::exists(directory)) return 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    uint64_t step = 0;
    if (std::filesystem::exists(entry.path() / "MANIFEST.json") &&
        absl::SimpleAtoi(name.substr(name.rfind('-') + 1), &step)) {
      newest = std::max(newest, step);
    }
  }
  return newest;
}

// When the scheduler last heard of the server, as it says; 0: it says nothing.
int64_t HeardOf(ProcessCluster& cluster, const std::string& server) {
  const auto status = cluster.scheduler().GetCluster(absl::Seconds(1));
  if (!status.ok()) return 0;
  for (const NodeStatus& node : status->nodes()) {
    if (node.name() == server) return node.last_seen_unix_ms();
  }
  return 0;
}

// A busy scheduler announces steps that servers are past by then, and of a short job no checkpoint
// may be left. So the worker stands still now and then until servers know of the next one, and
// until the one before is whole. It is done when the scheduler has ended, or after kPauses.
constexpr int kPauses = 7;
constexpr char kPause[] = "worker.push=stop@18*7/18";  // more than two checkpoints apart
void MakeCheckpoints(ProcessCluster& cluster, const std::string& directory) {
  const auto gone = [&] { return !cluster.Running("scheduler"); };
  uint64_t newest = 0;
  for (int pause = 1; pause <= kPauses && !gone(); ++pause) {
    INFO("pause " << pause);
    ChildProcess& worker = cluster.process("worker-0");
    AwaitThat("the worker to pause", [&] { return worker.Stopped() || gone(); });
    int heard = 0;
    int64_t last = HeardOf(cluster, "server-0");
    AwaitThat("the server to be told", [&] {
      const int64_t now = HeardOf(cluster, "server-0");
      heard += now > last;
      last = std::max(last, now);
      return heard >= 2 || gone();
    });
    AwaitThat("a checkpoint",
              [&] { return pause == 1 || NewestCheckpoint(directory) > newest || gone(); });
    newest = NewestCheckpoint(directory);
    worker.Signal(SIGCONT);
  }
}

TEST_CASE("a scheduler that dies before it removes a checkpoint removes it when it is back",
          "[faults][p6]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = SmallJob(folder.path());
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_training()->set_epochs(24);
  const JobStatus reference = Train(job);
  spec.mutable_checkpoint()->set_every_steps(6);
  spec.mutable_checkpoint()->set_keep(2);
  ProcessCluster cluster(
      {.servers = 1, .workers = 1, .folder = folder.path() + "/cluster", .lease_ms = 2000});
  int round = 0;
  for (const char* failpoint :
       {"scheduler.checkpoint.remove=kill@1", "scheduler.checkpoint.remove=kill@3",
        "scheduler.checkpoint.remove=error(UNAVAILABLE)@2*1"}) {
    INFO(failpoint);
    const bool dies = absl::StrContains(failpoint, "kill");
    const std::string directory = folder.path() + "/checkpoints-" + std::to_string(round++);
    spec.mutable_checkpoint()->set_directory(directory);
    cluster.Kill("scheduler");
    cluster.Kill("worker-0");
    cluster.Start("scheduler", failpoint);
    cluster.Start("worker-0", kPause);
    cluster.AwaitRegistered();
    const uint64_t id = cluster.Submit(job);
    MakeCheckpoints(cluster, directory);
    if (dies) {
      cluster.AwaitEnd("scheduler");
      CHECK(Checkpoints(directory) > 2);
      cluster.Start("scheduler");
      cluster.KillAndStart({"worker-0"});  // it pauses no more
    }
    const JobStatus end = cluster.AwaitEnd(id);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.model_hash() == reference.model_hash());
    // The job's end is told first. What could not be removed stays, alone.
    const size_t left = dies ? 2 : 3;
    AwaitThat("the rest removed", [&] { return Checkpoints(directory) == left; });
  }
}

}  // namespace
}  // namespace strata::testing
