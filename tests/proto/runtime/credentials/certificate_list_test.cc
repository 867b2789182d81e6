#include "proto/runtime/credentials/certificate_list.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using storage::ScriptedFiles;
using testing::CheckText;
using testing::kCluster;
using testing::TestTime;

IssueOrder Order(Role role, const std::string& name) {
  return {.role = role, .name = name, .days = 20};
}

class Certs {
 public:
  Certs() {
    REQUIRE(InitAuthority(folder(), kCluster, 30, TestTime()).ok());
    for (const auto& [role, name] : std::vector<std::pair<Role, std::string>>{
             {Role::kReader, "r"}, {Role::kServer, "beta"}, {Role::kServer, "alpha"}}) {
      REQUIRE(IssueIdentity(folder(), Order(role, name), TestTime()).ok());
    }
  }
  std::string folder() const { return temp_.path() + "/certs"; }
  std::string Serial(Role role, const std::string& name) const {
    const auto list = ListCertificates(folder());
    REQUIRE(list.ok());
    for (const ListedCertificate& c : list->certificates) {
      const Identity& identity = c.certificate.identity;
      if (identity.role == role && identity.name == name) return c.certificate.facts.serial;
    }
    return "";
  }

 private:
  const TempFolder temp_;
};

std::vector<std::string> Revoked(const std::string& folder) {
  std::vector<std::string> names;
  const auto list = ListCertificates(folder);
  REQUIRE(list.ok());
  for (const ListedCertificate& c : list->certificates) {
    if (c.revoked) names.push_back(Describe(c.certificate.identity));
  }
  return names;
}

TEST_CASE("certificates are listed by role and name", "[credentials]") {
  const Certs certs;
  const auto list = ListCertificates(certs.folder());
  REQUIRE(list.ok());
  CHECK(list->authority.cluster == kCluster);
  CHECK(list->problems.empty());
  std::vector<std::string> names;
  for (const ListedCertificate& c : list->certificates) {
    names.push_back(Describe(c.certificate.identity));
    CHECK_FALSE(c.revoked);
  }
  CHECK(names == std::vector<std::string>{"server/alpha", "server/beta", "reader/r"});
  const TempFolder empty;
  CHECK(absl::IsNotFound(ListCertificates(empty.path()).status()));
}

