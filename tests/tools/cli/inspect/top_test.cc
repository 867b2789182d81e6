// What `strata top` makes of scrapes, and the scrape itself against servers that misbehave.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/metrics/metrics_client.h"
#include "tools/cli/inspect/top_scrape.h"
#include "tools/cli/inspect/top_table.h"

namespace strata {
namespace {

using Json = nlohmann::json;

// Answers one connection with `answer`, after it has read a request.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : answer_(std::move(answer)) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&place), sizeof(place)) == 0);
    REQUIRE(listen(fd_, 1) == 0);
    socklen_t size = sizeof(place);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&place), &size);
    address_ = absl::StrCat("127.0.0.1:", ntohs(place.sin_port));
    thread_ = std::thread([this] {
      const int client = accept(fd_, nullptr, nullptr);
      char request[4096];
      if (client >= 0 && recv(client, request, sizeof(request), 0) > 0) {
        for (size_t at = 0; at < answer_.size();) {
          const ssize_t n = send(client, answer_.data() + at, answer_.size() - at, MSG_NOSIGNAL);
          if (n <= 0) break;
          at += static_cast<size_t>(n);
        }
      }
      close(client);
    });
  }
  ~OneAnswer() {
    thread_.join();
    close(fd_);
  }
  const std::string& address() const { return address_; }

 private:
  const std::string answer_;
  std::string address_;
  int fd_ = -1;
  std::thread thread_;
};

absl::StatusOr<MetricValues> ScrapeOf(const std::string& answer) {
  OneAnswer server(answer);
  return Scrape(server.address(), absl::Seconds(20));
}

TEST_CASE("metrics in Prometheus' text format", "[top]") {
  const MetricValues values = ParseMetrics(
      "# HELP a b\n# TYPE a counter\na 1\nb{x=\"1\"} 2\nb{x=\"} 9\"} 3.5 1700000000\n"
      "c NaN\nd\n 7\ne{ 1\nf +Inf\ng 1e3\n");
  CHECK(values == MetricValues{{"a", 1}, {"b", 5.5}, {"g", 1000}});
}

TEST_CASE("a scrape", "[top]") {
  const auto good = ScrapeOf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\na 1\n");
  REQUIRE(good.ok());
  CHECK(good->at("a") == 1);
}

TEST_CASE("a scrape that goes wrong says how", "[top]") {
  CHECK(absl::IsInternal(ScrapeOf("HTTP/1.1 404 Not Found\r\n\r\n").status()));
  CHECK(absl::IsInternal(ScrapeOf("SSH-2.0 200\r\n\r\n").status()));
  CHECK(absl::IsUnavailable(ScrapeOf("HTTP/1.1 200 OK\r\n").status()));
  CHECK(absl::IsUnavailable(ScrapeOf("").status()));
  const std::string endless(kMaxMetricsBytes + 100, 'x');
  CHECK(absl::IsResourceExhausted(ScrapeOf("HTTP/1.1 200 OK\r\n\r\n" + endless).status()));
  CHECK(absl::IsInvalidArgument(Scrape("nowhere", absl::Seconds(1)).status()));
  std::string gone;
  {
    OneAnswer server("");
    gone = server.address();
    Scrape(gone, absl::Seconds(20)).status().IgnoreError();
  }
  CHECK(absl::IsUnavailable(Scrape(gone, absl::Seconds(20)).status()));
}

TopSample Server(double seconds, double pulled, double hits, double ssd) {
  TopSample s;
  s.name = "server-0";
  s.role = "server";
  s.time = absl::UnixEpoch() + absl::Seconds(seconds);
  s.metrics = {{"strata_server_pulled_keys_total", pulled},
               {"strata_server_dram_hits", hits},
               {"strata_server_ssd_reads", ssd},
               {"strata_server_pull_in_flight", 2},
               {"strata_server_push_in_flight", 1},
               {"strata_process_resident_bytes", 3 << 20}};
  s.clock = 90;
  s.newest = 100;
  return s;
}

TEST_CASE("rates are differences over time", "[top]") {
  const std::vector<TopRow> rows = TopRows({Server(10, 1000, 50, 50)}, {Server(12, 3000, 140, 60)});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].pulled_keys_per_second == 1000);
  CHECK(rows[0].dram_hit_rate == Approx(0.9));
  CHECK(rows[0].ssd_hit_rate == Approx(0.1));
  CHECK(rows[0].hbm_hit_rate == 0);
  CHECK(rows[0].queue == 3);
  CHECK(rows[0].memory_bytes == 3 << 20);
  CHECK(rows[0].lag == 10);
  CHECK(!rows[0].pushed_keys_per_second.has_value());  // nothing says so
}

TEST_CASE("hit rates of three tiers add up", "[top]") {
  TopSample before = Server(10, 1000, 50, 50), now = Server(12, 3000, 80, 60);
  before.metrics["strata_server_hbm_hits"] = 100;
  now.metrics["strata_server_hbm_hits"] = 160;
  const std::vector<TopRow> rows = TopRows({before}, {now});
  CHECK(rows[0].hbm_hit_rate == Approx(0.6));
  CHECK(rows[0].dram_hit_rate == Approx(0.3));
  CHECK(rows[0].ssd_hit_rate == Approx(0.1));
}

TEST_CASE("without a look before, or after a restart, there are no rates", "[top]") {
  CHECK(!TopRows({}, {Server(12, 3000, 1, 1)})[0].pulled_keys_per_second.has_value());
  CHECK(!TopRows({Server(10, 5000, 1, 1)}, {Server(12, 3000, 1, 1)})[0]
             .pulled_keys_per_second.has_value());
  CHECK(!TopRows({Server(12, 5000, 1, 1)}, {Server(12, 5000, 1, 1)})[0]
             .pulled_keys_per_second.has_value());
  TopSample other = Server(10, 0, 0, 0);
  other.name = "server-1";
  CHECK(!TopRows({other}, {Server(12, 3000, 1, 1)})[0].pulled_keys_per_second.has_value());
  // A worker that is ahead of what servers last reported has no lag.
  TopSample ahead = Server(12, 1, 1, 1);
  ahead.clock = 120;
  CHECK(TopRows({}, {ahead})[0].lag == 0);
}

TEST_CASE("the table and its JSON", "[top]") {
  TopSample lost;
  lost.name = "worker-0";
  lost.role = "worker";
  lost.alive = false;
  const std::vector<TopRow> rows = TopRows({}, {Server(12, 3000, 1, 1), lost});
  const std::string table = TopTable(rows);
  INFO(table);
  CHECK(table.find("lost") != std::string::npos);
  CHECK(table.find("3.00 MiB") != std::string::npos);
  const Json json = Json::parse(TopJson(rows, absl::UnixEpoch()));
  CHECK(json["processes"][0]["queue"] == 3);
  CHECK(json["processes"][0]["pulledKeysPerSecond"].is_null());
  CHECK(json["processes"][1]["alive"] == false);
}

}  // namespace
}  // namespace strata
