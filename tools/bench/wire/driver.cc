#include "tools/bench/wire/driver.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/message_codec.h"
#include "worker/step/router.h"

namespace strata::bench {
namespace {

absl::Status CheckRows(const wire::PullReplyView& view, wire::ValueCodec codec) {
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

absl::Status CheckPull(uint64_t, const Buffer& reply) {
  auto view = wire::ParsePullReply(reply.span());
  if (!view.ok()) return view.status();
  return CheckRows(*view, wire::ValueCodec::kFloat32);
}

absl::Status CheckPush(uint64_t, const Buffer& reply) {
  return wire::ParsePushReply(reply.span()).status();
}

}  // namespace

template <typename Group, typename MakeGroup>
std::vector<Group> WireDriver::Groups(const Request& r, MakeGroup make) const {
  std::vector<Group> groups;
  for (const OfTable& part : r) {
    for (const ShardRun& run : SplitByShard(cluster_->shards(), part.keys.positions)) {
      groups.push_back(
          make(part.table, run, std::span(part.keys.keys).subspan(run.begin, run.end - run.begin)));
    }
  }
  return groups;
}

WireDriver::Request WireDriver::Take(const std::vector<Keys>& keys,
                                     const std::function<Keys::Request(const Keys&)>& take) const {
  Request request;
  for (size_t t = 0; t < keys.size(); ++t) request.push_back({tables_[t], take(keys[t])});
  return request;
}

absl::StatusOr<std::unique_ptr<WireDriver>> WireDriver::Open(const BenchOptions& o,
                                                             const Options& options) {
  auto driver = std::make_unique<WireDriver>();
  auto cluster = WireCluster::Start(
      absl::StrCat(o.directory, "/wire-", options.durability, options.tables == 1 ? "" : "-tables",
                   options.secure ? "-secure" : ""),
      {.durability = options.durability,
       .dim = kDim,
       .log_bytes = options.log_bytes,
       .shards = options.shards,
       .tables = options.tables,
       .copies = options.copies,
       .secure = options.secure});
  if (!cluster.ok()) return cluster.status();
  driver->cluster_ = *std::move(cluster);
  auto open = driver->cluster_->channel().CallAndWait(
      DataMethod::kOpenSession,
      wire::EncodeOpenSessionRequest(
          wire::OpenSessionFor(driver->cluster_->header(), driver->cluster_->identity())),
      kTimeout);
  if (!open.ok()) return open.status();
  std::vector<Keys> keys;
  keys.reserve(options.tables);
  for (const TableSpec& table : driver->cluster_->tables().tables) {
    if (table.kind == TableKind::kDense) continue;
    driver->tables_.push_back(table.id);
    keys.emplace_back(table, options.rows / options.tables, kKeys / options.tables);
  }
  for (size_t s = 0; s < kSets; ++s) {
    driver->sets_.push_back(driver->Take(keys, [s](const Keys& k) { return k.Random(s); }));
  }
  if (absl::Status s = driver->Fill(keys); !s.ok()) return s;
  return driver;
}

absl::StatusOr<Buffer> WireDriver::EncodePull(const Request& r) const {
  return wire::EncodePullRequest(cluster_->header(), Step(0), 1000, Shards(), KeyGroups(r));
}

absl::StatusOr<double> WireDriver::Pulls(double seconds) {
  std::vector<Buffer> requests;
  for (const Request& set : sets_) {
    auto request = EncodePull(set);
    if (!request.ok()) return request.status();
    requests.push_back(*std::move(request));
  }
  Pump pump(
      &cluster_->channel(), DataMethod::kPull, [&](uint64_t i) { return requests[i % kSets]; },
      CheckPull);
  return pump.Run(seconds, 1);
}

absl::Status WireDriver::PullOnce() {
  auto request = EncodePull(sets_[0]);
  if (!request.ok()) return request.status();
  auto reply = cluster_->channel().CallAndWait(DataMethod::kPull, *std::move(request), kTimeout);
  return reply.ok() ? CheckPull(0, *reply) : reply.status();
}

absl::StatusOr<double> WireDriver::Pushes(double seconds) {
  Pump pump(
      &cluster_->channel(), DataMethod::kPush,
      [&](uint64_t i) { return EncodePush(sets_[i % kSets]); }, CheckPush);
  return pump.Run(seconds, 1);
}

absl::StatusOr<WireDriver::Pairs> WireDriver::PullsAndPushes(double seconds, bool tickets,
                                                             wire::ValueCodec codec) {
  std::vector<Buffer> requests;
  for (const Request& set : sets_) {
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

std::vector<wire::KeyGroup> WireDriver::KeyGroups(const Request& r) const {
  return Groups<wire::KeyGroup>(r, [](TableId table, const ShardRun& run, std::span<const Key> k) {
    return wire::KeyGroup{table, run.shard, k};
  });
}

absl::StatusOr<Buffer> WireDriver::EncodePush(const Request& r, const wire::Ticket& ticket) {
  wire::PushContribution c;
  c.ticket = ticket;
  c.node = {0, 1};
  c.examples = 1;
  c.groups =
      Groups<wire::PushGroup>(r, [](TableId table, const ShardRun& run, std::span<const Key> k) {
        return wire::PushGroup{table, run.shard, k, kDim};
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

absl::Status WireDriver::Fill(const std::vector<Keys>& keys) {
  const size_t batches = keys.front().batches();
  Pump pump(
      &cluster_->channel(), DataMethod::kPush,
      [&](uint64_t i) {
        return EncodePush(Take(keys, [&](const Keys& k) { return k.Batch(i % batches); }));
      },
      CheckPush);
  return pump.Run(0, batches).status();
}

}  // namespace strata::bench
