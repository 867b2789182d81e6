#include "tools/bench/wire/guarantees_bench.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/bench/base/limits.h"
#include "tools/bench/cluster/child_process.h"
#include "tools/bench/wire/driver.h"
#include "tools/bench/wire/load.h"
#include "tools/bench/wire/transport_limit.h"

namespace strata::bench {
namespace {

constexpr size_t kKeyBytes = kKeys * 8, kValueBytes = kKeys * kDim * 4;

// Medians of windows of one kind of call to one cluster.
struct Side {
  std::unique_ptr<WireDriver> driver;
  std::vector<double> rate = {}, server_cpu = {}, client_cpu = {};  // Mkeys/s, s/Mkeys

  absl::Status Measure(bool push, double seconds) {
    const double server = driver->ServerCpuSeconds(), own = OwnCpuSeconds();
    const absl::Time from = absl::Now();
    auto calls = push ? driver->Pushes(seconds) : driver->Pulls(seconds);
    if (!calls.ok()) return calls.status();
    const double keys = *calls * absl::ToDoubleSeconds(absl::Now() - from) * kKeys / 1e6;
    rate.push_back(*calls * kKeys / 1e6);
    server_cpu.push_back((driver->ServerCpuSeconds() - server) / keys);
    client_cpu.push_back((OwnCpuSeconds() - own) / keys);
    return absl::OkStatus();
  }
  double cpu() const { return Median(server_cpu) + Median(client_cpu); }
};

absl::StatusOr<Side> Open(const BenchOptions& o, const WireDriver::Options& options) {
  auto driver = WireDriver::Open(o, options);
  if (!driver.ok()) return driver.status();
  return Side{*std::move(driver)};
}

void ReportCpu(const std::string& bench, const std::string& what, const Side& side,
               const Report& report) {
  report({bench, what + ", servers' CPU", Median(side.server_cpu), "s/Mkeys", {}, "", {}, ""});
  report({bench, what + ", client CPU", Median(side.client_cpu), "s/Mkeys", {}, "", {}, ""});
}

// The limit: all cores do nothing but what a push to one server costs (logged), what sending it on
// costs (transport alone), and what the second server then does.
absl::Status RunReplicated(const BenchOptions& o, const Report& report) {
  auto logged = Open(o, {.durability = "logged"});
  if (!logged.ok()) return logged.status();
  auto replicated = Open(o, {.durability = "replicated", .copies = 2});
  if (!replicated.ok()) return replicated.status();
  std::vector<double> limits;
  for (int round = 0; round < o.rounds; ++round) {
    for (Side* side : {&*logged, &*replicated}) {
      if (absl::Status s = side->Measure(true, o.seconds); !s.ok()) return s;
    }
    auto transport = MeasureTransport(o, kKeyBytes + kValueBytes, 64);
    if (!transport.ok()) return transport.status();
    const double forward = transport->client_cpu * 1e6 / kKeys;
    limits.push_back(std::thread::hardware_concurrency() /
                     (logged->client_cpu.back() + 2 * logged->server_cpu.back() + forward));
  }
  report({"wire_replicated", "push, SGD, replicated, 2 copies", Median(replicated->rate), "Mkeys/s",
          Median(limits), "CPU of transport, log and apply, twice; wanted .80",
          Median(logged->rate), "logged"});
  ReportCpu("wire_replicated", "logged", *logged, report);
  ReportCpu("wire_replicated", "replicated", *replicated, report);
  return absl::OkStatus();
}

absl::Status RunTls(const BenchOptions& o, const Report& report) {
  auto plain = Open(o, {.durability = "memory"});
  if (!plain.ok()) return plain.status();
  auto secure = Open(o, {.durability = "memory", .secure = true});
  if (!secure.ok()) return secure.status();
  for (const bool push : {false, true}) {
    const std::string what = push ? "push, SGD" : "pull";
    Side before{std::move(plain->driver)}, after{std::move(secure->driver)};
    std::vector<double> ciphers;
    for (int round = 0; round < o.rounds; ++round) {
      for (Side* side : {&before, &after}) {
        if (absl::Status s = side->Measure(push, o.seconds); !s.ok()) return s;
      }
      ciphers.push_back(AesGcmRate(0.3));
    }
    report({"wire_tls",
            what + " by TLS",
            Median(after.rate),
            "Mkeys/s",
            Median(before.rate),
            "without TLS, wanted .60",
            {},
            ""});
    ReportCpu("wire_tls", what + " without", before, report);
    ReportCpu("wire_tls", what + " by TLS", after, report);
    // Every byte is sealed by one side and opened by the other.
    const double bytes = 1e6 * (kKeyBytes + kValueBytes) / kKeys;
    report({"wire_tls",
            what + ", TLS's cost of a byte, both sides",
            (after.cpu() - before.cpu()) / bytes * 1e9,
            "ns",
            2 / Median(ciphers),
            absl::StrCat("AES-128-GCM twice, at ", Median(ciphers), " GB/s"),
            {},
            ""});
    plain->driver = std::move(before.driver);
    secure->driver = std::move(after.driver);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> WireGuaranteeBenchmarks() {
  return {{"wire_replicated", "pushes to a server with a copy on a second one, and to one alone",
           RunReplicated},
          {"wire_tls", "pulls and pushes with TLS and without, in turn", RunTls}};
}

}  // namespace strata::bench
