#include "proto/runtime/files/node_cluster.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

const std::string kMine = ClusterId{1, 2}.text(), kOther = ClusterId{1, 3}.text();
const std::string kStart = StartId{2, 1}.text(), kCopy = StartId{2, 2}.text();

TEST_CASE("a node belongs to the first cluster that it meets, also as a new process",
          "[node_cluster][identity]") {
  const TempFolder folder;
  {
    auto node = NodeCluster::Open(folder.path());
    REQUIRE(node.ok());
    CHECK(node->id().empty());
    REQUIRE(node->Follow({kMine, 3, kStart}).ok());
    CHECK(node->id() == kMine);
  }
  auto node = NodeCluster::Open(folder.path());
  REQUIRE(node.ok());
  CHECK(node->id() == kMine);
  CHECK(node->term() == 3);
  const absl::Status foreign = node->Follow({kOther, 9, kStart});
  CHECK(absl::IsPermissionDenied(foreign));
  CHECK(absl::StrContains(foreign.message(), kMine));
  CHECK(absl::StrContains(foreign.message(), kOther));
  const absl::Status old = node->Follow({kMine, 2, kStart});
  CHECK(absl::IsFailedPrecondition(old));
  CHECK(absl::StrContains(old.message(), "term 2"));
  CHECK(absl::StrContains(old.message(), "term 3"));
  CHECK(absl::IsPermissionDenied(node->Follow({"", 9, kStart})));
  CHECK(node->Follow({kMine, 3, kStart}).ok());
  CHECK(node->Follow({kMine, 4, kStart}).ok());
  CHECK(absl::IsFailedPrecondition(node->Follow({kMine, 3, kStart})));
  CHECK(NodeCluster::Open(folder.path())->term() == 4);
  CHECK(NodeCluster::Open(folder.path())->id() == kMine);

  REQUIRE(NodeCluster::Leave(folder.path()).ok());
  auto free = NodeCluster::Open(folder.path());
  REQUIRE(free.ok());
  CHECK(free->Follow({kOther, 1, kStart}).ok());

  const std::string wrong = folder.path() + "/none";
  const absl::Status left = NodeCluster::Leave(wrong);
  CHECK(absl::IsInvalidArgument(left));
  CHECK(absl::StrContains(left.message(), wrong));
}

TEST_CASE("of two starts with one term a node follows the one that it heard first, for good",
          "[node_cluster][identity]") {
  const TempFolder folder;
  REQUIRE(NodeCluster::Open(folder.path())->Follow({kMine, 3, kStart}).ok());
  for (int process = 0; process < 2; ++process) {
    auto node = NodeCluster::Open(folder.path());
    CHECK(node->start_id() == kStart);
    const absl::Status copy = node->Follow({kMine, 3, kCopy});
    CHECK(absl::IsFailedPrecondition(copy));
    for (const std::string& part :
         {std::string("term 3"), kStart, kCopy, std::string("--restored")}) {
      CAPTURE(part);
      CHECK(absl::StrContains(copy.message(), part));
    }
    CHECK(absl::IsFailedPrecondition(node->Follow({kMine, 3, ""})));
    CHECK(node->Follow({kMine, 3, kStart}).ok());
  }
  // Of a start of its own.
  auto node = NodeCluster::Open(folder.path());
  CHECK(node->Follow({kMine, 4, kCopy}).ok());
  CHECK(NodeCluster::Open(folder.path())->start_id() == kCopy);
  CHECK(absl::IsFailedPrecondition(node->Follow({kMine, 4, kStart})));
}

TEST_CASE("a cluster that ends with its process is remembered no longer", "[node_cluster]") {
  const TempFolder folder;
  auto node = NodeCluster::Open(folder.path());
  REQUIRE(node.ok());
  REQUIRE(node->Follow({kMine, 1, kStart, true}).ok());
  CHECK(absl::IsPermissionDenied(node->Follow({kOther, 1, kStart, true})));
  CHECK(NodeCluster::Open(folder.path())->id().empty());
}

TEST_CASE("what cannot be remembered is not followed; what cannot be read is told",
          "[node_cluster]") {
  const TempFolder folder;
  auto node = NodeCluster::Open(folder.path() + "/none");
  REQUIRE(node.ok());
  CHECK_FALSE(node->Follow({kMine, 1, kStart}).ok());
  CHECK(node->id().empty());
  std::ofstream(folder.path() + "/CLUSTER") << "{}";
  const absl::Status damaged = NodeCluster::Open(folder.path()).status();
  CHECK(absl::IsDataLoss(damaged));
  CHECK(absl::StrContains(damaged.message(), folder.path() + "/CLUSTER"));
}

TEST_CASE("a later start that cannot be written is followed, told, and written when it can be",
          "[node_cluster][identity]") {
  const TempFolder folder;
  const std::string own = folder.path() + "/n";
  std::filesystem::create_directory(own);
  auto node = NodeCluster::Open(own);
  REQUIRE(node.ok());
  REQUIRE(node->Follow({kMine, 3, kStart}).ok());
  absl::Time now = absl::FromUnixSeconds(1767225600);
  CHECK(node->Tend(now).empty());
  std::filesystem::remove_all(own);
  REQUIRE(node->Follow({kMine, 4, kCopy}).ok());
  CHECK(node->term() == 4);
  CHECK(node->start_id() == kCopy);
  CHECK(absl::IsFailedPrecondition(node->Follow({kMine, 3, kStart})));
  CHECK(absl::IsFailedPrecondition(node->Follow({kMine, 4, kStart})));
  CHECK(absl::StrContains(node->Tend(now), "cluster_not_recorded error=\""));

  NodeReport report;
  report.add_server_jobs();
  report.add_worker_jobs();
  node->AddTo(report);
  CHECK(report.cluster_id() == kMine);
  CHECK(report.term() == 4);
  CHECK(report.start_id() == kCopy);
  REQUIRE(report.server_jobs(0).troubles_size() == 1);
  REQUIRE(report.worker_jobs(0).troubles_size() == 1);
  CHECK(report.server_jobs(0).troubles(0).reason() == "ClusterNotRecorded");
  CHECK(absl::StrContains(report.worker_jobs(0).troubles(0).message(), own + "/CLUSTER"));
  CHECK(report.worker_jobs(0).troubles(0).since_unix_ms() == absl::ToUnixMillis(now));

  CHECK(node->Tend(now + absl::Seconds(1)).empty());  // still gone
  std::filesystem::create_directory(own);
  CHECK(node->Tend(now + absl::Milliseconds(1999)).empty());  // not at every call
  CHECK_FALSE(std::filesystem::exists(own + "/CLUSTER"));
  CHECK(node->Tend(now + absl::Seconds(2)) == "cluster_recorded term=4");
  CHECK(NodeCluster::Open(own)->start_id() == kCopy);
  NodeReport after;
  after.add_server_jobs();
  node->AddTo(after);
  CHECK(after.server_jobs(0).troubles_size() == 0);
}

}  // namespace
}  // namespace strata
