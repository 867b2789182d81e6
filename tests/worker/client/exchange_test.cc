#include "worker/client/exchange.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/position.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_limits.h"
#include "tests/worker/client/served_rows.h"
#include "worker/step/router.h"

namespace strata {
namespace {

RoutedKeys SomeKeys(const ModelTables& tables, size_t n) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < n; ++i) keys.push_back(i * i);
  Router router;
  RoutedKeys routed;
  router.Route(tables.tables[0], keys, &routed);
  return routed;
}

// What a server would answer: float j of key k of table t is a function of (t, k, j).
float ValueOf(uint32_t table, uint64_t key, size_t j) {
  return static_cast<float>(Mix64(key + table * 77) % 1000) + static_cast<float>(j) / 1024;
}

Buffer Answer(const ModelTables& tables, const Buffer& request) {
  auto view = wire::ParsePullRequest(request.span());
  REQUIRE(view.ok());
  std::vector<wire::ValueGroup> groups;
  for (const wire::GroupView& g : view->groups) {
    groups.push_back({g.table, g.shard, g.keys(), tables.tables[g.table.value].dim()});
  }
  auto reply = wire::PullReplyEncoder::Make(groups);
  REQUIRE(reply.ok());
  for (size_t g = 0; g < view->groups.size(); ++g) {
    const std::span<float> values = reply->values(g);
    const size_t dim = groups[g].dim;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = ValueOf(groups[g].table.value, view->groups[g].key(i / dim).value, i % dim);
    }
  }
  return reply->Finish({9, Generation(1), MapEpoch(1), Step(4)}, wire::PullOutcome::kServed);
}

TEST_CASE("a pull from several servers puts every value in its place", "[exchange]") {
  const ModelTables tables = testing::SmallTables();
  for (uint32_t servers : {1, 3}) {
    const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(64), servers, 4);
    const Exchange exchange(tables, map);
    const RoutedKeys routed = SomeKeys(tables, 300);
    const KeyList keys{routed.keys, routed.positions, routed.runs};
    ParameterBlock block;
    exchange.Prepare(keys, &block);
    for (uint32_t s = 0; s < servers; ++s) {
      auto request = exchange.EncodePull(exchange.ShardsOf(s), {}, Step(5), 10, keys, true);
      REQUIRE(request.ok());
      CHECK(wire::ParsePullRequest(request->span())->shards == map.ShardsOf(s));
      auto answer = exchange.DecodePull(exchange.ShardsOf(s), Answer(tables, *request).span(), keys,
                                        true, &block);
      REQUIRE(answer.ok());
      CHECK(answer->state.incarnation == 9);
    }
    for (size_t k = 0; k < routed.keys.size(); ++k) {
      for (size_t j = 0; j < 4; ++j) {
        REQUIRE(block.rows[k * 4 + j] == ValueOf(0, routed.keys[k], j));
      }
    }
    const auto tensors = exchange.TensorsIn(static_cast<const float*>(block.dense.data()));
    REQUIRE(tensors.size() == tables.tensor_count());
    for (size_t t = 0; t < tensors.size(); ++t) {
      const TensorSpec& spec = tables.tensor(t);
      for (uint64_t e = 0; e < spec.elements; ++e) {
        REQUIRE(tensors[t][e] == ValueOf(1, spec.first.value + e / 256, e % 256));
      }
    }
  }
}

