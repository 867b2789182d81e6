// What `strata estimate` says of servers.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "proto/core/memory_part.h"
#include "proto/strata/job.pb.h"
#include "tests/tools/cli/data/made_estimate.h"
#include "tools/cli/data/estimate.h"

namespace strata {
namespace {

TEST_CASE("rows cost what a row is long, and are shared by the servers", "[estimate]") {
  JobSpec spec = Spec();
  const auto rows_of = [&](uint64_t rows) {
    return Of(Estimate(spec, rows), "server").parts[0].bytes;
  };
  // fm: 17 weights, 17 of adagrad's state, 8 of metadata, 8 of the position, 6.67 to 7.25 of index.
  const double per_row = static_cast<double>(rows_of(10000000) - rows_of(5000000)) / 5e6;
  CHECK(per_row > 4 * 34 + 16 + 6.66);
  CHECK(per_row < 4 * 34 + 16 + 10.01);
  const uint64_t one = rows_of(8000000);
  spec.mutable_replicas()->set_servers(2);
  CHECK(std::abs(static_cast<double>(rows_of(8000000)) / static_cast<double>(one) - .5) < .01);
}

TEST_CASE("a limit bounds the rows and adds the tier's own memory", "[estimate]") {
  JobSpec spec = Spec();
  spec.mutable_storage()->set_dram_bytes_per_server("64MiB");
  spec.mutable_storage()->set_ssd("rocksdb");
  const ProcessEstimate limited = Of(Estimate(spec), "server");
  CHECK(limited.parts[0].bytes == 64u << 20);
  CHECK(limited.parts[1].name == "SSD tier: memtables");
  CHECK(limited.parts[1].bytes == 48u << 20);
  // Not where all rows fit.
  const ProcessEstimate small = Of(Estimate(spec, 1000), "server");
  CHECK_FALSE(absl::StrContains(small.parts[1].name, "SSD tier"));
  CHECK(small.parts[0].bytes < 64u << 20);
}

TEST_CASE("what lies below a limit is told with its own parts", "[estimate]") {
  JobSpec spec = Spec();
  spec.mutable_storage()->set_dram_bytes_per_server("64MiB");
  spec.mutable_storage()->set_ssd("rocksdb");
  const ProcessEstimate rocks = Of(Estimate(spec), "server");
  CHECK(HasPart(rocks, "SSD tier: block cache"));
  CHECK(HasPart(rocks, "keys known to be absent"));
  spec.mutable_storage()->set_ssd("rowfile");
  const ProcessEstimate file = Of(Estimate(spec), "server");
  CHECK_FALSE(HasPart(file, "SSD tier: block cache"));
  CHECK(HasPart(file, "SSD tier: index and filters"));
  // Index and filters grow with the rows below, a little over a byte each; nothing else does.
  const uint64_t more = TotalBytes(Of(Estimate(spec, 20'000'000), "server").parts);
  const uint64_t less = TotalBytes(Of(Estimate(spec, 10'000'000), "server").parts);
  CHECK(more - less > 10'000'000);
  CHECK(more - less < 30'000'000);
}

uint64_t ServerBytes(const JobEstimate& estimate) {
  return TotalBytes(Of(estimate, "server").parts);
}

TEST_CASE("a GPU tier takes pinned memory, and on the host its own", "[estimate]") {
  JobSpec spec = Spec();
  const uint64_t without = ServerBytes(Estimate(spec));
  spec.mutable_storage()->set_gpu_bytes_per_server("64MiB");
  const JobEstimate device = Estimate(spec);
  CHECK(ServerBytes(device) < without + (32 << 20));
  CHECK(device.hbm_bytes == 64 << 20);
  // Of four shards, each with 4096 rows of 34 floats and 8 bytes of metadata, 144 in all, three
  // times; and some 64 bytes more a key.
  const std::string part = "pinned memory of the GPU tier";
  REQUIRE(HasPart(Of(device, "server"), part));
  uint64_t pinned = 0;
  for (const MemoryPart& p : Of(device, "server").parts) pinned += p.name == part ? p.bytes : 0;
  CHECK(pinned >= 4 * 4096 * (3 * 144 + 32));
  CHECK(pinned < 4 * 4096 * (3 * 160 + 96));
  CHECK(ServerBytes(device) > without + pinned);  // lists
  spec.mutable_storage()->set_gpu_backend("host");
  CHECK_FALSE(HasPart(Of(Estimate(spec), "server"), part));
  CHECK(ServerBytes(Estimate(spec)) == ServerBytes(device) - pinned + (64 << 20));
  CHECK(absl::StrContains(EstimateText(device), "Least spec.storage.gpuBytesPerServer: " +
                                                    std::to_string(device.least_hbm_bytes) + "."));
}

TEST_CASE("a log costs its records", "[estimate]") {
  JobSpec spec = Spec();
  CHECK(HasPart(Of(Estimate(spec), "server"), "log records"));
  spec.mutable_storage()->set_durability("memory");
  CHECK_FALSE(HasPart(Of(Estimate(spec), "server"), "log records"));
}

TEST_CASE("each copy of the shards costs what a server does", "[estimate]") {
  JobSpec spec = Spec();
  const JobEstimate alone = Estimate(spec);
  CHECK_FALSE(absl::StrContains(EstimateText(alone), "copies of a server's shards"));
  CHECK_FALSE(nlohmann::json::parse(EstimateJson(alone)).contains("copies"));
  spec.mutable_storage()->set_durability("replicated");
  spec.mutable_storage()->set_replicas(3);
  const JobEstimate copies = Estimate(spec);
  CHECK(Of(copies, "server").count == 3 * Of(alone, "server").count);
  CHECK(ServerBytes(copies) == ServerBytes(alone));
  CHECK(
      absl::StrContains(EstimateText(copies), "Each of the 3 copies of a server's shards counts"));
  CHECK(nlohmann::json::parse(EstimateJson(copies))["copies"] == 3);
}

const MemoryPart& Snapshot(const ProcessEstimate& process, const std::string& name) {
  for (const MemoryPart& part : process.snapshot_parts) {
    if (part.name == name) return part;
  }
  FAIL("no part " << name);
  return process.snapshot_parts[0];
}

TEST_CASE("a stream of removed keys costs its buffers, where keys are removed", "[estimate]") {
  const std::string part = "removed keys on their way to files";
  JobSpec spec = Spec();
  spec.mutable_output()->set_removed("removed");
  CHECK_FALSE(HasPart(Of(Estimate(spec), "server"), part));
  spec.mutable_life_cycle()->mutable_removal()->set_every_steps(10);
  spec.mutable_life_cycle()->mutable_removal()->set_ttl_steps(100);
  const ProcessEstimate server = Of(Estimate(spec), "server");
  REQUIRE(HasPart(server, part));
  for (const MemoryPart& p : server.parts) {
    // Of each of four shards, as removed_stream.h says.
    if (p.name == part) CHECK(p.bytes == 4 * ((512 << 10) + 2048 * 8));
  }
  spec.mutable_output()->clear_removed();
  CHECK_FALSE(HasPart(Of(Estimate(spec), "server"), part));
}

TEST_CASE("snapshots cost what a shard may hold of them, beside the rest", "[estimate]") {
  constexpr uint64_t kMiB = 1 << 20;
  JobSpec spec = Spec();
  spec.mutable_storage()->set_durability("memory");
  spec.mutable_checkpoint()->clear_directory();
  const JobEstimate none = Estimate(spec);
  CHECK(Of(none, "server").snapshot_parts.empty());
  CHECK_FALSE(absl::StrContains(EstimateText(none), "napshot"));
  CHECK(nlohmann::json::parse(EstimateJson(none))["snapshotBytes"] == 0);
  // An image at a time. Many rows: four shards of 64 MiB, and the 60000 rows of a commit, each 144
  // bytes and its position; twice.
  spec.mutable_storage()->set_durability("logged");
  const JobEstimate images = Estimate(spec, 100'000'000);
  const uint64_t dense = Snapshot(Of(images, "server"), "rows kept as they were").bytes / 2 -
                         4 * 64 * kMiB - 60000 * (8 + 144);
  CHECK(dense < 16 * (8 + 256 * 12 + 8));  // a bias, and the numbers' weights
  // 8 pieces of each shard, which hold 256 KiB and a row, and their positions; twice.
  const uint64_t piece = ((256 << 10) / 144 + 1) * (8 + 144);
  CHECK(Snapshot(Of(images, "server"), "pieces on their way to files").bytes >=
        4 * (8 * 2 * piece + kMiB));
  // Few rows are kept once, whatever the bound; a checkpoint beside the image keeps them again.
  const uint64_t few = Snapshot(Of(Estimate(spec, 1000), "server"), "rows kept as they were").bytes;
  CHECK(few >= 2 * 1000 * (8 + 144));
  CHECK(few < 2 * 1000 * (8 + 144) + 32 * (8 + 256 * 12 + 8));
  spec.mutable_checkpoint()->set_directory("checkpoints");
  const JobEstimate both = Estimate(spec, 1000);
  CHECK(Snapshot(Of(both, "server"), "rows kept as they were").bytes == 2 * few);
  CHECK(nlohmann::json::parse(EstimateJson(both))["snapshotBytes"] ==
        TotalBytes(Of(both, "server").snapshot_parts));
  CHECK(absl::StrContains(EstimateText(both), "While a base image or a checkpoint is written"));
  // Increments follow lists of what changed.
  spec.mutable_checkpoint()->set_full_every(5);
  CHECK(Snapshot(Of(Estimate(spec, 100'000'000), "server"), "lists of changed rows").bytes >=
        4 * 8 * 25'000'000);
}

TEST_CASE("asynchronous servers hold no steps", "[estimate]") {
  JobSpec spec = Spec();
  spec.mutable_training()->set_mode("async");
  for (const MemoryPart& part : Of(Estimate(spec), "server").parts) {
    CHECK_FALSE(absl::StrContains(part.name, "pre-images"));
  }
}

}  // namespace
}  // namespace strata
