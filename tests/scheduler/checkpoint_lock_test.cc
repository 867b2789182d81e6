// One checkpoint directory and several schedulers: who may write there, and who is refused.
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/job/job_spec.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/record_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/state/start.h"
#include "scheduler/store/memory_metadata_store.h"
#include "scheduler/store/metadata_store.h"
#include "scheduler/store/rocks_metadata_store.h"
#include "tests/scheduler/failing_store.h"
#include "tests/scheduler/lock_owner.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

TEST_CASE("a job has its directory's lock from its submission to its end", "[scheduler][lock]") {
  const TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Of(&timer);
  Nodes nodes;
  const auto reply = scheduler->Submit(Cutting("a", directory), kTimeout);
  REQUIRE(reply.ok());
  const CheckpointLock first = LockOf(directory, 1);
  CHECK(first.cluster_id() == reply->cluster_id());
  CHECK(first.job_uid() == reply->job_uid());
  CHECK(first.name() == "a");
  CHECK(first.lease_ms() == 10000);
  timer.Advance(kLease / 3);
  scheduler->Tick();
  CHECK(LockOf(directory, 1).counter() == first.counter() + 1);
  CHECK(LockOf(directory, 1).job() == reply->job());

  // Another one of the cluster is refused at once, whatever it asks for.
  for (const bool resume : {false, true}) {
    SubmitRequest other = Cutting("b", folder.path() + "/./c");
    other.set_resume(resume);
    other.set_overwrite(!resume);
    const absl::Status refused = scheduler->Submit(other, kTimeout).status();
    INFO(refused);
    CHECK(absl::IsFailedPrecondition(refused));
    CHECK(absl::StrContains(refused.message(), "is written by job a (" + reply->job_uid()));
    CHECK(absl::StrContains(refused.message(), "spec.checkpoint.directory"));
    CHECK(absl::StrContains(refused.message(), "give job b ("));
    CHECK(absl::StrContains(refused.message(), "of cluster " + reply->cluster_id() + " another"));
  }
  // One that only begins from what is there is not concerned, and one without a directory.
  nodes.Until(*scheduler, [&] { return !Get(*scheduler, "a").checkpoint().empty(); });
  SubmitRequest reader = Job("c", "");
  reader.mutable_job()->mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint(
      Get(*scheduler, "a").checkpoint());
  CHECK(scheduler->Submit(reader, kTimeout).ok());

  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == SUCCEEDED; });
  nodes.Close(*scheduler, "a");
  scheduler->Tick();
  CHECK(LockOf(directory, 1).released());
  SubmitRequest next = Cutting("d", directory);
  next.set_resume(true);
  CHECK(scheduler->Submit(next, kTimeout).ok());
  CHECK(LockOf(directory, 2).name() == "d");
}

TEST_CASE("a live job of another cluster: the second is refused by name", "[scheduler][lock]") {
  const TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto one = Of(&timer), two = Of(&timer);
  REQUIRE(one->Submit(Cutting("a", directory), kTimeout).ok());
  SubmitRequest second = Cutting("b", directory);
  second.set_resume(true);
  const absl::Time begin = timer.Now();
  const auto refused = SubmitWaiting(*two, second, timer, [&] { one->Tick(); });
  INFO(refused.status());
  CHECK(absl::IsFailedPrecondition(refused.status()));
  CHECK(absl::StrContains(refused.status().message(), "is written by job a ("));
  CHECK(absl::StrContains(refused.status().message(), "which is alive"));
  CHECK(timer.Now() - begin < kLease / 2);
  CHECK(two->ListJobs(kTimeout)->jobs_size() == 0);
  CHECK(LockOf(directory, 1).name() == "a");
}

