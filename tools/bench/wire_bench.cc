#include "tools/bench/wire_bench.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/message_codec.h"
#include "proto/core/position.h"
#include "proto/runtime/grpc_transport.h"
#include "tools/bench/limits.h"
#include "tools/bench/wire_cluster.h"
#include "worker/router.h"

namespace strata::bench {
namespace {

constexpr size_t kRows = 10'000'000;
constexpr size_t kKeys = 100'000;  // of a request
constexpr size_t kBatches = kRows / kKeys;
constexpr uint32_t kDim = 16;
constexpr size_t kSets = 16;  // distinct requests, taken in turn
constexpr int kInFlight = 4;
constexpr absl::Duration kTimeout = absl::Seconds(60);

// Keeps kInFlight calls going; request i comes from make(i), replies go through check.
class Pump {
 public:
  using Make = std::function<absl::StatusOr<Buffer>(uint64_t index)>;
  using Check = std::function<absl::Status(uint64_t index, const Buffer& reply)>;

  Pump(DataChannel* channel, DataMethod method, Make make, Check check)
      : channel_(channel), method_(method), make_(std::move(make)), check_(std::move(check)) {}

  // Until `seconds` have passed and `calls` are done. Returns calls per second.
  absl::StatusOr<double> Run(double seconds, uint64_t calls) {
    const absl::Time from = absl::Now();
    const absl::Time until = from + absl::Seconds(seconds);
    uint64_t sent = 0, done = 0;
    while (true) {
      const bool more = sent < calls || absl::Now() < until;
      while (more && sent - done < kInFlight) {
        auto request = make_(next_);
        if (!request.ok()) return request.status();
        Send(next_++, *std::move(request));
        ++sent;
      }
      if (sent == done) break;
      for (auto& [index, reply] : TakeReplies()) {
        ++done;
        if (!reply.ok()) return reply.status();
        if (absl::Status s = check_(index, *reply); !s.ok()) return s;
      }
    }
    return static_cast<double>(done) / absl::ToDoubleSeconds(absl::Now() - from);
  }

 private:
  struct State {
    absl::Mutex mu;
    std::vector<std::pair<uint64_t, absl::StatusOr<Buffer>>> replies ABSL_GUARDED_BY(mu);
  };

  void Send(uint64_t index, Buffer request) {
    auto state = state_;
    channel_->Call(method_, std::move(request), kTimeout,
                   [state, index](absl::StatusOr<Buffer> reply) {
                     absl::MutexLock lock(&state->mu);
                     state->replies.emplace_back(index, std::move(reply));
                   });
  }

  std::vector<std::pair<uint64_t, absl::StatusOr<Buffer>>> TakeReplies() {
    State& s = *state_;
    absl::MutexLock lock(&s.mu);
    const auto some = [&s]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(s.mu) { return !s.replies.empty(); };
    s.mu.Await(absl::Condition(&some));
    return std::exchange(s.replies, {});
  }

  DataChannel* const channel_;
  const DataMethod method_;
  const Make make_;
  const Check check_;
  uint64_t next_ = 0;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// kRows keys by position, and how to take requests from them.
class Keys {
 public:
  explicit Keys(const TableSpec& table) {
    std::vector<std::pair<uint64_t, uint64_t>> all(kRows);
    for (size_t i = 0; i < kRows; ++i) {
      const Key key(Mix64(i * 0x9e3779b97f4a7c15ull + 1));
      all[i] = {table.PositionOfKey(key).value, key.value};
    }
    std::sort(all.begin(), all.end());
    for (const auto& [position, key] : all) {
      positions_.push_back(position);
      keys_.emplace_back(key);
    }
    std::mt19937_64 random(3);
    for (auto& set : sets_) {
      for (size_t k = 0; k < kKeys; ++k) {
        set.push_back(static_cast<uint32_t>(k * kBatches + random() % kBatches));
      }
    }
  }

  struct Request {
    std::vector<Key> keys;
    std::vector<uint64_t> positions;
  };
  // Every kBatches-th key: all batches together are all rows.
  Request Batch(size_t b) const {
    Request r;
    for (size_t i = b; i < kRows; i += kBatches) Add(i, r);
    return r;
  }
  // Set s of random keys, ascending.
  Request Random(size_t s) const {
    Request r;
    for (uint32_t i : sets_[s]) Add(i, r);
    return r;
  }

 private:
  void Add(size_t i, Request& r) const {
    r.keys.push_back(keys_[i]);
    r.positions.push_back(positions_[i]);
  }
  std::vector<uint64_t> positions_;
  std::vector<Key> keys_;
  std::vector<uint32_t> sets_[kSets];
};

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
      auto groups = Groups<wire::KeyGroup>(set, [](const ShardRun& run, std::span<const Key> k) {
        return wire::KeyGroup{TableId(0), run.shard, k};
      });
      auto request = wire::EncodePullRequest(cluster_->header(), Step(0), 1000, Shards(), groups);
      if (!request.ok()) return request.status();
      requests.push_back(*std::move(request));
    }
    Pump pump(
        &cluster_->channel(), DataMethod::kPull, [&](uint64_t i) { return requests[i % kSets]; },
        [](uint64_t, const Buffer& reply) -> absl::Status {
          auto view = wire::ParsePullReply(reply.span());
          if (!view.ok()) return view.status();
          size_t floats = 0;
          for (const wire::GroupView& g : view->groups) {
            if (absl::Status s =
                    wire::CheckReplyGroup(g, g.table, g.shard, g.floats() / kDim, kDim);
                !s.ok()) {
              return s;
            }
            floats += g.floats();
          }
          if (floats != kKeys * kDim) return absl::InternalError("rows are missing");
          return absl::OkStatus();
        });
    return pump.Run(seconds, 1);
  }

  absl::StatusOr<double> Pushes(double seconds) {
    Pump pump(
        &cluster_->channel(), DataMethod::kPush,
        [&](uint64_t i) { return EncodePush(sets_[i % kSets]); }, CheckPush);
    return pump.Run(seconds, 1);
  }

  double ServerCpuSeconds() const { return cluster_->ServerCpuSeconds(); }
  size_t shard_count() const { return Shards().size(); }

 private:
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

  absl::StatusOr<Buffer> EncodePush(const Keys::Request& r) {
    wire::PushContribution c;
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
  std::vector<double> ours, limits, appends, server_cpu, client_cpu;
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
    if (logged) {  // a shard's record at a time; a key's bytes are the record's share
      const size_t record = (kKeyBytes + kValueBytes) / (*bench)->shard_count();
      const double rate = AppendRate(o.directory + "/append", record, o.seconds / 2);
      appends.push_back(rate * 1e9 * kKeys / (kKeyBytes + kValueBytes) / 1e6);
    }
  }
  const std::string what = absl::StrCat(push ? "push, SGD, " : "pull, ", c.durability);
  report({c.bench, what, Median(ours), "Mkeys/s", Median(limits), "transport alone", c.ps_lite,
          absl::StrCat("ps-lite (constant), wanted ", c.bar, " Mkeys/s")});
  if (logged) {
    report(
        {c.bench, what, Median(ours), "Mkeys/s", Median(appends), "append to a new file", {}, ""});
  }
  report({c.bench, what + ", server CPU", Median(server_cpu), "s/Mkeys", {}, "", {}, ""});
  report({c.bench, what + ", client CPU", Median(client_cpu), "s/Mkeys", {}, "", {}, ""});
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> WireBenchmarks() {
  return {
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
