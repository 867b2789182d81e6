// That rows of the jobs of jobs.txt lie where the jobs say: the expected values of such a job are
// those of a job without tiers, and would be right as well if no row ever came there. Each job is
// trained as jobs_test trains it, for as many steps, in this process, and held before the last one.
#include <catch2/catch.hpp>
#include <cstdint>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/bad_input/user.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_jobs.h"
#include "tools/cli/job/file.h"
#include "tools/cluster/embedded/cluster.h"

namespace strata::golden {
namespace {

constexpr absl::Duration kCall = absl::Seconds(10);
// All its rows have room in DRAM.
constexpr char kFits[] = "life_cycle_all";

// The number after `what` in `text`; fails the test without one.
uint64_t NumberAfter(const std::string& what, const std::string& text) {
  std::smatch found;
  INFO(what << " in " << text);
  REQUIRE(std::regex_search(text, found, std::regex(what + "(\\d+)")));
  return std::stoull(found[1]);
}

// Steps that the golden run makes: to its last one, from that of the checkpoint that it resumes.
uint64_t StepsOf(const GoldenJob& job) {
  const std::string expected = ReadWhole(SourcePath("expected/jobs.txt"));
  const size_t at = expected.find("== " + job.name + "\n");
  INFO("jobs_test expects nothing of " << job.name);
  REQUIRE(at != std::string::npos);
  const size_t line = expected.find('\n', at) + 1;
  const uint64_t last =
      NumberAfter(" step=", expected.substr(line, expected.find('\n', line) - line));
  return job.resume.empty() ? last : last - NumberAfter("/step-", job.resume);
}

TrainingJob JobOf(const User& user, const GoldenJob& job) {
  PrepareJob(user, job);
  std::vector<std::string> fields;
  for (const std::string& field : job.fields) fields.push_back("spec." + field);
  fields.push_back("spec.output.predictions=");  // a job of a cluster has none
  auto loaded = LoadJobFile(user.Path(job.name + "/job.yaml"), fields);
  INFO(loaded.status());
  REQUIRE(loaded.ok());
  return *std::move(loaded);
}

// Rows that the shards of a job found, so far.
struct Found {
  uint64_t below_dram = 0, in_hbm = 0;
};

Found FoundBy(SchedulerClient& scheduler, const JobRef& job) {
  const auto shards = scheduler.GetShards(job, kCall);
  INFO(shards.status());
  REQUIRE(shards.ok());
  Found found;
  for (const ShardStatus& s : shards->shards()) {
    found.below_dram += s.report().ssd_reads();
    found.in_hbm += s.report().hbm_hits();
  }
  return found;
}

void CheckTiers(const User& user, const GoldenJob& golden) {
  constexpr uint64_t kRowsAStep = 3;  // of some 100 that a step of wide data pulls
  INFO("job " << golden.name);
  const TrainingJob job = JobOf(user, golden);
  const uint32_t servers = job.spec().replicas().servers();
  const uint64_t steps = StepsOf(golden);
  REQUIRE(steps > 1);
  // A step is a commit of each shard.
  const uint64_t shards = servers * job.spec().storage().shards_per_server();
  const ScopedFailpoint hold("server.commit.append",
                             {.act = FailWith(absl::UnavailableError("held by the test")),
                              .first_hit = (steps - 1) * shards + 1});
  EmbeddedClusterOptions options;
  options.servers = servers;
  options.workers = job.spec().replicas().workers();
  options.directory = user.Path(golden.name + "/servers");
  const auto cluster = EmbeddedCluster::Start(options);
  INFO(cluster.status());
  REQUIRE(cluster.ok());
  SubmitRequest request;
  *request.mutable_job() = job;
  request.set_request_id("test");
  request.set_resume(!golden.resume.empty());
  const auto id = (*cluster)->scheduler().Submit(request, kCall);
  INFO(id.status());
  REQUIRE(id.ok());
  JobRef ref;
  ref.set_job(id->job());
  const uint64_t least = kRowsAStep * (steps - 1);
  const uint64_t below = golden.Value("storage.dramBytesPerServer").empty() ? 0 : least;
  const uint64_t hbm = golden.Value("storage.gpuBytesPerServer").empty() ? 0 : least;
  Found found;
  try {
    testing::AwaitThat("rows of " + golden.name + " are found in its tiers", [&] {
      found = FoundBy((*cluster)->scheduler(), ref);
      return found.below_dram >= below && found.in_hbm >= hbm;
    });
  } catch (const std::runtime_error& late) {
    FAIL_CHECK(late.what() << ": of " << least << ", " << found.below_dram
                           << " were found below DRAM, " << found.in_hbm << " in HBM");
  }
}

TEST_CASE("rows of jobs with tiers lie there", "[golden]") {
  const User user;
  WriteData(user);
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
