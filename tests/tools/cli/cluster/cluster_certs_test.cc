#include "tools/cli/cluster/cluster_certs.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/certificate_list.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/files/node_cluster.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/temp_folder.h"
#include "tools/cli/base/text_file.h"
#include "tools/cli/cluster/cluster_dir.h"

namespace strata {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);

struct Fixture {
  const TempFolder scratch;
  const ClusterDir dir{scratch.path() + "/run"};
  ClusterConfig config{"", 2, 1};
  absl::Time now = testing::TestTime();

  Fixture() { REQUIRE(dir.Make().ok()); }

  // The folder of the user's certificate.
  std::string Make() {
    const auto made = MakeClusterCerts(dir, config, now);
    INFO(made.status().message());
    REQUIRE(made.ok());
    return *made;
  }
  Credentials Load(const std::string& process) const {
    const auto loaded = LoadCredentials(ProcessCertsFolder(dir, process));
    INFO(process << ": " << loaded.status().message());
    REQUIRE(loaded.ok());
    return *loaded;
  }
  std::string Serial(const std::string& process) const {
    return Load(process).certificate.facts.serial;
  }
  ClusterId cluster() const { return ReadAuthority(dir.CertsPath())->cluster; }
};

TEST_CASE("every process and the user get an identity of the cluster", "[certs]") {
  Fixture f;
  const std::string user = f.Make();
  const auto mine = LoadCredentials(user);
  REQUIRE(mine.ok());
  CHECK(mine->certificate.identity.role == Role::kOperator);
  CHECK(mine->certificate.identity.cluster == f.cluster());
  const auto check = [&](const std::string& process, Role role) {
    CHECK(f.Load(process).certificate.identity == Identity{f.cluster(), role, process});
  };
  check("scheduler", Role::kScheduler);
  check("server-0", Role::kServer);
  check("server-1", Role::kServer);
  check("worker-0", Role::kWorker);
  const auto list = ListCertificates(f.dir.CertsPath());
  REQUIRE(list.ok());
  CHECK(list->certificates.size() == 5);
  CHECK(list->problems.empty());
}

TEST_CASE("a later start keeps what is good and issues what is new", "[certs]") {
  Fixture f;
  const std::string user = f.Make();
  const std::string server = f.Serial("server-1");
  const ClusterId cluster = f.cluster();
  f.config.servers = 3;
  f.now += 44 * kDay;
  CHECK(f.Make() == user);
  CHECK(f.Serial("server-1") == server);
  CHECK(f.cluster() == cluster);
  CHECK(f.Load("server-2").certificate.facts.valid.until == f.now + 90 * kDay);
  // Half of its time is over.
  f.now += kDay;
  f.Make();
  CHECK(f.Serial("server-1") != server);
  CHECK(f.Load("server-1").certificate.facts.valid.until == f.now + 90 * kDay);
  CHECK(LoadCredentials(user)->certificate.facts.valid.until == f.now + 90 * kDay);
}

TEST_CASE("what is damaged or gone is made again", "[certs]") {
  Fixture f;
  f.Make();
  const std::string folder = ProcessCertsFolder(f.dir, "server-0");
  const auto mended = [&] {
    const std::string before = std::filesystem::read_symlink(folder).string();
    f.Make();
    CHECK(f.Load("server-0").certificate.identity.name == "server-0");
    return std::filesystem::read_symlink(folder).string() != before;
  };
  CHECK_FALSE(mended());
  REQUIRE(unlink((folder + "/tls.key").c_str()) == 0);
  CHECK(mended());
  REQUIRE(WriteTextFile(folder + "/tls.crt", "no certificate").ok());
  CHECK(mended());
  REQUIRE(unlink((folder + "/tls.crt").c_str()) == 0);
  CHECK(mended());
  REQUIRE(WriteTextFile(folder + "/ca.crt", "another one").ok());
  CHECK(mended());
  std::filesystem::remove_all(absl::StrCat(f.dir.CertsPath(), "/server/server-0/",
                                           std::filesystem::read_symlink(folder).string()));
  CHECK(mended());
  std::filesystem::remove_all(f.dir.CertsPath() + "/server");
  f.Make();
  f.Load("server-0");
}

TEST_CASE("a folder that had a cluster without TLS keeps its cluster", "[certs]") {
  Fixture f;
  const std::string folder = f.dir.ProcessPath("server-1");
  REQUIRE(std::filesystem::create_directory(folder));
  auto node = NodeCluster::Open(folder);
  REQUIRE(node.ok());
  REQUIRE(node->Follow({testing::kClusterText, 1, std::string(32, 'a')}).ok());
  f.Make();
  CHECK(f.cluster() == testing::kCluster);
}

TEST_CASE("a CA in its last weeks signs for what is left, and then says what to do", "[certs]") {
  Fixture f;
  f.Make();
  f.now += 3640 * kDay;
  f.Make();
  CHECK(f.Load("scheduler").certificate.facts.valid.until <= f.now + 10 * kDay);
  f.now += 11 * kDay;
  const auto late = MakeClusterCerts(f.dir, f.config, f.now);
  CHECK(absl::IsFailedPrecondition(late.status()));
  CHECK(absl::StrContains(late.status().message(), "it has expired and signs no more"));
}

TEST_CASE("a CA that is damaged is never begun anew", "[certs]") {
  Fixture f;
  f.Make();
  REQUIRE(WriteTextFile(f.dir.CertsPath() + "/ca/ca.crt", "no certificate").ok());
  const auto made = MakeClusterCerts(f.dir, f.config, f.now);
  CHECK(absl::IsDataLoss(made.status()));
  CHECK(absl::StrContains(made.status().message(), "put ca.crt and ca.key back from one copy"));
}

}  // namespace
}  // namespace strata
