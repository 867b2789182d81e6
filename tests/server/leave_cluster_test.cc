#include "server/leave_cluster.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/runtime/files/node_cluster.h"
#include "server/folder_lock.h"
#include "server/job/held_jobs.h"
#include "server/job/job_folder.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

namespace fs = std::filesystem;

constexpr JobIdentity kJob = {{1, 2}, {3, 4}};

// The folder of a server that ran in a cluster.
void Run(const std::string& folder) {
  REQUIRE(FolderLock::Take(folder).ok());
  auto cluster = NodeCluster::Open(folder);
  REQUIRE(cluster.ok());
  REQUIRE(cluster->Follow({.cluster_id = kJob.cluster.text(), .term = 1}).ok());
}

void Hold(const std::string& folder, const std::string& root) {
  HeldJob job;
  job.set_cluster_id(kJob.cluster.text());
  job.set_job_uid(kJob.job.text());
  job.set_name("day");
  job.set_root(root);
  REQUIRE(HeldJobs(folder).Put(job).ok());
}

TEST_CASE("a folder that no server ran with is told, and left as it is", "[leave_cluster]") {
  const TempFolder folder;
  fs::create_directory(folder.path() + "/empty");
  std::ofstream(folder.path() + "/file").close();
  for (const std::string& wrong :
       {folder.path() + "/none/at/all", folder.path() + "/empty", folder.path() + "/file"}) {
    CAPTURE(wrong);
    const absl::Status left = LeaveCluster(wrong).status();
    CHECK(absl::IsInvalidArgument(left));  // exit code 2
    CHECK(absl::StrContains(left.message(), wrong));
  }
  CHECK_FALSE(fs::exists(folder.path() + "/none"));
  CHECK(fs::is_empty(folder.path() + "/empty"));
}

TEST_CASE("a server leaves its cluster once", "[leave_cluster]") {
  const TempFolder folder;
  Run(folder.path());
  CHECK(*LeaveCluster(folder.path()) == kJob.cluster.text());
  CHECK(LeaveCluster(folder.path())->empty());
  const auto lock = FolderLock::Take(folder.path());
  CHECK(absl::IsFailedPrecondition(LeaveCluster(folder.path()).status()));  // it runs
}

TEST_CASE("a server leaves unless it has files of jobs, or may have", "[leave_cluster]") {
  const TempFolder folder;
  const std::string own = folder.path() + "/own", root = folder.path() + "/root";
  Run(own);
  Hold(own, root);
  SECTION("the folder is gone") {
    fs::create_directory(root);
    CHECK(*LeaveCluster(own) == kJob.cluster.text());
  }
  SECTION("the folder is there") {
    fs::create_directories(JobFolder(root, kJob));
    CHECK(absl::IsFailedPrecondition(LeaveCluster(own).status()));
  }
  SECTION("the file system is not mounted") {
    const absl::Status left = LeaveCluster(own).status();
    CHECK(absl::IsFailedPrecondition(left));
    CHECK(absl::StrContains(left.message(), root));
    CHECK(NodeCluster::Open(own)->id() == kJob.cluster.text());
  }
}

}  // namespace
}  // namespace strata::server
