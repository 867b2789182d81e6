// Promise P2 where a push goes in parts: every way to split it by shards, to lose parts, to send it
// again split and grouped in another way, in any order, with what was delayed coming last. Each
// shard gets the work once, whatever parts it came in; a serial account says what that makes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/wire/message_codec.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

using Part = std::vector<ShardId>;
using Split = std::vector<Part>;

constexpr uint32_t kShards = 3;

// All ways to divide the shards among messages.
std::vector<Split> Splits() {
  std::vector<Split> splits;
  for (uint32_t way = 0; way < kShards * kShards * kShards; ++way) {
    std::vector<uint32_t> part_of;
    for (uint32_t s = 0, rest = way; s < kShards; ++s, rest /= kShards) {
      part_of.push_back(rest % kShards);
    }
    Split split;
    bool in_order = true;  // parts count in the order of their first shards: each split once
    for (uint32_t s = 0; s < kShards; ++s) {
      in_order = in_order && part_of[s] <= split.size();
      if (part_of[s] == split.size()) split.emplace_back();
      if (in_order) split[part_of[s]].push_back(ShardId(s));
    }
    if (in_order) splits.push_back(split);
  }
  return splits;
}

// The part of a push that speaks of these shards alone.
Buffer PartOf(const Buffer& whole, const Part& shards) {
  const auto view = wire::ParsePushRequest(whole.span());
  REQUIRE(view.ok());
  std::vector<std::vector<Key>> keys;
  keys.reserve(view->groups.size());
  std::vector<const wire::GroupView*> sources;
  std::vector<wire::PushContribution> contributions;
  for (const wire::ContributionView& c : view->contributions) {
    wire::PushContribution part{c.node, c.examples, {}};
    for (const wire::GroupView& g : view->GroupsOf(c)) {
      if (std::find(shards.begin(), shards.end(), g.shard) == shards.end()) continue;
      auto& list = keys.emplace_back();
      for (size_t i = 0; i < g.keys(); ++i) list.push_back(g.key(i));
      const auto dim = static_cast<uint32_t>(g.keys() == 0 ? 1 : g.floats() / g.keys());
      part.groups.push_back({g.table, g.shard, list, dim});
      sources.push_back(&g);
    }
    contributions.push_back(std::move(part));
  }
  auto encoder = wire::PushRequestEncoder::Make(shards, contributions);
  REQUIRE(encoder.ok());
  for (size_t g = 0; g < sources.size(); ++g) {
    std::memcpy(encoder->values(g).data(), sources[g]->value_bytes.data(),
                sources[g]->value_bytes.size());
  }
  return encoder->Finish(view->fields);
}

// What lanes are named, and how.
using Grouping = std::vector<LaneNode>;

class Parts {
 public:
  explicit Parts(bool synchronous) : synchronous_(synchronous), bench_(2, synchronous) {
    bench_.Start();
    REQUIRE(bench_.OpenSession().ok());
  }

  // The next piece of work: some parts of `first` arrive, and perhaps the server dies; then comes
  // all of `second`; then what of `first` was on its way.
  void Once(const Split& first, uint32_t arrive, const Grouping& before, const Split& second,
            const Grouping& after, bool restart) {
    ++works_;
    const Buffer sent = Whole(before);
    const Buffer again = before == after ? sent : Whole(after);
    std::vector<bool> has(kShards, false);
    for (size_t p = 0; p < first.size(); ++p) {
      if ((arrive >> p & 1) != 0) Send(sent, first[p], has);
    }
    if (restart) {
      bench_.Restart();
      REQUIRE(bench_.OpenSession().ok());
    }
    for (const Part& part : second) Send(again, part, has);
    reference_.Apply(NodeWork(1, works_, synchronous_ ? LaneNode{0, 2} : LaneNode{0, 1}), works_);
    CheckClocks();
    for (size_t p = 0; p < first.size(); ++p) {
      if ((arrive >> p & 1) == 0) Send(sent, first[p], has);
    }
    CheckClocks();
    if (works_ % 32 == 0) CheckWeights();
  }
  void CheckWeights() {
    bench_.CheckServed(*bench_.Pull(synchronous_ ? works_ + 1 : 0, 0), reference_);
  }
  uint64_t works() const { return works_; }

 private:
  Buffer Whole(const Grouping& nodes) {
    wire::PushFields fields;
    if (synchronous_) {
      fields.step = Step(works_);
    } else {
      fields.task = TaskId(works_ / 7);
      fields.window = works_ % 7;
    }
    return bench_.PushMessage(1, works_, nodes, fields);
  }
  void Send(const Buffer& whole, const Part& part, std::vector<bool>& has) {
    const auto answer = bench_.Call(DataMethod::kPush, PartOf(whole, part));
    REQUIRE(answer->has_value());
    INFO((*answer)->status());
    REQUIRE((*answer)->ok());
    bool had = false;
    for (const ShardId shard : part) {
      had = had || has[shard.value];
      has[shard.value] = true;
    }
    if (!synchronous_) REQUIRE(wire::ParsePushReply((**answer)->span())->repeated == had);
  }
  void CheckClocks() {
    const ServerJobReport report = bench_.service_.Find(JobId(1))->Report();
    for (const ShardReport& shard : report.shards()) REQUIRE(shard.clock() == works_);
  }

  const bool synchronous_;
  JobBench bench_;
  Reference reference_;
  uint64_t works_ = 0;
};

// Every way to send it once more: in the order of its parts, and in all others.
std::vector<Split> Orders(const std::vector<Split>& splits) {
  std::vector<Split> orders;
  const auto less = [](const Part& a, const Part& b) { return a[0] < b[0]; };
  for (Split split : splits) {
    do {
      orders.push_back(split);
    } while (std::next_permutation(split.begin(), split.end(), less));
  }
  return orders;
}

TEST_CASE("asynchronous: each shard has a window once, whatever parts it comes in",
          "[service][async][parts]") {
  const std::vector<Split> splits = Splits();
  REQUIRE(splits.size() == 5);
  const std::vector<Split> orders = Orders(splits);
  REQUIRE(orders.size() == 13);
  const Grouping window = {{0, 1}};
  Parts parts(/*synchronous=*/false);
  for (const Split& first : splits) {
    for (uint32_t arrive = 0; arrive < 1u << first.size(); ++arrive) {
      for (const Split& second : orders) {
        parts.Once(first, arrive, window, second, window, false);
      }
      parts.Once(first, arrive, window, first, window, /*restart=*/true);
    }
  }
  parts.CheckWeights();
  CHECK(parts.works() == 22 * 14);
}

TEST_CASE("synchronous: each shard has a step once, whatever parts and nodes it comes in",
          "[service][parts]") {
  const std::vector<Split> splits = Splits();
  const Grouping whole = {{0, 2}}, apart = {{0, 1}, {1, 2}}, left = {{0, 1}};
  Parts parts(/*synchronous=*/true);
  for (const Split& first : splits) {
    for (uint32_t arrive = 0; arrive < 1u << first.size(); ++arrive) {
      for (const Split& second : splits) {
        for (const Grouping& before : {whole, apart, left}) {
          for (const Grouping& after : {whole, apart}) {
            parts.Once(first, arrive, before, second, after, false);
          }
        }
      }
      parts.Once(first, arrive, left, first, apart, /*restart=*/true);
    }
  }
  parts.CheckWeights();
  CHECK(parts.works() == 22 * 31);
}

}  // namespace
}  // namespace strata::server
