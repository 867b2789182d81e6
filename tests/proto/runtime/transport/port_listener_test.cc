#include "proto/runtime/transport/port_listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/mutex.h"
#include "proto/runtime/transport/open_sockets.h"
#include "tests/proto/runtime/transport/raw_sockets.h"

namespace strata::testing {
namespace {

TEST_CASE("a number that is another socket now is not the one that was closed", "[ports]") {
  OpenSockets open;
  const int first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(open.Add(first, 2));
  const int second = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(open.Add(second, 2));
  const int third = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK_FALSE(open.Add(third, 2));
  CHECK(open.Count() == 2);
  // The third takes the number of the first, which is no connection of ours then.
  REQUIRE(dup2(third, first) == first);
  CHECK(open.Count() == 1);
  CHECK(open.Add(third, 2));
  close(second);
  CHECK(open.Count() == 1);
  CHECK_FALSE(SocketCookie(second).has_value());
  close(first);
  close(third);
  CHECK(open.Count() == 0);
}

TEST_CASE("a port gives connections away, counts them, and takes none once it is closed",
          "[ports]") {
  Mutex mu;
  std::vector<int> taken;
  auto port = PortListener::Listen({.address = "127.0.0.1:0", .connections = 2});
  REQUIRE(port.ok());
  PortListener& listener = **port;
  // The backlog waits for Accept.
  RawSocket first(listener.address());
  listener.Accept([&](int, int fd) {
    MutexLock lock(&mu);
    taken.push_back(fd);
  });
  const auto await = [&](size_t count) {
    MutexLock lock(&mu);
    const auto there = [&] { return taken.size() >= count; };
    mu.Await(absl::Condition(&there));
  };
  await(1);
  const RawSocket second(listener.address());
  await(2);
  CHECK(listener.open() == 2);
  RawSocket third(listener.address());
  CHECK(third.AwaitEnd());
  CHECK(listener.refused() == 1);
  CHECK(listener.accepted() == 3);
  close(taken[0]);
  CHECK(first.AwaitEnd());
  CHECK(listener.open() == 1);
  const RawSocket fourth(listener.address());
  await(3);
  CHECK(listener.open() == 2);
  CHECK(absl::IsAlreadyExists(
      PortListener::Listen({.address = listener.address(), .connections = 2}).status()));
  listener.Close();
  close(taken[1]);
  close(taken[2]);
  CHECK(listener.open() == 0);
  CHECK(listener.accepted() == 4);
}

}  // namespace
}  // namespace strata::testing