TEST_CASE("certificates that are no good are told beside the others", "[credentials]") {
  const Certs certs;
  const std::string beta = certs.folder() + "/server/beta/current/tls.crt";
  std::ofstream(beta) << "hello";
  fs::create_directories(certs.folder() + "/worker/none");
  fs::create_directories(certs.folder() + "/operator");
  // One that lies where another should.
  fs::copy(certs.folder() + "/reader/r", certs.folder() + "/operator/r",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const auto list = ListCertificates(certs.folder());
  REQUIRE(list.ok());
  CHECK(list->certificates.size() == 2);
  REQUIRE(list->problems.size() == 3);
  CheckText(list->problems[0].message(), {beta, "no certificate"});
  CheckText(list->problems[1].message(), {certs.folder() + "/worker/none", "strata certs issue"});
  CheckText(list->problems[2].message(),
            {certs.folder() + "/operator/r", "it is for reader/r", "where operator/r", "expires"});
}

TEST_CASE("revoked is every certificate that has not expired", "[credentials]") {
  const Certs certs;
  const auto renew = [&](absl::Time now, int days) {
    REQUIRE(RenewIdentity(certs.folder(), {Role::kServer, "alpha", days}, now).ok());
    return certs.Serial(Role::kServer, "alpha");
  };
  std::vector<std::string> serials = {certs.Serial(Role::kServer, "alpha")};
  for (int i = 0; i < 3; ++i) serials.push_back(renew(TestTime(), 20));
  const std::string short_one = renew(TestTime(), 1);
  serials.push_back(renew(TestTime(), 20));
  const absl::Time now = TestTime() + absl::Hours(48);
  const auto revoked = RevokeCertificates(certs.folder(), Role::kServer, "alpha", "", now);
  REQUIRE(revoked.ok());
  CHECK(revoked->revoked_earlier.empty());
  CHECK(revoked->serials.size() == 5);
  const auto list = ReadRevocations(certs.folder());
  for (const std::string& serial : serials) {
    REQUIRE(list->Contains(serial));
    CHECK(list->all().at(serial).who == "server/alpha");
    CHECK(list->all().at(serial).since == now);
    CHECK(list->all().at(serial).until == TestTime() + 20 * absl::Hours(24));
  }
  CHECK_FALSE(list->Contains(short_one));
  CHECK(Revoked(certs.folder()) == std::vector<std::string>{"server/alpha"});
  // Once more changes nothing, and a new one counts.
  const auto twice =
      RevokeCertificates(certs.folder(), Role::kServer, "alpha", "", now + absl::Hours(1));
  REQUIRE(twice.ok());
  CHECK(twice->serials.empty());
  CHECK(twice->revoked_earlier.size() == 5);
  CHECK(ReadRevocations(certs.folder())->Text() == list->Text());
  renew(now, 20);
  CHECK(Revoked(certs.folder()).empty());
  CHECK(ReadRevocations(certs.folder())->all().size() == 5);
  // What has expired goes.
  const absl::Time later = TestTime() + 21 * absl::Hours(24);
  REQUIRE(RevokeCertificates(certs.folder(), Role::kServer, "alpha", "", later).ok());
  CHECK(ReadRevocations(certs.folder())->all().size() == 1);
  const auto over =
      RevokeCertificates(certs.folder(), Role::kReader, "r", "", TestTime() + absl::Hours(30 * 24));
  CHECK(absl::IsNotFound(over.status()));
  CheckText(over.status().message(), {"no certificate of reader/r", "has not expired"});
}

TEST_CASE("certificates of another authority are told", "[credentials]") {
  const Certs certs;
  const std::string crt = certs.folder() + "/server/beta/current/tls.crt";
  std::ofstream(crt)
      << testing::Issued(testing::MadeAuthority(), {kCluster, Role::kServer, "beta"}).certificate;
  const auto list = ListCertificates(certs.folder());
  REQUIRE(list.ok());
  CHECK(list->certificates.size() == 2);
  REQUIRE(list->problems.size() == 1);
  CheckText(list->problems[0].message(),
            {crt, "signed by another authority than " + certs.folder() + "/ca/ca.crt",
             "strata certs renew server beta --dir " + certs.folder()});
  CHECK(RenewIdentity(certs.folder(), Order(Role::kServer, "beta"), TestTime()).ok());
  CHECK(ListCertificates(certs.folder())->problems.empty());
}

TEST_CASE("remedies can be typed wherever the folder is", "[credentials]") {
  const TempFolder temp;
  const auto read = ReadAuthority(temp.path() + "/it's here");
  CheckText(read.status().message(),
            {absl::StrCat("strata certs init --dir '", temp.path(), "/it'\\''s here'")});
}

TEST_CASE("a number is the same however it is written", "[credentials]") {
  const Certs certs;
  // One that begins with a zero has fewer digits elsewhere.
  const std::string serial = certs.Serial(Role::kServer, "alpha");
  std::string colons;
  for (size_t i = 0; i < serial.size(); i += 2) {
    absl::StrAppend(&colons, i == 0 ? "" : ":", absl::AsciiStrToUpper(serial.substr(i, 2)));
  }
  for (const std::string& written :
       {serial, absl::AsciiStrToUpper(serial), colons, absl::StrCat("00", serial),
        serial.substr(serial.find_first_not_of('0'))}) {
    INFO(written);
    const auto revoked =
        RevokeCertificates(certs.folder(), Role::kServer, "alpha", written, TestTime());
    REQUIRE(revoked.ok());
    CHECK(ReadRevocations(certs.folder())->all().size() == 1);
    CHECK(ReadRevocations(certs.folder())->Contains(serial));
  }
  const auto others = RevokeCertificates(certs.folder(), Role::kReader, "r", serial, TestTime());
  CHECK(absl::IsInvalidArgument(others.status()));
  CheckText(others.status().message(), {serial, "is that of server/alpha, not of reader/r"});
  // The list has it, so that no zero is missed.
  IssuedCertificates issued;
  issued.Add(absl::StrCat("00", std::string(30, 'a')), {"server/zero", TestTime()});
  REQUIRE(WriteIssued(certs.folder(), issued).ok());
  const auto zero =
      RevokeCertificates(certs.folder(), Role::kServer, "zero", std::string(30, 'A'), TestTime());
  REQUIRE(zero.ok());
  CHECK(zero->serials == std::vector<std::string>{absl::StrCat("00", std::string(30, 'a'))});
}

TEST_CASE("one number alone is revoked, also of files that are gone", "[credentials]") {
  const Certs certs;
  const std::string beta = certs.Serial(Role::kServer, "beta");
  fs::remove_all(certs.folder() + "/server/beta");
  const auto none = RevokeCertificates(certs.folder(), Role::kServer, "gamma", "", TestTime());
  CHECK(absl::IsNotFound(none.status()));
  CheckText(none.status().message(),
            {certs.folder() + "/server/gamma", "no certificate of server/gamma", "--serial",
             "strata certs show --dir " + certs.folder()});
  CHECK(RevokeCertificates(certs.folder(), Role::kServer, "beta", beta, TestTime()).ok());
  const std::string unknown = "0123456789ABCDEF0123456789ABCDEF";
  CHECK(RevokeCertificates(certs.folder(), Role::kServer, "beta", unknown, TestTime()).ok());
  CHECK(ReadRevocations(certs.folder())->Contains("0123456789abcdef0123456789abcdef"));
  CHECK(ReadRevocations(certs.folder())->Contains(beta));
  CHECK(Revoked(certs.folder()).empty());
  for (const char* bad : {"12", "0123456789abcdef0123456789abcdeg", "xyz", "00"}) {
    const auto said = RevokeCertificates(certs.folder(), Role::kServer, "beta", bad, TestTime());
    CHECK(absl::IsInvalidArgument(said.status()));
    CheckText(said.status().message(), {bad, "32 hexadecimal digits"});
  }
  CHECK(absl::IsInvalidArgument(
      RevokeCertificates(certs.folder(), Role::kServer, "..", "", TestTime()).status()));
}

TEST_CASE("a list that cannot be written is the old one", "[credentials]") {
  const Certs certs;
  REQUIRE(RevokeCertificates(certs.folder(), Role::kReader, "r", "", TestTime()).ok());
  const std::string before = ReadRevocations(certs.folder())->Text();
  for (const auto call : {ScriptedFiles::Call::kWrite, ScriptedFiles::Call::kRename}) {
    ScriptedFiles files(1);
    files.Fail(call, ENOSPC);
    const auto full =
        RevokeCertificates(certs.folder(), Role::kServer, "beta", "", TestTime(), files);
    CHECK(absl::IsResourceExhausted(full.status()));
    CheckText(full.status().message(), {certs.folder() + "/ca/revoked", "free disk space"});
    CHECK(ReadRevocations(certs.folder())->Text() == before);
  }
  // Damaged, it is not begun anew.
  std::ofstream(certs.folder() + "/ca/revoked") << "hello";
  CHECK(absl::IsDataLoss(
      RevokeCertificates(certs.folder(), Role::kServer, "beta", "", TestTime()).status()));
  CHECK(absl::IsDataLoss(ListCertificates(certs.folder()).status()));
}

TEST_CASE("a revocation outlasts a loss of power", "[credentials]") {
  const Certs certs;
  const TempFolder after;
  ScriptedFiles files(3);
  files.Adopt(certs.folder() + "/ca");
  const std::string beta = certs.Serial(Role::kServer, "beta");
  REQUIRE(RevokeCertificates(certs.folder(), Role::kServer, "beta", "", TestTime(), files).ok());
  fs::create_directories(after.path() + "/ca");
  files.PowerLoss(certs.folder() + "/ca", after.path() + "/ca");
  const auto left = ReadRevocations(after.path());
  REQUIRE(left.ok());
  CHECK(left->Contains(beta));
}

}  // namespace
}  // namespace strata
