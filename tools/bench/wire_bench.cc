#include "tools/bench/wire_bench.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/message_codec.h"
#include "proto/runtime/grpc_transport.h"
#include "tools/bench/limits.h"
#include "tools/bench/wire_cluster.h"
#include "tools/bench/wire_load.h"
#include "worker/router.h"

namespace strata::bench {
namespace {

// The job's server filled with kRows rows, and requests ready to send.
class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Open(const BenchOptions& o,
                                                     const std::string& durability) {
    auto bench = std::make_unique<Bench>();
    auto cluster =
        WireCluster::Start(absl::StrCat(o.directory, "/wire-", durability), durability, kDim);
    if (!cluster.ok()) return cluster.status();
    bench->cluster_ = *std::move(cluster);
    auto open = bench->cluster_->channel().CallAndWait(
        DataMethod::kOpenSession, wire::EncodeOpenSessionRequest({bench->cluster_->header()}),
        kTimeout);
    if (!open.ok()) return open.status();
    const Keys keys(bench->cluster_->tables().tables[0]);
    for (size_t s = 0; s < kSets; ++s) bench->sets_.push_back(keys.Random(s));
    if (absl::Status s = bench->Fill(keys); !s.ok()) return s;
    return bench;
  }

  absl::StatusOr<double> Pulls(double seconds) {
    std::vector<Buffer> requests;
    for (const Keys::Request& set : sets_) {
      auto request =
          wire::EncodePullRequest(cluster_->header(), Step(0), 1000, Shards(), KeyGroups(set));
      if (!request.ok()) return request.status();
      requests.push_back(*std::move(request));
    }
    Pump pump(
        &cluster_->channel(), DataMethod::kPull, [&](uint64_t i) { return requests[i % kSets]; },
        [](uint64_t, const Buffer& reply) -> absl::Status {
          auto view = wire::ParsePullReply(reply.span());
          if (!view.ok()) return view.status();
          return CheckRows(*view, wire::ValueCodec::kFloat32);
        });
    return pump.Run(seconds, 1);
  }

  absl::StatusOr<double> Pushes(double seconds) {
    Pump pump(
        &cluster_->channel(), DataMethod::kPush,
        [&](uint64_t i) { return EncodePush(sets_[i % kSets]); }, CheckPush);
    return pump.Run(seconds, 1);
  }

  // Pairs a second of a pull and the push of its keys, and bytes of a key's four messages.
  struct Pairs {
    double per_second = 0;
    double key_bytes = 0;
  };
  absl::StatusOr<Pairs> PullsAndPushes(double seconds, bool tickets, wire::ValueCodec codec) {
    std::vector<Buffer> requests;
    for (const Keys::Request& set : sets_) {
      auto request =
          wire::EncodePullRequest(cluster_->header(), Step(0), 1000, Shards(), KeyGroups(set),
                                  {.want_ticket = tickets, .codec = codec, .ticket = {}});
      if (!request.ok()) return request.status();
      requests.push_back(*std::move(request));
    }
    Pump pump(
        &cluster_->channel(), [&](uint64_t i) { return requests[i % kSets]; },
        [&](uint64_t i, const Buffer& reply) -> absl::StatusOr<Buffer> {
          auto view = wire::ParsePullReply(reply.span());
          if (!view.ok()) return view.status();
          if (absl::Status s = CheckRows(*view, codec); !s.ok()) return s;
          if (tickets && !view->ticket) return absl::InternalError("no ticket was given");
          return EncodePush(sets_[i % kSets], view->ticket);
        },
        CheckPush);
    auto rate = pump.Run(seconds, 1);
    if (!rate.ok()) return rate.status();
    return Pairs{*rate, pump.BytesPerExchange() / kKeys};
  }

  double ServerCpuSeconds() const { return cluster_->ServerCpuSeconds(); }
  size_t shard_count() const { return Shards().size(); }

 private:
  static absl::Status CheckRows(const wire::PullReplyView& view, wire::ValueCodec codec) {
    const size_t row = wire::ValueBytes(codec, kDim);
    size_t rows = 0;
    for (const wire::GroupView& g : view.groups) {
      const size_t n = g.value_bytes.size() / row;
      if (absl::Status s = wire::CheckReplyGroup(g, g.table, g.shard, n, kDim, codec); !s.ok()) {
        return s;
      }
      rows += n;
    }
    return rows == kKeys ? absl::OkStatus() : absl::InternalError("rows are missing");
  }

  static absl::Status CheckPush(uint64_t, const Buffer& reply) {
    return wire::ParsePushReply(reply.span()).status();
  }

  std::vector<ShardId> Shards() const { return cluster_->shards().ShardsOf(0); }

