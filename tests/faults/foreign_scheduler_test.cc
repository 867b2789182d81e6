// An empty or foreign scheduler at the address of a cluster's own: nobody follows it, nothing is
// deleted, and training goes on to the model that it would have made.
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/files_below.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

// What a server keeps of jobs: OPEN and segments of logs.
std::vector<std::string> JobFiles(const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& path : FilesBelow(folder)) {
    if (absl::EndsWith(path, "/OPEN") || absl::EndsWith(path, ".log")) files.push_back(path);
  }
  return files;
}

TEST_CASE("an empty scheduler in the place of a cluster's own deletes nothing",
          "[faults][identity]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(300);
  const std::string alone = Train(job).model_hash();
  ProcessCluster cluster(
      {.servers = 1, .workers = 1, .folder = folder->path() + "/cluster", .lease_ms = 500});
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 20);
  const std::string own = cluster.folder() + "/scheduler", aside = own + ".own";
  cluster.Kill("scheduler");
  fs::rename(own, aside);
  cluster.Start("scheduler");
  AwaitThat("the server refuses it", [&] {
    return absl::StrContains(ReadFile(cluster.folder() + "/server-0.log.err"),
                             "belongs to cluster");
  });
  AwaitThat("the worker refuses it, as loudly", [&] {
    std::istringstream log(ReadFile(cluster.folder() + "/worker-0.log.err"));
    for (std::string line; std::getline(log, line);) {
      if (line[0] == 'E' && absl::StrContains(line, "scheduler_refused") &&
          absl::StrContains(line, "belongs to cluster")) {
        return true;
      }
    }
    return false;
  });
  AwaitThat("it knows nobody", [&] {
    const auto seen = cluster.scheduler().GetCluster(absl::Seconds(10));
    return seen.ok() && seen->nodes().empty();
  });
  CHECK_FALSE(JobFiles(cluster.folder() + "/server-0").empty());
  // A server that begins anew meets it first of all.
  cluster.KillAndStart({"server-0"});
  AwaitThat("the new process refuses it", [&] {
    const std::string log = ReadFile(cluster.folder() + "/server-0.log.err");
    const size_t first = log.find("belongs to cluster");
    return first != std::string::npos &&
           log.find("belongs to cluster", first + 1) != std::string::npos;
  });
  CHECK_FALSE(JobFiles(cluster.folder() + "/server-0").empty());
  cluster.Kill("scheduler");
  fs::rename(own, own + ".foreign");
  fs::rename(aside, own);
  cluster.Start("scheduler");
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.rollbacks() == 0);
  CHECK(end.model_hash() == alone);
  AwaitThat("nothing is left of the job",
            [&] { return JobFiles(cluster.folder() + "/server-0").empty(); });
}

}  // namespace
}  // namespace strata::testing
