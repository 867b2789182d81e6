// A scheduler whose folder comes from an older copy: nobody follows it as it is; with --restored
// its job goes on to the model that it would have made, and what it knows nothing of is kept until
// a user says that it goes.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

// Folders of jobs on a server.
size_t JobFolders(const std::string& folder) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    count += absl::StartsWith(entry.path().filename().string(), "job-");
  }
  return count;
}

void AwaitRefusal(const ProcessCluster& cluster, const std::string& node) {
  AwaitThat(node + " is told of the older copy, and says so as an error", [&] {
    std::istringstream log(ReadFile(cluster.folder() + "/" + node + ".log.err"));
    for (std::string line; std::getline(log, line);) {
      if (line[0] == 'E' && absl::StrContains(line, "scheduler_refused") &&
          absl::StrContains(line, "older copy")) {
        return true;
      }
    }
    return false;
  });
}

CommandResult Nodes(ProcessCluster& cluster, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "nodes");
  arguments.insert(arguments.end(), {"--scheduler", cluster.address()});
  return cluster.Strata(arguments);
}

TEST_CASE("a scheduler goes on from an older copy of its folder when it is told that it is one",
          "[faults][identity]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(300);
  const std::string alone = Train(job).model_hash();
  job.mutable_spec()->mutable_checkpoint()->set_directory(folder->path() + "/ck");
  job.mutable_spec()->mutable_checkpoint()->set_every_steps(50);
  TrainingJob later = SmallJob(folder->path());
  later.mutable_metadata()->set_name("later");
  later.mutable_spec()->mutable_training()->set_epochs(100000);
  const std::vector<std::string> metrics = {"--metrics-listen=127.0.0.1:0"};
  ProcessCluster cluster({.servers = 1,
                          .workers = 2,
                          .folder = folder->path() + "/cluster",
                          .lease_ms = 500,
                          .server_flags = metrics});
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 60);
  const std::string own = cluster.folder() + "/scheduler", older = own + ".older";
  cluster.Kill("scheduler");
  fs::copy(own, older, fs::copy_options::recursive);
  cluster.Start("scheduler");
  cluster.AwaitRegistered();
  const uint64_t second = cluster.Submit(later);
  cluster.AwaitStep(second, 5);
  cluster.KillAndStart({"scheduler"});
  for (const char* node : {"server-0", "worker-0"}) {
    AwaitThat(absl::StrCat(node, " has heard of its third start"), [&] {
      const std::string file = cluster.folder() + "/" + node + "/CLUSTER";
      return absl::StrContains(ReadFile(file), "\"term\":\"3\"");
    });
  }
  cluster.Kill("scheduler");
  fs::remove_all(own);
  fs::rename(older, own);

  const size_t held = JobFolders(cluster.folder() + "/server-0");
  REQUIRE(held > 0);
  cluster.Start("scheduler");
  AwaitRefusal(cluster, "server-0");
  AwaitRefusal(cluster, "worker-0");
  cluster.Kill("scheduler");
  CHECK(JobFolders(cluster.folder() + "/server-0") == held);

  cluster.Start("scheduler", "", {"--restored", metrics[0]});
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == alone);
  CHECK(HasCondition(end, "RolledBack"));

  JobRef ref;
  ref.set_job(second);
  CHECK(absl::IsNotFound(cluster.scheduler().GetJob(ref, absl::Seconds(10)).status()));
  AwaitThat("the first job is removed, the second kept",
            [&] { return JobFolders(cluster.folder() + "/server-0") == 1; });
  const CommandResult listed = Nodes(cluster, {"--quarantined", "--json"});
  INFO(listed.err);
  const auto kept = nlohmann::json::parse(listed.out)["quarantined"];
  REQUIRE(kept.size() == 1);
  CHECK(kept[0]["node"] == "server-0");
  CHECK(kept[0]["name"] == "later");
  CHECK(kept[0]["bytes"] > 0);
  const CommandResult status = cluster.Strata({"status", "--scheduler", cluster.address()});
  CHECK(absl::StrContains(status.out, "server-0 keeps 1 job"));
  const auto quarantined = [&] {
    return std::vector{cluster.MetricOf("server-0", "strata_server_quarantined_jobs"),
                       cluster.MetricOf("scheduler", "strata_scheduler_quarantined_jobs")};
  };
  CHECK(quarantined() == std::vector<double>{1, 1});
  CHECK(Nodes(cluster, {"purge", "worker-0", "later"}).exit_code != 0);
  CHECK(Nodes(cluster, {"purge", "server-0", "small"}).exit_code != 0);
  CHECK(JobFolders(cluster.folder() + "/server-0") == 1);
  const CommandResult purged =
      Nodes(cluster, {"purge", "server-0", kept[0]["jobUid"].get<std::string>().substr(0, 8)});
  INFO(purged.err);
  CHECK(purged.exit_code == 0);
  CHECK(JobFolders(cluster.folder() + "/server-0") == 0);
  CHECK(Nodes(cluster, {"--quarantined"}).out == "nothing is in quarantine\n");
  AwaitThat("no metric counts a copy", [&] { return quarantined() == std::vector<double>{0, 0}; });
}

}  // namespace
}  // namespace strata::testing
