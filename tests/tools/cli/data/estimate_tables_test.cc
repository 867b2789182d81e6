#include "tools/cli/data/estimate_tables.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job/job_spec.h"
#include "proto/job/memory_need.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/din_job.h"
#include "tests/tools/cli/data/made_estimate.h"
#include "tools/cli/data/estimate.h"

namespace strata {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST_CASE("a line for each table, and one that says which shares fit", "[estimate]") {
  std::vector<TableEstimate> tables = {
      {.name = "item", .share = 1, .part = 12 * kMiB, .needed = 70 * kMiB, .in_dram = 12 * kMiB},
      {.name = "user", .share = 2, .part = 24 * kMiB, .needed = kMiB * 3 / 2, .in_dram = kMiB / 2}};
  const std::string lines =
      "\nOf spec.storage.dramBytesPerServer tables have on each server:\n"
      "TABLE                                                  PART   ALL ROWS NEED  DRAMSHARE\n"
      "item                                               12.0 MiB        70.0 MiB  1\n"
      "user                                               24.0 MiB         1.5 MiB  2\n";
  CHECK(TablesText(tables) == lines);
  tables[0].fitting = 96;
  tables[1].fitting = 4;
  tables[0].fitting_in_dram = 34 * kMiB;
  tables[1].fitting_in_dram = kMiB * 3 / 2;
  CHECK(TablesText(tables) ==
        lines +
            "Some need less than their parts, and others more. spec.tables[].dramShare that fit, "
            "and keep 35.5 MiB of rows in memory instead of 12.5 MiB: item 96, user 4.\n");
  CHECK(TablesText({}) == "");
}

// Two servers of five tables; of the first one nearly all rows.
JobSpec FiveTables() {
  TrainingJob job = DinJob({"item", "user", "place", "day", "shop"},
                           {{"item", "categorical", "item"},
                            {"user", "categorical", "user"},
                            {"place", "categorical", "place"},
                            {"day", "categorical", "day"},
                            {"shop", "categorical", "shop"}},
                           200);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_storage()->set_shards_per_server(4);
  spec.mutable_storage()->set_dram_bytes_per_server("64MiB");
  spec.mutable_replicas()->set_servers(2);
  REQUIRE(ResolveJob(job).ok());
  return job.spec();
}

JobEstimate EstimateOf(const JobSpec& spec) {
  DataMeasure data = Data();
  data.fields = 5;
  data.numeric = 0;
  // The dense table is number 1.
  for (const uint64_t rows : {4'000'000, 0, 5000, 4000, 1000, 2000}) {
    data.of_table.push_back({.rows = rows, .per_batch = 100, .per_push = 100, .per_step = 100});
  }
  data.distinct_keys = 4'012'000;
  const auto estimate = EstimateJob(spec, data, 0, 8);
  INFO(estimate.status());
  REQUIRE(estimate.ok());
  return *estimate;
}

TEST_CASE("a big table beside four small ones has a fifth, unless a share says otherwise",
          "[estimate]") {
  JobSpec spec = FiveTables();
  const JobEstimate equal = EstimateOf(spec);
  REQUIRE(equal.tables.size() == 5);
  CHECK(equal.tables[0].name == "item");
  CHECK(equal.tables[0].part < 64 * kMiB / 5);
  CHECK(equal.tables[0].part > 64 * kMiB / 6);  // beside what dense layers take
  CHECK(equal.tables[0].needed > 100 * kMiB);
  CHECK(equal.tables[1].needed < 2 * kMiB);
  const std::string formula = Of(equal, "server").parts[0].formula;
  CHECK(absl::StrContains(formula, "which 5 tables share equally; "));
  std::string fitting = "instead of ";
  uint64_t in_dram = 0;
  for (const TableEstimate& t : equal.tables) in_dram += t.in_dram;
  absl::StrAppend(&fitting, BinarySize(in_dram), ": ");
  for (int t = 0; t < 5; ++t) {
    absl::StrAppend(&fitting, t == 0 ? "" : ", ", spec.tables(t).name(), " ",
                    equal.tables[t].fitting);
    spec.mutable_tables(t)->set_dram_share(equal.tables[t].fitting);
  }
  CHECK(absl::StrContains(EstimateText(equal), fitting + ".\n"));
  const auto json = nlohmann::json::parse(EstimateJson(equal));
  CHECK(json["tables"].size() == 5);
  CHECK(json["tables"][0]["dramShare"] == 1);
  CHECK(json["tables"][0]["fittingDramShare"] == equal.tables[0].fitting);

  const JobEstimate fits = EstimateOf(spec);
  CHECK(
      absl::StrContains(Of(fits, "server").parts[0].formula, "which 5 tables share by dramShare"));
  CHECK(fits.tables[0].part > 56 * kMiB);
  for (int t = 1; t < 5; ++t) CHECK(fits.tables[t].part >= fits.tables[t].needed);
  CHECK_FALSE(absl::StrContains(EstimateText(fits), "that fit"));
  CHECK(nlohmann::json::parse(EstimateJson(fits))["tables"][0]["fittingDramShare"].is_null());
  CHECK(Of(fits, "server").parts[0].bytes > Of(equal, "server").parts[0].bytes * 3);
}

TEST_CASE("tables are not told where there is one, or no limit", "[estimate]") {
  JobSpec spec = FiveTables();
  spec.mutable_storage()->set_dram_bytes_per_server("0");
  CHECK(EstimateOf(spec).tables.empty());
  JobSpec one = Spec();
  one.mutable_storage()->set_dram_bytes_per_server("64MiB");
  const JobEstimate estimate = Estimate(one);
  CHECK(estimate.tables.empty());
  CHECK_FALSE(absl::StrContains(EstimateText(estimate), "DRAMSHARE"));
  CHECK_FALSE(nlohmann::json::parse(EstimateJson(estimate)).contains("tables"));
}

}  // namespace
}  // namespace strata
