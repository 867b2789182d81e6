#include "proto/runtime/credentials/identity_files.h"

#include <sys/stat.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/folder_lock.h"
#include "proto/runtime/credentials/peer_verifier.h"
#include "proto/runtime/files/file_system.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using storage::ScriptedFiles;
using Call = ScriptedFiles::Call;
using testing::CheckText;
using testing::kCluster;
using testing::kClusterText;
using testing::kOtherCluster;
using testing::TestTime;

const IssueOrder kAlpha = {.role = Role::kServer, .name = "alpha", .days = 20};

// A folder with an authority.
class Certs {
 public:
  Certs() { REQUIRE(InitAuthority(folder(), kCluster, 30, TestTime()).ok()); }

  std::string folder() const { return temp_.path() + "/certs"; }
  std::string home() const { return folder() + "/server/alpha"; }
  std::string current() const { return home() + "/current"; }

  // Of alpha; files and links in its folder.
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(home())) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

 private:
  const TempFolder temp_;
};

unsigned ModeOf(const std::string& path) {
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

std::string SerialOf(const absl::StatusOr<IdentityCertificate>& made) {
  REQUIRE(made.ok());
  return made->facts.serial;
}

TEST_CASE("an issued certificate is whole, private, and its authority's", "[credentials]") {
  const Certs certs;
  const auto made = IssueIdentity(certs.folder(), kAlpha, TestTime());
  REQUIRE(made.ok());
  CHECK(made->file == certs.current() + "/tls.crt");
  CHECK(made->identity == Identity{kCluster, Role::kServer, "alpha"});
  CHECK(made->facts.valid.until == TestTime() + 20 * absl::Hours(24));
  const auto loaded = LoadCredentials(certs.current());
  REQUIRE(loaded.ok());
  CHECK(loaded->certificate.pem == made->pem);
  CHECK(loaded->authorities == ReadAuthority(certs.folder())->pem);
  CHECK(ModeOf(certs.current() + "/tls.key") == 0600);
  for (const std::string& folder : {certs.current(), certs.home(), certs.folder() + "/server"}) {
    CHECK(ModeOf(folder) == 0700);
  }
  CHECK(certs.Names() == std::set<std::string>{"current", made->facts.serial});
  const PeerExpectations expected = {.authorities = loaded->authorities,
                                     .cluster = kCluster,
                                     .roles = {Role::kServer},
                                     .name = "alpha"};
  CHECK(VerifyPeer(loaded->keyed.certificate, expected, TestTime(), {}).ok());
}

TEST_CASE("who has a certificate renews it, and who has none gets one issued", "[credentials]") {
  const Certs certs;
  const auto none = RenewIdentity(certs.folder(), kAlpha, TestTime());
  CHECK(absl::IsNotFound(none.status()));
  CheckText(none.status().message(),
            {"server/alpha has no certificate", "strata certs issue server alpha"});
  const std::string first = SerialOf(IssueIdentity(certs.folder(), kAlpha, TestTime()));
  const auto twice = IssueIdentity(certs.folder(), kAlpha, TestTime());
  CHECK(absl::IsAlreadyExists(twice.status()));
  CheckText(twice.status().message(),
            {certs.current(), "O=strata,OU=server,CN=alpha", "expires 2026-01-21T00:00:00Z",
             "strata certs renew server alpha"});
  CHECK(LoadCredentials(certs.current())->certificate.facts.serial == first);

  const std::string second = SerialOf(RenewIdentity(certs.folder(), kAlpha, TestTime()));
  CHECK(certs.Names() == std::set<std::string>{"current", first, second});
  CHECK(fs::read_symlink(certs.current()) == second);
  const std::string third = SerialOf(RenewIdentity(certs.folder(), kAlpha, TestTime()));
  CHECK(certs.Names() == std::set<std::string>{"current", second, third});
  // Other names and roles are others.
  IssueOrder worker = kAlpha;
  worker.role = Role::kWorker;
  CHECK(IssueIdentity(certs.folder(), worker, TestTime()).ok());
  CHECK(LoadCredentials(certs.current())->certificate.facts.serial == third);
}

TEST_CASE("orders that cannot be met say why, and change nothing", "[credentials]") {
  const Certs certs;
  struct Bad {
    std::string name;
    int days;
    absl::StatusCode code;
    std::string says;
  };
  for (const Bad& bad :
       {Bad{"a/b", 20, absl::StatusCode::kInvalidArgument, "has '/' at byte 2"},
        Bad{"..", 20, absl::StatusCode::kInvalidArgument, "has '.' at byte 1"},
        Bad{std::string("a\0b", 3), 20, absl::StatusCode::kInvalidArgument, "at byte 2"},
        Bad{std::string(300, 'n'), 20, absl::StatusCode::kInvalidArgument, "has 300 bytes"},
        Bad{"alpha", 0, absl::StatusCode::kInvalidArgument, "0 days"},
        Bad{"alpha", 31, absl::StatusCode::kFailedPrecondition, "give --days 30 or fewer"}}) {
    const IssueOrder order = {.role = Role::kServer, .name = bad.name, .days = bad.days};
    for (const auto make : {&IssueIdentity, &RenewIdentity}) {
      const auto made = make(certs.folder(), order, TestTime(), FileSystem::Kernel());
      CHECK(made.status().code() == bad.code);
      CheckText(made.status().message(), {bad.says});
    }
  }
  const auto expired = IssueIdentity(certs.folder(), kAlpha, TestTime() + 30 * absl::Hours(24));
  CHECK(absl::IsFailedPrecondition(expired.status()));
  CheckText(expired.status().message(), {certs.folder() + "/ca/ca.crt", "it has expired"});
  {
    const FolderLock lock(certs.folder(), FileSystem::Kernel());
    CHECK(absl::IsAborted(IssueIdentity(certs.folder(), kAlpha, TestTime()).status()));
  }
  CHECK_FALSE(fs::exists(certs.folder() + "/server"));
  CHECK(absl::IsNotFound(IssueIdentity(certs.folder() + "/no", kAlpha, TestTime()).status()));
  // The longest name is one of a folder, too.
  const IssueOrder longest = {
      .role = Role::kReader, .name = std::string(kMaxIdentityNameBytes, 'n'), .days = 1};
  CHECK(IssueIdentity(certs.folder(), longest, TestTime()).ok());
}

TEST_CASE("what is damaged is told with its file, and a renewal mends it", "[credentials]") {
  const Certs certs;
  REQUIRE(IssueIdentity(certs.folder(), kAlpha, TestTime()).ok());
  const std::string key = certs.current() + "/tls.key", crt = certs.current() + "/tls.crt";
  for (const mode_t mode : {0644, 0640}) {
    REQUIRE(chmod(key.c_str(), mode) == 0);
    const auto open = LoadCredentials(certs.current());
    CHECK(absl::IsPermissionDenied(open.status()));
    CheckText(open.status().message(), {"/tls.key is open to others (mode 06", "chmod 600 "});
  }
  REQUIRE(chmod(key.c_str(), 0600) == 0);
  std::ofstream(key) << testing::MadeAuthority().key;
  const auto other = LoadCredentials(certs.current());
  CHECK(absl::IsDataLoss(other.status()));
  CheckText(other.status().message(), {"tls.key", "does not belong", "CN=alpha",
                                       "expires 2026-01-21T00:00:00Z", "strata certs renew"});
  std::ofstream(crt) << "hello";
  const auto no_certificate = LoadCredentials(certs.current());
  CHECK(absl::IsDataLoss(no_certificate.status()));
  CheckText(no_certificate.status().message(), {"tls.crt", "no certificate"});
  fs::remove(crt);
  CHECK(absl::IsNotFound(LoadCredentials(certs.current()).status()));
  REQUIRE(RenewIdentity(certs.folder(), kAlpha, TestTime()).ok());
  CHECK(LoadCredentials(certs.current()).ok());
  CHECK(absl::IsNotFound(LoadCredentials(certs.home() + "/none").status()));
}

TEST_CASE("a certificate of another cluster is not renewed here", "[credentials]") {
  const Certs certs;
  const TempFolder other;
  REQUIRE(InitAuthority(other.path() + "/certs", kOtherCluster, 30, TestTime()).ok());
  REQUIRE(IssueIdentity(other.path() + "/certs", kAlpha, TestTime()).ok());
  fs::copy(other.path() + "/certs/server", certs.folder() + "/server",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const auto made = RenewIdentity(certs.folder(), kAlpha, TestTime());
  CHECK(absl::IsFailedPrecondition(made.status()));
  CheckText(made.status().message(),
            {certs.current() + "/tls.crt", "CN=alpha", "expires 2026-01-21T00:00:00Z",
             "of cluster 00000000000000070000000000000009", kClusterText});
  // Nor is a folder of somebody else's making replaced by a link.
  fs::remove(certs.current());
  fs::create_directories(certs.current());
  const auto no_link = RenewIdentity(certs.folder(), kAlpha, TestTime());
  CHECK(absl::IsFailedPrecondition(no_link.status()));
  CheckText(no_link.status().message(), {certs.current(), "no link"});
}

// A read meets a renewal at its nth call of the file system.
class RenewedBetween : public FileSystem {
 public:
  RenewedBetween(uint64_t nth, std::function<void()> renew) : nth_(nth), renew_(std::move(renew)) {}
  uint64_t calls() const { return calls_; }

  int Open(const std::string& path, int flags) override {
    Count();
    return FileSystem::Open(path, flags);
  }
  int ReadLink(const std::string& path, std::string& target) override {
    Count();
    return FileSystem::ReadLink(path, target);
  }

 private:
  void Count() {
    if (++calls_ == nth_) renew_();
  }

  const uint64_t nth_;
  const std::function<void()> renew_;
  uint64_t calls_ = 0;
};

TEST_CASE("who reads while it is renewed has the old or the new whole", "[credentials]") {
  const Certs certs;
  REQUIRE(IssueIdentity(certs.folder(), kAlpha, TestTime()).ok());
  const auto renew = [&] { REQUIRE(RenewIdentity(certs.folder(), kAlpha, TestTime()).ok()); };
  // Once, which leaves the files that are read, and twice, which removes them.
  for (const int times : {1, 2}) {
    bool met = true;
    for (uint64_t nth = 1; met; ++nth) {
      REQUIRE(nth < 40);
      const std::string before = LoadCredentials(certs.current())->certificate.facts.serial;
      RenewedBetween files(nth, [&] {
        for (int i = 0; i < times; ++i) renew();
      });
      const auto loaded = LoadCredentials(certs.current(), files);
      met = files.calls() >= nth;
      INFO(times << " at call " << nth);
      REQUIRE(loaded.ok());
      CHECK(CheckKeyBelongs(loaded->keyed.certificate, loaded->keyed.key).ok());
      CHECK(loaded->certificate.pem == loaded->keyed.certificate);
      const std::string after = LoadCredentials(certs.current())->certificate.facts.serial;
      const std::string serial = loaded->certificate.facts.serial;
      CHECK((serial == before || serial == after));
    }
  }
}

TEST_CASE("who reads by any spelling has the old or the new whole", "[credentials]") {
  const Certs certs;
  REQUIRE(IssueIdentity(certs.folder(), kAlpha, TestTime()).ok());
  const std::string links = certs.folder() + "/links";
  fs::create_directories(links);
  fs::create_symlink("../server/alpha/current", links + "/relative");
  fs::create_symlink(certs.current(), links + "/absolute");
  fs::create_symlink("relative", links + "/twice");
  fs::create_symlink("./absolute/", links + "/with_slash");
  const std::string relative =
      fs::path(certs.current()).lexically_relative(fs::current_path()).string();
  for (const std::string& spelled :
       {certs.current() + "/", certs.current() + "//", certs.current() + "/.",
        certs.current() + "/./", relative, relative + "/", links + "/relative", links + "/absolute",
        links + "/twice", links + "/twice/", links + "/with_slash", links + "/with_slash/"}) {
    INFO(spelled);
    bool met = true;
    for (uint64_t nth = 1; met; ++nth) {
      REQUIRE(nth < 40);
      RenewedBetween files(
          nth, [&] { REQUIRE(RenewIdentity(certs.folder(), kAlpha, TestTime()).ok()); });
      const auto loaded = LoadCredentials(spelled, files);
      met = files.calls() >= nth;
      INFO("at call " << nth << " " << loaded.status());
      REQUIRE(loaded.ok());
      CHECK(CheckKeyBelongs(loaded->keyed.certificate, loaded->keyed.key).ok());
    }
  }
  fs::create_symlink("circle", links + "/circle");
  const auto circle = LoadCredentials(links + "/circle");
  CHECK(absl::IsFailedPrecondition(circle.status()));
  CheckText(circle.status().message(), {links + "/circle", "symbolic links"});
}

TEST_CASE("a renewal that fails leaves the old one or the new one, whole", "[credentials]") {
  for (const Call call : {Call::kOpen, Call::kWrite, Call::kSync, Call::kRename, Call::kRemove}) {
    const Certs certs;
    REQUIRE(IssueIdentity(certs.folder(), kAlpha, TestTime()).ok());
    REQUIRE(RenewIdentity(certs.folder(), kAlpha, TestTime()).ok());
    bool failed = true;
    for (uint64_t nth = 1; failed; ++nth) {
      REQUIRE(nth < 80);
      const std::string old = LoadCredentials(certs.current())->certificate.facts.serial;
      const std::set<std::string> names = certs.Names();
      ScriptedFiles files(1);
      files.Fail(call, call == Call::kWrite ? ENOSPC : EIO, nth);
      const auto made = RenewIdentity(certs.folder(), kAlpha, TestTime(), files);
      failed = files.calls(call) >= nth;
      INFO("call " << static_cast<int>(call) << ", " << nth);
      const auto loaded = LoadCredentials(certs.current());
      REQUIRE(loaded.ok());
      const std::string& serial = loaded->certificate.facts.serial;
      if (made.ok()) {
        CHECK(serial == made->facts.serial);
      } else {
        CheckText(made.status().message(), {certs.folder()});
      }
      if (serial == old) CHECK(certs.Names() == names);
      // And the next one works, and leaves the new one and the one before it.
      CHECK(RenewIdentity(certs.folder(), kAlpha, TestTime()).ok());
      CHECK(certs.Names().size() == 3);
    }
  }
}

TEST_CASE("while one issues, another is told to wait, at every moment", "[credentials]") {
  // At each call of the first one's, another begins; without the lock both would be done, and one
  // of them lost.
  bool met = true;
  int waited = 0;
  for (uint64_t nth = 1; met; ++nth) {
    REQUIRE(nth < 80);
    const Certs certs;
    absl::Status other = absl::OkStatus();
    const IssueOrder beta = {.role = Role::kServer, .name = "beta", .days = 20};
    RenewedBetween files(nth, [&] {
      other = IssueIdentity(certs.folder(), kAlpha, TestTime()).status();
      IssueIdentity(certs.folder(), beta, TestTime()).IgnoreError();
    });
    const absl::Status first = IssueIdentity(certs.folder(), kAlpha, TestTime(), files).status();
    met = files.calls() >= nth;
    if (!met) break;
    INFO("at call " << nth << ": " << first << ", " << other);
    CHECK(first.ok() != other.ok());
    CHECK((other.ok() || absl::IsAborted(other)));
    waited += absl::IsAborted(other);
    // All that is there is known.
    const auto issued = ReadIssued(certs.folder());
    REQUIRE(issued.ok());
    const auto there = LoadCredentials(certs.current());
    REQUIRE(there.ok());
    CHECK(issued->all().count(there->certificate.facts.serial) == 1);
    CHECK(issued->all().size() == (fs::exists(certs.folder() + "/server/beta") ? 2 : 1));
  }
  CHECK(waited >= 10);
}

TEST_CASE("every certificate is on the list of issued ones until it expires", "[credentials]") {
  const Certs certs;
  std::set<std::string> serials = {SerialOf(IssueIdentity(certs.folder(), kAlpha, TestTime()))};
  for (int i = 0; i < 3; ++i) {
    serials.insert(SerialOf(RenewIdentity(certs.folder(), kAlpha, TestTime())));
  }
  CHECK(certs.Names().size() == 3);  // of two, and the link
  auto issued = ReadIssued(certs.folder());
  REQUIRE(issued.ok());
  REQUIRE(issued->all().size() == 4);
  for (const std::string& serial : serials) {
    REQUIRE(issued->all().count(serial) == 1);
    CHECK(issued->all().at(serial).who == "server/alpha");
    CHECK(issued->all().at(serial).until == TestTime() + 20 * absl::Hours(24));
  }
  // Nothing is issued that is not listed.
  ScriptedFiles files(1);
  files.Fail(Call::kRename, EIO);
  CHECK_FALSE(RenewIdentity(certs.folder(), kAlpha, TestTime(), files).ok());
  CHECK(certs.Names().size() == 3);
  IssueOrder one_day = kAlpha;
  one_day.days = 1;
  const std::string last =
      SerialOf(RenewIdentity(certs.folder(), one_day, TestTime() + 21 * absl::Hours(24)));
  issued = ReadIssued(certs.folder());
  REQUIRE(issued->all().size() == 1);
  CHECK(issued->all().begin()->first == last);
}

TEST_CASE("a certificate of another authority is no good beside this one", "[credentials]") {
  const Certs certs;
  REQUIRE(IssueIdentity(certs.folder(), kAlpha, TestTime()).ok());
  // Of the same cluster, as after a second init elsewhere.
  const std::string other = testing::MadeAuthority().certificate;
  const std::string file = certs.current() + "/ca.crt", first = ReadAuthority(certs.folder())->pem;
  std::ofstream(file) << other;
  const auto loaded = LoadCredentials(certs.current());
  CHECK(absl::IsFailedPrecondition(loaded.status()));
  CheckText(loaded.status().message(),
            {"/tls.crt: certificate of O=strata,OU=server,CN=alpha", "signed by another authority",
             "/ca.crt", "strata certs renew server alpha, where its CA is"});
  // While one is replaced by another, either may have signed.
  std::ofstream(file) << other << first;
  CHECK(LoadCredentials(certs.current()).ok());
}

TEST_CASE("the certificate before is kept, however the link names it", "[credentials]") {
  const Certs certs;
  std::string before = SerialOf(IssueIdentity(certs.folder(), kAlpha, TestTime()));
  for (const std::string& spelled :
       {std::string("./"), absl::StrCat(certs.home(), "/"), std::string("../alpha/")}) {
    fs::remove(certs.current());
    fs::create_symlink(absl::StrCat(spelled, before, "/"), certs.current());
    const std::string next = SerialOf(RenewIdentity(certs.folder(), kAlpha, TestTime()));
    INFO(spelled);
    CHECK(certs.Names() == std::set<std::string>{"current", before, next});
    before = next;
  }
}

TEST_CASE("of two that issue at once, each is done whole or told", "[credentials]") {
  const Certs certs;
  constexpr int kEach = 10;
  std::atomic<int> issued{0}, odd{0};
  const auto issue = [&](const std::string& prefix) {
    for (int i = 0; i < kEach; ++i) {
      const IssueOrder order = {.role = Role::kWorker, .name = absl::StrCat(prefix, i), .days = 1};
      absl::Status s = absl::AbortedError("");
      while (absl::IsAborted(s)) s = IssueIdentity(certs.folder(), order, TestTime()).status();
      (s.ok() ? issued : odd)++;
    }
  };
  std::thread a(issue, "a"), b(issue, "b");
  a.join();
  b.join();
  CHECK(issued == 2 * kEach);
  CHECK(odd == 0);
  for (int i = 0; i < kEach; ++i) {
    for (const char* prefix : {"a", "b"}) {
      CHECK(LoadCredentials(absl::StrCat(certs.folder(), "/worker/", prefix, i, "/current")).ok());
    }
  }
}

}  // namespace
}  // namespace strata
