#include "proto/runtime/credentials/authority_rollover.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/certificate_list.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/peer_verifier.h"
#include "proto/runtime/credentials/places.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::CheckText;
using testing::kCluster;

constexpr int kDays = 300;

class Fixture {
 public:
  Fixture() {
    REQUIRE(InitAuthority(folder, kCluster, kDays, now).ok());
    for (const char* name : {"alpha", "beta"}) {
      REQUIRE(IssueIdentity(folder, {.role = Role::kServer, .name = name}, now).ok());
    }
  }

  Credentials Load(const std::string& name) const {
    auto loaded = LoadCredentials(CurrentFolder(folder, Role::kServer, name));
    INFO(loaded.status());
    REQUIRE(loaded.ok());
    return *std::move(loaded);
  }
  AuthorityCertificate Authority() const {
    auto read = ReadAuthority(folder);
    INFO(read.status());
    REQUIRE(read.ok());
    return *std::move(read);
  }
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const auto& file : fs::directory_iterator(AuthorityFolder(folder))) {
      if (file.path().extension() == ".key") keys.push_back(file.path().filename().string());
    }
    return keys;
  }
  // As VerifyPeer of who has `mine` says of who shows `shown`.
  absl::Status Takes(const Credentials& mine, const Credentials& shown) const {
    return VerifyPeer(
               shown.certificate.pem,
               {.authorities = mine.authorities, .cluster = kCluster, .roles = {Role::kServer}},
               now, Revocations())
        .status();
  }
  // Renews one after the other; at every moment each takes each.
  void RenewEach() {
    const Credentials before = Load("alpha");
    for (const char* name : {"alpha", "beta"}) {
      REQUIRE(RenewIdentity(folder, {.role = Role::kServer, .name = name}, now).ok());
      // Who has not read the new one yet, too.
      for (const Credentials& each : {before, Load("alpha"), Load("beta")}) {
        CHECK(Takes(Load("beta"), each).ok());
        CHECK(Takes(each, Load("beta")).ok());
        CHECK(Takes(each, Load("alpha")).ok());
      }
    }
  }

  const TempFolder temp;
  const std::string folder = temp.path() + "/certs";
  absl::Time now = testing::TestTime();
};

TEST_CASE("an authority is changed while everybody takes everybody's certificate", "[certs]") {
  Fixture f;
  const Credentials old = f.Load("alpha");
  const std::string first = f.Authority().facts.serial;
  f.now += absl::Hours(24 * 100);  // longer than the old one lives
  const auto begun = BeginRollover(f.folder, kDays, f.now);
  REQUIRE(begun.ok());
  CHECK(begun->facts.serial == first);
  REQUIRE(begun->trusted.size() == 2);
  const std::string next = begun->trusted[1].facts.serial;
  CHECK(begun->trusted[1].facts.valid.until == f.now + absl::Hours(24 * kDays));
  CHECK(f.Keys().size() == 2);
  // What was issued before has expired; the next ones are of the old authority, and trust both.
  REQUIRE(RenewAll(f.folder, 90, f.now).ok());
  CHECK(CheckSignedBy(f.Load("alpha").certificate.pem, begun->trusted[0].pem).ok());
  f.RenewEach();
  const auto switched = SwitchAuthority(f.folder, f.now);
  INFO(switched.status());
  REQUIRE(switched.ok());
  CHECK(switched->facts.serial == next);
  CHECK(switched->trusted.size() == 2);
  f.RenewEach();
  CHECK(CheckSignedBy(f.Load("alpha").certificate.pem, switched->trusted[0].pem).ok());
  const auto ended = EndRollover(f.folder, f.now);
  INFO(ended.status());
  REQUIRE(ended.ok());
  CHECK(ended->facts.serial == next);
  CHECK(ended->trusted.size() == 1);
  CHECK(f.Keys() == std::vector<std::string>{"ca.key"});
  f.RenewEach();
  // The old one's word counts no more.
  f.now = testing::TestTime();
  CHECK(absl::IsUnauthenticated(f.Takes(f.Load("beta"), old)));
  // And once more.
  CHECK(BeginRollover(f.folder, kDays, f.now).ok());
  CHECK(ListCertificates(f.folder)->problems.empty());
}

