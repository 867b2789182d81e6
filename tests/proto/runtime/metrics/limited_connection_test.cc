#include "proto/runtime/metrics/limited_connection.h"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"

namespace strata {
namespace {

using Failure = LimitedConnection::Failure;

std::atomic<int> signals{0};
[[maybe_unused]] const bool kCounted = std::signal(SIGPIPE, [](int) { ++signals; }) != SIG_ERR;

// Two connected sockets; a connection has the first.
struct Pair {
  explicit Pair(size_t read_bytes = 1000) {
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) == 0);
    connection.emplace(
        sockets[0],
        ConnectionLimits{.deadline = clock.Now() + absl::Seconds(1), .read_bytes = read_bytes},
        clock);
  }
  ~Pair() {
    connection.reset();
    close(sockets[0]);
    if (sockets[1] >= 0) close(sockets[1]);
  }
  void OtherLeaves() {
    close(sockets[1]);
    sockets[1] = -1;
  }

  ManualClock clock;
  std::array<int, 2> sockets;
  std::optional<LimitedConnection> connection;
};

TEST_CASE("what comes is read in any pieces, and so many bytes of it", "[metrics]") {
  Pair pair(10);
  REQUIRE(send(pair.sockets[1], "0123456789abc", 13, 0) == 13);
  char got[16] = {};
  CHECK(pair.connection->Read(got, 3) == 3);
  CHECK(pair.connection->Read(got + 3, 16 - 3) == 7);
  CHECK(std::string(got) == "0123456789");
  CHECK(pair.connection->failure() == Failure::kNone);
  CHECK(pair.connection->Read(got, 1) == -1);
  CHECK(pair.connection->failure() == Failure::kBytes);
}

TEST_CASE("the other end's end is an end", "[metrics]") {
  Pair pair;
  pair.OtherLeaves();
  char byte = 0;
  CHECK(pair.connection->Read(&byte, 1) == 0);
}

TEST_CASE("nothing is waited for when the time is over", "[metrics]") {
  Pair pair;
  pair.clock.Advance(absl::Seconds(1));
  char byte = 0;
  CHECK(pair.connection->Read(&byte, 1) == -1);
  CHECK(pair.connection->failure() == Failure::kTime);
  // Nor to write more than the kernel takes.
  const std::string block(1 << 20, 'x');
  ssize_t written = 0;
  for (int i = 0; i < 100 && written >= 0; ++i) {
    written = pair.connection->Write(block.data(), block.size());
  }
  CHECK(written == -1);
  CHECK(pair.connection->failure() == Failure::kTime);
  pair.connection->End();
}

TEST_CASE("to write to who has left is an error, and no signal", "[metrics]") {
  {
    Pair pair;
    pair.OtherLeaves();
    CHECK(pair.connection->Write("x", 1) == -1);
    CHECK(pair.connection->failure() == Failure::kOther);
    CHECK(pair.connection->why() == "Broken pipe");
    pair.connection->End();
  }
  {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    Pair pair;
    pair.OtherLeaves();
    CHECK_FALSE(pair.connection->SecureAsClient(*context));
    CHECK(pair.connection->failure() == Failure::kOther);
    pair.connection->End();
  }
  CHECK(signals == 0);
}

}  // namespace
}  // namespace strata
