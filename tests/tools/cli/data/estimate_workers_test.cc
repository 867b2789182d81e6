// What `strata estimate` says of workers, and of what GPUs have.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "proto/core/memory_part.h"
#include "proto/strata/job.pb.h"
#include "tests/tools/cli/data/made_estimate.h"
#include "tools/cli/data/estimate.h"

namespace strata {
namespace {

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

}  // namespace
}  // namespace strata
