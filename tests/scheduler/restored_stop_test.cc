// A scheduler on an older copy of its folder (--restored) that looks for checkpoints: what it
// finds, and where it is stopped meanwhile.
#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "scheduler/store/metadata_store.h"
#include "tests/proto/runtime/files/one_failure.h"
#include "tests/proto/runtime/files/other_format.h"
#include "tests/scheduler/failing_store.h"
#include "tests/scheduler/lock_owner.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

// Stops the scheduler when somebody looks into a checkpoint directory.
class StopsAtLook : public FileSystem {
 public:
  StopsAtLook() { FileSystem::ReplaceKernel(this); }
  ~StopsAtLook() override { FileSystem::ReplaceKernel(nullptr); }
  int List(const std::string& path, std::vector<std::string>& names) override {
    if (scheduler != nullptr && absl::EndsWith(path, "/c")) {
      std::exchange(scheduler, nullptr)->Stop();
    }
    return FileSystem::List(path, names);
  }
  Scheduler* scheduler = nullptr;
};

TEST_CASE("one that is stopped before it speaks records nothing", "[scheduler][restored]") {
  StopsAtLook files;
  const TempFolder folder;
  ManualTimer timer;
  const bool fails = false;
  const std::shared_ptr<MetadataStore> store = MakeMemoryMetadataStore();
  {
    auto scheduler = Start(std::make_unique<FailingStore>(&fails, store), &timer);
    REQUIRE(scheduler->Submit(Job("a", folder.path() + "/c"), kTimeout).ok());
    Nodes nodes;
    nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 2; });
  }
  const auto copy = *store->Read();
  for (const bool stopped : {true, false}) {
    auto scheduler = Scheduler::Start({.store = std::make_unique<FailingStore>(&fails, store),
                                       .timer = &timer,
                                       .tick_interval = absl::ZeroDuration(),
                                       .restored = true,
                                       .await_files = true});
    REQUIRE(scheduler.ok());
    if (stopped) files.scheduler = scheduler->get();
    timer.Advance(absl::Minutes(1));
    (*scheduler)->Tick();
    CHECK(files.scheduler == nullptr);
    CHECK((*store->Read() == copy) == stopped);
  }
}

// A job's directory with its checkpoints, and the records of its scheduler from before them.
struct Older {
  // `begun`: by then its servers had. `put`: puts there what the job is to replace.
  explicit Older(bool begun, const std::function<void(const std::string&)>& put = nullptr) {
    const std::shared_ptr<MetadataStore> all = MakeMemoryMetadataStore();
    auto scheduler = Start(std::make_unique<FailingStore>(&fails, all), &timer);
    SubmitRequest request = Cutting("a", folder.path() + "/c");
    if (put) put(folder.path() + "/c");
    request.set_overwrite(put != nullptr);
    REQUIRE(scheduler->Submit(request, kTimeout).ok());
    Nodes nodes;
    if (begun) nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 6; });
    copy = *all->Read();
    nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 14; });
    const auto list = ListCheckpoints(folder.path() + "/c");
    REQUIRE(list.ok());
    REQUIRE(list->complete.size() > 1);
    newest = list->complete.back().folder;
    before = list->complete[list->complete.size() - 2].folder;
    std::vector<MetadataChange> changes;
    for (const auto& [key, value] : copy) changes.push_back({key, value});
    REQUIRE(records->Append(changes).ok());
  }
  std::unique_ptr<Scheduler> Restored() {
    auto scheduler = Scheduler::Start({.store = std::make_unique<FailingStore>(&fails, records),
                                       .timer = &timer,
                                       .tick_interval = absl::ZeroDuration(),
                                       .restored = true,
                                       .await_files = true});
    REQUIRE(scheduler.ok());
    timer.Advance(absl::Minutes(1));
    (*scheduler)->Tick();
    return *std::move(scheduler);
  }

  const TempFolder folder;
  ManualTimer timer;
  const bool fails = false;
  std::map<std::string, std::string> copy;
  std::string newest, before;  // checkpoints
  const std::shared_ptr<MetadataStore> records = MakeMemoryMetadataStore();
};

std::vector<std::string> Said(Scheduler& scheduler, const std::string& reason) {
  std::vector<std::string> said;
  const JobStatus status = Get(scheduler, "a");
  for (const JobCondition& c : status.conditions()) {
    if (c.reason() == reason) said.push_back(c.message());
  }
  return said;
}

TEST_CASE("one whose checkpoint cannot be read once waits, and goes on from it",
          "[scheduler][restored]") {
  using testing::OneFailure;
  const bool manifest = GENERATE(true, false);
  Older older(/*begun=*/true);
  const auto files = ReadManifest(older.newest);
  REQUIRE(files.ok());
  const OneFailure one(manifest ? OneFailure::Call::kOpen : OneFailure::Call::kLook,
                       older.newest + "/" + (manifest ? kManifestName : files->files(0).name()),
                       EIO);
  const auto scheduler = older.Restored();
  CHECK(one.over());
  CHECK(*older.records->Read() == older.copy);  // it hears on
  scheduler->Tick();
  CHECK(*older.records->Read() != older.copy);
  CHECK(Get(*scheduler, "a").checkpoint() == older.newest);
  CHECK(Said(*scheduler, "CheckpointDamaged").empty());
}

