// That rows of the jobs of jobs.txt lie where the jobs say: the expected values of such a job are
// those of a job without tiers, and would be right as well if no row ever came there.
#include <catch2/catch.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "tests/bad_input/user.h"
#include "tests/e2e/process_cluster.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/golden_jobs.h"

namespace strata::golden {
namespace {

// All its rows have room in DRAM.
constexpr char kFits[] = "life_cycle_all";

// Rows that the shards of a running job found, so far.
struct Found {
  uint64_t below_dram = 0, in_hbm = 0;
};

Found FoundBy(const User& user, const std::string& job) {
  const ProgramResult r = user.Strata("shards " + job + " --json");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  const auto shards = nlohmann::json::parse(r.out).at("shards");
  Found found;
  for (const auto& shard : shards) {
    if (!shard.at("ssdReads").is_number()) continue;  // it has not reported yet
    found.below_dram += shard.at("ssdReads").get<uint64_t>();
    found.in_hbm += shard.at("hbmHits").get<uint64_t>();
  }
  return found;
}

// The job as the table has it, but for its length: it trains until rows were found in each tier.
void CheckTiers(const User& user, const GoldenJob& job) {
  constexpr uint64_t kRows = 1000;
  const bool below = !job.Value("storage.dramBytesPerServer").empty();
  const bool hbm = !job.Value("storage.gpuBytesPerServer").empty();
  INFO("job " << job.name);
  const ProgramResult submitted =
      user.Strata("submit " + PrepareJob(user, job) +
                  " --set spec.training.epochs=1000000 --set spec.output.predictions=");
  INFO(submitted.err);
  REQUIRE(submitted.exit_code == 0);
  Found found;
  try {
    testing::AwaitThat("rows of " + job.name + " are found in its tiers", [&] {
      found = FoundBy(user, job.name);
      return (!below || found.below_dram >= kRows) && (!hbm || found.in_hbm >= kRows);
    });
  } catch (const std::runtime_error& late) {
    FAIL(late.what() << ": " << found.below_dram << " were found below DRAM, " << found.in_hbm
                     << " in HBM\n"
                     << user.Strata("status " + job.name).out);
  }
  CHECK(user.Strata("cancel " + job.name).exit_code == 0);
}

TEST_CASE("rows of jobs with tiers lie there", "[golden]") {
  User user;
  WriteData(user);
  user.Up("--servers 2 --workers 1 --worker-devices none");
  int jobs = 0;
  for (const GoldenJob& job : ReadJobs()) {
    const bool tiers = !job.Value("storage.dramBytesPerServer").empty() ||
                       !job.Value("storage.gpuBytesPerServer").empty();
    if (!tiers || job.name == kFits) continue;
    if (!job.resume.empty()) {
      REQUIRE(!TrainJob(user, JobNamed(job.resume.substr(0, job.resume.find('/')))).empty());
    }
    CheckTiers(user, job);
    ++jobs;
  }
  CHECK(jobs > 5);
}

}  // namespace
}  // namespace strata::golden
