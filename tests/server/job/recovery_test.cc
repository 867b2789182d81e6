// What a server finds again after a restart: log, base images, checkpoints.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/job_folder.h"
#include "server/job/opening.h"
#include "storage/row/layout.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

TEST_CASE("a restart recovers, knows no session, and goes on", "[service][recovery]") {
  const auto references = References(2, 2, 3);
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  REQUIRE(bench.PushStep(2, 1, {{0, 2}}).ok());
  REQUIRE(bench.PushStep(2, 2, {{0, 1}}).ok());  // held, and lost
  bench.plan().was_open = true;
  bench.Restart();
  REQUIRE(bench.recovered_);
  bench.CheckServed(*bench.Pull(2, 0), references[1]);
  bench.CheckServed(*bench.Pull(1, 0), references[0]);
  REQUIRE(absl::IsFailedPrecondition(bench.PushStep(2, 2, {{0, 2}}).status()));
  REQUIRE(bench.OpenSession().ok());
  REQUIRE(bench.PushStep(2, 2, {{1, 2}}).ok());
  bench.CheckServed(*bench.Pull(2, 0), references[1]);
  REQUIRE(bench.PushStep(2, 2, {{0, 1}}).ok());
  REQUIRE(bench.Hash(2) == references[2].Hash());
}

TEST_CASE("images bound the log; recovery from them; level memory is lost", "[service][recovery]") {
  const auto references = References(3, 1, 40);
  JobBench bench(1);
  bench.plan().log_bytes = 20000;
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  uint64_t most = 0;
  for (uint64_t step = 1; step <= 40; ++step) {
    REQUIRE(bench.PushStep(3, step, {{0, 1}}).ok());
    most = std::max(most, bench.service_.Find(JobId(1))->log_bytes());
  }
  REQUIRE(bench.service_.Find(JobId(1))->images_written() >= 6);
  REQUIRE(most < 30000);
  bench.plan().was_open = true;
  bench.Restart();
  REQUIRE(bench.Hash(40) == references[40].Hash());
  bench.CheckServed(*bench.Pull(40, 0), references[39]);

  bench.plan().generation = Generation(1);
  bench.plan().logged = false;
  REQUIRE(absl::IsDataLoss(
      OpenJob(bench.plan(), bench.folder_.path() + "/other", &bench.timer_).status()));
}

TEST_CASE("an order to begin a generation does not go on with one that has trained",
          "[service][recovery][identity]") {
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  bench.Stop();
  bench.Start();  // opened before, and nobody was told
  REQUIRE(bench.OpenSession().ok());
  REQUIRE(bench.PushStep(3, 1, {{0, 1}}).ok());
  bench.Stop();
  const absl::Status s = OpenJob(bench.plan(), bench.folder_.path(), &bench.timer_).status();
  INFO(s);
  CHECK(absl::IsUnavailable(s));
  CHECK(absl::StrContains(s.message(), "--restored"));
  bench.plan().was_open = true;
  bench.Restart();
  REQUIRE(bench.Hash(1) == References(3, 1, 1)[1].Hash());
}

TEST_CASE("no damaged image is trusted: the one before and the log, or lost", "[service]") {
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  REQUIRE(bench.PushStep(3, 1, {{0, 1}}).ok());
  bench.Stop();
  const std::string folder =
      GenerationFolder(bench.folder_.path(), bench.identity(), Generation(1));
  const std::string image = folder + "/image-0-00000000000000000009.strata";
  std::FILE* f = std::fopen(image.c_str(), "w");
  std::fputs("not an image", f);
  std::fclose(f);
  bench.plan().was_open = true;
  bench.Restart();  // the log has everything
  REQUIRE(bench.Hash(1) == References(3, 1, 1)[1].Hash());
}

TEST_CASE("a checkpoint restores under a new generation, and is not needed after",
          "[service][cut]") {
  const auto references = References(1, 1, 4);
  TempFolder checkpoint;
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  for (uint64_t step = 1; step <= 2; ++step) REQUIRE(bench.PushStep(1, step, {{0, 1}}).ok());
  ServerJobDirective d;
  d.set_map_epoch(5);
  CutDirective* cut = d.add_cuts();
  cut->set_cut(1);
  cut->set_step(2);
  const std::string folder = checkpoint.path() + "/c";
  cut->set_directory(folder);
  auto job = bench.service_.Find(JobId(1));
  job->Follow(d);
  bench.pool_.RunAll();
  Manifest manifest;
  const ServerJobReport report = job->Report();
  for (const CheckpointFile& f : report.cuts(0).files()) *manifest.add_files() = f;
  REQUIRE(manifest.files_size() == 3);
  REQUIRE(WriteManifest(folder, manifest).ok());
  job.reset();
  REQUIRE(bench.PushStep(1, 3, {{0, 1}}).ok());
  bench.Stop();

  JobPlan plan = bench.plan();
  plan.generation = Generation(2);
  plan.restore_from = folder;
  plan.restore.emplace();  // as its manifest says: nobody
  plan.start_step = Step(2);
  plan.shards.clear();
  const auto memory = DivideMemory(plan.tables, Position(0), Position(~0ull), 0, 2);
  for (uint32_t i = 0; i < 2; ++i) plan.shards.push_back({ShardId(i), Ranges(2)[i], *memory});
  for (const bool again : {false, true}) {
    plan.was_open = again;
    auto opened = OpenJob(plan, bench.folder_.path(), &bench.timer_);
    INFO(opened.status());
    REQUIRE(opened.ok());
    REQUIRE(opened->recovered == again);
    storage::HashSum sum;
    for (const auto& shard : opened->shards) {
      REQUIRE(shard->clock() == Step(2));
      REQUIRE(shard->CheckPull(Step(2)) == PullVerdict::kTooOld);
      sum += shard->Summarize()->hash;
    }
    REQUIRE(sum == references[2].Hash());
    std::filesystem::remove_all(folder);
  }
  // What an earlier opening left goes when nobody waits for it; a later one's does not.
  const auto at = [&](uint64_t generation) {
    return GenerationFolder(bench.folder_.path(), bench.identity(), Generation(generation));
  };
  REQUIRE(std::filesystem::exists(at(1)));
  std::filesystem::create_directory(at(3));
  RemoveEarlierGenerations(bench.folder_.path(), plan.identity, plan.generation);
  REQUIRE_FALSE(std::filesystem::exists(at(1)));
  REQUIRE(std::filesystem::exists(at(2)));
  REQUIRE(std::filesystem::exists(at(3)));
  plan.generation = Generation(3);
  plan.was_open = false;
  REQUIRE(absl::IsUnavailable(OpenJob(plan, bench.folder_.path(), &bench.timer_).status()));
}