TEST_CASE("a pull beyond the limit goes in parts by shards, and gives the same weights",
          "[exchange]") {
  const ModelTables tables = testing::SmallTables(63, {4});
  const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(64), 2, 8);
  const RoutedKeys routed = SomeKeys(tables, 300);
  const KeyList keys{routed.keys, routed.positions, routed.runs};
  const auto pulled = [&](const Exchange& exchange) {
    ParameterBlock block;
    exchange.Prepare(keys, &block);
    for (uint32_t s = 0; s < 2; ++s) {
      const auto split = exchange.SplitPull(s, keys, true, {}, Exchange::Rows::kInReply);
      REQUIRE(split.ok());
      std::vector<ShardId> named;
      for (const Exchange::Shards shards : *split) {
        const Buffer request = *exchange.EncodePull(shards, {}, Step(5), 10, keys, true);
        const auto view = wire::ParsePullRequest(request.span());
        CHECK(std::equal(shards.begin(), shards.end(), view->shards.begin(), view->shards.end()));
        named.insert(named.end(), shards.begin(), shards.end());
        const Buffer reply = Answer(tables, request);
        REQUIRE(exchange.DecodePull(shards, reply.span(), keys, true, &block).ok());
      }
      CHECK(named == map.ShardsOf(s));
    }
    return std::pair(block.rows, block.dense);
  };
  const Exchange unlimited(tables, map);
  CHECK(unlimited.SplitPull(0, keys, true, {}, Exchange::Rows::kInReply)->size() == 1);
  const auto whole = pulled(unlimited);
  std::set<size_t> parts;  // of server 0, at some limit
  for (size_t limit = 1 << 17; limit > 0; limit -= 512) {
    const Exchange exchange(tables, map, {.pull_bytes = limit});
    const auto split = exchange.SplitPull(0, keys, true, {}, Exchange::Rows::kInReply);
    const auto other = exchange.SplitPull(1, keys, true, {}, Exchange::Rows::kInReply);
    if (!split.ok()) {
      CHECK(absl::IsResourceExhausted(split.status()));
      CHECK_THAT(std::string(split.status().message()),
                 Catch::Contains("of one shard") && Catch::Contains("spec.training.batchSize") &&
                     Catch::Contains(absl::StrCat("limit of a message is ", limit, ";")));
      break;
    }
    for (const Exchange::Shards shards : *split) {
      const Buffer request = *exchange.EncodePull(shards, {}, Step(5), 10, keys, true);
      const size_t reply = Answer(tables, request).size();
      REQUIRE(std::max(request.size(), reply) <= limit);
      if (shards.size() > 1) REQUIRE(request.size() + reply <= limit);
    }
    if (other.ok() && parts.insert(split->size()).second) CHECK(pulled(exchange) == whole);
  }
  CHECK(parts.size() > 2);
}

TEST_CASE("rows that lie on a device take no room in a pull's reply", "[exchange]") {
  const ModelTables tables = testing::SmallTables(255);
  const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(64), 1, 8);
  const Exchange exchange(tables, map, {.pull_bytes = 200'000});
  const RoutedKeys routed = SomeKeys(tables, 1000);
  const KeyList keys{routed.keys, routed.positions, routed.runs};
  CHECK(exchange.SplitPull(0, keys, false, {}, Exchange::Rows::kInReply)->size() > 4);
  CHECK(exchange.SplitPull(0, keys, false, {}, Exchange::Rows::kThere)->size() == 1);
  const wire::PullCodecs bf16 = wire::ValueCodec::kBf16;
  CHECK(exchange.SplitPull(0, keys, false, bf16, Exchange::Rows::kInReply)->size() <
        exchange.SplitPull(0, keys, false, {}, Exchange::Rows::kInReply)->size());
}

TEST_CASE("an answer to something else is refused", "[exchange]") {
  const ModelTables tables = testing::SmallTables();
  const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(64), 1, 4);
  const Exchange exchange(tables, map);
  const RoutedKeys routed = SomeKeys(tables, 50), fewer = SomeKeys(tables, 49);
  ParameterBlock block;
  const KeyList keys{routed.keys, routed.positions, routed.runs};
  exchange.Prepare(keys, &block);
  const KeyList other{fewer.keys, fewer.positions, fewer.runs};
  auto request = exchange.EncodePull(exchange.ShardsOf(0), {}, Step(1), 10, other, true);
  const Buffer reply = Answer(tables, *request);
  CHECK_FALSE(exchange.DecodePull(exchange.ShardsOf(0), reply.span(), keys, true, &block).ok());
  // A flipped bit in a value.
  std::vector<uint8_t> bytes(reply.span().begin(), reply.span().end());
  bytes[bytes.size() / 2] ^= 4;
  CHECK(exchange.DecodePull(exchange.ShardsOf(0), bytes, other, true, &block).status().code() ==
        absl::StatusCode::kDataLoss);
}

