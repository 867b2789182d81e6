// Promise P9 for disks: a full one stops training with a text that says why, corrupts nothing, and
// training goes on when there is space again.
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>
#include <string>

#include "tests/e2e/embedded_training.h"
#include "tests/e2e/process_cluster.h"
#include "tests/e2e/small_job.h"
#include "tests/skip.h"
#include "tests/small_disk.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

size_t Count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++n;
  return n;
}

TEST_CASE("a full disk under the update log", "[faults][p9]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  SmallDisk disk(folder->path() + "/disk", 64 << 20);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(120);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  const JobStatus reference = Train(job);
  job.mutable_spec()->mutable_storage()->set_directory(disk.path());
  job.mutable_spec()->mutable_storage()->set_log_bytes_per_server("512KiB");
  {
    ProcessCluster cluster({.servers = 2, .workers = 1, .folder = folder->path() + "/cluster"});
    const uint64_t id = cluster.Submit(job);
    cluster.AwaitStep(id, 40);
    disk.Fill();
    const auto log = [&] {
      return ReadFile(cluster.folder() + "/server-0.log.err") +
             ReadFile(cluster.folder() + "/server-1.log.err") +
             ReadFile(cluster.folder() + "/server-0/log/strata-server.WARNING") +
             ReadFile(cluster.folder() + "/server-1/log/strata-server.WARNING");
    };
    // Users see it where they look, with server, path and errno.
    const JobStatus stalled =
        cluster.Await(id, [](const JobStatus& s) { return HasCondition(s, "DiskFull"); });
    CHECK(Conditions(stalled).find("No space left on device") != std::string::npos);
    CHECK(Conditions(stalled).find("server-") != std::string::npos);
    CHECK(Conditions(stalled).find(disk.path()) != std::string::npos);
    CHECK(stalled.state() == RUNNING);
    const CommandResult shown =
        cluster.Strata({"status", "--scheduler", cluster.address(), std::to_string(id)});
    INFO(shown.out << shown.err);
    CHECK(shown.out.find("DiskFull: server-") != std::string::npos);
    // Killed there and then: what is on disk is still enough.
    cluster.Kill("server-1");
    // Ten tries a second, but not ten lines a second. (Of each shard the first, in two files.)
    CHECK(Count(log(), "commit_waits") <= 2 * 2 * 8);
    disk.Free();
    cluster.Start("server-1");
    const JobStatus end = cluster.AwaitEnd(id);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.model_hash() == reference.model_hash());
    CHECK(end.rollbacks() == 0);
    CHECK(HasCondition(end, "Recovered"));
    CHECK(cluster.Running("server-0"));
  }
}

TEST_CASE("an update log that is deleted ends its job, with the folder and what to do",
          "[faults]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(100'000);
  const std::string storage = folder->path() + "/storage";
  job.mutable_spec()->mutable_storage()->set_directory(storage);
  ProcessCluster cluster({.servers = 1, .workers = 1, .folder = folder->path() + "/cluster"});
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 20);
  std::filesystem::remove_all(storage);
  const JobStatus end = cluster.Await(id, [](const JobStatus& s) { return s.state() != RUNNING; });
  INFO(Conditions(end));
  CHECK(end.state() == FAILED);
  CHECK(HasCondition(end, "ServerFailed"));
  CHECK(Conditions(end).find("update log in " + storage) != std::string::npos);
  CHECK(Conditions(end).find("--resume") != std::string::npos);
  CHECK(cluster.Running("server-0"));
  // The server takes the next job.
  job.mutable_spec()->mutable_training()->set_epochs(1);
  CHECK(cluster.AwaitEnd(cluster.Submit(job)).state() == SUCCEEDED);
}

TEST_CASE("a full disk under the checkpoints", "[faults][p9]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  SmallDisk disk(folder->path() + "/disk", 1 << 20);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(100);
  const JobStatus reference = Train(job);
  job.mutable_spec()->mutable_checkpoint()->set_directory(disk.path() + "/checkpoints");
  job.mutable_spec()->mutable_checkpoint()->set_every_steps(50);
  ProcessCluster cluster({.servers = 1, .workers = 1, .folder = folder->path() + "/cluster"});
  disk.Fill(2 * 4096);  // there is room for the directory's lock alone, and to renew it
  const uint64_t id = cluster.Submit(job);
  const JobStatus failed =
      cluster.Await(id, [](const JobStatus& s) { return HasCondition(s, "CheckpointFailed"); });
  CHECK(Conditions(failed).find("No space left on device") != std::string::npos);
  CHECK(Conditions(failed).find(disk.path()) != std::string::npos);
  disk.Free();
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  const CommandResult verify =
      cluster.Strata({"checkpoint", "verify", job.spec().checkpoint().directory()});
  INFO(verify.err);
  CHECK(verify.exit_code == 0);
}

TEST_CASE("a full disk under the metrics file", "[faults][p9]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  SmallDisk disk(folder->path() + "/disk", 1 << 20);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(150);
  job.mutable_spec()->mutable_evaluation()->set_every_steps(5);
  const JobStatus reference = Train(job);
  const std::string path = disk.path() + "/metrics.jsonl";
  job.mutable_spec()->mutable_output()->set_metrics(path);
  ProcessCluster cluster({.servers = 1, .workers = 1, .folder = folder->path() + "/cluster"});
  disk.Fill();
  const uint64_t id = cluster.Submit(job);
  const JobStatus told =
      cluster.Await(id, [](const JobStatus& s) { return HasCondition(s, "MetricsNotWritten"); });
  CHECK(Conditions(told).find(path + ": No space left on device") != std::string::npos);
  cluster.AwaitStep(id, told.step() + 10);  // goes on without them
  disk.Free();
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(HasCondition(end, "Recovered"));
  CHECK(!HasCondition(end, "MetricsLost"));
  // None is lost: of every evaluation there is one line, in order.
  std::istringstream lines(ReadFile(path));
  uint64_t expected = 0;
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    REQUIRE(line.back() == '}');
    if (line.find("evalAuc") == std::string::npos) continue;
    expected += 5;
    CHECK(line.rfind("{\"step\": " + std::to_string(expected) + ",", 0) == 0);
  }
  CHECK(expected + 5 > end.total_steps());
}

}  // namespace
}  // namespace strata::testing
