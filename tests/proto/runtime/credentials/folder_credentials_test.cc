#include "proto/runtime/credentials/folder_credentials.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/peer_verifier.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/files/file_system.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using storage::ScriptedFiles;
using testing::CheckText;
using testing::kCluster;
using testing::kOtherCluster;
using testing::TestTime;

constexpr absl::Duration kLookAgain = absl::Seconds(10);
constexpr absl::Duration kDay = absl::Hours(24);
const IssueOrder kAlpha = {.role = Role::kServer, .name = "alpha", .days = 20};

// A cluster's certificates, a server's among them, and a clock at the moment of their making.
class Certs {
 public:
  explicit Certs(const ClusterId& cluster = kCluster) {
    REQUIRE(InitAuthority(folder(), cluster, 300, TestTime()).ok());
    Issue(kAlpha);
  }

  std::string folder() const { return temp_.path() + "/certs"; }
  std::string current() const { return folder() + "/server/alpha/current"; }

  std::string Issue(const IssueOrder& order, absl::Time now = TestTime()) const {
    const auto made = IssueIdentity(folder(), order, now);
    REQUIRE(made.ok());
    return fs::path(made->file).parent_path().string();
  }
  // The new one's number.
  std::string Renew(int days = 20) const {
    IssueOrder order = kAlpha;
    order.days = days;
    const auto made = RenewIdentity(folder(), order, clock.Now());
    REQUIRE(made.ok());
    return made->facts.serial;
  }
  std::shared_ptr<CredentialSource> Open(FileSystem* files = nullptr) {
    auto source = OpenCredentials(
        {.folder = current(), .clock = &clock, .look_again = kLookAgain, .files = files});
    REQUIRE(source.ok());
    return *source;
  }

  mutable ManualClock clock{TestTime()};

 private:
  const TempFolder temp_;
};

std::string Serial(CredentialSource& source) {
  const auto now = source.Current();
  CHECK(CheckKeyBelongs(now->keyed.certificate, now->keyed.key).ok());
  CHECK(now->certificate.pem == now->keyed.certificate);
  return now->certificate.facts.serial;
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::trunc);
  out << text;
  REQUIRE(out.flush().good());
}

TEST_CASE("a renewed certificate is shown from the next look on", "[credentials]") {
  Certs certs;
  const auto source = certs.Open();
  CHECK(source->self() == Identity{kCluster, Role::kServer, "alpha"});
  CHECK(source->cluster() == kCluster);
  const std::string first = Serial(*source);
  const auto kept = source->Current();
  const std::string second = certs.Renew();
  CHECK(Serial(*source) == first);
  certs.clock.Advance(kLookAgain - absl::Seconds(1));
  CHECK(Serial(*source) == first);
  certs.clock.Advance(absl::Seconds(1));
  CHECK(Serial(*source) == second);
  CHECK(source->problem().ok());
  // Who has the first one still has it.
  CHECK(kept->certificate.facts.serial == first);
  certs.Renew();
  const std::string fourth = certs.Renew();
  certs.clock.Advance(kLookAgain);
  CHECK(Serial(*source) == fourth);
}

TEST_CASE("files in a folder that is no link are seen when they change", "[credentials]") {
  Certs certs;
  const std::string copy = certs.folder() + "/copy";
  fs::copy(certs.folder() + "/server/alpha/" + fs::read_symlink(certs.current()).string(), copy);
  const auto source = OpenCredentials({.folder = copy, .clock = &certs.clock});
  REQUIRE(source.ok());
  const std::string second = certs.Renew();
  for (const char* name : {"ca.crt", "tls.crt", "tls.key"}) {
    fs::copy(absl::StrCat(certs.current(), "/", name), absl::StrCat(copy, "/", name),
             fs::copy_options::overwrite_existing);
  }
  certs.clock.Advance(kLookAgain);
  CHECK(Serial(**source) == second);
}

TEST_CASE("files that are as they were are not read again", "[credentials]") {
  Certs certs;
  ScriptedFiles files(1);
  const auto source = certs.Open(&files);
  const uint64_t read = files.calls(ScriptedFiles::Call::kOpen);
  CHECK(read > 0);
  for (int i = 0; i < 5; ++i) {
    certs.clock.Advance(kLookAgain);
    Serial(*source);
  }
  CHECK(files.calls(ScriptedFiles::Call::kOpen) == read);
}

