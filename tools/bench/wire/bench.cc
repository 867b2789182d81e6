#include "tools/bench/wire/bench.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/wire/message_codec.h"
#include "tools/bench/base/limits.h"
#include "tools/bench/cluster/child_process.h"
#include "tools/bench/wire/driver.h"
#include "tools/bench/wire/load.h"
#include "tools/bench/wire/transport_limit.h"

namespace strata::bench {
namespace {

struct WireCase {
  const char* bench;
  const char* durability;
  double bar;      // Mkeys/s
  double ps_lite;  // Mkeys/s, another machine
};

absl::Status RunCase(const WireCase& c, bool push, const BenchOptions& o, const Report& report) {
  auto bench = WireDriver::Open(o, {.durability = c.durability});
  if (!bench.ok()) return bench.status();
  constexpr size_t kKeyBytes = kKeys * 8, kValueBytes = kKeys * kDim * 4;
  const bool logged = push && std::string_view(c.durability) == "logged";
  const BareTable bare(kRows);
  std::vector<double> ours, limits, tables, appends, server_cpu, client_cpu;
  for (int round = 0; round < o.rounds; ++round) {
    const double server_before = (*bench)->ServerCpuSeconds(), own_before = OwnCpuSeconds();
    const absl::Time from = absl::Now();
    auto calls = push ? (*bench)->Pushes(o.seconds) : (*bench)->Pulls(o.seconds);
    if (!calls.ok()) return calls.status();
    const double keys = *calls * absl::ToDoubleSeconds(absl::Now() - from) * kKeys / 1e6;
    ours.push_back(*calls * kKeys / 1e6);
    server_cpu.push_back(((*bench)->ServerCpuSeconds() - server_before) / keys);
    client_cpu.push_back((OwnCpuSeconds() - own_before) / keys);
    auto limit = push ? MeasureTransport(o, kKeyBytes + kValueBytes, 64)
                      : MeasureTransport(o, kKeyBytes, kValueBytes);
    if (!limit.ok()) return limit.status();
    limits.push_back(limit->calls_per_second * kKeys / 1e6);
    const double table = bare.ReadRate(2, o.seconds / 4);
    tables.push_back(1 / (1 / limits.back() + 1 / table));
    if (logged) {  // a shard's record at a time; a key's bytes are the record's share
      const size_t record = (kKeyBytes + kValueBytes) / (*bench)->shard_count();
      const double rate = AppendRate(o.directory + "/append", record, o.seconds / 2);
      appends.push_back(rate * 1e9 * kKeys / (kKeyBytes + kValueBytes) / 1e6);
    }
  }
  const std::string what = absl::StrCat(push ? "push, SGD, " : "pull, ", c.durability);
  report({c.bench, what, Median(ours), "Mkeys/s", Median(limits), "transport alone", c.ps_lite,
          absl::StrCat("ps-lite (constant), wanted ", c.bar, " Mkeys/s")});
  report({c.bench,
          what,
          Median(ours),
          "Mkeys/s",
          Median(tables),
          "transport, then a bare table",
          {},
          ""});
  if (logged) {
    report(
        {c.bench, what, Median(ours), "Mkeys/s", Median(appends), "append to a new file", {}, ""});
  }
  report({c.bench, what + ", server CPU", Median(server_cpu), "s/Mkeys", {}, "", {}, ""});
  report({c.bench, what + ", client CPU", Median(client_cpu), "s/Mkeys", {}, "", {}, ""});
  return absl::OkStatus();
}

// A worker's exchange: a pull, then the push of the same keys; with tickets, and sending them
// twice.
absl::Status RunPairs(const BenchOptions& o, const Report& report) {
  struct Case {
    const char* what;
    bool tickets;
    wire::ValueCodec codec;
    std::vector<double> rate, server_cpu, client_cpu;
    double key_bytes = 0;
  };
  auto bench = WireDriver::Open(o, {.durability = "memory"});
  if (!bench.ok()) return bench.status();
  Case cases[] = {{"pull + push by ticket", true, wire::ValueCodec::kFloat32, {}, {}, {}},
                  {"pull + push with keys", false, wire::ValueCodec::kFloat32, {}, {}, {}},
                  {"bf16 pull + push by ticket", true, wire::ValueCodec::kBf16, {}, {}, {}},
                  {"int8 pull + push by ticket", true, wire::ValueCodec::kInt8, {}, {}, {}}};
  constexpr size_t kKeyBytes = kKeys * 8, kValueBytes = kKeys * kDim * 4;
  std::vector<double> limits;
  for (int round = 0; round < o.rounds; ++round) {
    for (Case& c : cases) {
      const double server_before = (*bench)->ServerCpuSeconds(), own_before = OwnCpuSeconds();
      const absl::Time from = absl::Now();
      auto pairs = (*bench)->PullsAndPushes(o.seconds, c.tickets, c.codec);
      if (!pairs.ok()) return pairs.status();
      const double keys = pairs->per_second * absl::ToDoubleSeconds(absl::Now() - from) * kKeys;
      c.rate.push_back(pairs->per_second * kKeys / 1e6);
      c.server_cpu.push_back(((*bench)->ServerCpuSeconds() - server_before) / keys * 1e6);
      c.client_cpu.push_back((OwnCpuSeconds() - own_before) / keys * 1e6);
      c.key_bytes = pairs->key_bytes;
    }
    auto pull = MeasureTransport(o, kKeyBytes, kValueBytes);
    if (!pull.ok()) return pull.status();
    auto push = MeasureTransport(o, kValueBytes, 64);
    if (!push.ok()) return push.status();
    limits.push_back(kKeys / 1e6 / (1 / pull->calls_per_second + 1 / push->calls_per_second));
  }
  for (const Case& c : cases) {
    const bool first = &c == cases;
    report({"wire_ticket", c.what, Median(c.rate), "Mkeys/s", Median(limits), "transport alone",
            first ? std::optional<double>(2.4) : std::nullopt,
            first ? "ps-lite (constant), wanted 8 Mkeys/s" : ""});
    report(
        {"wire_ticket", absl::StrCat(c.what, ", bytes a key"), c.key_bytes, "B", {}, "", {}, ""});
    report({"wire_ticket",
            absl::StrCat(c.what, ", server CPU"),
            Median(c.server_cpu),
            "s/Mkeys",
            {},
            "",
            {},
            ""});
    report({"wire_ticket",
            absl::StrCat(c.what, ", client CPU"),
            Median(c.client_cpu),
            "s/Mkeys",
            {},
            "",
            {},
            ""});
  }
  return absl::OkStatus();
}

// The same exchange with rows spread over five tables and with one, in turn.
absl::Status RunTables(const BenchOptions& o, const Report& report) {
  struct Case {
    const char* what;
    uint32_t tables;
    std::unique_ptr<WireDriver> bench = nullptr;
    std::vector<double> rate = {}, server_cpu = {}, client_cpu = {};
  };
  Case cases[] = {{"one table", 1}, {"five tables", 5}};
  for (Case& c : cases) {
    auto bench = WireDriver::Open(o, {.durability = "memory", .tables = c.tables});
    if (!bench.ok()) return bench.status();
    c.bench = *std::move(bench);
  }
  for (int round = 0; round < o.rounds; ++round) {
    for (Case& c : cases) {
      const double server_before = c.bench->ServerCpuSeconds(), own_before = OwnCpuSeconds();
      const absl::Time from = absl::Now();
      auto pairs = c.bench->PullsAndPushes(o.seconds, true, wire::ValueCodec::kFloat32);
      if (!pairs.ok()) return pairs.status();
      const double keys = pairs->per_second * absl::ToDoubleSeconds(absl::Now() - from) * kKeys;
      c.rate.push_back(pairs->per_second * kKeys / 1e6);
      c.server_cpu.push_back((c.bench->ServerCpuSeconds() - server_before) / keys * 1e6);
      c.client_cpu.push_back((OwnCpuSeconds() - own_before) / keys * 1e6);
    }
  }
  for (const Case& c : cases) {
    const bool spread = c.tables > 1;
    const std::string what = absl::StrCat("pull + push by ticket, ", c.what);
    report({"wire_tables",
            what,
            Median(c.rate),
            "Mkeys/s",
            spread ? std::optional<double>(Median(cases[0].rate)) : std::nullopt,
            spread ? "one table, wanted .95 of it" : "",
            {},
            ""});
    report({"wire_tables",
            what + ", server CPU",
            Median(c.server_cpu),
            "s/Mkeys",
            spread ? std::optional<double>(Median(cases[0].server_cpu)) : std::nullopt,
            spread ? "one table" : "",
            {},
            ""});
    report({"wire_tables", what + ", client CPU", Median(c.client_cpu), "s/Mkeys", {}, "", {}, ""});
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> WireBenchmarks() {
  return {
      {"wire_ticket",
       "pairs of a pull and the push of its keys, by ticket and with keys; peer: a constant",
       RunPairs},
      {"wire_tables", "pairs by ticket with rows spread over five tables, and with one", RunTables},
      {"wire_pull",
       "pull over gRPC, 10 M rows of 16 floats, 100,000 keys a request; peer: a constant",
       [](const BenchOptions& o, const Report& r) {
         return RunCase({"wire_pull", "memory", 20, 5.74}, false, o, r);
       }},
      {"wire_push", "push with SGD over gRPC, levels memory and logged; peer: a constant",
       [](const BenchOptions& o, const Report& r) {
         for (const WireCase& c :
              {WireCase{"wire_push", "memory", 14, 4.84}, {"wire_push", "logged", 10, 4.84}}) {
           if (absl::Status s = RunCase(c, true, o, r); !s.ok()) return s;
         }
         return absl::OkStatus();
       }},
  };
}

}  // namespace strata::bench
