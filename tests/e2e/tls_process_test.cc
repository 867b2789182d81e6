// A cluster of real processes whose ports ask everybody who he is.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/process_tls.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

constexpr ClusterId kCluster{7, 8};
constexpr absl::Duration kCall = absl::Seconds(30);

void MakeAuthorityIn(const std::string& folder, const ClusterId& cluster = kCluster) {
  REQUIRE(InitAuthority(folder, cluster, 300, absl::Now()).ok());
}

TEST_CASE("a worker trains where everybody is asked who he is, and a stranger is not answered",
          "[tls]") {
  auto scratch = ScratchFolder::Make("strata-e2e");
  REQUIRE(scratch.ok());
  const std::string certs = scratch->path() + "/certs";
  MakeAuthorityIn(certs);
  ProcessCluster cluster(
      {.servers = 2, .workers = 2, .folder = scratch->path() + "/cluster", .certs = certs});
  const TrainingJob job = SmallJob(scratch->path());
  const JobStatus end = cluster.AwaitEnd(cluster.Submit(job));
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(cluster.scheduler().GetCluster(kCall)->cluster_id() == kCluster.text());
  CHECK(absl::IsUnavailable(
      MakeGrpcSchedulerClient(cluster.address(), nullptr)->ListJobs(absl::Seconds(2)).status()));
}

}  // namespace
}  // namespace strata::testing
