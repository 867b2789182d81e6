// A scheduler on an older copy of its folder (--restored) that is stopped while it looks for
// checkpoints.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/file_system.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "tests/scheduler/failing_store.h"
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

}  // namespace
}  // namespace strata::scheduler
