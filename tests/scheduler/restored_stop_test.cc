// A scheduler on an older copy of its folder (--restored) that is stopped while it looks for
// checkpoints.
#include <catch2/catch.hpp>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/manifest_io.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "scheduler/store/metadata_store.h"
#include "tests/proto/runtime/files/one_failure.h"
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

TEST_CASE("one whose checkpoint cannot be read once waits, and goes on from it",
          "[scheduler][restored]") {
  using testing::OneFailure;
  const bool manifest = GENERATE(true, false);
  const TempFolder folder;
  ManualTimer timer;
  const bool fails = false;
  const std::shared_ptr<MetadataStore> store = MakeMemoryMetadataStore();
  std::map<std::string, std::string> copy;
  {
    auto scheduler = Start(std::make_unique<FailingStore>(&fails, store), &timer);
    REQUIRE(scheduler->Submit(Cutting("a", folder.path() + "/c"), kTimeout).ok());
    Nodes nodes;
    nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 6; });
    copy = *store->Read();
    nodes.Until(*scheduler, [&] { return Get(*scheduler, "a").step() >= 14; });
  }
  const auto list = ListCheckpoints(folder.path() + "/c");
  REQUIRE(list.ok());
  REQUIRE(!list->complete.empty());
  const std::string newest = list->complete.back().folder;
  const auto files = ReadManifest(newest);
  REQUIRE(files.ok());
  const std::shared_ptr<MetadataStore> older = MakeMemoryMetadataStore();
  std::vector<MetadataChange> all;
  for (const auto& [key, value] : copy) all.push_back({key, value});
  REQUIRE(older->Append(all).ok());
  const OneFailure one(manifest ? OneFailure::Call::kOpen : OneFailure::Call::kLook,
                       newest + "/" + (manifest ? kManifestName : files->files(0).name()), EIO);
  auto scheduler = Scheduler::Start({.store = std::make_unique<FailingStore>(&fails, older),
                                     .timer = &timer,
                                     .tick_interval = absl::ZeroDuration(),
                                     .restored = true,
                                     .await_files = true});
  REQUIRE(scheduler.ok());
  timer.Advance(absl::Minutes(1));
  (*scheduler)->Tick();
  CHECK(one.over());
  CHECK(*older->Read() == copy);  // it hears on
  (*scheduler)->Tick();
  CHECK(*older->Read() != copy);
  CHECK(Get(**scheduler, "a").checkpoint() == newest);
}

}  // namespace
}  // namespace strata::scheduler
