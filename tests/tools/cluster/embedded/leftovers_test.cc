#include "tools/cluster/embedded/leftovers.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/uid.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/job_folder.h"
#include "tests/temp_folder.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

enum class Cluster { kOfOneProcess, kOfMany };

// A job's folder under `root`, of 1000 bytes and what says whose it is.
std::string MakeJob(const std::string& root, uint64_t uid, Cluster cluster) {
  const JobIdentity identity = {{7, 7}, {7, uid}};
  JobFolderRecord owner;
  owner.set_cluster_id(identity.cluster.text());
  owner.set_job_uid(identity.job.text());
  owner.set_name("small");
  owner.set_server("server-0");
  owner.set_transient(cluster == Cluster::kOfOneProcess);
  REQUIRE(server::TakeJobFolder(root, owner).ok());
  const std::string folder = server::JobFolder(root, identity);
  std::ofstream(folder + "/data") << std::string(1000, 'x');
  return folder;
}

TEST_CASE("what killed runs left is found with its size, and what is in use or of others is told",
          "[leftovers]") {
  const TempFolder folder;
  CHECK(FindLeftovers(folder.path())->empty());
  CHECK(absl::IsNotFound(FindLeftovers(folder.path() + "/none").status()));
  const std::string left = MakeJob(folder.path() + "/server-0", 1, Cluster::kOfOneProcess);
  const std::string others = MakeJob(folder.path() + "/server-0", 2, Cluster::kOfMany);
  const std::string used = MakeJob(folder.path() + "/server-1", 3, Cluster::kOfOneProcess);
  const std::string here = MakeJob(folder.path(), 4, Cluster::kOfOneProcess);
  fs::create_directories(folder.path() + "/job-1");
  fs::create_directories(folder.path() + "/server-0/checkpoints");
  const auto lock = server::JobFolderLock::Take(used);
  REQUIRE(lock.ok());
  const auto found = FindLeftovers(folder.path());
  REQUIRE(found.ok());
  REQUIRE(found->size() == 4);
  for (const Leftover& l : *found) {
    INFO(l.folder);
    CHECK(l.bytes >= 1000);
    CHECK(l.bytes < 2000);
    CHECK(l.in_use == (l.folder == used));
    CHECK(l.abandoned == (l.folder != others));
    CHECK(l.whose.find("job small") != std::string::npos);
    const absl::Status s = RemoveLeftover(l);
    CHECK(absl::IsUnavailable(s) == l.in_use);
    CHECK(s.ok() == !l.in_use);
    CHECK(fs::exists(l.folder) == l.in_use);
  }
  CHECK_FALSE(fs::exists(left));
  CHECK_FALSE(fs::exists(here));
  CHECK(fs::exists(folder.path() + "/server-0/checkpoints"));  // nothing else goes
  CHECK(fs::exists(folder.path() + "/job-1"));
}

TEST_CASE("a scratch folder is a leftover when its process is gone", "[leftovers]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/strata-train-abcdef";
  fs::create_directories(path + "/server-0");
  std::ofstream(path + "/LOCK").close();
  std::ofstream(path + "/server-0/x") << std::string(5000, 'x');
  fs::create_directories(folder.path() + "/strata-trainer");
  auto found = FindLeftovers(folder.path());
  REQUIRE(found.ok());
  REQUIRE(found->size() == 1);
  CHECK(found->front().folder == path);
  CHECK(found->front().bytes == 5000);
  CHECK(found->front().abandoned);
  CHECK_FALSE(found->front().in_use);
  REQUIRE(RemoveLeftover(found->front()).ok());
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("a scratch folder is in use as long as it lives", "[leftovers]") {
  auto scratch = ScratchFolder::Make(ScratchFolder::kTrain);
  REQUIRE(scratch.ok());
  const std::string path = scratch->path();
  CHECK(ScratchFolder::IsName(fs::path(path).filename().string()));
  CHECK(ScratchFolder::InUse(path));
  const ScratchFolder moved = *std::move(scratch);
  CHECK(ScratchFolder::InUse(path));
  CHECK(absl::IsFailedPrecondition(ScratchFolder::Remove(path)));
  CHECK(fs::exists(path));
}

TEST_CASE("sizes are told as people read them", "[leftovers]") {
  CHECK(SizeText(0) == "0 bytes");
  CHECK(SizeText(1023) == "1023 bytes");
  CHECK(SizeText(1024) == "1.0 KiB");
  CHECK(SizeText(uint64_t{342} << 20) == "342.0 MiB");
  CHECK(SizeText(uint64_t{5} << 50) == "5120.0 TiB");
}

}  // namespace
}  // namespace strata