TEST_CASE("pushes carry every gradient once, to the server that has it", "[exchange]") {
  const ModelTables tables = testing::SmallTables();
  const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(64), 3, 2);
  const Exchange exchange(tables, map);
  const RoutedKeys routed = SomeKeys(tables, 200);
  auto gradient = std::make_shared<Gradient>();
  gradient->examples = 12;
  gradient->keys = routed.keys;
  gradient->positions = routed.positions;
  gradient->runs = routed.runs;
  for (size_t i = 0; i < routed.keys.size() * 4; ++i) {
    gradient->rows.push_back(static_cast<float>(i));
  }
  auto empty = std::make_shared<Gradient>();
  const std::vector<Exchange::Contribution> contributions = {{{0, 2}, gradient}, {{2, 3}, empty}};
  std::map<uint64_t, float> seen;
  for (uint32_t s = 0; s < 3; ++s) {
    wire::PushFields fields;
    fields.step = Step(8);
    auto parts = exchange.EncodePush(s, fields, contributions);
    REQUIRE(parts.ok());
    REQUIRE(parts->size() == 1);
    auto view = wire::ParsePushRequest(parts->front().span());
    REQUIRE(view.ok());
    CHECK(view->shards == map.ShardsOf(s));
    REQUIRE(view->contributions.size() == 2);
    CHECK(view->contributions[0].node == LaneNode{0, 2});
    CHECK(view->contributions[0].examples == 12);
    CHECK(view->contributions[1].group_count == 0);  // an explicit empty one
    for (const wire::GroupView& g : view->GroupsOf(view->contributions[0])) {
      CHECK(g.table == TableId(0));  // no dense part was given
      CHECK(map.shards()[g.shard.value].server == s);
      for (size_t i = 0; i < g.keys(); ++i) {
        CHECK(seen.emplace(g.key(i).value, g.value(i * 4)).second);
      }
    }
  }
  REQUIRE(seen.size() == routed.keys.size());
  for (size_t k = 0; k < routed.keys.size(); ++k) {
    CHECK(seen.at(routed.keys[k]) == gradient->rows[k * 4]);
  }
}

// A gradient of `n` keys and rows of `dim` floats, each float a function of its place.
std::shared_ptr<Gradient> BigGradient(const ModelTables& tables, size_t n, size_t dim) {
  const RoutedKeys routed = SomeKeys(tables, n);
  auto gradient = std::make_shared<Gradient>();
  gradient->examples = 7;
  gradient->keys = routed.keys;
  gradient->positions = routed.positions;
  gradient->runs = routed.runs;
  gradient->rows.resize(n * dim);
  for (size_t i = 0; i < gradient->rows.size(); ++i) {
    gradient->rows[i] = static_cast<float>(i % 65521);
  }
  return gradient;
}