TEST_CASE("no step is taken out of turn, or before everybody is ready", "[certs]") {
  Fixture f;
  const auto refused = [&](const absl::StatusOr<AuthorityCertificate>& step,
                           std::initializer_list<absl::string_view> says) {
    INFO(step.status());
    CHECK((absl::IsFailedPrecondition(step.status()) || absl::IsAlreadyExists(step.status())));
    CheckText(step.status().message(), says);
  };
  const std::string dir = " --dir " + f.folder;
  refused(SwitchAuthority(f.folder, f.now), {"strata certs rollover begin" + dir});
  refused(EndRollover(f.folder, f.now), {"strata certs rollover begin" + dir});
  REQUIRE(BeginRollover(f.folder, kDays, f.now).ok());
  refused(BeginRollover(f.folder, kDays, f.now), {"strata certs rollover switch" + dir});
  refused(EndRollover(f.folder, f.now), {"strata certs rollover switch" + dir});
  refused(
      SwitchAuthority(f.folder, f.now),
      {"server/alpha, server/beta do not trust the next CA yet", "strata certs renew --all" + dir});
  REQUIRE(RenewIdentity(f.folder, {.role = Role::kServer, .name = "alpha"}, f.now).ok());
  refused(SwitchAuthority(f.folder, f.now), {"certificates of server/beta do not"});
  // Of whom nobody waits any more.
  REQUIRE(RevokeCertificates(f.folder, Role::kServer, "beta", "", f.now).ok());
  REQUIRE(SwitchAuthority(f.folder, f.now).ok());
  refused(SwitchAuthority(f.folder, f.now), {"strata certs rollover end" + dir});
  refused(BeginRollover(f.folder, kDays, f.now), {"strata certs rollover end" + dir});
  refused(EndRollover(f.folder, f.now), {"server/alpha are of the old CA"});
  const auto all = RenewAll(f.folder, 90, f.now);
  REQUIRE(all.ok());
  CHECK(all->renewed.size() == 1);
  CHECK(all->left == std::vector<std::string>{"server/beta"});
  CHECK(EndRollover(f.folder, f.now).ok());
}

TEST_CASE("a step that was killed is done again", "[certs]") {
  Fixture f;
  // A key, and no certificate that belongs to it.
  const std::string stray = AuthorityFolder(f.folder) + "/0123456789abcdef0123456789abcdef.key";
  fs::copy(AuthorityFolder(f.folder) + "/ca.key", stray);
  REQUIRE(BeginRollover(f.folder, kDays, f.now).ok());
  CHECK_FALSE(fs::exists(stray));
  REQUIRE(RenewAll(f.folder, 90, f.now).ok());
  REQUIRE(SwitchAuthority(f.folder, f.now).ok());
  REQUIRE(RenewAll(f.folder, 90, f.now).ok());
  const std::string next = NextKeyFile(f.folder, f.Authority().facts.serial);
  const std::string old_key = AuthorityFolder(f.folder) + "/ca.key";
  fs::copy(old_key, f.temp.path() + "/old");
  REQUIRE(EndRollover(f.folder, f.now).ok());
  // The old key is there still, and the next one has its own name.
  fs::rename(old_key, next);
  fs::copy(f.temp.path() + "/old", old_key);
  REQUIRE(RenewAll(f.folder, 90, f.now).ok());  // it signs with its own
  CHECK(EndRollover(f.folder, f.now).ok());
  CHECK(f.Keys() == std::vector<std::string>{"ca.key"});
  REQUIRE(RenewAll(f.folder, 90, f.now).ok());
}

TEST_CASE("no step is taken that could not be gone on with", "[certs]") {
  Fixture f;
  const std::string ca = AuthorityFolder(f.folder);
  // Moves that file away while the step is tried: it fails, names it, and changes nothing.
  const auto refused_without = [&](const std::string& path, const auto& step) {
    const AuthorityCertificate before = f.Authority();
    fs::rename(path, f.temp.path() + "/away");
    const size_t keys = f.Keys().size();
    const absl::Status s = step().status();
    INFO(path << ": " << s);
    CHECK_FALSE(s.ok());
    CheckText(s.message(), {path, "put it back from a copy"});
    CHECK(f.Authority().pem == before.pem);
    CHECK(f.Keys().size() == keys);
    fs::rename(f.temp.path() + "/away", path);
  };
  const auto begin = [&] { return BeginRollover(f.folder, kDays, f.now); };
  for (const char* name : {"/ca.key", "/issued", "/revoked"}) refused_without(ca + name, begin);
  // Nobody could be told of the next one: what the old one signs would outlive it.
  f.now += absl::Hours(24 * kDays - 12);
  const absl::Status late = begin().status();
  INFO(late);
  CHECK(absl::IsFailedPrecondition(late));
  CheckText(late.message(), {"ca.crt", "would outlive it"});
  f.now = testing::TestTime();

  REQUIRE(begin().ok());
  REQUIRE(RenewAll(f.folder, 90, f.now).ok());
  const std::string next = NextKeyFile(f.folder, f.Authority().trusted[1].facts.serial);
  // Another's key.
  fs::copy(next, f.temp.path() + "/next");
  fs::copy(ca + "/ca.key", next, fs::copy_options::overwrite_existing);
  const absl::Status foreign = SwitchAuthority(f.folder, f.now).status();
  INFO(foreign);
  CHECK(absl::IsDataLoss(foreign));
  CheckText(foreign.message(), {next, "does not belong to the certificate"});
  fs::copy(f.temp.path() + "/next", next, fs::copy_options::overwrite_existing);
  CHECK(SwitchAuthority(f.folder, f.now).ok());
}

TEST_CASE("what is trusted beside the authority is of its cluster", "[certs]") {
  Fixture f;
  const AuthorityCertificate mine = f.Authority();
  const KeyedCertificate other = testing::MadeAuthority(testing::kOtherCluster);
  std::ofstream(mine.file, std::ios::app) << other.certificate;
  const absl::Status s = ReadAuthority(f.folder).status();
  CHECK(absl::IsDataLoss(s));
  CheckText(s.message(), {mine.file, "it is of another cluster"});
}

}  // namespace
}  // namespace strata