TEST_CASE("one whose newest checkpoint is damaged says so, and from which it goes on",
          "[scheduler][restored]") {
  const bool begun = GENERATE(true, false);
  CAPTURE(begun);
  Older older(begun);
  REQUIRE(WritePlainFile(older.newest + "/" + kManifestName, "x").ok());
  const auto scheduler = older.Restored();
  if (begun) CHECK(Get(*scheduler, "a").checkpoint() == older.before);
  const std::vector<std::string> said = Said(*scheduler, "CheckpointDamaged");
  REQUIRE(said.size() == 1);  // also where it is looked at again under the lock
  INFO(said[0]);
  CHECK(absl::StartsWith(said[0], older.newest + " ("));
  CHECK(absl::EndsWith(said[0], "; the job goes on from " + older.before));
}

// Between two looks into a checkpoint directory a manifest of another version is put there.
class PutBetween : public FileSystem {
 public:
  explicit PutBetween(std::string checkpoint) : checkpoint_(std::move(checkpoint)) {
    FileSystem::ReplaceKernel(this);
  }
  ~PutBetween() override { FileSystem::ReplaceKernel(nullptr); }
  int List(const std::string& path, std::vector<std::string>& names) override {
    if (absl::EndsWith(path, "/c") && ++lists_ == 2) testing::PutOtherFormat(checkpoint_);
    return FileSystem::List(path, names);
  }
  int lists() const { return lists_; }

 private:
  const std::string checkpoint_;
  int lists_ = 0;
};

TEST_CASE("one whose newest checkpoint has another format ends the job, and takes none before it",
          "[scheduler][restored]") {
  const bool begun = GENERATE(true, false), late = GENERATE(false, true);
  if (begun && late) return;  // it is looked at once
  CAPTURE(begun, late);
  Older older(begun);
  std::optional<PutBetween> put;
  if (late) {
    put.emplace(older.newest);
  } else {
    testing::PutOtherFormat(older.newest);
  }
  const auto scheduler = older.Restored();
  if (late) CHECK(put->lists() >= 2);
  CHECK(Get(*scheduler, "a").state() == FAILED);
  const std::vector<std::string> said = Said(*scheduler, "CheckpointDoesNotFit");
  REQUIRE(said.size() == 1);
  INFO(said[0]);
  CHECK(absl::StrContains(said[0], older.newest + "/MANIFEST.json has format "));
  CHECK(absl::EndsWith(
      said[0], absl::StrCat("; or move ", older.newest, " away, to go on from ", older.before)));
  for (int i = 0; i < 3; ++i) scheduler->Tick();
  CHECK(absl::IsUnimplemented(ReadManifest(older.newest).status()));
  CHECK(ReadManifest(older.before).ok());
}

// A checkpoint of step 1000 and of another version, or one that is damaged.
void PutForeign(const std::string& directory, bool other_format) {
  const std::string foreign = absl::StrCat(directory, "/", CheckpointFolderName(1000));
  Manifest manifest;
  manifest.set_step(1000);
  REQUIRE(WriteManifest(foreign, manifest).ok());
  if (other_format) return testing::PutOtherFormat(foreign);
  REQUIRE(WritePlainFile(absl::StrCat(foreign, "/", kManifestName), "x").ok());
}

TEST_CASE("what a job overwrites and cannot read neither ends it nor is told as its own",
          "[scheduler][restored]") {
  const bool begun = GENERATE(true, false), other_format = GENERATE(true, false);
  CAPTURE(begun, other_format);
  Older older(begun, [&](const std::string& directory) { PutForeign(directory, other_format); });
  auto scheduler = older.Restored();
  INFO(Get(*scheduler, "a").DebugString());
  CHECK(Said(*scheduler, "CheckpointDoesNotFit").empty());
  CHECK(Said(*scheduler, "CheckpointDamaged").empty());
  if (begun) CHECK(Get(*scheduler, "a").checkpoint() == older.newest);
  for (int i = 0; i < 3; ++i) scheduler->Tick();
  CHECK(Get(*scheduler, "a").state() != FAILED);
  // It may still not pass over one that came since.
  scheduler.reset();
  testing::PutOtherFormat(older.newest);
  const auto again = older.Restored();
  CHECK(Get(*again, "a").state() == FAILED);
  CHECK(absl::StrContains(Said(*again, "CheckpointDoesNotFit").at(0), older.newest));
}

}  // namespace
}  // namespace strata::scheduler