TEST_CASE("what has ended without a word is waited for, said so, and taken over",
          "[scheduler][lock]") {
  const TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  Nodes nodes;
  auto one = Of(&timer);
  REQUIRE(one->Submit(Cutting("a", directory), kTimeout).ok());
  nodes.Until(*one, [&] { return !Get(*one, "a").checkpoint().empty(); });
  const std::string newest = Get(*one, "a").checkpoint();
  auto silent = std::move(one);  // it is there, and does nothing

  auto two = Of(&timer);
  SubmitRequest second = Cutting("b", directory);
  second.set_resume(true);
  const absl::Time begin = timer.Now();
  REQUIRE(SubmitWaiting(*two, second, timer, [] {}).ok());
  const JobStatus waits = Get(*two, "b");
  INFO(waits.DebugString());
  CHECK(waits.state() == PENDING);
  CHECK(waits.conditions().rbegin()->reason() == "WaitingForCheckpointDirectory");
  const std::string& why = waits.conditions().rbegin()->message();
  CHECK(absl::StrContains(why, "was last written by job a ("));
  CHECK(absl::StrContains(why, directory + "/LOCK.1"));
  CHECK(absl::StrContains(why, "20s"));

  Nodes others;
  while (timer.Now() < begin + 2 * kLease) {
    CHECK(Get(*two, "b").conditions().rbegin()->reason() == "WaitingForCheckpointDirectory");
    timer.Advance(kLease / 10);
    two->Tick();
  }
  timer.Advance(kLease / 10);
  two->Tick();
  CHECK(LockOf(directory, 2).name() == "b");
  others.disk = nodes.disk;
  for (auto& [name, at] : others.disk) at.complete = true;
  others.Until(*two, [&] { return Get(*two, "b").state() != PENDING; });
  CHECK(Get(*two, "b").state() == RUNNING);
  // Its files have names that none of the first has, at whatever step.
  others.Until(*two, [&] { return Get(*two, "b").checkpoint() != newest; });
  CHECK(ReadManifest(Get(*two, "b").checkpoint())->cut() >= uint64_t{2} << 20);

  // The first returns. It ends, says why, and writes nothing more.
  const auto manifest = ReadManifest(newest);
  nodes.Round(*silent);
  JobStatus lost = Get(*silent, "a");
  INFO(lost.DebugString());
  CHECK(lost.state() == FAILED);
  CHECK(lost.conditions().rbegin()->reason() == "CheckpointDirectoryLost");
  CHECK(absl::StrContains(lost.conditions().rbegin()->message(), "was taken over by job b ("));
  const auto steps = ListCheckpoints(directory)->complete.size();
  for (int i = 0; i < 20; ++i) nodes.Round(*silent);
  CHECK(ListCheckpoints(directory)->complete.size() == steps);
  CHECK(LockOf(directory, 2).name() == "b");
  CHECK_FALSE(LockOf(directory, 2).released());
}

TEST_CASE("what the owner before wrote while a job waited for the lock is found",
          "[scheduler][lock]") {
  const TempFolder folder;
  const std::string directory = folder.path() + "/c", late = directory + "/step-000000000008";
  ManualTimer timer;
  auto one = Of(&timer), two = Of(&timer);
  const auto first = one->Submit(Cutting("a", directory), kTimeout);
  REQUIRE(first.ok());
  SubmitRequest second = Cutting("b", directory);
  const int how = GENERATE(0, 1, 2);
  CAPTURE(how);
  second.set_resume(how == 1);
  second.set_overwrite(how == 2);
  REQUIRE(SubmitWaiting(*two, second, timer, [] {}).ok());
  REQUIRE(Get(*two, "b").state() == PENDING);
  Manifest manifest;
  *manifest.mutable_job() = second.job();
  REQUIRE(ResolveJob(*manifest.mutable_job()).ok());
  manifest.set_step(8);
  manifest.set_job_uid(first->job_uid());
  *manifest.mutable_schema() = *SchemaOf(manifest.job().spec(), 3, 0);
  REQUIRE(WriteManifest(late, manifest).ok());
  timer.Advance(2 * kLease);
  two->Tick();
  REQUIRE(LockOf(directory, 2).name() == "b");
  const JobStatus status = Get(*two, "b");
  INFO(status.DebugString());
  if (how == 0) {
    CHECK(status.state() == FAILED);
    CHECK(absl::StrContains(status.conditions().rbegin()->message(), "newest checkpoint: step 8"));
  } else if (how == 1) {
    Nodes nodes;
    nodes.Until(*two, [&] { return !Get(*two, "b").checkpoint().empty(); });
    CHECK(Get(*two, "b").checkpoint() == late);
  } else {
    Nodes nodes;
    nodes.Until(*two, [&] { return Get(*two, "b").state() == RUNNING; });
    CHECK(absl::IsNotFound(ReadManifest(late).status()));
  }
}

