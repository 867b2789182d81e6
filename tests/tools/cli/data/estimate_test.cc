#include "tools/cli/data/estimate.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/core/memory_part.h"
#include "proto/job/job_spec.h"
#include "proto/job/memory_need.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/din_job.h"
#include "tests/tools/cli/data/made_estimate.h"
#include "tools/cli/data/distinct_counter.h"

namespace strata {
namespace {

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

TEST_CASE("a batch that a device cannot count is refused by its field", "[estimate]") {
  TrainingJob job = DinJob(
      {"item"},
      {{"categorical_items", "categorical", "item"}, {"sequence_items", "sequence", "item"}}, 4096);
  JobSpec& spec = *job.mutable_spec();
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

}  // namespace
}  // namespace strata
