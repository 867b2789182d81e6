// Processes that go by what they were told of revoked certificates, whoever is away. They are the
// real ones.
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/certificate_list.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/metrics/metrics_client.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

constexpr ClusterId kCluster{7, 8};
constexpr absl::Duration kCall = absl::Seconds(5);
constexpr char kRevoked[] = "it was revoked";

// A cluster whose scheduler reads its authority's list.
class Cluster : public ProcessCluster {
 public:
  Cluster(const std::string& folder, const std::string& certs)
      : ProcessCluster({.servers = 1,
                        .workers = 1,
                        .folder = folder,
                        .certs = certs,
                        .scheduler_flags = {"--revoked=" + certs + "/ca/revoked"}}) {}

  // Ends it, and forgets where it was.
  void Stop(const std::string& name) {
    Kill(name);
    std::filesystem::remove(folder() + "/" + name + ".address");
  }
  void StartAnew(const std::string& name) {
    Start(name);
    AwaitThat("the address of " + name, [&] { return !ServerAddress(name).empty(); });
  }
  std::string Said(const std::string& name) const {
    return ReadFile(folder() + "/" + name + ".log.err");
  }
};

ScratchFolder Scratch() {
  auto scratch = ScratchFolder::Make("strata-e2e");
  REQUIRE(scratch.ok());
  return *std::move(scratch);
}

std::string WithAuthority(const std::string& certs) {
  REQUIRE(InitAuthority(certs, kCluster, 300, absl::Now()).ok());
  return certs;
}

// A cluster with an authority of its own.
struct Secured {
  const ScratchFolder scratch = Scratch();
  const std::string certs = WithAuthority(scratch.path() + "/certs");
  Cluster cluster{scratch.path() + "/cluster", certs};
};

// Somebody with a certificate of his own, who reads.
class Reader {
 public:
  Reader(const std::string& certs, const std::string& name) {
    REQUIRE(IssueIdentity(certs, {.role = Role::kReader, .name = name}, absl::Now()).ok());
    auto tls = ProcessTls::Open({.folder = CurrentFolder(certs, Role::kReader, name)});
    REQUIRE(tls.ok());
    tls_ = *std::move(tls);
    transport_ = MakeGrpcTransport({.tls = tls_});
  }

  // What a server says to a pull of nothing.
  absl::Status Ask(const Cluster& cluster) const {
    const auto channel =
        transport_->Connect({cluster.ServerAddress("server-0"), "server-0"}, SelfOf(tls_));
    return channel->CallAndWait(DataMethod::kPull, Buffer(), kCall).status();
  }
  absl::Status Scrape(const Cluster& cluster) const {
    return FetchMetrics({.address = cluster.ServerAddress("worker-0"),
                         .clock = Clock::Real(),
                         .credentials = tls_->source()})
        .status();
  }

 private:
  std::shared_ptr<ProcessTls> tls_;
  std::unique_ptr<DataTransport> transport_;
};

bool IsRevoked(const absl::Status& s) {
  return absl::IsUnauthenticated(s) && absl::StrContains(s.message(), kRevoked);
}
// There is no such job, which is told to those alone who may ask.
bool IsLetIn(const absl::Status& s) { return absl::IsNotFound(s); }

TEST_CASE("nodes that start again while the scheduler is away refuse who was revoked before",
          "[tls]") {
  Secured secured;
  const std::string& certs = secured.certs;
  Cluster& cluster = secured.cluster;
  const Reader ann(certs, "ann"), bob(certs, "bob");
  INFO(bob.Ask(cluster));
  REQUIRE(IsLetIn(bob.Ask(cluster)));
  REQUIRE(bob.Scrape(cluster).ok());
  REQUIRE(RevokeCertificates(certs, Role::kReader, "bob", "", absl::Now()).ok());
  AwaitThat("the list at the server", [&] { return IsRevoked(bob.Ask(cluster)); });
  AwaitThat("the list at the worker", [&] { return !bob.Scrape(cluster).ok(); });

  for (const char* name : {"scheduler", "server-0", "worker-0"}) cluster.Stop(name);
  for (const char* name : {"server-0", "worker-0"}) cluster.StartAnew(name);
  AwaitThat("the server's port", [&] { return IsLetIn(ann.Ask(cluster)); });
  const absl::Status still = bob.Ask(cluster);
  INFO(still);
  CHECK(IsRevoked(still));
  CHECK(ann.Scrape(cluster).ok());
  CHECK_FALSE(bob.Scrape(cluster).ok());
}