TEST_CASE("a scheduler that is started again goes on with the locks of its jobs, or learns of it",
          "[scheduler][lock]") {
  for (const bool taken : {false, true}) {
    CAPTURE(taken);
    const TempFolder folder;
    const std::string directory = folder.path() + "/c";
    ManualTimer timer;
    Nodes nodes;
    const auto open = [&] {
      auto store = OpenRocksMetadataStore(folder.path() + "/metadata");
      REQUIRE(store.ok());
      return Start(*std::move(store), &timer);
    };
    auto scheduler = open();
    REQUIRE(scheduler->Submit(Cutting("a", directory), kTimeout).ok());
    nodes.Until(*scheduler, [&] { return !Get(*scheduler, "a").checkpoint().empty(); });
    const std::string cluster = LockOf(directory, 1).cluster_id();
    const uint64_t term = LockOf(directory, 1).term();
    scheduler.reset();
    CHECK_FALSE(LockOf(directory, 1).released());
    if (taken) {
      CheckpointLock other;
      other.set_format(1);
      other.set_cluster_id("another");
      other.set_name("z");
      REQUIRE(WriteRecordFile(directory + "/LOCK.2", other).ok());
    }
    scheduler = open();
    if (taken) {
      nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == FAILED; });
      CHECK(Get(*scheduler, "a").conditions().rbegin()->reason() == "CheckpointDirectoryLost");
      continue;
    }
    nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == SUCCEEDED; });
    nodes.Close(*scheduler, "a");
    scheduler->Tick();
    CHECK(LockOf(directory, 2).cluster_id() == cluster);
    CHECK(LockOf(directory, 2).term() == term + 1);
    CHECK(LockOf(directory, 2).released());
  }
}

// Locks cannot be written where it says so.
class NoRenewal : public FileSystem {
 public:
  NoRenewal() { FileSystem::ReplaceKernel(this); }
  ~NoRenewal() override { FileSystem::ReplaceKernel(nullptr); }
  int Rename(const std::string& from, const std::string& to) override {
    const bool lock = absl::StrContains(to, "/LOCK.");
    return broken && lock ? -EIO : FileSystem::Rename(from, to);
  }
  bool broken = false;
};

TEST_CASE("while its lock cannot be renewed a job writes nothing, and goes on afterwards",
          "[scheduler][lock]") {
  NoRenewal files;
  const TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Of(&timer);
  Nodes nodes;
  REQUIRE(scheduler->Submit(Cutting("a", directory), kTimeout).ok());
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 2; });
  files.broken = true;
  timer.Advance(kLease);
  for (int i = 0; i < 40; ++i) nodes.Round(*scheduler);
  JobStatus status = Get(*scheduler, "a");
  INFO(status.DebugString());
  CHECK(status.state() == RUNNING);
  CHECK(status.step() == 16);
  CHECK(ListCheckpoints(directory)->complete.empty());
  const std::string& why = status.conditions().rbegin()->message();
  CHECK(status.conditions().rbegin()->reason() == "CheckpointLockStalls");
  CHECK(absl::StrContains(why, "spec.checkpoint.directory " + directory));
  CHECK(absl::StrContains(why, directory + "/LOCK.2"));
  CHECK(absl::StrContains(why, "checkpoints wait"));
  files.broken = false;
  timer.Advance(kLease / 3);
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == SUCCEEDED; });
  CHECK(ListCheckpoints(directory)->complete.size() == 3);
  scheduler.reset();
}

