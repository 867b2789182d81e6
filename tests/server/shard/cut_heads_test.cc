// A superseded head of a shard and the head after it take one cut into one folder. Whatever the
// former does, and whenever, the file that the latter tells of stays as it is.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/leftovers.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "server/shard/cut.h"
#include "server/shard/request.h"
#include "server/shard/runner.h"
#include "storage/checkpoint/shard_file.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kStep = 2;
// More than a file's staging memory has room for.
constexpr uint64_t kRows = 30'000;

LaneWork Work(uint64_t step) {
  LaneWork work = WorkOf(5, step, 0);
  for (uint64_t i = 0; i < kRows; ++i) {
    work.sums[0][Position(i << 48 | i)] = {1, 2, 3, 4, static_cast<float>(step)};
  }
  return work;
}

// One copy of the shard, at the same clock as the other; its disk runs when the test says so.
class Head {
 public:
  Head(uint64_t chain_epoch, Timer* timer) {
    auto shard = MakeShard({.lanes = 1});
    identity_ = shard->options().identity;
    generation_ = shard->options().generation;
    ShardRunner::Options options;
    options.timer = timer;
    options.disk = &disk_;
    options.committed = [] {};
    options.cut_done = [this](CutNumber, const ShardCut& result) { cut_ = result; };
    runner_ = std::make_unique<ShardRunner>(std::move(shard), std::move(options));
    runner_->SetExecutor(&executor_);
    runner_->GoBy(chain_epoch, [] {});
    for (uint64_t step = 1; step <= kStep; ++step) Push(step);
  }
  ~Head() {
    runner_->Close(absl::UnavailableError("stopped"));
    executor_.RunAll();
    runner_->SetExecutor(nullptr);
    disk_.RunAll();
  }

  void Order(const CutOrder& order) { SetCuts({order}); }
  void GiveUp() { SetCuts({}); }
  // One piece of work of its disk.
  void Write() {
    REQUIRE(disk_.RunOne());
    executor_.RunAll();
  }
  void Finish() {
    while (executor_.RunAll() + disk_.RunAll() > 0) {
    }
  }
  // Takes the order back when the disk has all but `last` pieces of its work behind it: the shard
  // hears of that before it hears of the rest.
  void GiveUpBefore(size_t works, size_t last) {
    for (size_t i = 0; i + last < works; ++i) Write();
    runner_->SetCuts({});
    disk_.RunAll();
    executor_.RunAll();
  }
  const ShardCut& cut() const { return cut_; }
  const JobIdentity& identity() const { return identity_; }
  Generation generation() const { return generation_; }

 private:
  void Push(uint64_t step) {
    wire::PushFields fields;
    fields.step = Step(step);
    PushPart part;
    part.nodes.push_back({0, 1});
    part.updates.push_back(UpdateFor(Work(step), Position(0), Position(~uint64_t{0})));
    runner_->Push(std::make_shared<PushCall>(wire::ServerState{}, fields, 1,
                                             [](const absl::StatusOr<Buffer>&) {}),
                  std::move(part));
    executor_.RunAll();
  }
  void SetCuts(std::vector<CutOrder> orders) {
    runner_->SetCuts(std::move(orders));
    executor_.RunAll();
  }

  ManualExecutor executor_, disk_;
  ShardCut cut_;
  JobIdentity identity_;
  Generation generation_;
  std::unique_ptr<ShardRunner> runner_;
};

struct Heads {
  TempFolder folder;
  ManualTimer timer;
  CutOrder order{.cut = 7, .step = Step(kStep), .directory = folder.path() + "/step-000000000002"};
  Head before{4, &timer}, now{5, &timer};

  // What the manifest of the cut names is there and whole.
  void CheckCut() {
    INFO(now.cut().message);
    REQUIRE(now.cut().outcome == ShardCut::Outcome::kDone);
    REQUIRE(now.cut().files.size() == 1);
    const CutFile& file = now.cut().files.front();
    auto reader = storage::ShardFileReader::Open(absl::StrCat(order.directory, "/", file.name));
    INFO(reader.status());
    REQUIRE(reader.ok());
    const auto summary = (*reader)->Verify();
    INFO(summary.status());
    REQUIRE(summary.ok());
    CHECK(summary->crc32c == file.summary.crc32c);
    CHECK(summary->rows > 0);
  }

  // The scheduler's look: nothing stays but what the manifest names.
  void CheckLeftovers() {
    Manifest manifest;
    manifest.add_files()->set_name(now.cut().files.front().name);
    REQUIRE(WriteManifest(order.directory, manifest).ok());
    REQUIRE(RemoveLeftovers(folder.path(), {.identity = now.identity(),
                                            .generation = now.generation(),
                                            .below = order.cut + 1})
                .ok());
    for (const auto& entry : fs::directory_iterator(order.directory)) {
      const std::string name = entry.path().filename();
      CHECK((name == kManifestName || name == manifest.files(0).name()));
    }
    CheckCut();
  }
};

uint64_t BytesIn(const std::string& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) bytes += fs::file_size(entry);
  return bytes;
}

TEST_CASE("a superseded head does not empty the file that its successor writes", "[cut][copies]") {
  Heads heads;
  heads.before.Order(heads.order);  // and its process stops before the file is there
  heads.now.Order(heads.order);
  do {
    heads.now.Write();
  } while (BytesIn(heads.order.directory) == 0);
  heads.before.Write();
  heads.now.Finish();
  heads.CheckCut();
  heads.before.Finish();
  heads.CheckCut();
  heads.CheckLeftovers();
}

TEST_CASE("a superseded head does not take its successor's unfinished file away", "[cut][copies]") {
  Heads heads;
  heads.before.Order(heads.order);
  heads.before.Write();
  heads.now.Order(heads.order);
  heads.now.Write();
  if (GENERATE(false, true)) {
    heads.before.Finish();  // under the name of the cut
  } else {
    heads.before.GiveUp();
    heads.before.Finish();
  }
  heads.now.Finish();
  heads.CheckCut();
  heads.CheckLeftovers();
}

TEST_CASE("a superseded head neither replaces nor removes what its successor told of",
          "[cut][copies]") {
  size_t works = 0;  // of the disk, for a file
  {
    Heads heads;
    heads.now.Order(heads.order);
    for (; heads.now.cut().files.empty(); ++works) heads.now.Write();
  }
  const size_t last = GENERATE(0, 1, 2, 3);
  CAPTURE(works, last);
  Heads heads;
  heads.before.Order(heads.order);
  heads.now.Order(heads.order);
  heads.now.Finish();
  heads.CheckCut();
  heads.before.GiveUpBefore(works, last);
  heads.before.Finish();
  heads.CheckCut();
  heads.CheckLeftovers();
}

}  // namespace
}  // namespace strata::server
