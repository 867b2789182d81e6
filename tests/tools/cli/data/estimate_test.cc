#include "tools/cli/data/estimate.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/core/memory_part.h"
#include "proto/job/job_spec.h"
#include "proto/job/memory_need.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/data/distinct_counter.h"

namespace strata {
namespace {

JobSpec Spec() {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  job.mutable_spec()->mutable_data()->set_format("criteo");
  job.mutable_spec()->mutable_data()->add_train("t");
  job.mutable_spec()->mutable_model()->set_type("fm");
  job.mutable_spec()->mutable_storage()->set_shards_per_server(4);
  REQUIRE(ResolveJob(job).ok());
  return job.spec();
}

DataMeasure Data() {
  return {.lines = 1000000,
          .line_bytes = 240,
          .fields = 26,
          .numeric = 13,
          .features_per_example = 26,
          .distinct_keys = 5000000,
          .keys_per_batch = 9000,
          .keys_per_push = 60000,
          .keys_per_step = 60000};
}

ProcessEstimate Of(const JobEstimate& estimate, const std::string& role) {
  for (const ProcessEstimate& p : estimate.processes) {
    if (p.role == role) return p;
  }
  FAIL("no process " << role);
  return estimate.processes[0];
}

JobEstimate Estimate(const JobSpec& spec, uint64_t rows = 0) {
  auto estimate = EstimateJob(spec, Data(), rows, 8);
  REQUIRE(estimate.ok());
  return *estimate;
}

TEST_CASE("distinct keys are counted to two percent", "[estimate]") {
  for (uint64_t n : {0u, 1u, 100u, 30000u, 45000u, 1000000u}) {
    DistinctCounter counter;
    for (uint64_t repeat = 0; repeat < 2; ++repeat) {
      for (uint64_t key = 0; key < n; ++key) counter.Add(key * 977);
    }
    INFO(n);
    CHECK(std::abs(static_cast<double>(counter.Count()) - static_cast<double>(n)) <=
          .02 * static_cast<double>(n));
  }
}

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

bool HasPart(const ProcessEstimate& process, const std::string& name) {
  for (const MemoryPart& part : process.parts) {
    if (part.name == name) return true;
  }
  return false;
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

TEST_CASE("a scheduler would keep what a server takes, and is told so", "[estimate]") {
  const JobEstimate estimate = Estimate(Spec());
  const ProcessEstimate server = Of(estimate, "server");
  const uint64_t takes = TotalBytes(server.parts) + TotalBytes(server.snapshot_parts);
  CHECK(estimate.kept.likely.dram_bytes() > takes * 8 / 10);
  CHECK(estimate.kept.likely.dram_bytes() < takes * 13 / 10);
  CHECK(absl::StrContains(
      EstimateText(estimate),
      "\nA scheduler keeps " + BinarySize(estimate.kept.likely.dram_bytes()) + " of memory"));
}

TEST_CASE("a worker with a GPU holds batches on their way to it", "[estimate]") {
  JobSpec spec = Spec();
  const auto worker = [&](const char* device) {
    spec.mutable_worker()->set_device(device);
    return Of(Estimate(spec), "worker");
  };
  CHECK(TotalBytes(worker("auto").parts) == TotalBytes(worker("cpu").parts));
  CHECK(HasPart(worker("cpu"), "model scratch"));
  const ProcessEstimate gpu = worker("cuda:GPU-1"), host = worker("host");
  CHECK_FALSE(HasPart(gpu, "model scratch"));
  CHECK(HasPart(gpu, "batches on their way to the GPU"));
  CHECK(HasPart(host, "model of a GPU, in the host's memory"));
  CHECK(TotalBytes(host.parts) > TotalBytes(gpu.parts));
  // The host's own, where it stands for a GPU.
  CHECK(host.device_parts.empty());
  CHECK(worker("cpu").device_parts.empty());
  CHECK(gpu.device_parts.size() == 1);
}

TEST_CASE("what a GPU has is told apart, and rows that stay there in one process", "[estimate]") {
  JobSpec spec = Spec();
  spec.mutable_worker()->set_device("cuda:GPU-1");
  spec.mutable_replicas()->set_workers(2);
  spec.mutable_training()->set_lanes(4);
  const auto apart = [](const JobEstimate& e) {
    return TotalBytes(Of(e, "server").device_parts) + 2 * TotalBytes(Of(e, "worker").device_parts);
  };
  // Without a tier there is nowhere to stay.
  const JobEstimate none = Estimate(spec);
  CHECK(none.one_process_device_bytes == apart(none));
  spec.mutable_storage()->set_gpu_bytes_per_server("64MiB");
  const JobEstimate both = Estimate(spec);
  CHECK(apart(both) > apart(none) + (64 << 20));
  // Of each worker's two lanes: two steps' weights, two gradients of 9000 keys, and their sum of
  // 18000; rows of 17 floats, and two places for each row of the sum.
  const uint64_t rows = (2 * 60000 + 2 * 9000 + 18000) * 4 * 17 + 8 * 18000;
  CHECK(both.one_process_device_bytes == apart(both) + 2 * (rows + rows / 4));
  const auto json = nlohmann::json::parse(EstimateJson(both));
  CHECK(json["deviceBytes"] == apart(both));
  CHECK(json["oneProcessDeviceBytes"] == both.one_process_device_bytes);
  CHECK(json["processes"][1]["deviceParts"][0]["name"] == "GPU tier");
  CHECK(absl::StrContains(EstimateText(both), "In a GPU's memory:\nserver x 1"));
  CHECK_FALSE(absl::StrContains(EstimateText(Estimate(Spec())), "GPU's memory"));
  // They go in messages.
  const auto messages = [&](const JobSpec& changed) {
    const JobEstimate e = Estimate(changed);
    return e.one_process_device_bytes == apart(e);
  };
  JobSpec codec = spec, mode = spec, counted = spec, cpu = spec;
  codec.mutable_training()->set_pull_codec("bf16");
  CHECK(messages(codec));
  mode.mutable_training()->set_mode("downpour");
  CHECK(messages(mode));
  counted.mutable_life_cycle()->mutable_admission()->set_type("exact");
  counted.mutable_life_cycle()->mutable_admission()->set_min_steps(2);
  counted.mutable_life_cycle()->mutable_admission()->set_filter_bytes("16MiB");
  CHECK(messages(counted));
  cpu.mutable_worker()->set_device("cpu");
  CHECK(messages(cpu));
}

TEST_CASE("a log costs its records", "[estimate]") {
  JobSpec spec = Spec();
  CHECK(HasPart(Of(Estimate(spec), "server"), "log records"));
  spec.mutable_storage()->set_durability("memory");
  CHECK_FALSE(HasPart(Of(Estimate(spec), "server"), "log records"));
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

TEST_CASE("lanes and depth cost a worker memory", "[estimate]") {
  JobSpec spec = Spec();
  const uint64_t before = TotalBytes(Of(Estimate(spec), "worker").parts);
  spec.mutable_training()->set_pipeline_depth(16);
  const uint64_t deep = TotalBytes(Of(Estimate(spec), "worker").parts);
  CHECK(deep > before);
  spec.mutable_replicas()->set_workers(4);
  CHECK(TotalBytes(Of(Estimate(spec), "worker").parts) < deep);
  CHECK(Of(Estimate(spec), "worker").count == 4);
}

uint64_t PartBytes(const std::vector<MemoryPart>& parts, const std::string& name) {
  for (const MemoryPart& part : parts) {
    if (part.name == name) return part.bytes;
  }
  FAIL("no part " << name);
  return 0;
}

TEST_CASE("held-out lines cost the worker that evaluates", "[estimate]") {
  JobSpec spec = Spec();
  spec.mutable_model()->set_type("deepfm");
  for (const uint32_t width : {400, 400, 400}) spec.mutable_model()->add_hidden(width);
  DataMeasure data = Data();
  const auto estimate = [&] {
    auto made = EstimateJob(spec, data, 0, 8);
    REQUIRE(made.ok());
    return *made;
  };
  const JobEstimate without = estimate();
  CHECK_FALSE(HasPart(Of(without, "worker"), "evaluation: model scratch"));
  data.eval_lines = 1'000'000;
  spec.mutable_replicas()->set_workers(2);
  const JobEstimate with = estimate();
  const std::vector<MemoryPart> parts = Of(with, "worker").parts;
  // 4096 lines of inputs and three layers, forward.
  CHECK(PartBytes(parts, "evaluation: model scratch") > 4096 * 4 * (26 * 16 + 13 + 3 * 400));
  CHECK(PartBytes(parts, "evaluation: scores and labels") >= 1'000'000 * 24);
  // One worker of a process evaluates.
  uint64_t evaluation = 0;
  for (const MemoryPart& part : parts) {
    if (absl::StrContains(part.name, "evaluation")) evaluation += part.bytes;
  }
  data.eval_lines = 0;
  CHECK(with.one_process_bytes == estimate().one_process_bytes + evaluation);
}

TEST_CASE("what is scored is told by the longest lines", "[estimate]") {
  const JobSpec spec = Spec();
  DataMeasure data = Data();
  data.eval_lines = 1'000'000;
  const auto lines_of = [&] {
    const auto estimate = EstimateJob(spec, data, 0, 8);
    REQUIRE(estimate.ok());
    return std::pair(PartBytes(Of(*estimate, "worker").parts, "evaluation: lines and their rows"),
                     PartBytes(estimate->predict, "lines and their rows"));
  };
  const auto [evaluated, predicted] = lines_of();
  // Of a million lines, of 26 features on average, two hundred have as many as five thousand.
  for (int i = 0; i < 10'000; ++i) data.of_lines.Add(i < 200 ? 5000 : 26);
  const auto [longest_evaluated, longest_predicted] = lines_of();
  CHECK(longest_evaluated > evaluated + 200 * 5000 * uint64_t{16});
  CHECK(longest_predicted > predicted + 200 * 5000 * uint64_t{16});
}

TEST_CASE("a batch that a device cannot count is refused by its field", "[estimate]") {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->add_train("t");
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_model()->set_type("din");
  spec.add_tables()->set_name("item");
  for (const char* kind : {"categorical", "sequence"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(std::string(kind) + "_items");
    field.set_kind(kind);
    field.set_table("item");
  }
  spec.mutable_fields(1)->set_max_length(4096);
  spec.mutable_training()->set_batch_size(1 << 20);
  spec.mutable_worker()->set_device("cuda:GPU-1");
  REQUIRE(ResolveJob(job).ok());
  DataMeasure data = Data();
  data.fields = 2;
  data.numeric = 0;
  const auto estimate = [&] { return EstimateJob(spec, data, 0, 8).status(); };
  CHECK(estimate() ==
        absl::FailedPreconditionError(
            "spec.fields: a batch has room for 4294967296 values of sequence 'sequence_items' "
            "(maxLength 4096 x spec.training.batchSize 1048576), and a device counts 4294967295 at "
            "most; give a smaller maxLength or batchSize, or cpu for spec.worker.device"));
  spec.mutable_fields(1)->set_max_length(4095);
  CHECK(estimate().ok());
  spec.mutable_fields(1)->set_max_length(4096);
  spec.mutable_worker()->set_device("cpu");
  CHECK(estimate().ok());
}

TEST_CASE("predictions are told of, whatever trains", "[estimate]") {
  JobSpec spec = Spec();
  const JobEstimate cpu = Estimate(spec);
  CHECK(PartBytes(cpu.predict, "model scratch") > 4096 * 4 * 16);
  spec.mutable_worker()->set_device("cuda:GPU-1");
  spec.mutable_storage()->set_gpu_bytes_per_server("64MiB");
  spec.mutable_replicas()->set_servers(4);
  CHECK(TotalBytes(Estimate(spec).predict) == TotalBytes(cpu.predict));
  CHECK(absl::StrContains(EstimateText(cpu), "\nTo score lines with its model, at most:\n"));
  CHECK(nlohmann::json::parse(EstimateJson(cpu))["predictBytes"] == TotalBytes(cpu.predict));
  // A limit bounds its rows, too.
  spec = Spec();
  spec.mutable_storage()->set_dram_bytes_per_server("64MiB");
  CHECK(TotalBytes(Estimate(spec).predict) < TotalBytes(cpu.predict) / 2);
}

TEST_CASE("lanes with copies of their own keep rows and optimizer state", "[estimate]") {
  JobSpec spec = Spec();
  spec.mutable_training()->set_lanes(4);
  DataMeasure data = Data();
  data.keys_per_pull = 50'000;
  data.keys_of_lane = 2'000'000;
  const auto worker = [&](const char* mode) {
    spec.mutable_training()->set_mode(mode);
    auto made = EstimateJob(spec, data, 0, 8);
    REQUIRE(made.ok());
    return Of(*made, "worker").parts;
  };
  data.batches_per_pull = 10;
  const auto easgd = worker("easgd"), downpour = worker("downpour");
  // Adagrad: a float of state for each of 17 weights, and where it is.
  CHECK(PartBytes(easgd, "lanes' optimizer state") > 4 * uint64_t{2'000'000} * (17 * 4 + 17));
  CHECK(PartBytes(downpour, "lanes' optimizer state") < 1 << 20);
  CHECK(PartBytes(easgd, "lanes' copies") > 4 * uint64_t{150'000} * 17 * 4);
  CHECK(PartBytes(easgd, "batches of the lanes") == PartBytes(downpour, "batches of the lanes"));
  data.batches_per_pull = 1;
  data.keys_per_pull = data.keys_per_batch;
  const auto async = worker("async"), bsp = worker("bsp");
  CHECK(PartBytes(easgd, "batches of the lanes") == 10 * PartBytes(async, "batches of the lanes"));
  const auto has_copies = [](const std::vector<MemoryPart>& parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [](const MemoryPart& p) { return p.name == "lanes' copies"; });
  };
  CHECK_FALSE(has_copies(async));
  CHECK_FALSE(has_copies(bsp));
  // Each lane has a model of its own.
  CHECK(PartBytes(async, "model scratch") > 3 * PartBytes(bsp, "model scratch"));
}

TEST_CASE("the least limit is named, and what dominates", "[estimate]") {
  const JobEstimate estimate = Estimate(Spec());
  CHECK(estimate.least_dram_bytes > 0);
  const std::string text = EstimateText(estimate);
  CHECK(absl::StrContains(text, "Most of it: server, rows and index, table features"));
  CHECK(absl::StrContains(text, "Least spec.storage.dramBytesPerServer: " +
                                    std::to_string(estimate.least_dram_bytes) + "."));
  const auto json = nlohmann::json::parse(EstimateJson(estimate));
  CHECK(json["rows"] == 5000000);
  CHECK(json["processes"].size() == 3);
  CHECK(json["dominates"]["role"] == "server");
  uint64_t sum = 0;
  for (const auto& process : json["processes"]) {
    uint64_t parts = 0;
    for (const auto& part : process["parts"]) parts += part["bytes"].get<uint64_t>();
    CHECK(parts == process["bytes"]);
    sum += parts * process["count"].get<uint64_t>();
  }
  CHECK(json["clusterBytes"] == sum);
  CHECK(json["oneProcessBytes"] < sum);
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