TEST_CASE("a job that ends while its lock cannot be renewed is over at once, and leaves nothing",
          "[scheduler][lock]") {
  NoRenewal files;
  const TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  const bool full = false;
  const std::shared_ptr<MetadataStore> records = MakeMemoryMetadataStore();
  const auto open = [&] { return Start(std::make_unique<FailingStore>(&full, records), &timer); };
  auto scheduler = open();
  Nodes nodes;
  const auto reply = scheduler->Submit(Cutting("a", directory), kTimeout);
  REQUIRE(reply.ok());
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 2; });
  files.broken = true;
  timer.Advance(kLease);
  nodes.Round(*scheduler);
  // A server was killed while it wrote this.
  const std::string step = directory + "/step-000000000099";
  const std::string left = step + "/shard-00000-g1-c1.strata." + reply->job_uid() + ".tmp";
  REQUIRE(std::filesystem::create_directories(step));
  REQUIRE(WritePlainFile(left, "x").ok());
  JobRef ref;
  ref.set_name("a");
  REQUIRE(scheduler->CancelJob(ref, kTimeout).ok());
  CHECK(Get(*scheduler, "a").state() == CANCELLED);
  scheduler->Tick();
  CHECK(std::filesystem::exists(left));  // the directory may be another's by now
  CHECK_FALSE(LockOf(directory, 1).released());
  const bool restarts = GENERATE(false, true);
  if (restarts) scheduler.reset();
  files.broken = false;
  timer.Advance(kLease / 3);
  if (restarts) scheduler = open();
  nodes.Close(*scheduler, "a");
  for (int i = 0; i < 3; ++i) scheduler->Tick();
  CHECK_FALSE(std::filesystem::exists(step));
  CHECK(LockOf(directory, 2).released());
  const auto next = scheduler->Submit(Cutting("b", directory), kTimeout);
  INFO(next.status());
  CHECK(next.ok());
  scheduler.reset();
}

TEST_CASE("a manifest is written only while the lock's file says whose the directory is",
          "[scheduler][lock]") {
  const TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Of(&timer);
  Nodes nodes;
  REQUIRE(scheduler->Submit(Cutting("a", directory), kTimeout).ok());
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 2; });
  // The machine was suspended meanwhile, and its clock with it.
  CheckpointLock other;
  other.set_format(1);
  other.set_cluster_id("another");
  other.set_name("z");
  REQUIRE(WriteRecordFile(directory + "/LOCK.2", other).ok());
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == FAILED; });
  CHECK(Get(*scheduler, "a").conditions().rbegin()->reason() == "CheckpointDirectoryLost");
  CHECK(ListCheckpoints(directory)->complete.empty());
}

TEST_CASE("a checkpoint that is kept no longer goes, and what took its place stays",
          "[scheduler][lock]") {
  const TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Of(&timer);
  Nodes nodes;
  REQUIRE(scheduler->Submit(Cutting("a", directory), kTimeout).ok());
  nodes.Until(*scheduler, [&] { return !Get(*scheduler, "a").checkpoint().empty(); });
  const std::string first = Get(*scheduler, "a").checkpoint();
  auto manifest = ReadManifest(first);
  REQUIRE(manifest.ok());
  const bool same = GENERATE(true, false);
  if (!same) manifest->set_job_uid("11111111111111111111111111111111");
  REQUIRE(WriteManifest(first, *manifest).ok());
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").state() == SUCCEEDED; });
  CHECK(Get(*scheduler, "a").checkpoint() != first);
  CHECK(ReadManifest(first).ok() == !same);
}

TEST_CASE("a manifest is written of finished files alone", "[scheduler][lock]") {
  const TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  auto scheduler = Of(&timer);
  Nodes nodes;
  REQUIRE(scheduler->Submit(Cutting("a", directory), kTimeout).ok());
  nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 3; });
  // What the server says it wrote is not there: another folder than the scheduler's.
  const auto lose = [&](NodeReport report) {
    for (ServerJobReport& job : *report.mutable_server_jobs()) {
      for (CutReport& cut : *job.mutable_cuts()) {
        for (CheckpointFile& file : *cut.mutable_files()) file.set_name("elsewhere");
      }
    }
    return report;
  };
  for (int i = 0;
       i < 300 && Get(*scheduler, "a").conditions().rbegin()->reason() != "CheckpointFailed"; ++i) {
    auto told = scheduler->Sync(lose(nodes.servers.at("s0").Report()), kTimeout);
    REQUIRE(told.ok());
    nodes.servers.at("s0").Act(*told);
    told = scheduler->Sync(nodes.worker.Report(), kTimeout);
    REQUIRE(told.ok());
    nodes.worker.Act(*told);
    nodes.worker.Work();
  }
  const JobStatus status = Get(*scheduler, "a");
  INFO(status.DebugString());
  CHECK(status.conditions().rbegin()->reason() == "CheckpointFailed");
  CHECK(absl::StrContains(status.conditions().rbegin()->message(), "/elsewhere is not there"));
  CHECK(ListCheckpoints(directory)->complete.empty());
}

}  // namespace
}  // namespace strata::scheduler