TEST_CASE("nodes whose list is damaged let nobody in until the scheduler has told it anew",
          "[tls]") {
  Secured secured;
  const std::string& certs = secured.certs;
  Cluster& cluster = secured.cluster;
  const Reader ann(certs, "ann"), bob(certs, "bob");
  REQUIRE(RevokeCertificates(certs, Role::kReader, "bob", "", absl::Now()).ok());
  AwaitThat("the list at the server", [&] { return IsRevoked(bob.Ask(cluster)); });
  const std::string kept = cluster.folder() + "/server-0/REVOKED";
  AwaitThat("the list in its folder", [&] { return std::filesystem::exists(kept); });

  for (const char* name : {"scheduler", "server-0"}) cluster.Stop(name);
  std::filesystem::resize_file(kept, std::filesystem::file_size(kept) - 1);
  cluster.StartAnew("server-0");
  const std::string says = "which certificates are revoked is not known here: ";
  for (const Reader* who : {&ann, &bob}) {
    absl::Status refused;
    AwaitThat("the server's port", [&] {
      refused = who->Ask(cluster);
      REQUIRE_FALSE(IsLetIn(refused));
      return absl::StrContains(refused.message(), says);
    });
    INFO(refused);
    CHECK(absl::IsUnavailable(refused));
    CHECK(absl::StrContains(refused.message(), kept));
  }
  CHECK(absl::StrContains(cluster.Said("server-0"), "revoked_damaged"));
  CHECK(absl::StrContains(cluster.Said("server-0"), kept));

  cluster.StartAnew("scheduler");
  AwaitThat("a list of the scheduler's", [&] { return IsLetIn(ann.Ask(cluster)); });
  CHECK(IsRevoked(bob.Ask(cluster)));
}

// As the scheduler has it; nothing: it knows no such node.
std::optional<NodeStatus> NodeOf(Cluster& cluster, const std::string& name) {
  const auto status = cluster.scheduler().GetCluster(kCall);
  if (!status.ok()) return std::nullopt;
  for (const NodeStatus& node : status->nodes()) {
    if (node.name() == name) return node;
  }
  return std::nullopt;
}

TEST_CASE("nodes that were revoked come back with renewed certificates, without a restart",
          "[tls]") {
  Secured secured;
  const std::string& certs = secured.certs;
  Cluster& cluster = secured.cluster;
  const std::vector<std::pair<Role, std::string>> nodes = {{Role::kServer, "server-0"},
                                                           {Role::kWorker, "worker-0"}};
  for (const auto& [role, name] : nodes) {
    INFO(name);
    const auto expires =
        LoadCredentials(cluster.CertificateOf(name))->certificate.facts.valid.until;
    CHECK(NodeOf(cluster, name)->certificate_not_after_unix_ms() == absl::ToUnixMillis(expires));
    REQUIRE(RevokeCertificates(certs, role, name, "", absl::Now()).ok());
  }
  for (const auto& [role, name] : nodes) {
    AwaitThat(name + " refused", [&, &name = name] { return !NodeOf(cluster, name)->alive(); });
  }
  for (const auto& [role, name] : nodes) {
    REQUIRE(RenewIdentity(certs, {.role = role, .name = name, .days = 20}, absl::Now()).ok());
  }
  for (const auto& [role, name] : nodes) {
    AwaitThat(name + " again", [&, &name = name] { return NodeOf(cluster, name)->alive(); });
    REQUIRE(cluster.Running(name));
    const auto expires =
        LoadCredentials(cluster.CertificateOf(name))->certificate.facts.valid.until;
    CHECK(NodeOf(cluster, name)->certificate_not_after_unix_ms() == absl::ToUnixMillis(expires));
  }
}

}  // namespace
}  // namespace strata::testing
