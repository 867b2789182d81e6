// Commands that errors of running processes name, typed as they stand where the CA is.
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/certs_command.h"
#include "proto/runtime/credentials/folder_credentials.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/peer_verifier.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/strata/control.pb.h"
#include "tests/bad_input/user.h"
#include "tools/cli/base/security_text.h"

namespace strata {
namespace {

class Fixture {
 public:
  Fixture() {
    REQUIRE(user.Strata("certs init").exit_code == 0);
    REQUIRE(user.Strata("certs issue server alpha --days 10").exit_code == 0);
  }

  std::string Folder(const std::string& name) const {
    return CurrentFolder(certs, Role::kServer, name);
  }
  // Types the command that the text names, which does what it says. The command.
  std::string Type(const std::string& text) const {
    INFO(text);
    const size_t at = text.rfind("strata certs ");
    REQUIRE(at != std::string::npos);
    const std::string rest = text.substr(at + std::string("strata ").size());
    const std::string command = rest.substr(0, rest.find_first_of("),;\n"));
    const ProgramResult r = user.Strata(command);
    INFO(command << "\n" << r.err);
    CHECK(r.exit_code == 0);
    return command;
  }
  std::string Type(const absl::Status& s) const {
    CHECK_FALSE(s.ok());
    return Type(std::string(s.message()));
  }
  // What a process of this cluster says of who shows `chain`, so long from now.
  absl::Status Says(const std::string& chain, absl::Duration later = absl::ZeroDuration()) const {
    const auto authority = ReadAuthority(certs);
    REQUIRE(authority.ok());
    return VerifyPeer(chain,
                      {.authorities = authority->pem,
                       .cluster = authority->cluster,
                       .roles = {Role::kServer}},
                      absl::Now() + later, Revocations())
        .status();
  }

  const User user;
  const std::string certs = user.Path("strata-certs");
};

TEST_CASE("a process whose own certificate has expired is mended by its text", "[certs]") {
  Fixture f;
  ManualClock clock(absl::Now());
  const auto source = OpenCredentials({.folder = f.Folder("alpha"), .clock = &clock});
  REQUIRE(source.ok());
  clock.Advance(absl::Hours(24) * 11);
  CHECK(f.Type((*source)->problem()) == "certs renew server alpha --dir " + f.certs);
  (*source)->Current();
  CHECK((*source)->problem().ok());
  // A copy of its folder is on another machine than the CA.
  CHECK(RenewCommand("/nowhere/server/alpha/current/tls.crt", (*source)->self()) ==
        "strata certs renew server alpha, where its CA is");
}

TEST_CASE("a peer that is not taken is mended by the text of its refusal", "[certs]") {
  Fixture f;
  const auto alpha = ReadIdentityCertificate(f.Folder("alpha"));
  REQUIRE(alpha.ok());
  REQUIRE(f.Says(alpha->pem).ok());
  CHECK(f.Type(f.Says(alpha->pem, absl::Hours(24) * 11)) == "certs renew server alpha");
  CHECK(f.Says(ReadIdentityCertificate(f.Folder("alpha"))->pem, absl::Hours(24) * 11).ok());
  CHECK(f.Type(f.Says("")) == "certs show");
  // Another CA's.
  REQUIRE(f.user.Strata("certs init --dir other").exit_code == 0);
  REQUIRE(f.user.Strata("certs issue server beta --dir other").exit_code == 0);
  const auto beta = ReadIdentityCertificate(f.user.Path("other/server/beta/current"));
  REQUIRE(beta.ok());
  CHECK(f.Type(f.Says(beta->pem)) == "certs issue server beta");
  CHECK(f.Says(ReadIdentityCertificate(f.Folder("beta"))->pem).ok());
  // The CA itself.
  const std::string anew = f.Type(f.Says(alpha->pem, absl::Hours(24) * 4000));
  CHECK(absl::StrContains(anew, "--dir strata-certs-new"));
}

TEST_CASE("a process that is given another one's certificate is told how to get its own",
          "[certs]") {
  Fixture f;
  const auto tls =
      ProcessTls::Open({.folder = f.Folder("alpha"), .role = Role::kWorker, .name = "w"});
  CHECK(f.Type(tls.status()) == "certs issue worker w");
}

TEST_CASE("certificates that run out are renewed by what `strata status` says", "[certs]") {
  Fixture f;
  ClusterStatus cluster;
  NodeStatus& node = *cluster.add_nodes();
  node.set_name("alpha");
  node.set_certificate_not_after_unix_ms(absl::ToUnixMillis(absl::Now() + absl::Hours(24)));
  REQUIRE(f.user.Strata("certs issue operator me").exit_code == 0);
  const std::string mine = CurrentFolder(f.certs, Role::kOperator, "me");
  const std::string text = SecurityText(cluster, absl::Now(), mine);
  CHECK(f.Type(text) == "certs renew --all --dir " + f.certs);
  CHECK(SecurityText(cluster, absl::Now(), "") ==
        "The certificate of alpha expires in 1 day.\n"
        "Renew all that there are: strata certs renew --all, where its CA is\n");
}

}  // namespace
}  // namespace strata
