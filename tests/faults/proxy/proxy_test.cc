// Each fault as a plain client and a server that echoes see it. Times are bounds from below: they
// hold on any machine.
#include "tests/faults/proxy/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/faults/proxy/network_fault.h"

namespace strata::testing {
namespace {

constexpr absl::Duration kLong = absl::Minutes(5);

sockaddr_in At(uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  return at;
}

// Sends back what it gets; ends each connection when its client has.
class Echo {
 public:
  Echo() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at = At(0);
    socklen_t size = sizeof at;
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(listen(fd_, 16) == 0);
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] {
      for (int c = 0; (c = accept(fd_, nullptr, nullptr)) >= 0;) {
        clients_.emplace_back([this, c] { Serve(c); });
      }
    });
  }
  ~Echo() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    for (std::thread& t : clients_) t.join();
    close(fd_);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  uint64_t got() const { return got_; }
  uint64_t ended() const { return ended_; }

 private:
  void Serve(int c) {
    char bytes[4096];
    ssize_t size = 0;
    while ((size = read(c, bytes, sizeof bytes)) > 0) {
      got_ += static_cast<uint64_t>(size);
      // Whoever reads no more may have sent more.
      if (send(c, bytes, static_cast<size_t>(size), MSG_NOSIGNAL) != size) continue;
    }
    ++ended_;
    close(c);
  }

  const int fd_;
  uint16_t port_ = 0;
  std::thread thread_;
  std::vector<std::thread> clients_;  // touched on thread_ until that has ended
  std::atomic<uint64_t> got_{0}, ended_{0};
};

