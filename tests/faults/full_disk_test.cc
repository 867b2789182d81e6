// Promise P9 for disks: a full one stops training with a text that says why, corrupts nothing, and
// training goes on when there is space again.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/e2e/cluster/unnamed_files.h"
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
    // Full before every shard has written an image, without which no log can go.
    disk.Fill(256 << 10);
    const absl::Time begun = absl::Now();
    const uint64_t id = cluster.Submit(job);
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
    // Ten tries a second, but a line in ten seconds: of each of eight shards, in two files.
    const auto most = static_cast<size_t>(2 + (absl::Now() - begun) / absl::Seconds(10));
    CHECK(Count(log(), "commit_waits") <= most * 8 * 2);
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

// How often the job was told that a checkpoint failed, and of what.
size_t Failures(ProcessCluster& cluster, uint64_t job) {
  const auto events = cluster.scheduler().GetEvents({}, absl::Seconds(30));
  REQUIRE(events.ok());
  size_t n = 0;
  for (const Event& e : events->events()) n += e.job() == job && e.reason() == "CheckpointFailed";
  return n;
}

TEST_CASE("a job that is trained waits for room for its last checkpoint", "[faults][p9]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  SmallDisk bsp(folder->path() + "/bsp", 1 << 20), async(folder->path() + "/async", 1 << 20);
  SmallDisk given_up(folder->path() + "/given-up", 1 << 20);
  if (!given_up.mounted()) STRATA_SKIP(given_up.reason());
  TrainingJob job = SmallJob(folder->path());
  const JobStatus reference = Train(job);
  ProcessCluster cluster({.servers = 1, .workers = 3, .folder = folder->path() + "/cluster"});
  const auto submit = [&](const std::string& name, const std::string& mode, SmallDisk& disk) {
    TrainingJob one = job;
    one.mutable_metadata()->set_name(name);
    one.mutable_spec()->mutable_training()->set_mode(mode);
    one.mutable_spec()->mutable_checkpoint()->set_directory(disk.path() + "/c");
    disk.Fill(2 * 4096);  // there is room for the directory's lock alone, and to renew it
    return cluster.Submit(one);
  };
  const uint64_t a = submit("a", "bsp", bsp), b = submit("b", "async", async);
  const uint64_t c = submit("c", "bsp", given_up);
  for (const auto& [id, disk] : {std::pair{a, &bsp}, std::pair{b, &async}}) {
    const JobStatus waits = cluster.Await(id, [&](const JobStatus&) {
      return Failures(cluster, id) > 3;  // as often as a cause may come that no try can mend
    });
    INFO(Conditions(waits));
    CHECK(waits.state() == RUNNING);
    CHECK(Conditions(waits).find("spec.checkpoint.directory: " + disk->path() + "/c/step-") !=
          std::string::npos);
    CHECK(Conditions(waits).find(": server-0: cannot ") != std::string::npos);
    CHECK(Conditions(waits).find("No space left on device") != std::string::npos);
    CHECK(Conditions(waits).find("the job waits for this checkpoint, and tries again in ") !=
          std::string::npos);
  }
  // Who does not want to wait is asked for no more.
  cluster.Await(c, [](const JobStatus& s) { return HasCondition(s, "CheckpointFailed"); });
  const CommandResult cancelled =
      cluster.Strata({"cancel", "--scheduler", cluster.address(), std::to_string(c)});
  INFO(cancelled.err);
  CHECK(cancelled.exit_code == 0);
  CHECK(cluster.AwaitEnd(c).state() == CANCELLED);

  bsp.Free();
  async.Free();
  for (const uint64_t id : {a, b}) {
    const JobStatus end = cluster.AwaitEnd(id);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    if (id == a) CHECK(end.model_hash() == reference.model_hash());
    const std::string directory = (id == a ? bsp : async).path() + "/c";
    const CommandResult verify = cluster.Strata({"checkpoint", "verify", directory});
    INFO(verify.err);
    CHECK(verify.exit_code == 0);
    AwaitThat("nothing of the tries before is left",
              [&] { return Unnamed(directory) == std::set<std::string>{}; });
  }
}

TEST_CASE("a full disk under the metrics file", "[faults][p9]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  SmallDisk disk(folder->path() + "/disk", 1 << 20), last(folder->path() + "/last", 1 << 20);
  if (!last.mounted()) STRATA_SKIP(last.reason());
  TrainingJob job = SmallJob(folder->path());
  // The worker trains for seconds: what waits when it is done is lost.
  constexpr uint64_t kEvery = 20;
  job.mutable_spec()->mutable_training()->set_epochs(600);
  job.mutable_spec()->mutable_evaluation()->set_every_steps(kEvery);
  const JobStatus reference = Train(job);
  const std::string path = disk.path() + "/metrics.jsonl";
  job.mutable_spec()->mutable_output()->set_metrics(path);
  // So that the job cannot be over before there is room.
  job.mutable_spec()->mutable_checkpoint()->set_directory(last.path() + "/c");
  ProcessCluster cluster({.servers = 1, .workers = 1, .folder = folder->path() + "/cluster"});
  disk.Fill();
  last.Fill(2 * 4096);
  const uint64_t id = cluster.Submit(job);
  const JobStatus told =
      cluster.Await(id, [](const JobStatus& s) { return HasCondition(s, "MetricsNotWritten"); });
  CHECK(Conditions(told).find(path + ": No space left on device") != std::string::npos);
  cluster.AwaitStep(id, std::min(told.step() + 10, told.total_steps()));  // goes on without them
  disk.Free();
  cluster.Await(id, [](const JobStatus& s) { return HasCondition(s, "Recovered"); });
  last.Free();
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
    expected += kEvery;
    CHECK(line.rfind("{\"step\": " + std::to_string(expected) + ",", 0) == 0);
  }
  CHECK(expected + kEvery > end.total_steps());
}

}  // namespace
}  // namespace strata::testing
