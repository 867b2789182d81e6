#include "proto/runtime/credentials/scheduler_handshake.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/folder_credentials.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/places.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

using testing::CheckText;

// Listens on loopback; what it does with a connection, `serve` says. Null: it takes none, and the
// kernel holds those that come, as of a process that is stopped.
class Listening {
 public:
  explicit Listening(std::function<void(int fd)> serve) : serve_(std::move(serve)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd_ >= 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    socklen_t size = sizeof at;
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    REQUIRE(listen(fd_, 16) == 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(at.sin_port));
    if (serve_) thread_ = std::thread([this] { Run(); });
  }
  ~Listening() {
    shutdown(fd_, SHUT_RDWR);  // ends the accept that waits
    if (thread_.joinable()) thread_.join();
    close(fd_);
  }
  const std::string& address() const { return address_; }

 private:
  void Run() {
    for (int taken; (taken = accept(fd_, nullptr, nullptr)) >= 0;) {
      serve_(taken);
      close(taken);
    }
  }

  const std::function<void(int fd)> serve_;
  int fd_ = -1;
  std::string address_;
  std::thread thread_;
};

void Read(int fd) {
  char bytes[4096];
  [[maybe_unused]] const ssize_t n = read(fd, bytes, sizeof bytes);
}

// The frame that a server of HTTP/2 begins with.
void AnswerPlainly(int fd) {
  const char settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
  [[maybe_unused]] const ssize_t n = write(fd, settings, sizeof settings);
  Read(fd);
}

class Fixture {
 public:
  Fixture() {
    REQUIRE(InitAuthority(certs, testing::kCluster, 300, absl::Now()).ok());
    REQUIRE(IssueIdentity(certs, {.role = Role::kOperator, .name = "me"}, absl::Now()).ok());
    auto source = OpenCredentials(
        {.folder = CurrentFolder(certs, Role::kOperator, "me"), .clock = Clock::Real()});
    REQUIRE(source.ok());
    mine = *std::move(source);
  }
  const TempFolder temp;
  const std::string certs = temp.path() + "/certs";
  std::shared_ptr<CredentialSource> mine;
};

TEST_CASE("who takes connections and says nothing is not taken for one without TLS",
          "[credentials]") {
  const Fixture f;
  const Listening frozen(nullptr);
  for (const auto& mine : {f.mine, std::shared_ptr<CredentialSource>()}) {
    const absl::Status s = WhyNoHandshake(frozen.address(), mine);
    CHECK(absl::IsUnavailable(s));
    CheckText(s.message(), {"the scheduler at " + frozen.address() +
                                " takes connections and has said nothing for 3 seconds",
                            "it is stopped, or has more to do"});
  }
}

TEST_CASE("who closes each connection is not taken for one without TLS", "[credentials]") {
  const Fixture f;
  const Listening closing(Read);
  const absl::Status s = WhyNoHandshake(closing.address(), f.mine);
  CHECK(absl::IsUnavailable(s));
  CheckText(s.message(), {closing.address() + " closes each connection", "compare the address"});
}

TEST_CASE("who answers without TLS is told as that, with what to do", "[credentials]") {
  const Fixture f;
  const Listening plain(AnswerPlainly);
  const absl::Status s = WhyNoHandshake(plain.address(), f.mine);
  CHECK(absl::IsUnauthenticated(s));
  CheckText(s.message(), {plain.address() + " speaks no TLS",
                          "give the command --scheduler " + plain.address() + " --insecure"});
  const absl::Status of_server = WhyNoHandshake(plain.address(), f.mine, "server alpha");
  CHECK(absl::IsUnauthenticated(of_server));
  CheckText(of_server.message(), {"speaks no TLS", "start it with them, or this process without"});
  // As it should, to who goes without, too.
  CHECK(WhyNoHandshake(plain.address(), nullptr).ok());
}

TEST_CASE("where connections are not taken there is nothing to say, soon", "[credentials]") {
  const Fixture f;
  const int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  REQUIRE(bind(full, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(listen(full, 0) == 0);
  REQUIRE(getsockname(full, reinterpret_cast<sockaddr*>(&at), &size) == 0);
  std::vector<int> waiting;  // until the kernel takes no more
  for (int i = 0; i < 8; ++i) {
    waiting.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    [[maybe_unused]] const int begun =
        connect(waiting.back(), reinterpret_cast<sockaddr*>(&at), sizeof at);
  }
  const absl::Time begin = absl::Now();
  CHECK(WhyNoHandshake(absl::StrCat("127.0.0.1:", ntohs(at.sin_port)), f.mine).ok());
  // A caller has waited for seconds by then, and says for how many.
  CHECK(absl::Now() - begin < absl::Milliseconds(1900));
  for (const int fd : waiting) close(fd);
  close(full);
}

TEST_CASE("where nobody listens there is nothing to say", "[credentials]") {
  const Fixture f;
  std::string address;
  {
    const Listening gone(nullptr);
    address = gone.address();
  }
  CHECK(WhyNoHandshake(address, f.mine).ok());
}

}  // namespace
}  // namespace strata