TEST_CASE("what is no good leaves the certificate that there is, and says why", "[credentials]") {
  struct Bad {
    std::function<void(const Certs&)> make;  // in place of alpha's
    std::vector<std::string> says;
  };
  const auto lead = [](const Certs& certs, const std::string& folder) {
    fs::remove(certs.current());
    fs::create_directory_symlink(fs::canonical(folder), certs.current());
  };
  const std::vector<Bad> bads = {
      {[](const Certs& c) { Write(c.current() + "/tls.crt", "no certificate"); },
       {"/tls.crt", "holds no certificate"}},
      {[](const Certs& c) { Write(c.current() + "/ca.crt", "nothing"); },
       {"/ca.crt", "it holds no certificate"}},
      {[](const Certs& c) { fs::remove(c.current() + "/tls.key"); }, {"/tls.key"}},
      {[](const Certs& c) {
         c.Renew();
         fs::permissions(c.current() + "/tls.key", fs::perms::others_read, fs::perm_options::add);
       },
       {"/tls.key"}},
      {[](const Certs& c) { fs::remove(c.current()); }, {"/current"}},
      {[&](const Certs& c) {
         lead(c, c.Issue({.role = Role::kServer, .name = "beta", .days = 20}));
       },
       {"/tls.crt", "it is for server/beta", "only 'alpha'"}},
      {[&](const Certs& c) {
         lead(c, c.Issue({.role = Role::kWorker, .name = "alpha", .days = 20}));
       },
       {"/tls.crt", "it is for worker/alpha"}},
      {[](const Certs& c) {
         REQUIRE(RenewIdentity(c.folder(), kAlpha, TestTime() - 30 * kDay).ok());
       },
       {"/tls.crt", "O=strata,OU=server,CN=alpha, expires 2025-12-22", "has expired"}},
      {[](const Certs& c) {
         REQUIRE(RenewIdentity(c.folder(), kAlpha, TestTime() + 3 * kDay).ok());
       },
       {"/tls.crt", "is not valid yet"}}};
  int n = 0;
  for (const Bad& bad : bads) {
    INFO("case " << n++);
    Certs certs;
    const auto source = certs.Open();
    const std::string good = Serial(*source);
    bad.make(certs);
    for (int look = 0; look < 2; ++look) {
      certs.clock.Advance(kLookAgain);
      CHECK(Serial(*source) == good);
      REQUIRE_FALSE(source->problem().ok());
      CheckText(source->problem().message(), {certs.folder()});
      for (const std::string& part : bad.says) CheckText(source->problem().message(), {part});
    }
    // A good one mends it.
    fs::remove_all(certs.folder() + "/server/alpha");
    certs.Issue(kAlpha);
    certs.clock.Advance(kLookAgain);
    CHECK(Serial(*source) != good);
    CHECK(source->problem().ok());
  }
}

TEST_CASE("another cluster's certificate does not replace ours", "[credentials]") {
  Certs certs;
  const Certs other(kOtherCluster);
  const auto source = certs.Open();
  const std::string good = Serial(*source);
  fs::remove(certs.current());
  fs::create_directory_symlink(fs::canonical(other.current()), certs.current());
  certs.clock.Advance(kLookAgain);
  CHECK(Serial(*source) == good);
  CheckText(source->problem().message(), {other.folder(), "/tls.crt", "it is of cluster"});
}

TEST_CASE("a failed read is tried again though the files stay as they are", "[credentials]") {
  Certs certs;
  ScriptedFiles files(1);
  const auto source = certs.Open(&files);
  const std::string second = certs.Renew();
  files.Fail(ScriptedFiles::Call::kRead, EIO, 1, 1);
  certs.clock.Advance(kLookAgain);
  CHECK(Serial(*source) != second);
  CHECK_FALSE(source->problem().ok());
  certs.clock.Advance(kLookAgain);
  CHECK(Serial(*source) == second);
  CHECK(source->problem().ok());
}

TEST_CASE("a certificate that is not renewed in time is a problem", "[credentials]") {
  Certs certs;
  const auto source = certs.Open();
  certs.clock.Advance(20 * kDay);
  CHECK(source->problem().ok());
  certs.clock.Advance(absl::Seconds(1));
  CheckText(source->problem().message(),
            {certs.folder(), "/tls.crt: certificate of", "CN=alpha, expires 2026-01-21T00:00:00Z",
             "has expired", "strata certs renew"});
  certs.Renew();
  Serial(*source);
  CHECK(source->problem().ok());
}

