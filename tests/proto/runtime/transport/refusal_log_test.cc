// Who is not let in is named on the side that listens: real ports, and the log that a daemon has.
#include "proto/runtime/transport/refusal_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "tests/proto/runtime/transport/test_certs.h"
#include "tests/temp_folder.h"

namespace strata::testing {
namespace {

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

// What this process writes to stderr, where a log that no daemon has opened goes, while there is
// one of these.
class Stderr {
 public:
  Stderr() : before_(dup(STDERR_FILENO)) {
    REQUIRE(before_ >= 0);
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    REQUIRE(dup2(file, STDERR_FILENO) == STDERR_FILENO);
    close(file);
  }
  ~Stderr() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  // The lines that tell of `event`.
  std::vector<std::string> Of(const std::string& event) const {
    std::vector<std::string> lines;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      if (absl::StrContains(line, "] " + event + " ")) lines.push_back(line);
    }
    return lines;
  }

 private:
  const TempFolder temp_;
  const std::string path_ = temp_.path() + "/stderr";
  const int before_;
};

struct Replies : public DataHandler {
  void Handle(const Caller&, DataMethod, Buffer, DataReply reply) override { reply(Buffer()); }
};

std::shared_ptr<ProcessTls> Open(const std::string& folder) {
  auto tls = ProcessTls::Open({.folder = folder});
  INFO(tls.status());
  REQUIRE(tls.ok());
  return *std::move(tls);
}

absl::Status Call(const std::shared_ptr<ProcessTls>& as, const std::string& address) {
  return MakeGrpcTransport({.tls = as})
      ->Connect({address, "alpha"}, SelfOf(as))
      ->CallAndWait(DataMethod::kPull, Buffer(), absl::Seconds(20))
      .status();
}

TEST_CASE("a caller who may not call is named with his address, seldom, and counted",
          "[refusals]") {
  const Certs certs;
  const auto server = Open(certs.Issue(Role::kServer, "alpha"));
  const auto worker = Open(certs.Issue(Role::kWorker, "w"));
  Replies handler;
  const auto serving = MakeGrpcTransport({.tls = server});
  const auto listener = serving->Listen("127.0.0.1:0", &handler);
  REQUIRE(listener.ok());
  Revocations revoked;
  revoked.Add(worker->source()->Current()->certificate.facts.serial, {"worker/w", absl::Now()});
  server->source()->SetRevoked(revoked);
  const Stderr log;
  const uint64_t before = RefusedCalls();
  for (int i = 0; i < 3; ++i) {
    CHECK(absl::IsUnauthenticated(Call(worker, (*listener)->address())));
  }
  CHECK(RefusedCalls() == before + 3);
  const std::vector<std::string> said = log.Of("caller_refused");
  REQUIRE(said.size() == 1);
  for (const char* part : {" peer=ipv4:127.0.0.1:", " call=Pull ", "CN=w", "it was revoked"}) {
    INFO(said[0]);
    CHECK(absl::StrContains(said[0], part));
  }
}

TEST_CASE("a handshake that TLS ends is named with the reason, seldom, and counted", "[refusals]") {
  FollowGrpcLog();
  const Certs certs, other(kOtherTlsCluster);
  const auto server = Open(certs.Issue(Role::kServer, "alpha"));
  Replies handler;
  const auto serving = MakeGrpcTransport({.tls = server});
  const auto listener = serving->Listen("127.0.0.1:0", &handler);
  REQUIRE(listener.ok());
  const Stderr log;
  const uint64_t before = FailedHandshakes();
  // He trusts the server, whose authority does not know him.
  const std::string folder = other.Issue(Role::kWorker, "w");
  std::ofstream(folder + "/ca.crt")
      << ReadAuthority(certs.folder())->pem << ReadAuthority(other.folder())->pem;
  const auto stranger = Open(folder);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(Call(stranger, (*listener)->address()).ok());
  // The other end may know of it earlier.
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  while (FailedHandshakes() < before + 3 && absl::Now() < give_up) {
    CHECK_FALSE(Call(stranger, (*listener)->address()).ok());
  }
  CHECK(FailedHandshakes() >= before + 3);
  const std::vector<std::string> said = log.Of("handshake_failed");
  REQUIRE(said.size() == 1);
  INFO(said[0]);
  CHECK(absl::StrContains(said[0], "certificate verify failed"));
  CHECK(absl::StrContains(said[0], " failed=1"));
}

}  // namespace
}  // namespace strata::testing
