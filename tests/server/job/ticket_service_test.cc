// Tickets, prefetch and codecs over a job's data plane.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ops/codec.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/session_error.h"
#include "server/data_service.h"
#include "server/job/ticket_book.h"
#include "server/protocol/session_table.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

constexpr uint64_t kWork = 1;  // what the lanes compute

// What a lane tree's node pushes at a step: its keys by table and shard, and the gradients.
class NodeKeys {
 public:
  NodeKeys(JobBench& bench, uint64_t step, LaneNode node) : bench_(bench), node_(node) {
    const LaneWork work = NodeWork(kWork, step, node);
    examples_ = work.examples;
    for (const auto& [table, rows] : work.sums) {
      for (const ShardPlan& shard : bench.plan().shards) {
        Part& part = parts_.emplace_back();
        part.table = table;
        part.shard = shard.id;
        for (const auto& [p, row] : rows) {
          if (p < bench.First(shard.range) || bench.Last(shard.range) < p) continue;
          part.keys.push_back(bench.plan().tables[table].KeyAtPosition(p));
          part.values.insert(part.values.end(), row.begin(), row.end());
        }
      }
    }
    for (const ShardPlan& s : bench.plan().shards) shards_.push_back(s.id);
  }

  std::vector<wire::KeyGroup> Groups() const {
    std::vector<wire::KeyGroup> groups;
    for (const Part& p : parts_) groups.push_back({TableId(p.table), p.shard, p.keys});
    return groups;
  }
  Buffer PullRequest(uint64_t step, const wire::PullExtras& extras, bool groups = true) const {
    const auto all = groups ? Groups() : std::vector<wire::KeyGroup>();
    return *wire::EncodePullRequest(bench_.header(), Step(step), 0, shards_, all, extras);
  }
  Buffer PrefetchRequest(uint64_t step) const {
    return *wire::EncodePrefetchRequest(bench_.header(), Step(step), shards_, Groups());
  }
  Buffer PushRequest(uint64_t step, const wire::Ticket& ticket) const {
    wire::PushContribution c{node_, examples_, {}, ticket};
    for (const Part& p : parts_) {
      c.groups.push_back({TableId(p.table), p.shard, p.keys, bench_.plan().tables[p.table].dim()});
    }
    auto encoder = wire::PushRequestEncoder::Make(shards_, {&c, 1});
    for (size_t g = 0; g < parts_.size(); ++g) {
      std::memcpy(encoder->values(g).data(), parts_[g].values.data(), parts_[g].values.size() * 4);
    }
    wire::PushFields fields;
    fields.header = bench_.header();
    fields.sequence = bench_.NextSequence();
    fields.step = Step(step);
    return encoder->Finish(fields);
  }

 private:
  struct Part {
    uint32_t table;
    ShardId shard;
    std::vector<Key> keys;
    std::vector<float> values;
  };
  JobBench& bench_;
  const LaneNode node_;
  uint64_t examples_ = 0;
  std::vector<Part> parts_;
  std::vector<ShardId> shards_;
};

wire::Ticket TicketOf(const JobBench::Answer& answer) {
  REQUIRE(answer.has_value());
  INFO(answer->status());
  REQUIRE(answer->ok());
  return wire::ParsePullReply((*answer)->span())->ticket;
}

wire::Ticket PrefetchOf(const JobBench::Answer& answer) {
  REQUIRE(answer.has_value());
  INFO(answer->status());
  REQUIRE(answer->ok());
  return wire::ParsePrefetchReply((*answer)->span())->ticket;
}

absl::Status StatusOf(JobBench& bench, DataMethod method, Buffer request) {
  auto answer = bench.Call(method, std::move(request));
  REQUIRE(answer->has_value());
  return (*answer)->status();
}

TEST_CASE("a push by ticket is the push with keys, to the bit", "[service][ticket]") {
  const auto references = References(kWork, 2, 3);
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  for (uint64_t step = 1; step <= 3; ++step) {
    const NodeKeys keys(bench, step, {0, 2});
    const wire::Ticket t =
        TicketOf(*bench.Call(DataMethod::kPull, keys.PullRequest(step, {.want_ticket = true})));
    REQUIRE(t);
    CHECK(t.fingerprint == wire::FingerprintOf(keys.Groups()));
    const Buffer push = keys.PushRequest(step, t), with_keys = keys.PushRequest(step, {});
    CHECK(push.size() + 8 * t.keys <= with_keys.size() + 50);
    REQUIRE(StatusOf(bench, DataMethod::kPush, push).ok());
    CHECK(bench.Hash(step) == references[step].Hash());
    // The step is committed: what comes late, with keys or without, is old, and changes nothing.
    CHECK(StatusOf(bench, DataMethod::kPush, with_keys).ok());
    CHECK(wire::IsTicketError(StatusOf(bench, DataMethod::kPush, push)));
    CHECK(wire::IsTicketError(StatusOf(bench, DataMethod::kPull,
                                       keys.PullRequest(step, {.ticket = t}, /*groups=*/false))));
    CHECK(bench.Hash(step) == references[step].Hash());
  }
  bench.Stop();
  CHECK(bench.memory_.used() == 0);  // tickets gave theirs back
}

