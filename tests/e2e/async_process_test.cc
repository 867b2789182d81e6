// Asynchronous training with real processes: each window takes effect once per partition (promise
// P7), whoever is killed.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "storage/shard_file.h"
#include "tests/e2e/process_cluster.h"
#include "tests/e2e/small_job.h"
#include "tools/cluster/scratch_folder.h"

namespace strata::testing {
namespace {

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-e2e");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

TrainingJob AsyncJob(const std::string& folder) {
  TrainingJob job = SmallJob(folder);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_training()->set_mode("async");
  WriteLibfm(folder + "/train.libfm", 1, 3000, 6, 40);
  WriteLibfm(folder + "/eval.libfm", 2, 1000, 6, 40);
  spec.mutable_training()->set_epochs(5);
  spec.mutable_checkpoint()->set_directory(folder + "/checkpoints");
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  return job;
}

// How often each row of the dense table was updated, over all files of a checkpoint: every window
// pushes to every one of them.
std::vector<uint32_t> DenseUpdates(const std::string& folder) {
  constexpr TableId kDense(1);
  std::vector<uint32_t> updates;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename() == "MANIFEST.json") continue;
    auto reader = storage::ShardFileReader::Open(entry.path());
    REQUIRE(reader.ok());
    const storage::ShardFileHeader& header = (*reader)->header();
    size_t row_bytes = 0;
    for (const storage::TableShape& t : header.tables) {
      if (t.id == kDense) row_bytes = t.row_bytes();
    }
    const absl::Status s = (*reader)->ReadRows(
        kDense, header.partitions, [&](std::span<const Position> positions, const uint8_t* rows) {
          for (size_t i = 0; i < positions.size(); ++i) {
            uint32_t count = 0;  // RowMeta.updates: the row's last four bytes
            std::memcpy(&count, rows + (i + 1) * row_bytes - 4, 4);
            updates.push_back(count);
          }
          return absl::OkStatus();
        });
    REQUIRE(s.ok());
  }
  return updates;
}

TEST_CASE("async: every example once, with whatever is killed", "[e2e][async]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = AsyncJob(folder.path());
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  const JobStatus calm = cluster.AwaitEnd(cluster.Submit(job));
  INFO(Conditions(calm));
  REQUIRE(calm.state() == SUCCEEDED);
  CHECK(calm.result().auc() > 0.55);
  CHECK(calm.examples() == 3000 * 5);
  const std::vector<uint32_t> once = DenseUpdates(calm.checkpoint());
  REQUIRE(once.size() > 5);
  const uint64_t windows = calm.step();
  for (uint32_t count : once) REQUIRE(count == windows);
  const std::vector<std::vector<std::string>> all = {
      {"worker-0"}, {"server-0"}, {"server-1", "worker-1"}, {"server-0", "server-1"}};
  for (const auto& who : all) {
    INFO(who.front() << " and " << who.back());
    const uint64_t id = cluster.Submit(job, false, /*overwrite=*/true);
    cluster.Await(id, [](const JobStatus& s) { return s.examples() >= 2000; });
    for (const std::string& name : who) cluster.Kill(name);
    for (const std::string& name : who) cluster.Start(name);
    const JobStatus end = cluster.AwaitEnd(id);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.step() == calm.step());
    CHECK(end.rollbacks() == 0);
    const std::vector<uint32_t> updates = DenseUpdates(end.checkpoint());
    CHECK(updates.size() == once.size());
    for (uint32_t count : updates) CHECK(count == windows);
    CHECK(end.result().auc() > 0.55);
  }
}

}  // namespace
}  // namespace strata::testing