TEST_CASE("a push beyond the limit of a message goes in parts, by shards", "[exchange]") {
  // 1 KiB of gradient and 8 bytes of key each: 99 MB, which two messages can carry.
  constexpr size_t kDim = 256, kKeys = 96000;
  const ModelTables tables = testing::SmallTables(kDim - 1);
  const auto gradient = BigGradient(tables, kKeys, kDim);
  const auto empty = std::make_shared<Gradient>();
  const std::vector<Exchange::Contribution> contributions = {{{0, 2}, gradient}, {{2, 3}, empty}};
  wire::PushFields fields;
  fields.step = Step(8);
  fields.sequence = Sequence(5);

  for (uint32_t shards : {2u, 4u}) {
    const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(64), 1, shards);
    const Exchange exchange(tables, map);
    auto parts = exchange.EncodePush(0, fields, contributions);
    REQUIRE(parts.ok());
    CHECK(parts->size() == 2);
    std::vector<ShardId> named;
    std::map<uint64_t, std::pair<float, float>> seen;  // the first and last float of each key
    for (const Buffer& part : *parts) {
      CHECK(part.span().size() <= kMaxMessageBytes);
      auto view = wire::ParsePushRequest(part.span());
      REQUIRE(view.ok());
      CHECK(view->fields.step == Step(8));
      CHECK(view->fields.sequence == Sequence(5));
      named.insert(named.end(), view->shards.begin(), view->shards.end());
      // Every part speaks of every contribution, for its own shards.
      REQUIRE(view->contributions.size() == 2);
      CHECK(view->contributions[0].node == LaneNode{0, 2});
      CHECK(view->contributions[0].examples == 7);
      CHECK(view->contributions[1].node == LaneNode{2, 3});
      CHECK(view->contributions[1].group_count == 0);
      for (const wire::GroupView& g : view->GroupsOf(view->contributions[0])) {
        CHECK(std::count(view->shards.begin(), view->shards.end(), g.shard) == 1);
        for (size_t i = 0; i < g.keys(); ++i) {
          const std::pair<float, float> ends = {g.value(i * kDim), g.value(i * kDim + kDim - 1)};
          if (!seen.emplace(g.key(i).value, ends).second) FAIL("a key came twice");
        }
      }
    }
    CHECK(named == map.ShardsOf(0));
    REQUIRE(seen.size() == kKeys);
    for (size_t k = 0; k < kKeys; ++k) {
      const auto& [first, last] = seen.at(gradient->keys[k]);
      if (first != gradient->rows[k * kDim] || last != gradient->rows[k * kDim + kDim - 1]) {
        FAIL("key " << gradient->keys[k] << " has another's gradient");
      }
    }
  }

  // What one shard alone cannot carry is refused, and told apart from what may be tried again.
  const ShardMap one = ShardMap::Even(MapEpoch(1), Partitioning(64), 1, 1);
  const absl::Status refused = Exchange(tables, one).EncodePush(0, fields, contributions).status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK_THAT(std::string(refused.message()),
             Catch::Contains("of one shard") && Catch::Contains("spec.training.batchSize"));
}

TEST_CASE("each part of a push names the rows on a device of its own groups", "[exchange]") {
  // Two dense gradients of 45 MB each, which are in the messages.
  const ModelTables tables = testing::SmallTables(3, {1500, 1500, 1500, 1500, 1500, 1500});
  auto gradient = std::make_shared<Gradient>(*BigGradient(tables, 1000, 4));
  const auto rows = std::make_shared<std::vector<float>>(std::move(gradient->rows));
  gradient->rows.clear();
  gradient->rows_there = std::shared_ptr<const float>(rows, rows->data());
  const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(64), 1, 8);
  const Exchange exchange(tables, map);
  REQUIRE(exchange.dense_rows() * 1024 > kMaxMessageBytes / 2);
  gradient->dense.assign(exchange.dense_rows() * ModelTables::kDenseRowDim, 0.5f);
  const std::vector<Exchange::Contribution> contributions = {
      {{0, 2}, gradient}, {{2, 3}, std::make_shared<Gradient>()}, {{3, 4}, gradient}};
  auto parts = exchange.EncodePush(0, {}, contributions, {}, "GPU-7");
  REQUIRE(parts.ok());
  CHECK(parts->size() > 1);
  std::map<uint64_t, int> times;
  for (const Buffer& part : *parts) {
    auto view = wire::ParsePushRequest(part.span());
    REQUIRE(view.ok());
    const auto& values = part.device_values();
    REQUIRE(values != nullptr);
    CHECK(values->device == "GPU-7");
    REQUIRE(values->groups.size() == view->groups.size());
    for (size_t g = 0; g < view->groups.size(); ++g) {
      const wire::GroupView& group = view->groups[g];
      REQUIRE((values->groups[g] != nullptr) == (group.table == TableId(0)));
      if (values->groups[g] == nullptr) continue;
      CHECK(group.value_bytes.empty());
      for (size_t k = 0; k < group.keys(); ++k) {
        const auto at = std::find(gradient->keys.begin(), gradient->keys.end(), group.key(k).value);
        REQUIRE(values->groups[g] + k * 4 == rows->data() + (at - gradient->keys.begin()) * 4);
        ++times[group.key(k).value];
      }
    }
  }
  CHECK(times.size() == gradient->keys.size());
  for (const auto& [key, n] : times) REQUIRE(n == 2);
}

