// Bits turn on the way between processes that speak TLS, in whatever they send: handshakes, heads
// of frames, messages. TLS finds each, the connection is closed, and nothing of it is applied.
// Without TLS kill_matrix_test.cc turns those bits that our own checksums cover.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/faults/proxy/network_fault.h"
#include "tests/faults/proxy/proxy.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

// Longer than a peer's silence is noticed, for lengths that became too long.
constexpr absl::Duration kLasts = absl::Seconds(12);

TEST_CASE("a bit that turns under TLS closes its connection, and costs a job nothing",
          "[faults][tls][p3]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  const std::string certs = folder->path() + "/certs";
  REQUIRE(InitAuthority(certs, ClusterId{7, 8}, 300, absl::Now()).ok());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(40);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  job.mutable_spec()->mutable_replicas()->set_workers(2);
  const JobStatus reference = Train(job);
  job.mutable_spec()->mutable_storage()->set_durability("replicated");
  job.mutable_spec()->mutable_storage()->set_replicas(2);
  const auto proxy = Proxy::Start();
  ProcessCluster cluster({.folder = folder->path() + "/cluster",
                          .variables = {"LD_PRELOAD=" + Program("tests/faults/proxy/libdetour.so"),
                                        "STRATA_DETOUR=" + proxy->detour()},
                          .certs = certs});
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 20);
  const std::string first = cluster.ServerAddress("server-0");
  const std::vector<NetworkLink> links = {{"worker-0", first},
                                          {"worker-1", first},
                                          {"server-1", first},
                                          {"worker-1", cluster.address()},
                                          {"server-0", cluster.address()}};
  std::mt19937_64 random(1);
  std::vector<uint64_t> faults;
  for (const NetworkLink& link : links) {
    for (const Way way : {Way::kRequests, Way::kReplies}) {
      NetworkFault fault = DrawFault(FaultKind::kDamage, random);
      fault.lasts = kLasts;
      fault.way = way;
      fault.after_bytes %= 3000;
      std::fprintf(stderr, "%s -> %s: %s\n", link.from.c_str(), link.to.c_str(),
                   fault.ToText().c_str());
      faults.push_back(proxy->Begin(link, fault));
    }
  }
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.rollbacks() == 0);
  CHECK(end.model_hash() == reference.model_hash());
  uint64_t flips = 0;
  for (const uint64_t fault : faults) {
    AwaitThat("the end of the fault", [&] { return proxy->MetBy(fault).over; });
    const FaultMet met = proxy->MetBy(fault);
    INFO("fault " << fault << ": " << met.flips << " bits, " << met.closed << " closed");
    CHECK(met.closed == met.flips);
    flips += met.flips;
  }
  CHECK(flips > links.size());
}

}  // namespace
}  // namespace strata::testing
