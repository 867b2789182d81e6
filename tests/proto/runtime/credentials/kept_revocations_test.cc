#include "proto/runtime/credentials/kept_revocations.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/credentials/folder_credentials.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/revocations.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

using testing::kCluster;
using testing::kOtherCluster;
using testing::TestTime;

const std::string kA(32, 'a'), kB(32, 'b');

Revocations::Entry Of(const std::string& who) { return {who, absl::UnixEpoch()}; }
std::string Listed(std::initializer_list<std::string> serials) {
  Revocations list;
  for (const std::string& serial : serials) list.Add(serial, Of("worker/w"));
  return list.Text();
}

// A node's folder, and certificates of two clusters.
class Node {
 public:
  // What a process that begins has: it was told nothing.
  std::shared_ptr<CredentialSource> Begin(const ClusterId& cluster = kCluster) {
    const std::string certs = temp_.path() + "/" + cluster.text();
    if (!std::filesystem::exists(certs)) {
      REQUIRE(InitAuthority(certs, cluster, 300, TestTime()).ok());
      REQUIRE(IssueIdentity(certs, {.role = Role::kServer, .name = "alpha"}, TestTime()).ok());
      REQUIRE(IssueIdentity(certs, {.role = Role::kScheduler, .name = "s"}, TestTime()).ok());
    }
    auto source = OpenCredentials({.folder = certs + "/server/alpha/current", .clock = &clock_});
    REQUIRE(source.ok());
    return *std::move(source);
  }
  KeptRevocations Keep(const std::shared_ptr<CredentialSource>& source) {
    return KeptRevocations(folder(), source,
                           [this](const std::string& line) { said_.push_back(line); });
  }
  std::string folder() {
    std::filesystem::create_directories(temp_.path() + "/node");
    return temp_.path() + "/node";
  }
  std::string file() { return folder() + "/REVOKED"; }
  std::string Pem(const std::string& role, const std::string& name) {
    return LoadCredentials(temp_.path() + "/" + kCluster.text() + "/" + role + "/" + name +
                           "/current")
        ->certificate.pem;
  }
  ManualClock& clock() { return clock_; }
  std::vector<std::string> said() { return std::exchange(said_, {}); }

 private:
  const TempFolder temp_;
  ManualClock clock_{TestTime()};
  std::vector<std::string> said_;
};

TEST_CASE("a node that starts again goes by the list that it was told last", "[revoked]") {
  Node node;
  {
    KeptRevocations kept = node.Keep(node.Begin());
    kept.Follow(Listed({kA}));
    kept.Follow(Listed({kA, kB}));
    // Nothing is said while nothing is new.
    kept.Follow("");
  }
  const auto source = node.Begin();
  CHECK_FALSE(source->Revoked()->Contains(kB));
  node.Keep(source);
  CHECK(source->Revoked()->Contains(kA));
  CHECK(source->Revoked()->Contains(kB));
  CHECK(node.said().empty());
}

TEST_CASE("an older list ends no revocation, before a start or after it", "[revoked]") {
  Node node;
  {
    const auto source = node.Begin();
    KeptRevocations kept = node.Keep(source);
    kept.Follow(Listed({kA, kB}));
    kept.Follow(Listed({kA}));
    CHECK(source->Revoked()->Contains(kB));
  }
  const auto source = node.Begin();
  KeptRevocations kept = node.Keep(source);
  CHECK(source->Revoked()->Contains(kB));
  kept.Follow(Listed({kA}));
  CHECK(source->Revoked()->Contains(kB));
}

TEST_CASE("what has expired goes from the list, so that it does not grow for ever", "[revoked]") {
  Node node;
  const auto source = node.Begin();
  KeptRevocations kept = node.Keep(source);
  Revocations list;
  list.Add(kA, {"worker/w", TestTime(), TestTime() + absl::Hours(1)});
  kept.Follow(list.Text());
  CHECK(source->Revoked()->Contains(kA));
  node.clock().Advance(absl::Hours(48));
  kept.Follow(Listed({kB}));
  CHECK_FALSE(source->Revoked()->Contains(kA));
  CHECK(source->Revoked()->Contains(kB));
}