TEST_CASE("half a step by ticket, sent again with keys: one contribution", "[service][ticket]") {
  const auto references = References(kWork, 2, 1);
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const NodeKeys left(bench, 1, {0, 1}), right(bench, 1, {1, 2});
  const wire::Ticket t =
      TicketOf(*bench.Call(DataMethod::kPull, left.PullRequest(1, {.want_ticket = true})));
  REQUIRE(StatusOf(bench, DataMethod::kPush, left.PushRequest(1, t)).ok());
  REQUIRE(StatusOf(bench, DataMethod::kPush, left.PushRequest(1, t)).ok());  // a duplicate
  auto again = bench.Call(DataMethod::kPush, left.PushRequest(1, {}));
  REQUIRE(again->value().ok());
  CHECK(wire::ParsePushReply((*again)->value().span())->repeated);
  for (const auto& shard : bench.service_.Find(JobId(1))->shards()) {
    CHECK(shard->view().lane_mismatches == 0);  // known to be the same
  }
  REQUIRE(StatusOf(bench, DataMethod::kPush, right.PushRequest(1, {})).ok());
  CHECK(bench.Hash(1) == references[1].Hash());
}

TEST_CASE("a prefetch gives a ticket before its time, and creates nothing", "[service][ticket]") {
  const auto references = References(kWork, 2, 2);
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const NodeKeys first(bench, 1, {0, 2}), second(bench, 2, {0, 2});
  const wire::Ticket t = PrefetchOf(*bench.Call(DataMethod::kPrefetch, second.PrefetchRequest(2)));
  REQUIRE(t);
  CHECK(bench.service_.Find(JobId(1))->Report().rows() == 0);
  const auto pull = second.PullRequest(2, {.ticket = t}, false);
  auto early = bench.Call(DataMethod::kPull, pull);
  CHECK(bench.Outcome(*early).outcome == wire::PullOutcome::kNotYet);
  CHECK(bench.Outcome(*early).ticket == t);
  REQUIRE(StatusOf(bench, DataMethod::kPush, first.PushRequest(1, {})).ok());
  auto served = bench.Call(DataMethod::kPull, pull);
  auto plain = bench.Call(DataMethod::kPull, second.PullRequest(2, {}));
  const auto by_ticket = bench.Outcome(*served), with_keys = bench.Outcome(*plain);
  REQUIRE(by_ticket.outcome == wire::PullOutcome::kServed);
  REQUIRE(by_ticket.groups.size() == with_keys.groups.size());
  for (size_t g = 0; g < by_ticket.groups.size(); ++g) {
    const auto& a = by_ticket.groups[g].value_bytes;
    const auto& b = with_keys.groups[g].value_bytes;
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
  REQUIRE(StatusOf(bench, DataMethod::kPush, second.PushRequest(2, t)).ok());
  CHECK(bench.Hash(2) == references[2].Hash());
}

TEST_CASE("rows that a ticket pinned are free again when it ends", "[service][ticket]") {
  const bool limited = GENERATE(false, true), hbm = GENERATE(false, true);
  if (!limited && !hbm) return;  // nothing leaves, so nothing is pinned
  INFO("DRAM limit " << limited << ", GPU tier " << hbm);
  JobBench bench(2);
  bench.plan().row_file = true;
  if (limited) bench.LimitDram();
  if (hbm) bench.AddHbm();
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const auto pinned = [&] {
    bench.pool_.RunAll();
    uint64_t rows = 0;
    for (const auto& s : bench.service_.Find(JobId(1))->shards()) rows += s->view().pinned;
    return rows;
  };
  uint64_t most = 0;
  for (uint64_t step = 1; step <= 4; ++step) {
    const NodeKeys keys(bench, step, {0, 2});
    const wire::Ticket t =
        TicketOf(*bench.Call(DataMethod::kPull, keys.PullRequest(step, {.want_ticket = true})));
    REQUIRE(t);
    most = std::max(most, pinned());
    // Every second ticket is never used.
    const wire::Ticket used = step % 2 == 0 ? t : wire::Ticket{};
    REQUIRE(StatusOf(bench, DataMethod::kPush, keys.PushRequest(step, used)).ok());
    CHECK(pinned() == 0);
  }
  CHECK(most > 0);
}

TEST_CASE("tickets end with the process, the map and the session", "[service][ticket]") {
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const NodeKeys keys(bench, 1, {0, 2});
  const auto give = [&] {
    return TicketOf(*bench.Call(DataMethod::kPull, keys.PullRequest(1, {.want_ticket = true})));
  };
  const auto stale = [&](const wire::Ticket& t) {
    return wire::IsTicketError(StatusOf(bench, DataMethod::kPush, keys.PushRequest(1, t)));
  };
  const wire::Ticket before = give();
  bench.plan().was_open = true;
  bench.Restart();
  REQUIRE(bench.OpenSession().ok());
  CHECK(stale(before));
  const wire::Ticket moved = give();
  ServerJobDirective d;
  d.set_map_epoch(6);
  bench.service_.Find(JobId(1))->Follow(d);
  d.set_map_epoch(5);
  bench.service_.Find(JobId(1))->Follow(d);
  CHECK(stale(moved));
  const wire::Ticket crowded = give();
  for (uint64_t s = 100; s < 100 + SessionTable::kMaxSessions; ++s) {
    wire::Header other = bench.header();
    other.session = SessionId(s);
    REQUIRE(StatusOf(bench, DataMethod::kOpenSession,
                     wire::EncodeOpenSessionRequest(wire::OpenSessionFor(other, bench.identity())))
                .ok());
  }
  REQUIRE(bench.OpenSession().ok());
  CHECK(stale(crowded));
  // The oldest of a session go first.
  const wire::Ticket oldest = give();
  for (size_t i = 0; i < TicketBook::PerSession(2); ++i) give();
  CHECK(stale(oldest));
  CHECK_FALSE(stale(give()));
}

TEST_CASE("without memory for a ticket a pull is served all the same", "[service][ticket]") {
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const NodeKeys keys(bench, 1, {0, 2});
  const Buffer pull = keys.PullRequest(1, {.want_ticket = true});
  uint64_t least = 0;  // of free memory, with which the pull is served
  wire::Ticket ticket;
  for (uint64_t left = 1000; !ticket; left += 500) {
    auto hog = bench.memory_.Take(bench.memory_.limit() - left);
    REQUIRE(hog.ok());
    auto answer = bench.Call(DataMethod::kPull, pull);
    if (!answer->value().ok()) continue;
    if (least == 0) least = left;
    ticket = TicketOf(*answer);
    if (least == left) CHECK_FALSE(ticket);
  }
  CHECK(least > 0);
}

TEST_CASE("wrong wishes are refused", "[service][ticket][input]") {
  JobBench bench(2);
  bench.Start();
  const NodeKeys keys(bench, 1, {0, 2}), fewer(bench, 1, {0, 1});
  using C = absl::StatusCode;
  const auto code = [&](DataMethod m, Buffer b) { return StatusOf(bench, m, std::move(b)).code(); };
  // Tickets are a session's.
  const Buffer wish = keys.PullRequest(1, {.want_ticket = true});
  CHECK(code(DataMethod::kPull, wish) == C::kFailedPrecondition);
  CHECK(code(DataMethod::kPrefetch, keys.PrefetchRequest(1)) == C::kFailedPrecondition);
  REQUIRE(bench.OpenSession().ok());
  const wire::Ticket t = TicketOf(*bench.Call(DataMethod::kPull, wish));
  CHECK(code(DataMethod::kPull, keys.PullRequest(1, {.ticket = t})) == C::kInvalidArgument);
  CHECK(code(DataMethod::kPull, keys.PullRequest(1, {.want_ticket = true, .ticket = t}, false)) ==
        C::kInvalidArgument);
  CHECK(code(DataMethod::kPull, keys.PullRequest(1, {.codec = wire::ValueCodec(3)})) ==
        C::kInvalidArgument);
  CHECK(code(DataMethod::kPull, keys.PullRequest(1, {.codec = wire::ValueCodec(-1)})) ==
        C::kInvalidArgument);
  CHECK(code(DataMethod::kPrefetch, keys.PrefetchRequest(0)) == C::kInvalidArgument);
  // The values of other keys: too few, or bound to other keys by the checksum.
  CHECK(code(DataMethod::kPush, fewer.PushRequest(1, t)) != C::kOk);
  const wire::KeyGroup twice[] = {keys.Groups()[0], keys.Groups()[0]};
  const ShardId shard = twice[0].shard;
  CHECK(code(DataMethod::kPrefetch,
             *wire::EncodePrefetchRequest(bench.header(), Step(1), {&shard, 1}, twice)) ==
        C::kInvalidArgument);
  // A ticket whose shards are not all named.
  CHECK(code(DataMethod::kPull, *wire::EncodePullRequest(bench.header(), Step(1), 0, {&shard, 1},
                                                         {}, {.ticket = t})) ==
        C::kInvalidArgument);
  // Nothing of it was held.
  REQUIRE(StatusOf(bench, DataMethod::kPush, keys.PushRequest(1, t)).ok());
  CHECK(bench.Hash(1) == References(kWork, 2, 1)[1].Hash());
}

TEST_CASE("codecs of current rows, pre-images and absent ones", "[service][codec]") {
  const auto references = References(kWork, 2, 1);
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const NodeKeys keys(bench, 1, {0, 2});
  REQUIRE(StatusOf(bench, DataMethod::kPush, keys.PushRequest(1, {})).ok());
  for (const auto codec : {wire::ValueCodec::kBf16, wire::ValueCodec::kInt8}) {
    for (const uint64_t step : {1, 2}) {  // as before the commit, and after
      auto answer = bench.Call(DataMethod::kPull, keys.PullRequest(step, {.codec = codec}));
      const auto view = bench.Outcome(*answer);
      REQUIRE(view.outcome == wire::PullOutcome::kServed);
      const auto groups = keys.Groups();
      for (size_t g = 0; g < groups.size(); ++g) {
        const TableSpec& table = bench.plan().tables[groups[g].table.value];
        const bool dense = table.kind == TableKind::kDense;
        const auto as = dense ? wire::ValueCodec::kFloat32 : codec;
        REQUIRE(wire::CheckReplyGroup(view.groups[g], groups[g].table, groups[g].shard,
                                      groups[g].keys.size(), table.dim(), as)
                    .ok());
        std::vector<uint8_t> want;
        for (const Key k : groups[g].keys) {
          const auto row =
              references[step - 1].Weights(groups[g].table.value, table.PositionOfKey(k));
          std::vector<uint8_t> bytes(wire::ValueBytes(as, table.dim()));
          ops::EncodeRow(static_cast<ops::RowCodec>(as), row.data(), row.size(), bytes.data());
          want.insert(want.end(), bytes.begin(), bytes.end());
        }
        const auto& got = view.groups[g].value_bytes;
        CHECK(std::equal(want.begin(), want.end(), got.begin(), got.end()));
      }
    }
  }
}

TEST_CASE("tickets are for sessions that host lanes, from the directive on", "[service][ticket]") {
  JobBench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const uint64_t mine = bench.header().session.value;
  auto job = bench.service_.Find(JobId(1));
  ServerJobDirective directive;
  directive.set_map_epoch(5);
  directive.set_lane_sessions_known(true);
  const auto tell = [&](const std::vector<uint64_t>& hosts) {
    directive.mutable_lane_sessions()->Assign(hosts.begin(), hosts.end());
    directive.set_lane_epoch(directive.lane_epoch() + 1);
    job->Follow(directive);
  };
  const NodeKeys keys(bench, 1, {0, 2}), next(bench, 2, {0, 2});
  const Buffer pull = keys.PullRequest(1, {.want_ticket = true});
  tell({mine});
  const wire::Ticket t = TicketOf(*bench.Call(DataMethod::kPull, pull));
  REQUIRE(t);
  REQUIRE(PrefetchOf(*bench.Call(DataMethod::kPrefetch, next.PrefetchRequest(2))));
  REQUIRE(bench.memory_.used() > 0);

  // At once: no shard has to have heard of it.
  tell({4});
  const auto refused = [&](DataMethod method, Buffer message) {
    auto answer = std::make_shared<JobBench::Answer>();
    bench.service_.Handle(Caller::Nobody(), method, std::move(message),
                          [answer](absl::StatusOr<Buffer> b) { *answer = std::move(b); });
    return answer->has_value() && wire::IsLanesGone((*answer)->status());
  };
  CHECK(refused(DataMethod::kPull, pull));
  CHECK(refused(DataMethod::kPull, keys.PullRequest(1, {.ticket = t}, /*groups=*/false)));
  CHECK(refused(DataMethod::kPrefetch, next.PrefetchRequest(2)));
  CHECK(refused(DataMethod::kPush, keys.PushRequest(1, t)));
  bench.pool_.RunAll();
  CHECK(bench.memory_.used() == 0);  // its tickets have ended
  // Who only reads names the keys.
  CHECK(StatusOf(bench, DataMethod::kPull, keys.PullRequest(1, {})).ok());

  tell({4, mine});
  CHECK(wire::IsTicketError(
      StatusOf(bench, DataMethod::kPull, keys.PullRequest(1, {.ticket = t}, /*groups=*/false))));
  CHECK(TicketOf(*bench.Call(DataMethod::kPull, pull)).number > t.number);
  job.reset();
}

}  // namespace
}  // namespace strata::server