TEST_CASE("a process does not begin with a certificate that is no good", "[credentials]") {
  Certs certs;
  const auto open = [&](const std::string& folder) {
    return OpenCredentials({.folder = folder, .clock = &certs.clock}).status();
  };
  CHECK(absl::IsNotFound(open(certs.folder() + "/server/beta/current")));
  CheckText(open(certs.folder() + "/server/beta/current").message(),
            {"/server/beta/current/tls.crt", "strata certs issue"});
  certs.clock.Advance(20 * kDay + absl::Seconds(1));
  CHECK(absl::IsUnauthenticated(open(certs.current())));
  CheckText(open(certs.current()).message(),
            {certs.folder(), "/tls.crt: certificate of", "CN=alpha, expires 2026-01-21",
             "strata certs renew"});
}

TEST_CASE("peers are judged by the authority, the list and the clock of now", "[credentials]") {
  Certs certs;
  const auto source = certs.Open();
  const auto worker = LoadCredentials(certs.Issue({.role = Role::kWorker, .name = "w", .days = 1}));
  REQUIRE(worker.ok());
  const std::string& chain = worker->certificate.pem;
  const auto caller = source->Verify(chain, {Role::kServer, Role::kWorker});
  REQUIRE(caller.ok());
  CHECK(*caller == Caller{"w", Role::kWorker});
  CHECK(absl::IsPermissionDenied(source->Verify(chain, {Role::kServer}).status()));
  CHECK(absl::IsPermissionDenied(source->Verify(chain, {Role::kWorker}, "v").status()));
  CHECK(absl::IsUnauthenticated(
      source
          ->Verify(LoadCredentials(Certs(kOtherCluster).current())->certificate.pem,
                   {Role::kServer})
          .status()));
  CHECK(source->Revoked()->all().empty());
  Revocations revoked;
  revoked.Add(worker->certificate.facts.serial, {"worker/w", TestTime()});
  source->SetRevoked(std::move(revoked));
  CHECK(source->Revoked()->all().size() == 1);
  CheckText(source->Verify(chain, {Role::kWorker}).status().message(), {"it was revoked"});
  source->SetRevoked({});
  CHECK(source->Verify(chain, {Role::kWorker}).ok());
  certs.clock.Advance(kDay + absl::Seconds(1));
  CheckText(source->Verify(chain, {Role::kWorker}).status().message(), {"has expired"});
}

// The kernel's files; once told so, the next look at a file waits for Go.
class WaitingFiles : public FileSystem {
 public:
  void HoldNext() { hold_ = true; }
  void AwaitHeld() { held_.WaitForNotification(); }
  void Go() { go_.Notify(); }

  int Look(const std::string& path, FileInfo& out) override {
    if (hold_.exchange(false)) {
      held_.Notify();
      go_.WaitForNotification();
    }
    return FileSystem::Look(path, out);
  }

 private:
  std::atomic<bool> hold_{false};
  absl::Notification held_, go_;
};

TEST_CASE("a folder that does not answer holds up only who looks", "[credentials]") {
  Certs certs;
  WaitingFiles files;
  const auto source = certs.Open(&files);
  const std::string first = Serial(*source);
  const std::string second = certs.Renew();
  certs.clock.Advance(kLookAgain);
  files.HoldNext();
  std::string seen;
  std::thread looks([&] { seen = source->Current()->certificate.facts.serial; });
  files.AwaitHeld();
  CHECK(Serial(*source) == first);
  certs.clock.Advance(kLookAgain);
  CHECK(Serial(*source) == first);
  CHECK(source->problem().ok());
  files.Go();
  looks.join();
  CHECK(seen == second);
  CHECK(Serial(*source) == second);
}

TEST_CASE("threads that ask while it is renewed get whole certificates", "[credentials]") {
  Certs certs;
  const auto source = certs.Open();
  std::atomic<int> odd{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto now = source->Current();
        odd += !CheckKeyBelongs(now->certificate.pem, now->keyed.key).ok();
        source->SetRevoked({});
        odd += source->Revoked() == nullptr;
        certs.clock.Advance(kLookAgain);
      }
    });
  }
  std::string last;
  for (int i = 0; i < 10; ++i) last = certs.Renew();
  for (std::thread& thread : threads) thread.join();
  CHECK(odd == 0);
  certs.clock.Advance(kLookAgain);
  CHECK(Serial(*source) == last);
  CHECK(source->problem().ok());
}

}  // namespace
}  // namespace strata