TEST_CASE("a list of another cluster says nothing, and gives way to one of this", "[revoked]") {
  Node node;
  node.Keep(node.Begin(kOtherCluster)).Follow(Listed({kA}));
  const auto source = node.Begin();
  KeptRevocations kept = node.Keep(source);
  CHECK_FALSE(source->Revoked()->Contains(kA));
  kept.Follow(Listed({kB}));
  const auto next = node.Begin();
  node.Keep(next);
  CHECK(next->Revoked()->Contains(kB));
  CHECK_FALSE(next->Revoked()->Contains(kA));
  CHECK(node.said().empty());
}

TEST_CASE("a damaged list lets nobody in but a scheduler, until one tells it anew", "[revoked]") {
  Node node;
  node.Keep(node.Begin()).Follow(Listed({kA}));
  std::ifstream file(node.file());
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(whole.size() > 60);
  for (const size_t bytes : {size_t{0}, size_t{30}, whole.size() / 2, whole.size() - 1}) {
    INFO(bytes << " bytes");
    std::ofstream(node.file(), std::ios::trunc) << whole.substr(0, bytes);
    const auto source = node.Begin();
    KeptRevocations kept = node.Keep(source);
    const auto said = node.said();
    REQUIRE(said.size() == 1);
    CHECK(absl::StrContains(said[0], "revoked_damaged error=\"" + node.file()));
    const absl::Status refused =
        source->Verify(node.Pem("server", "alpha"), {Role::kServer}).status();
    INFO(refused);
    CHECK(absl::IsUnavailable(refused));
    CHECK(absl::StrContains(refused.message(), node.file()));
    CHECK(source->Verify(node.Pem("scheduler", "s"), {Role::kScheduler}).ok());
    // A scheduler that has no list says nothing of who is on the one that was lost.
    kept.Follow("");
    CHECK_FALSE(source->Verify(node.Pem("server", "alpha"), {Role::kServer}).ok());
    kept.Follow(Listed({kB}));
    CHECK(source->Verify(node.Pem("server", "alpha"), {Role::kServer}).ok());
    const auto next = node.Begin();
    node.Keep(next);
    CHECK(next->Revoked()->Contains(kB));
    CHECK(node.said().empty());
  }
}

TEST_CASE("of a scheduler that says no list the one before stays, which is said once",
          "[revoked]") {
  Node node;
  const auto source = node.Begin();
  KeptRevocations kept = node.Keep(source);
  kept.Follow(Listed({kA}));
  kept.Follow("hello");
  kept.Follow("hello");
  CHECK(source->Revoked()->Contains(kA));
  const auto said = node.said();
  REQUIRE(said.size() == 1);
  CHECK(absl::StrContains(said[0], "revoked_unreadable"));
}

TEST_CASE("a list that cannot be kept is in force, and is kept when it can be", "[revoked]") {
  Node node;
  const auto source = node.Begin();
  KeptRevocations kept = node.Keep(source);
  const std::string folder = node.folder();
  std::filesystem::rename(folder, folder + "-away");
  kept.Follow(Listed({kA}));
  CHECK(source->Revoked()->Contains(kA));
  kept.Follow("");
  const auto said = node.said();
  REQUIRE(said.size() == 1);
  CHECK(absl::StrContains(said[0], "revoked_not_kept"));
  std::filesystem::rename(folder + "-away", folder);
  kept.Follow("");
  const auto next = node.Begin();
  node.Keep(next);
  CHECK(next->Revoked()->Contains(kA));
}

TEST_CASE("who has no folder or asks nobody keeps nothing", "[revoked]") {
  Node node;
  const auto source = node.Begin();
  KeptRevocations("", source, nullptr).Follow(Listed({kA}));
  CHECK(source->Revoked()->Contains(kA));
  KeptRevocations(node.folder(), nullptr, nullptr).Follow(Listed({kA}));
  CHECK_FALSE(std::filesystem::exists(node.file()));
}

}  // namespace
}  // namespace strata