TEST_CASE("a tier without room tries again by the timer that it was opened with", "[service]") {
  ManualTimer timer;
  TempFolder folder;
  JobBench bench(1);
  bench.LimitDram();
  bench.plan().row_file = GENERATE(true, false);
  bench.plan().tier_memtable_bytes = 64 << 10;
  auto opened = OpenJob(bench.plan(), folder.path(), &timer);
  REQUIRE(opened.ok());
  const ScopedFailpoint full(bench.plan().row_file ? "tier.flush" : "tier.file.write",
                             {.act = FailWith(absl::ResourceExhaustedError("no room"))});
  const absl::Time start = timer.Now();
  const std::vector<uint8_t> row(100);
  std::vector<Position> positions;
  for (uint64_t i = 0; i < 1000; ++i) positions.emplace_back(i << 50);
  const std::vector<const uint8_t*> rows(positions.size(), row.data());
  // Each is more than a memtable holds; the second has the first written, which nobody waits for.
  for (int i = 0; i < 2; ++i) {
    REQUIRE(opened->tier->Write(TableId(0), positions, rows, row.size()).ok());
  }
  timer.AwaitAlarms(1);
  CHECK(timer.next() == start + absl::Seconds(1));
}

// Rows that were written below DRAM may be newer than the image, and of steps that the log ends
// before: none of them is seen again.
TEST_CASE("recovery goes by images and the log alone, whatever lies below DRAM",
          "[service][recovery]") {
  constexpr uint64_t kSteps = 12;
  const auto references = References(8, 1, kSteps);
  JobBench bench(1);
  bench.LimitDram();
  bench.plan().row_file = GENERATE(true, false);
  bench.Start();
  bench.plan().was_open = true;
  REQUIRE(bench.OpenSession().ok());
  std::set<Position> touched;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    REQUIRE(bench.PushStep(8, step, {{0, 1}}).ok());
    const LaneWork work = WorkOf(8, step, 0);
    for (const auto& [position, sum] : work.sums.at(0)) touched.insert(position);
  }
  bench.Stop();
  {
    auto opened = OpenJob(bench.plan(), bench.folder_.path(), &bench.timer_);
    REQUIRE(opened.ok());
    const std::vector<uint8_t> row(storage::RowLayout::For(bench.plan().tables[0]).row_bytes(), 63);
    const std::vector<Position> positions(touched.begin(), touched.end());
    const std::vector<const uint8_t*> rows(positions.size(), row.data());
    REQUIRE(opened->tier->Write(TableId(0), positions, rows, row.size()).ok());
    REQUIRE(opened->tier->Sync().ok());
  }
  bench.Restart();
  REQUIRE(bench.recovered_);
  CHECK(bench.Hash(kSteps) == references[kSteps].Hash());
  bench.CheckServed(*bench.Pull(kSteps, 0), references[kSteps - 1]);
}

TEST_CASE("of a job's generations the one that is open alone has files", "[service]") {
  JobBench bench(1);
  for (uint64_t generation = 2; generation <= 40; generation += 2) {
    // What an opening leaves that was killed.
    std::filesystem::create_directories(
        GenerationFolder(bench.folder_.path(), bench.identity(), Generation(generation - 1)) +
        "/log");
    bench.plan().generation = Generation(generation);
    bench.Start();
    RemoveEarlierGenerations(bench.folder_.path(), bench.identity(), Generation(generation));
    bench.Stop();
    const std::vector<std::string> folders =
        GenerationFolders(JobFolder(bench.folder_.path(), bench.identity()));
    REQUIRE(folders.size() == 1);
    CHECK(folders[0] ==
          GenerationFolder(bench.folder_.path(), bench.identity(), Generation(generation)));
  }
}

}  // namespace
}  // namespace strata::server
