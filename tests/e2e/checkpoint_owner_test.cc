// One checkpoint folder and several jobs, with real processes: who lives keeps it, who has ended is
// replaced.
#include <catch2/catch.hpp>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "scheduler/store/lock_file.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/temp_folder.h"
#include "tools/cluster/checkpoint/verify.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kProcesses = {"scheduler", "server-0", "worker-0"};

// What is said to who submits a job that another one is in the way of: at once or, where that one
// was slow to show that it lives, when it did.
std::string Refusal(ProcessCluster& cluster, const TrainingJob& job, bool resume) {
  uint64_t id = 0;
  try {
    id = cluster.Submit(job, resume, !resume);
  } catch (const std::exception& refused) {
    return refused.what();
  }
  const JobStatus end = cluster.AwaitEnd(id);
  CHECK(end.state() == FAILED);
  CHECK(HasCondition(end, "CheckpointDirectoryTaken"));
  return Conditions(end);
}

TEST_CASE("two clusters, one folder: refused, waited for, taken over", "[e2e][checkpoint]") {
  const TempFolder folder;
  TrainingJob job = SmallJob(folder.path());
  job.mutable_spec()->mutable_training()->set_epochs(1'000'000);
  job.mutable_spec()->mutable_checkpoint()->set_every_steps(20);
  const std::string directory = folder.path() + "/checkpoints";
  job.mutable_spec()->mutable_checkpoint()->set_directory(directory);
  ProcessCluster first(
      {.servers = 1, .workers = 1, .folder = folder.path() + "/first", .lease_ms = 2000});
  const uint64_t of_first = first.Submit(job);
  const JobStatus alive =
      first.Await(of_first, [](const JobStatus& s) { return !s.checkpoint().empty(); });

  ProcessCluster second(
      {.servers = 1, .workers = 1, .folder = folder.path() + "/second", .lease_ms = 2000});
  const std::string owner =
      "is written by job small (" + alive.job_uid() + ") of cluster " + alive.cluster_id();
  for (const bool resume : {true, false}) {
    const std::string refusal = Refusal(second, job, resume);
    INFO(refusal);
    CHECK(refusal.find(owner) != std::string::npos);
    CHECK(refusal.find("which is alive") != std::string::npos);
  }
  CHECK(first.Status(of_first).state() == RUNNING);

  for (const std::string& name : kProcesses) first.Kill(name);
  const uint64_t of_second = second.Submit(job, /*resume=*/true);
  const JobStatus waits = second.Status(of_second);
  INFO(Conditions(waits));
  CHECK(waits.state() == PENDING);
  CHECK(HasCondition(waits, "WaitingForCheckpointDirectory"));
  CHECK(Conditions(waits).find("was last written by job small (" + alive.job_uid()) !=
        std::string::npos);
  const JobStatus begun = second.Await(of_second, [](const JobStatus& s) {
    return s.state() != PENDING && s.step() > 0 && !s.checkpoint().empty();
  });
  INFO(Conditions(begun));
  CHECK(begun.state() == RUNNING);
  CHECK(Conditions(begun).find("servers load checkpoint " + directory) != std::string::npos);

  // The first cluster returns, and with it the job that had the folder.
  for (const std::string& name : kProcesses) first.Start(name);
  const JobStatus lost = first.AwaitEnd(of_first);
  INFO(Conditions(lost));
  CHECK(lost.state() == FAILED);
  CHECK(HasCondition(lost, "CheckpointDirectoryLost"));
  CHECK(Conditions(lost).find("was taken over by job small (" + begun.job_uid()) !=
        std::string::npos);
  const uint64_t step = second.Status(of_second).step();
  second.Await(of_second, [&](const JobStatus& s) { return s.step() > step + 60; });
  JobRef ref;
  ref.set_job(of_second);
  REQUIRE(second.scheduler().CancelJob(ref, absl::Seconds(30)).ok());
  second.AwaitEnd(of_second);
  // Checkpoints that are kept no longer are removed until then.
  const auto given_back = [&] {
    const auto lock = scheduler::LookAtLock(directory);
    return lock.ok() && lock->lock && lock->lock->released();
  };
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  while (!given_back() && absl::Now() < give_up) absl::SleepFor(absl::Milliseconds(10));
  REQUIRE(given_back());
  size_t whole = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (!fs::exists(entry.path() / "MANIFEST.json")) continue;
    const auto verified = VerifyFolder(entry.path());
    INFO(entry.path() << ": " << verified.status());
    CHECK(verified.ok());
    whole += verified.ok();
  }
  CHECK(whole > 0);
}

// With leases so long that nobody waits for two of them in a call.
TEST_CASE("a job whose folder nobody gave back waits for it, after a call of seconds",
          "[e2e][checkpoint]") {
  const TempFolder folder;
  TrainingJob job = SmallJob(folder.path());
  const std::string directory = folder.path() + "/checkpoints";
  job.mutable_spec()->mutable_checkpoint()->set_directory(directory);
  fs::create_directory(directory);
  CheckpointLock lock;
  lock.set_format(1);
  lock.set_cluster_id("0000000000000001-0000000000000001");
  lock.set_job_uid("0000000000000001-0000000000000002");
  lock.set_name("gone");
  lock.set_lease_ms(60'000);
  REQUIRE(*scheduler::TakeLock(directory, 1, lock));
  ProcessCluster cluster(
      {.servers = 1, .workers = 1, .folder = folder.path() + "/cluster", .lease_ms = 60'000});
  SubmitRequest request;
  *request.mutable_job() = job;
  request.set_request_id("waits");
  request.set_overwrite(true);
  const auto reply = cluster.scheduler().Submit(request, absl::Seconds(10));
  INFO(reply.status());
  REQUIRE(reply.ok());
  const JobStatus waits = cluster.Status(reply->job());
  INFO(Conditions(waits));
  CHECK(waits.state() == PENDING);
  CHECK(HasCondition(waits, "WaitingForCheckpointDirectory"));
  CHECK(Conditions(waits).find("was last written by job gone") != std::string::npos);
}

}  // namespace
}  // namespace strata::testing
