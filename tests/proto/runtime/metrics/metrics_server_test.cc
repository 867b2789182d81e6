// The metrics port without TLS: what it answers, and what it bears.
#include "proto/runtime/metrics/metrics_server.h"

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/base/timer.h"
#include "tests/proto/runtime/metrics/scraper.h"

namespace strata {
namespace {

using testing::Connected;
using testing::IsOk;
using testing::kScrape;

constexpr char kText[] = "# TYPE strata_x gauge\nstrata_x 1\n";

std::unique_ptr<MetricsServer> Started(MetricsServer::Options options) {
  if (options.address.empty()) options.address = "127.0.0.1:0";
  if (options.timer == nullptr) options.timer = Timer::Real();
  if (!options.text) options.text = [] { return std::string(kText); };
  auto server = MetricsServer::Start(std::move(options));
  REQUIRE(server.ok());
  REQUIRE((*server)->port() != 0);
  return *std::move(server);
}

std::string Ask(const MetricsServer& server, absl::string_view request) {
  Connected client(server.port());
  client.Send(request);
  return client.Receive();
}

bool Has(const std::string& answer, absl::string_view part) {
  INFO(answer);
  return absl::StrContains(answer, part);
}

TEST_CASE("a scrape gets the text, in Prometheus' format", "[metrics]") {
  const auto server = Started({});
  for (const char* version : {"1.0", "1.1"}) {
    const std::string answer =
        Ask(*server, absl::StrCat("GET /metrics HTTP/", version, "\r\nHost: x\r\n\r\n"));
    INFO(answer);
    CHECK(IsOk(answer));
    CHECK(Has(answer, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    CHECK(Has(answer, "\r\nConnection: close\r\n"));
    CHECK(absl::EndsWith(answer, absl::StrCat("\r\n\r\n", kText)));
  }
  const std::string head = Ask(*server, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(IsOk(head));
  CHECK(absl::EndsWith(head, "\r\n\r\n"));
}

TEST_CASE("a scrape is compressed by gzip where the client takes it, by nothing else",
          "[metrics]") {
  const auto server = Started({});
  const auto ask = [&](const std::string& accepts) {
    return Ask(
        *server,
        absl::StrCat("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: ", accepts, "\r\n\r\n"));
  };
  CHECK(Has(ask("br, gzip"), "\r\nContent-Encoding: gzip\r\n"));
  CHECK(absl::EndsWith(ask("br"), kText));
  CHECK(absl::EndsWith(ask("identity"), kText));
}

TEST_CASE("other requests are refused", "[metrics]") {
  std::atomic<int> asked{0};
  const auto server = Started({.text = [&] {
    ++asked;
    return std::string();
  }});
  const std::string end = " HTTP/1.1\r\nHost: x\r\n\r\n";
  CHECK(absl::StartsWith(Ask(*server, "GET /" + end), "HTTP/1.1 404 "));
  CHECK(absl::StartsWith(Ask(*server, "GET /metrics/x" + end), "HTTP/1.1 404 "));
  CHECK(absl::StartsWith(Ask(*server, "GET /../metrics" + end), "HTTP/1.1 404 "));
  const std::string body = "Host: x\r\nContent-Length: 5\r\n\r\nabcde";
  CHECK(absl::StartsWith(Ask(*server, "POST /metrics HTTP/1.1\r\n" + body), "HTTP/1.1 4"));
  CHECK(absl::StartsWith(Ask(*server, "nonsense\r\n\r\n"), "HTTP/1.1 400 "));
  CHECK(absl::StartsWith(Ask(*server, std::string("\0\1\r\n\r\n", 6)), "HTTP/1.1 400 "));
  CHECK(asked == 0);
}

TEST_CASE("a request that is longer than any of ours is not read to its end", "[metrics]") {
  const auto server = Started({});
  const std::string line(2 * MetricsServer::kRequestBytes, 'a');
  std::string headers = "GET /metrics HTTP/1.1\r\n";
  for (int i = 0; headers.size() < 2 * MetricsServer::kRequestBytes; ++i) {
    absl::StrAppend(&headers, "X-", i, ": ", std::string(1000, 'a'), "\r\n");
  }
  for (const std::string& request :
       {"GET /" + line + " HTTP/1.1\r\n\r\n", line, headers + "\r\n"}) {
    const std::string answer = Ask(*server, request);
    INFO(answer);
    CHECK_FALSE(IsOk(answer));
  }
  CHECK(IsOk(Ask(*server, kScrape)));
}

TEST_CASE("clients that are slow do not hold up others", "[metrics]") {
  const auto server = Started({});
  std::list<Connected> slow;
  while (slow.size() + 1 < MetricsServer::kConnections) {
    slow.emplace_back(server->port()).Send(slow.size() % 2 == 0 ? "" : "GET /met");
  }
  CHECK(IsOk(Ask(*server, kScrape)));
  // As many as are served: the next one has to wait for one of them.
  slow.emplace_back(server->port()).Send("G");
  Connected waits(server->port());
  waits.Send(kScrape);
  slow.pop_front();
  CHECK(IsOk(waits.Receive()));
  // And they come to their ends.
  slow.back().Send(absl::string_view(kScrape).substr(1));
  CHECK(IsOk(slow.back().Receive()));
}

TEST_CASE("a client that takes too long is ended, however it goes on", "[metrics]") {
  const auto server = Started({.connection_time = absl::Milliseconds(200)});
  std::list<Connected> slow;
  for (int i = 0; i < 2; ++i) slow.emplace_back(server->port());
  slow.back().Send("GET /metrics HTTP/1.1\r\n");
  // Each byte comes long before the time is over, and none ends the request.
  Connected drips(server->port());
  std::thread dripping([&] {
    char byte = 0;
    while (recv(drips.socket(), &byte, 1, MSG_DONTWAIT) < 0) {
      if (send(drips.socket(), "a", 1, MSG_NOSIGNAL) < 0) return;
      const timespec moment = {0, 20'000'000};
      nanosleep(&moment, nullptr);
    }
  });
  for (Connected& client : slow) CHECK_FALSE(IsOk(client.Receive()));
  dripping.join();
  CHECK(IsOk(Ask(*server, kScrape)));
}

TEST_CASE("so many connections are served at a time, and the others afterwards", "[metrics]") {
  constexpr size_t kClients = 3 * MetricsServer::kConnections;
  std::atomic<size_t> entered{0}, inside{0}, most{0};
  const auto server = Started({.text = [&] {
    ++entered;
    const size_t now = ++inside;
    for (size_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
    // The first ones meet. Then each gives more of them than may the time to come in.
    for (int i = 0; i < 20 || entered < MetricsServer::kConnections; ++i) {
      std::this_thread::yield();
    }
    --inside;
    return std::string(kText);
  }});
  std::list<Connected> clients;
  for (size_t i = 0; i < kClients; ++i) clients.emplace_back(server->port()).Send(kScrape);
  for (Connected& client : clients) CHECK(IsOk(client.Receive()));
  CHECK(entered == kClients);
  CHECK(most == MetricsServer::kConnections);
}

TEST_CASE("a server that ends does not wait for its clients", "[metrics]") {
  auto server = Started({.connection_time = absl::Hours(1)});
  std::list<Connected> clients;
  for (size_t i = 0; i < 2 * MetricsServer::kConnections; ++i) {
    clients.emplace_back(server->port()).Send("GET /");
  }
  const uint16_t port = server->port();
  server.reset();
  for (Connected& client : clients) CHECK_FALSE(IsOk(client.Receive()));
  CHECK(Connected(port).socket() < 0);
  // At once, as well.
  for (int i = 0; i < 50; ++i) Started({});
}

TEST_CASE("an address that is taken, or none of this machine, is told", "[metrics]") {
  const auto server = Started({});
  const auto start = [](const std::string& address) {
    return MetricsServer::Start(
               {.address = address, .text = [] { return ""; }, .timer = Timer::Real()})
        .status();
  };
  const std::string taken = absl::StrCat("127.0.0.1:", server->port());
  CHECK(absl::IsAlreadyExists(start(taken)));
  CHECK(Has(std::string(start(taken).message()),
            taken + " cannot be listened on (Address already in use)"));
  CHECK(absl::IsAlreadyExists(start("192.0.2.1:0")));
  CHECK(absl::IsAlreadyExists(start("no.such.host.invalid:0")));
  CHECK(absl::IsInvalidArgument(start("127.0.0.1")));
  CHECK(IsOk(Ask(*server, kScrape)));
}

// Has the kernel refuse to accept connections on a port of this process.
void BreakListening(uint16_t port) {
  DIR* const folder = opendir("/proc/self/fd");
  REQUIRE(folder != nullptr);
  int broken = 0;
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    sockaddr_in bound{};
    socklen_t size = sizeof(bound);
    int listens = 0;
    socklen_t size_of_int = sizeof(listens);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) == 0 &&
        bound.sin_family == AF_INET && ntohs(bound.sin_port) == port &&
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size_of_int) == 0 && listens != 0) {
      broken += shutdown(fd, SHUT_RDWR) == 0;
      break;
    }
  }
  closedir(folder);
  REQUIRE(broken == 1);
}

TEST_CASE("a port that cannot accept any more is opened again", "[metrics]") {
  ManualTimer timer;
  const auto server = Started({.timer = &timer});
  CHECK(IsOk(Ask(*server, kScrape)));
  BreakListening(server->port());
  timer.AwaitAlarms(1);
  CHECK(Connected(server->port()).socket() < 0);
  timer.Advance(absl::Seconds(1));
  // The thread that was woken up binds.
  while (Connected(server->port()).socket() < 0) std::this_thread::yield();
  CHECK(IsOk(Ask(*server, kScrape)));
}

}  // namespace
}  // namespace strata
