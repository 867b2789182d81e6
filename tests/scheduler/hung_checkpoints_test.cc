// A scheduler, and checkpoint directories on a mount that hangs: manifests, locks, submissions.
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/record_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "scheduler/store/metadata_store.h"
#include "tests/proto/runtime/files/hung_files.h"
#include "tests/scheduler/failing_store.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

TEST_CASE("a checkpoint folder that hangs holds up no report, no tick, no search for the dead",
          "[scheduler][hang]") {
  TempFolder folder;
  const std::string away = folder.path() + "/away";
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer, /*await_files=*/false);
  Nodes nodes;
  REQUIRE(scheduler->Submit(Job("a", away), kTimeout).ok());
  testing::Hang files(away);
  nodes.Until(*scheduler, [&] { return files->hung() > 0; });  // the manifest of its end
  nodes.Round(*scheduler);
  CHECK(Get(*scheduler, "a").state() == RUNNING);
  REQUIRE(scheduler->Submit(Job("b", folder.path() + "/b"), kTimeout).ok());
  CHECK(scheduler->Counters().live_servers == 1);
  for (int i = 0; i < 20; ++i) {  // sixteen ticks a lease, and nobody speaks
    timer.Advance(absl::Milliseconds(625));
    scheduler->Tick();
  }
  CHECK(scheduler->Counters().live_servers == 0);
  files->AwaitHung(2);  // the renewal of its lock as well
  CHECK(files->hung() == 2);
}

TEST_CASE("a lock that hangs is told of, and holds up no tick and no other job's lock",
          "[scheduler][hang]") {
  TempFolder folder;
  const std::string away = folder.path() + "/away", near = folder.path() + "/near";
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer, /*await_files=*/false);
  Nodes nodes;
  REQUIRE(scheduler->Submit(Job("a", away), kTimeout).ok());
  REQUIRE(scheduler->Submit(Job("b", near), kTimeout).ok());
  nodes.Round(*scheduler);
  testing::Hang files(away);
  const auto counter = [&near] {
    CheckpointLock lock;
    REQUIRE(ReadRecordFile(near + "/LOCK.1", "lock", &lock).ok());
    return lock.counter();
  };
  const uint64_t begin = counter();
  for (int i = 0; i < 6; ++i) {  // two leases, in which somebody else may take it over
    const uint64_t before = counter();
    timer.Advance(absl::Milliseconds(3334));
    nodes.Round(*scheduler);
    while (counter() == before) scheduler->Tick();
  }
  CHECK(counter() == begin + 6);
  CHECK(scheduler->Counters().live_servers == 1);
  const auto stalls = [&](const std::string& name) {
    std::string message;
    const JobStatus status = Get(*scheduler, name);
    for (const JobCondition& c : status.conditions()) {
      if (c.reason() == "CheckpointLockStalls") message = c.message();
    }
    return message;
  };
  CHECK(absl::StrContains(stalls("a"), "it did not answer for 10s"));
  CHECK(stalls("b").empty());
  // To whom a place does not answer is told so.
  SubmitRequest third = Job("c", away + "/c");
  absl::Status told;
  std::thread submit([&] { told = scheduler->Submit(third, absl::Seconds(8)).status(); });
  timer.AwaitAlarms(1);
  files->AwaitHung(2);  // beside the renewal of the lock
  timer.Advance(absl::Seconds(7));
  submit.join();
  INFO(told);
  CHECK(absl::IsDeadlineExceeded(told));
  CHECK(files->hung() == 2);
}

TEST_CASE("a scheduler that goes on from an older copy waits a while for a directory that hangs",
          "[scheduler][hang]") {
  TempFolder folder;
  const std::string away = folder.path() + "/away";
  ManualTimer timer;
  const bool full = false;
  const std::shared_ptr<MetadataStore> copy = MakeMemoryMetadataStore();
  Nodes nodes;
  {
    auto before = Start(std::make_unique<FailingStore>(&full, copy), &timer);
    REQUIRE(before->Submit(Job("a", away), kTimeout).ok());
    nodes.Until(*before, [&] { return Get(*before, "a").state() == RUNNING; });
  }
  absl::StatusOr<std::unique_ptr<Scheduler>> scheduler;  // ends after the hang
  testing::Hang files(away);
  scheduler = Scheduler::Start({.store = std::make_unique<FailingStore>(&full, copy),
                                .timer = &timer,
                                .tick_interval = absl::ZeroDuration(),
                                .version = "test",
                                .restored = true});
  REQUIRE(scheduler.ok());
  int seconds = 0;
  while (absl::IsUnavailable((*scheduler)->ListJobs(kTimeout).status())) {
    REQUIRE(seconds < 60);
    timer.Advance(absl::Seconds(1));
    (*scheduler)->Tick();
    ++seconds;
  }
  CHECK(seconds == 20);  // a lease to hear, then ten seconds
  const JobStatus status = Get(**scheduler, "a");
  INFO(status.DebugString());
  bool told = false;
  for (const JobCondition& c : status.conditions()) {
    told |= absl::StrContains(c.message(), away + " did not answer for 10s: the job goes on");
  }
  CHECK(told);
  CHECK(status.state() == RUNNING);
}

TEST_CASE("one job's checkpoints are written while another's hang", "[scheduler][hang]") {
  TempFolder folder;
  const std::string away = folder.path() + "/away";
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer, /*await_files=*/false);
  Nodes nodes;
  REQUIRE(scheduler->Submit(Job("a", away), kTimeout).ok());
  REQUIRE(scheduler->Submit(Job("b", folder.path() + "/b"), kTimeout).ok());
  testing::Hang files(away);
  SimWorker other("w1", nodes.job, &nodes.servers);  // a worker has one job at a time
  other.Start(3);
  // How many rounds a file takes is not the nodes' to say.
  const auto until = [&](const std::function<bool()>& done) {
    while (!done()) {
      nodes.Round(*scheduler);
      auto reply = scheduler->Sync(other.Report(), kTimeout);
      REQUIRE(reply.ok());
      other.Act(*reply);
      other.Work();
    }
  };
  until([&] { return Get(*scheduler, "b").state() == SUCCEEDED; });
  CHECK(ReadManifest(folder.path() + "/b/step-000000000016").ok());
  CHECK(Get(*scheduler, "a").state() == RUNNING);
  files->AwaitHung(1);
  files->Release();
  until([&] { return Get(*scheduler, "a").state() == SUCCEEDED; });
  CHECK(ReadManifest(away + "/step-000000000016").ok());
}

}  // namespace
}  // namespace strata::scheduler