class Client {
 public:
  explicit Client(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in at =
        At(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    REQUIRE(connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool Send(const std::string& bytes) {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // So many bytes, or fewer where the connection ends before; errno is 0 at its end, else the
  // error.
  std::string Receive(size_t size) {
    std::string bytes(size, '\0');
    size_t at = 0;
    errno = 0;
    while (at < size) {
      const ssize_t got = recv(fd_, bytes.data() + at, size - at, 0);
      if (got <= 0) break;
      at += static_cast<size_t>(got);
    }
    return bytes.substr(0, at);
  }
  bool WasReset() { return Receive(1'000'000).size() < 1'000'000 && errno == ECONNRESET; }
  void End() { shutdown(fd_, SHUT_WR); }
  bool HasBytes() const {
    pollfd p{fd_, POLLIN, 0};
    return poll(&p, 1, 0) > 0;
  }

 private:
  const int fd_;
};

struct Pair {
  Echo echo;
  std::unique_ptr<Proxy> proxy = Proxy::Start();
  NetworkLink link{"a", echo.address()};
  std::string address = proxy->Lead(link);
};

TEST_CASE("without a fault all bytes pass, and so does the end", "[proxy]") {
  Pair p;
  std::string bytes(300'000, 'x');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  Client client(p.address);
  std::thread sends([&] {
    client.Send(bytes);
    client.End();
  });
  const bool same = client.Receive(bytes.size()) == bytes;
  sends.join();
  CHECK(same);
  CHECK(client.Receive(1).empty());
  CHECK(errno == 0);
  const Proxy::Traffic passed = p.proxy->Passed({"a", ""});
  CHECK(passed.connections == 1);
  CHECK(passed.requests == bytes.size());
  CHECK(passed.replies == bytes.size());
  CHECK(p.proxy->Passed({"b", ""}).connections == 0);
}

TEST_CASE("where nobody listens a connection is reset", "[proxy]") {
  const auto proxy = Proxy::Start();
  std::string nobody;
  {
    const Echo echo;
    nobody = echo.address();
  }
  Client client(proxy->Lead({"a", nobody}));
  CHECK(client.WasReset());
}

TEST_CASE("delay: each piece comes late, in both directions", "[proxy]") {
  Pair p;
  Client client(p.address), other(p.proxy->Lead({"b", p.echo.address()}));
  const uint64_t fault = p.proxy->Begin({"a", ""}, {.kind = FaultKind::kDelay,
                                                    .lasts = kLong,
                                                    .delay = absl::Milliseconds(60),
                                                    .spread = absl::Milliseconds(5)});
  const absl::Time begin = absl::Now();
  REQUIRE(client.Send("late"));
  CHECK(client.Receive(4) == "late");
  CHECK(absl::Now() - begin >= absl::Milliseconds(120));
  REQUIRE(other.Send("soon"));
  CHECK(other.Receive(4) == "soon");
  CHECK(p.proxy->MetBy(fault).connections == 1);
  CHECK(p.proxy->MetBy(fault).bytes == 8);
}

TEST_CASE("slow: no more bytes a second than that", "[proxy]") {
  Pair p;
  Client client(p.address);
  p.proxy->Begin(p.link, {.kind = FaultKind::kSlow, .lasts = kLong, .bytes_a_second = 40'000});
  const absl::Time begin = absl::Now();
  REQUIRE(client.Send(std::string(12'000, 's')));
  CHECK(client.Receive(12'000).size() == 12'000);
  CHECK(absl::Now() - begin >= absl::Milliseconds(240));  // all but the first piece waited
}

TEST_CASE("black hole: nothing passes while it lasts, then all of it; new connections likewise",
          "[proxy]") {
  Pair p;
  Client client(p.address);
  const uint64_t fault =
      p.proxy->Begin(p.link, {.kind = FaultKind::kBlackHole, .lasts = absl::Milliseconds(200)});
  Client late(p.address);
  REQUIRE(client.Send("held"));
  REQUIRE(late.Send("late"));
  CHECK(client.Receive(4) == "held");
  CHECK(p.proxy->MetBy(fault).over);
  CHECK(late.Receive(4) == "late");
  CHECK(p.proxy->MetBy(fault).connections == 2);
  CHECK(p.proxy->MetBy(fault).resets == 0);
}

TEST_CASE("one way: requests pass and replies do not, or the other way round", "[proxy]") {
  Pair p;
  Client client(p.address);
  REQUIRE(client.Send("1"));
  REQUIRE(client.Receive(1) == "1");
  const uint64_t replies = p.proxy->Begin(
      p.link, {.kind = FaultKind::kOneWay, .lasts = absl::Milliseconds(200), .way = Way::kReplies});
  REQUIRE(client.Send("2"));
  while (p.echo.got() < 2) absl::SleepFor(absl::Milliseconds(1));
  const bool nothing = !client.HasBytes();
  if (!p.proxy->MetBy(replies).over) CHECK(nothing);
  CHECK(client.Receive(1) == "2");
  CHECK(p.proxy->MetBy(replies).over);
  const uint64_t requests = p.proxy->Begin(
      p.link,
      {.kind = FaultKind::kOneWay, .lasts = absl::Milliseconds(100), .way = Way::kRequests});
  REQUIRE(client.Send("3"));
  CHECK(client.Receive(1) == "3");
  CHECK(p.proxy->MetBy(requests).over);
}

TEST_CASE("drop: nothing passes, then the connection is reset at both ends", "[proxy]") {
  Pair p;
  Client client(p.address);
  REQUIRE(client.Send("1"));
  REQUIRE(client.Receive(1) == "1");
  const uint64_t fault =
      p.proxy->Begin(p.link, {.kind = FaultKind::kDrop, .lasts = absl::Milliseconds(100)});
  REQUIRE(client.Send("lost"));
  CHECK(client.WasReset());
  CHECK(p.proxy->MetBy(fault).over);
  CHECK(p.proxy->MetBy(fault).resets == 1);
  while (p.echo.ended() < 1) absl::SleepFor(absl::Milliseconds(1));
  CHECK(p.echo.got() == 1);
  Client again(p.address);
  REQUIRE(again.Send("2"));
  CHECK(again.Receive(1) == "2");
}

TEST_CASE("reset: behind so many bytes", "[proxy]") {
  Pair p;
  Client client(p.address);
  const uint64_t fault =
      p.proxy->Begin(p.link, {.kind = FaultKind::kReset, .lasts = kLong, .after_bytes = 1000});
  REQUIRE(client.Send(std::string(999, 'r')));
  CHECK(client.Receive(999).size() == 999);
  REQUIRE(client.Send("r"));
  CHECK(client.WasReset());
  CHECK(p.proxy->MetBy(fault).resets == 1);
}

TEST_CASE("reset: where fewer bytes come, at the end of the fault", "[proxy]") {
  Pair p;
  Client client(p.address);
  const uint64_t fault = p.proxy->Begin(
      p.link, {.kind = FaultKind::kReset, .lasts = absl::Milliseconds(100), .after_bytes = 1000});
  REQUIRE(client.Send("r"));
  CHECK(client.Receive(1) == "r");
  CHECK(client.WasReset());
  CHECK(p.proxy->MetBy(fault).over);
}

TEST_CASE("repeat: requests arrive whole, and their replies never", "[proxy]") {
  Pair p;
  Client client(p.address);
  const uint64_t fault =
      p.proxy->Begin(p.link, {.kind = FaultKind::kRepeat, .lasts = kLong, .after_bytes = 20'000});
  REQUIRE(client.Send(std::string(20'000, 'q')));
  CHECK(client.Receive(1).empty());
  CHECK(errno == ECONNRESET);
  while (p.echo.ended() < 1) absl::SleepFor(absl::Milliseconds(1));
  CHECK(p.echo.got() == 20'000);
  CHECK(p.proxy->MetBy(fault).resets == 1);
}

// What follows is another stream's frame, unless a reply was lost for ever.
TEST_CASE("repeat: a connection that lacks a reply ends with the fault", "[proxy]") {
  Pair p;
  Client client(p.address);
  const uint64_t fault = p.proxy->Begin(
      p.link,
      {.kind = FaultKind::kRepeat, .lasts = absl::Milliseconds(200), .after_bytes = 1'000'000});
  REQUIRE(client.Send("q"));
  CHECK(client.Receive(1).empty());
  CHECK(errno == ECONNRESET);
  CHECK(p.proxy->MetBy(fault).over);
}

// One message with a group of `size` bytes of values, as gRPC sends it.
std::string Request(size_t size) {
  const auto varint = [](size_t value) {
    return std::string{static_cast<char>(value % 128 | 128), static_cast<char>(value / 128)};
  };
  const std::string group = "\x22" + varint(size) + std::string(size, 'v');
  const std::string message = "\x2a" + varint(group.size()) + group;
  const size_t framed = message.size() + 5;
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (const size_t byte :
       {size_t{0}, framed >> 8, framed & 255, size_t{0}, size_t{1}, size_t{0}, size_t{0}, size_t{0},
        size_t{1}, size_t{0}, size_t{0}, size_t{0}, message.size() >> 8, message.size() & 255}) {
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes + message;
}

TEST_CASE("flip: bits of values are turned, by the seed alone, and nothing around them",
          "[proxy]") {
  const std::string sent = Request(8000);
  std::vector<std::string> got;
  for (const uint64_t seed : {1, 1, 2}) {
    Pair p;
    const uint64_t fault = p.proxy->Begin(
        p.link, {.kind = FaultKind::kFlip, .lasts = kLong, .flip_every = 500, .seed = seed});
    Client client(p.address);
    REQUIRE(client.Send(sent));
    got.push_back(client.Receive(sent.size()));
    REQUIRE(got.back().size() == sent.size());
    size_t turned = 0;
    for (size_t i = 0; i < sent.size(); ++i) {
      if (got.back()[i] == sent[i]) continue;
      ++turned;
      CHECK(sent[i] == 'v');
      CHECK(__builtin_popcount(static_cast<unsigned>((got.back()[i] ^ sent[i]) & 255)) == 1);
    }
    CHECK(turned > 4);
    CHECK(p.proxy->MetBy(fault).flips == turned);
  }
  CHECK(got[0] == got[1]);
  CHECK(got[0] != got[2]);
}

TEST_CASE("faults are drawn from a seed alone, and every kind is", "[proxy]") {
  std::mt19937_64 one(5), two(5);
  std::vector<bool> met(std::size(kFaultKinds));
  for (int i = 0; i < 200; ++i) {
    const NetworkFault fault = DrawFault(one);
    CHECK(fault.ToText() == DrawFault(two).ToText());
    met[static_cast<size_t>(fault.kind)] = true;
  }
  CHECK(met == std::vector<bool>(std::size(kFaultKinds), true));
}

TEST_CASE("a program that preloads the detour is led through the proxy, and known by its name",
          "[proxy]") {
  Pair p;
  const std::string port = p.echo.address().substr(p.echo.address().rfind(':') + 1);
  const std::string library =
      std::string(std::getenv("TEST_SRCDIR")) + "/strata/tests/faults/proxy/libdetour.so";
  const std::string talk = "exec 3<>/dev/tcp/127.0.0.1/" + port +
                           "; echo hello >&3; read line <&3; test \"$line\" = hello";
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("LD_PRELOAD", library.c_str(), 1);
    setenv("STRATA_DETOUR", p.proxy->detour().c_str(), 1);
    execl("/bin/bash", "bash", "-c", talk.c_str(), "--name=worker-7", nullptr);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  const Proxy::Traffic passed = p.proxy->Passed({"worker-7", p.echo.address()});
  CHECK(passed.connections == 1);
  CHECK(passed.requests == 6);
  CHECK(passed.replies == 6);
}

}  // namespace
}  // namespace strata::testing