  template <typename Group, typename MakeGroup>
  std::vector<Group> Groups(const Keys::Request& r, MakeGroup make) const {
    std::vector<Group> groups;
    for (const ShardRun& run : SplitByShard(cluster_->shards(), r.positions)) {
      groups.push_back(make(run, std::span(r.keys).subspan(run.begin, run.end - run.begin)));
    }
    return groups;
  }

  std::vector<wire::KeyGroup> KeyGroups(const Keys::Request& r) const {
    return Groups<wire::KeyGroup>(r, [](const ShardRun& run, std::span<const Key> k) {
      return wire::KeyGroup{TableId(0), run.shard, k};
    });
  }

  absl::StatusOr<Buffer> EncodePush(const Keys::Request& r, const wire::Ticket& ticket = {}) {
    wire::PushContribution c;
    c.ticket = ticket;
    c.node = {0, 1};
    c.examples = 1;
    c.groups = Groups<wire::PushGroup>(r, [](const ShardRun& run, std::span<const Key> k) {
      return wire::PushGroup{TableId(0), run.shard, k, kDim};
    });
    auto encoder = wire::PushRequestEncoder::Make(Shards(), {&c, 1});
    if (!encoder.ok()) return encoder.status();
    if (gradient_.empty()) {
      for (size_t i = 0; i < kKeys * kDim; ++i) {
        gradient_.push_back(1e-4f * static_cast<float>(i % 97));
      }
    }
    size_t at = 0;
    for (size_t g = 0; g < encoder->groups(); ++g) {
      const std::span<float> values = encoder->values(g);
      std::copy_n(gradient_.begin() + static_cast<ptrdiff_t>(at), values.size(), values.begin());
      at += values.size();
      encoder->Seal(g);
    }
    wire::PushFields fields;
    fields.header = cluster_->header();
    fields.sequence = Sequence(window_ + 1);
    fields.window = window_++;
    return encoder->Finish(fields);
  }

  absl::Status Fill(const Keys& keys) {
    Pump pump(
        &cluster_->channel(), DataMethod::kPush,
        [&](uint64_t i) { return EncodePush(keys.Batch(i % kBatches)); }, CheckPush);
    return pump.Run(0, kBatches).status();
  }

  std::unique_ptr<WireCluster> cluster_;
  std::vector<Keys::Request> sets_;
  std::vector<float> gradient_;
  uint64_t window_ = 0;
};

// Calls per second of messages of these sizes to a process that does nothing with them.
absl::StatusOr<double> TransportLimit(const BenchOptions& o, size_t request, size_t reply) {
  const std::string file = absl::StrCat(o.directory, "/echo-address");
  std::filesystem::remove(file);
  auto server = ChildProcess::Start({std::filesystem::read_symlink("/proc/self/exe").string(),
                                     "--echo", file, "--echo-reply", absl::StrCat(reply)});
  if (!server.ok()) return server.status();
  auto address = ReadAddressFile(file);
  if (!address.ok()) return address.status();
  auto transport = MakeGrpcTransport({});
  auto channel = transport->Connect(*address);
  BufferBuilder builder(request);
  std::fill(builder.span().begin(), builder.span().end(), uint8_t{7});
  const Buffer message = builder.Finish();
  Pump pump(
      channel.get(), DataMethod::kPull, [&](uint64_t) { return message; },
      [](uint64_t, const Buffer&) { return absl::OkStatus(); });
  if (auto warm = pump.Run(0.2, 4); !warm.ok()) return warm.status();
  return pump.Run(o.seconds / 2, 1);
}

struct WireCase {
  const char* bench;
  const char* durability;
  double bar;      // Mkeys/s
  double ps_lite;  // Mkeys/s, another machine
};

absl::Status RunCase(const WireCase& c, bool push, const BenchOptions& o, const Report& report) {
  auto bench = Bench::Open(o, c.durability);
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
    auto limit = push ? TransportLimit(o, kKeyBytes + kValueBytes, 64)
                      : TransportLimit(o, kKeyBytes, kValueBytes);
    if (!limit.ok()) return limit.status();
    limits.push_back(*limit * kKeys / 1e6);
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
  auto bench = Bench::Open(o, "memory");
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
    auto pull = TransportLimit(o, kKeyBytes, kValueBytes);
    if (!pull.ok()) return pull.status();
    auto push = TransportLimit(o, kValueBytes, 64);
    if (!push.ok()) return push.status();
    limits.push_back(kKeys / 1e6 / (1 / *pull + 1 / *push));
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

}  // namespace

std::vector<NamedBenchmark> WireBenchmarks() {
  return {
      {"wire_ticket", "pairs of a pull and the push of its keys, by ticket and with keys",
       RunPairs},
      {"wire_pull", "pull over gRPC, 10 M rows of 16 floats, 100,000 keys a request",
       [](const BenchOptions& o, const Report& r) {
         return RunCase({"wire_pull", "memory", 20, 5.74}, false, o, r);
       }},
      {"wire_push", "push with SGD over gRPC, levels memory and logged",
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