TEST_CASE("a ticket stands for the keys of a pull, a prefetch and a push", "[exchange][ticket]") {
  const ModelTables tables = testing::SmallTables();
  const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(64), 2, 2);
  const Exchange exchange(tables, map);
  const RoutedKeys routed = SomeKeys(tables, 100), fewer = SomeKeys(tables, 50);
  const KeyList keys{routed.keys, routed.positions, routed.runs},
      other{fewer.keys, fewer.positions, fewer.runs};
  const Buffer prefetch = *exchange.EncodePrefetch(1, {}, Step(3), keys, true);
  const auto announced = wire::ParsePrefetchRequest(prefetch.span());
  REQUIRE(announced.ok());
  wire::Ticket ticket{9, 4, 0, 0};
  for (const wire::GroupView& g : announced->groups) {
    ticket.keys += g.keys();
    ticket.fingerprint =
        wire::ExtendFingerprint(ticket.fingerprint, g.table, g.shard, g.keys(), g.crc32c);
  }
  const Buffer reply = wire::EncodePrefetchReply({{}, ticket});
  CHECK(*exchange.DecodePrefetch(1, reply.span(), keys, true) == ticket);
  // For other keys, or another server's share, it is none.
  CHECK_FALSE(*exchange.DecodePrefetch(1, reply.span(), other, true));
  CHECK_FALSE(*exchange.DecodePrefetch(0, reply.span(), keys, true));
  CHECK_FALSE(*exchange.DecodePrefetch(1, reply.span(), keys, false));

  const Buffer pull =
      *exchange.EncodePull(exchange.ShardsOf(1), {}, Step(3), 10, keys, true, {.ticket = ticket});
  const auto view = wire::ParsePullRequest(pull.span());
  CHECK(view->groups.empty());
  CHECK(view->ticket == ticket);
  CHECK(view->shards == map.ShardsOf(1));

  auto gradient = std::make_shared<Gradient>();
  gradient->examples = 1;
  gradient->keys = routed.keys;
  gradient->positions = routed.positions;
  gradient->runs = routed.runs;
  gradient->rows.assign(routed.keys.size() * 4, 0.5f);
  const Exchange::Contribution contribution = {{0, 1}, gradient};
  const auto parts = exchange.EncodePush(1, {}, {&contribution, 1}, ticket);
  REQUIRE(parts->size() == 1);
  const auto push = wire::ParsePushRequest(parts->front().span());
  REQUIRE(push->contributions.size() == 1);
  CHECK(push->contributions[0].ticket == ticket);
  REQUIRE(!push->groups.empty());
  for (const wire::GroupView& g : push->groups) CHECK(g.keys() == 0);

  // A push that must go in parts names none.
  const Exchange small(tables, map, {.push_bytes = parts->front().size() - 1});
  const auto split = small.EncodePush(1, {}, {&contribution, 1}, ticket);
  REQUIRE(split.ok());
  REQUIRE(split->size() > 1);
  size_t sent = 0;
  for (const Buffer& part : *split) {
    const auto of_part = wire::ParsePushRequest(part.span());
    CHECK_FALSE(of_part->contributions[0].ticket);
    for (const wire::GroupView& g : of_part->groups) sent += g.keys();
  }
  size_t share = 0;
  for (const Exchange::Part& part : exchange.ShareOf(exchange.ShardsOf(1), keys)) {
    share += part.keys;
  }
  CHECK(sent == share);
}

