// What a job finds in its checkpoint directory, and what it removes there, over restarts of its
// scheduler: both hold for what is there, not for what was.
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/job/job_spec.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/record_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/state/start.h"
#include "scheduler/store/memory_metadata_store.h"
#include "scheduler/store/metadata_store.h"
#include "tests/scheduler/failing_store.h"
#include "tests/scheduler/lock_owner.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

// Records that outlive their scheduler.
struct Records {
  std::unique_ptr<Scheduler> Open(ManualTimer* timer) {
    return Start(std::make_unique<FailingStore>(&killed, store), timer);
  }
  bool killed = false;  // nothing is recorded any more
  const std::shared_ptr<MetadataStore> store = MakeMemoryMetadataStore();
};

// Lies in the folder as the whole checkpoint of another job of that kind.
void WriteAnothers(const SubmitRequest& like, const std::string& folder, uint64_t step) {
  Manifest manifest;
  *manifest.mutable_job() = like.job();
  REQUIRE(ResolveJob(*manifest.mutable_job()).ok());
  manifest.set_step(step);
  manifest.set_job_uid("11111111111111111111111111111111");
  *manifest.mutable_schema() = *SchemaOf(manifest.job().spec(), 3, 0);
  REQUIRE(WriteManifest(folder, manifest).ok());
}

TEST_CASE("what was found is bound to the lock under which it was looked for, over restarts",
          "[scheduler][lock]") {
  const TempFolder folder;
  const std::string directory = folder.path() + "/c", late = directory + "/step-000000000008";
  ManualTimer timer;
  const int how = GENERATE(0, 1, 2);
  // It waits for the lock; has it, and for workers; or has its input indexed, and waits for
  // servers.
  const int stage = GENERATE(0, 1, 2);
  CAPTURE(how, stage);
  SubmitRequest second = Cutting("b", directory);
  second.set_resume(how == 1);
  second.set_overwrite(how == 2);
  Records records;
  std::unique_ptr<Scheduler> one, two = records.Open(&timer);
  Nodes nodes;
  if (stage == 0) {
    one = Of(&timer);
    REQUIRE(one->Submit(Cutting("a", directory), kTimeout).ok());
    REQUIRE(SubmitWaiting(*two, second, timer, [] {}).ok());
  } else {
    REQUIRE(two->Submit(second, kTimeout).ok());
    CHECK(LockOf(directory, 1).name() == "b");
  }
  for (int i = 0; i < 10 && stage == 2; ++i) {
    auto told = two->Sync(nodes.worker.Report(), kTimeout);
    REQUIRE(told.ok());
    nodes.worker.Act(*told);
  }
  REQUIRE(Get(*two, "b").state() == PENDING);
  if (stage == 2) {
    CHECK(Get(*two, "b").conditions().rbegin()->reason() == "WaitingForServers");
  }
  two.reset();
  WriteAnothers(second, late, 8);
  if (stage > 0) {  // which had the lock meanwhile, and gave it back
    CheckpointLock other;
    other.set_format(1);
    other.set_cluster_id("another");
    other.set_released(true);
    REQUIRE(WriteRecordFile(directory + "/LOCK.2", other).ok());
  }
  two = records.Open(&timer);
  if (stage == 0) timer.Advance(2 * kLease + kLease / 10);
  two->Tick();
  timer.Advance(2 * kLease + kLease / 10);
  two->Tick();
  const JobStatus status = Get(*two, "b");
  INFO(status.DebugString());
  if (how == 0) {
    CHECK(status.state() == FAILED);
    CHECK(absl::StrContains(status.conditions().rbegin()->message(), "newest checkpoint: step 8"));
  } else if (how == 1) {
    nodes.Until(*two, [&] { return !Get(*two, "b").checkpoint().empty(); });
    CHECK(Get(*two, "b").checkpoint() == late);
  } else {
    nodes.Until(*two, [&] { return Get(*two, "b").state() == RUNNING; });
    CHECK(absl::IsNotFound(ReadManifest(late).status()));
  }
}

TEST_CASE("a removal that a restart does again takes what was meant, and nothing else",
          "[scheduler][lock]") {
  const TempFolder folder;
  const std::string directory = folder.path() + "/c";
  ManualTimer timer;
  Nodes nodes;
  Records records;
  auto scheduler = records.Open(&timer);
  SubmitRequest request = Cutting("a", directory);
  request.mutable_job()->mutable_spec()->mutable_checkpoint()->set_keep(1);
  REQUIRE(scheduler->Submit(request, kTimeout).ok());
  nodes.Until(*scheduler, [&] { return !Get(*scheduler, "a").checkpoint().empty(); });
  const std::string first = Get(*scheduler, "a").checkpoint();
  {
    const ScopedFailpoint kill("scheduler.checkpoint.remove", {.act = [&] {
                                 records.killed = true;
                                 return absl::UnavailableError("killed");
                               }});
    for (int i = 0; i < 500 && !records.killed; ++i) {
      auto told = scheduler->Sync(nodes.servers.at("s0").Report(), kTimeout);
      if (told.ok()) nodes.servers.at("s0").Act(*told);
      told = scheduler->Sync(nodes.worker.Report(), kTimeout);
      if (told.ok()) nodes.worker.Act(*told);
      nodes.worker.Work();
    }
    scheduler.reset();
  }
  REQUIRE(records.killed);
  records.killed = false;
  auto manifest = ReadManifest(first);
  REQUIRE(manifest.ok());
  const std::string other(32, '1');
  const int differs = GENERATE(0, 1, 2, 3, 4);
  CAPTURE(differs);
  if (differs == 1) manifest->set_cluster_id(other);
  if (differs == 2) manifest->set_job_uid(other);
  if (differs == 3) manifest->set_generation(manifest->generation() + 1);
  if (differs == 4) manifest->set_cut(manifest->cut() + 1);
  REQUIRE(WriteManifest(first, *manifest).ok());
  // Killed before the removal began, or in it.
  const bool begun = GENERATE(false, true);
  CAPTURE(begun);
  if (begun) std::filesystem::rename(first + "/" + kManifestName, first + "/" + kRemovedName);
  scheduler = records.Open(&timer);
  std::string said;
  nodes.Until(*scheduler, [&] {
    const JobStatus status = Get(*scheduler, "a");
    for (const JobCondition& c : status.conditions()) {
      if (c.reason() == "CheckpointStays") said = c.message();
    }
    return status.state() == SUCCEEDED;
  });
  INFO(said);
  // What the job itself began to remove goes as what its cuts left.
  const bool stays = differs != 0 && !(begun && differs == 4);
  CHECK(std::filesystem::exists(first) == stays);
  CHECK(ReadManifest(first).ok() == (stays && !begun));
  CHECK(ReadRemovedManifest(first).ok() == (stays && begun));
  CHECK(said.empty() == (differs == 0 || begun));
  if (said.empty()) return;
  CHECK(absl::StrContains(said, first));
  CHECK(absl::StrContains(said, "was to be removed as the checkpoint of job "));
  CHECK(absl::StrContains(
      said, absl::StrCat("job ", manifest->job_uid(), " of cluster ", manifest->cluster_id(),
                         ", generation ", manifest->generation(), ", cut ", manifest->cut())));
}

}  // namespace
}  // namespace strata::scheduler