TEST_CASE("pulled rows are decoded, the dense part is not", "[exchange][codec]") {
  const ModelTables tables = testing::SmallTables();
  const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(64), 1, 2);
  const Exchange exchange(tables, map);
  const RoutedKeys routed = SomeKeys(tables, 40);
  const KeyList keys{routed.keys, routed.positions, routed.runs};
  const Buffer request = *exchange.EncodePull(exchange.ShardsOf(0), {}, Step(1), 0, keys, true,
                                              {.codec = wire::ValueCodec::kBf16});
  const auto view = wire::ParsePullRequest(request.span());
  CHECK(view->codec == wire::ValueCodec::kBf16);
  std::vector<wire::ValueGroup> groups;
  for (const wire::GroupView& g : view->groups) {
    const bool dense = g.table == TableId(1);
    groups.push_back({g.table, g.shard, g.keys(), dense ? 256u : 4u,
                      dense ? wire::ValueCodec::kFloat32 : wire::ValueCodec::kBf16});
  }
  auto reply = wire::PullReplyEncoder::Make(groups);
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].codec == wire::ValueCodec::kFloat32) {
      for (float& f : reply->values(g)) f = 0.1f;
    } else {
      for (size_t i = 0; i < reply->bytes(g).size(); i += 2) {
        reply->bytes(g)[i] = 0xc0;  // 1.5
        reply->bytes(g)[i + 1] = 0x3f;
      }
    }
  }
  const Buffer bytes = reply->Finish({}, wire::PullOutcome::kServed);
  ParameterBlock block;
  exchange.Prepare(keys, &block);
  REQUIRE(exchange
              .DecodePull(exchange.ShardsOf(0), bytes.span(), keys, true, &block,
                          wire::ValueCodec::kBf16)
              .ok());
  for (const float f : block.rows) REQUIRE(f == 1.5f);
  for (const float f : block.dense) REQUIRE(f == 0.1f);
  CHECK_FALSE(exchange.DecodePull(exchange.ShardsOf(0), bytes.span(), keys, true, &block).ok());
}

TEST_CASE("lanes are summed along the tree, and a lane without examples adds nothing",
          "[exchange]") {
  const ModelTables tables = testing::SmallTables();
  std::vector<std::shared_ptr<const Gradient>> lanes;
  for (uint32_t l = 0; l < 3; ++l) {
    auto g = std::make_shared<Gradient>();
    if (l != 1) {
      g->examples = 1;
      const RoutedKeys routed = SomeKeys(tables, 2 + l);
      g->keys = routed.keys;
      g->positions = routed.positions;
      g->runs = routed.runs;
      g->rows.assign(routed.keys.size() * 4, l == 0 ? -0.0f : 1.5f);
      g->dense.assign(256, -0.0f);
    }
    lanes.push_back(g);
  }
  const auto leaf = [&](uint32_t lane) { return lanes[lane]; };
  const auto of = [&](LaneNode node) {
    const auto sum = SumNode(node, leaf, [&](const Gradient& left, const Gradient& right) {
      return std::make_shared<Gradient>(AddGradients(tables.tables, left, right));
    });
    REQUIRE(sum.ok());
    return *sum;
  };
  const auto sum = of({0, 3});
  CHECK(sum->examples == 2);
  CHECK(sum->keys.size() == 4);
  CHECK(of({2, 3}) == lanes[2]);
  const auto left = of({0, 2});
  REQUIRE(left->rows.size() == 8);
  CHECK(std::signbit(left->rows[0]));  // -0 went through unchanged: nothing was added to it
  CHECK(std::signbit(left->dense[0]));
}

}  // namespace
}  // namespace strata
