#include "proto/wire/message_codec.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/checksum.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_limits.h"
#include "tests/proto/wire/codec_oracle.h"
#include "tests/proto/wire/codec_samples.h"

namespace strata::wire {
namespace {

using testing::ToProto;

template <typename Proto>
Proto Read(const Buffer& b) {
  Proto m;
  REQUIRE(m.ParseFromArray(b.data(), static_cast<int>(b.size())));
  return m;
}

const Header kHeader{JobId(7), SessionId(~0ull), Generation(3), MapEpoch(1ull << 40)};
const ServerState kState{0xfeedull << 40, Generation(2), MapEpoch(9), Step(12345)};
constexpr Position kFirst(0);
constexpr Position kLast(~0ull);

TEST_CASE("small messages go to protobuf and back", "[codec]") {
  const Buffer open = EncodeOpenSessionRequest({kHeader});
  CHECK(ParseOpenSessionRequest(open.span())->header == kHeader);
  CHECK(Read<::strata::OpenSessionRequest>(open).header().session() == ~0ull);

  const Buffer reply = EncodeOpenSessionReply({kState});
  CHECK(ParseOpenSessionReply(reply.span())->state == kState);
  CHECK(Read<::strata::OpenSessionReply>(reply).state().clock() == 12345);

  const Buffer pushed = EncodePushReply({kState, true});
  CHECK(ParsePushReply(pushed.span())->state == kState);
  CHECK(ParsePushReply(pushed.span())->repeated);
  CHECK(Read<::strata::PushReply>(pushed).repeated());

  const MarkRequest mark{kHeader, Sequence(4), LaneId(5), 6, TaskId(7), 8};
  const auto read = Read<::strata::MarkRequest>(EncodeMarkRequest(mark));
  CHECK(read.SerializeAsString() == ToProto(mark).SerializeAsString());
  CHECK(ParseMarkReply(EncodeMarkReply({kState}).span())->state == kState);
}

TEST_CASE("a pull request carries its keys", "[codec]") {
  const TableSpec table = Table(1, 16);
  const std::vector<Key> a = SortedKeys(table, 1000, 1);
  const std::vector<Key> b = SortedKeys(table, 1, 2);
  const std::vector<ShardId> shards = {ShardId(0), ShardId(300), ShardId(70'000)};
  const std::vector<KeyGroup> groups = {
      {TableId(1), ShardId(300), a}, {TableId(1), ShardId(0), b}, {TableId(9), ShardId(0), {}}};
  const Buffer bytes = *EncodePullRequest(kHeader, Step(77), 250, shards, groups);
  const auto view = ParsePullRequest(bytes.span());
  REQUIRE(view.ok());
  CHECK(view->header == kHeader);
  CHECK(view->step == Step(77));
  CHECK(view->wait_ms == 250);
  CHECK(view->shards == shards);
  REQUIRE(view->groups.size() == 3);
  CHECK(view->groups[0].keys() == 1000);
  CHECK(view->groups[0].key(999) == a[999]);
  std::vector<Position> positions(1000);
  CHECK(
      CheckRequestGroup(view->groups[0], table, GroupValues::kNone, kFirst, kLast, positions).ok());
  for (size_t i = 0; i < a.size(); ++i) REQUIRE(positions[i] == table.PositionOfKey(a[i]));
  CHECK(view->groups[2].crc32c == 0);
  CHECK(Read<::strata::PullRequest>(bytes).SerializeAsString() ==
        ToProto(*view).SerializeAsString());
}

TEST_CASE("tickets and codecs: requests, replies, sizes", "[codec][ticket]") {
  const TableSpec table = Table(1, 3);
  const std::vector<Key> keys = SortedKeys(table, 5, 3);
  const std::vector<ShardId> shards = {ShardId(4)};
  const std::vector<KeyGroup> groups = {{TableId(1), ShardId(4), keys}};
  const Ticket ticket{77, 9, 5, FingerprintOf(groups)};
  const auto pull = ParsePullRequest(
      EncodePullRequest(kHeader, Step(1), 0, shards, {}, {true, ValueCodec::kInt8, ticket})
          ->span());
  REQUIRE(pull.ok());
  CHECK(pull->want_ticket);
  CHECK(pull->codec == PullCodecs(ValueCodec::kInt8));
  CHECK(pull->ticket == ticket);
  PullCodecs codecs = ValueCodec::kBf16;
  codecs.of_table = {ValueCodec::kFloat32, ValueCodec(-1), ValueCodec::kInt8};
  const auto several = ParsePullRequest(
      EncodePullRequest(kHeader, Step(1), 0, shards, groups, {false, codecs, {}})->span());
  REQUIRE(several.ok());
  CHECK(several->codec == codecs);
  CHECK(several->codec.Of(TableId(2)) == ValueCodec::kInt8);
  CHECK(several->codec.Of(TableId(3)) == ValueCodec::kBf16);
  PullCodecs many;
  many.of_table.resize(kMaxCodecs + 1);
  CHECK(absl::IsResourceExhausted(
      EncodePullRequest(kHeader, Step(1), 0, shards, {}, {false, many, {}}).status()));
  const Buffer prefetch = *EncodePrefetchRequest(kHeader, Step(6), shards, groups);
  const auto announced = ParsePrefetchRequest(prefetch.span());
  REQUIRE(announced.ok());
  CHECK(announced->step == Step(6));
  REQUIRE(announced->groups.size() == 1);
  CHECK(announced->groups[0].key(4) == keys[4]);
  CHECK(ParsePrefetchReply(EncodePrefetchReply({kState, ticket}).span())->ticket == ticket);
  CHECK_FALSE(ParsePrefetchReply(EncodePrefetchReply({kState, {}}).span())->ticket);

  // The fingerprint by its definition in data.proto.
  std::string text;
  for (const uint32_t n : {1u, 4u, 5u, announced->groups[0].crc32c}) {
    text.append(reinterpret_cast<const char*>(&n), 4);
  }
  CHECK(ticket.fingerprint == Crc32c(BytesOf(text)));

  for (const ValueCodec codec : {ValueCodec::kFloat32, ValueCodec::kBf16, ValueCodec::kInt8}) {
    const ValueGroup g{TableId(1), ShardId(4), 5, 3, codec};
    auto encoder = PullReplyEncoder::Make({&g, 1});
    const size_t want = codec == ValueCodec::kFloat32 ? 60 : codec == ValueCodec::kBf16 ? 30 : 35;
    REQUIRE(encoder->bytes(0).size() == want);
    std::fill(encoder->bytes(0).begin(), encoder->bytes(0).end(), uint8_t{3});
    const Buffer bytes = encoder->Finish(kState, PullOutcome::kServed, ticket);
    const auto reply = ParsePullReply(bytes.span());
    REQUIRE(reply.ok());
    CHECK(reply->ticket == ticket);
    CHECK(CheckReplyGroup(reply->groups[0], TableId(1), ShardId(4), 5, 3, codec).ok());
    CHECK_FALSE(CheckReplyGroup(reply->groups[0], TableId(1), ShardId(4), 6, 3, codec).ok());
  }

  PushContribution c{{0, 1}, 2, {{TableId(1), ShardId(4), keys, 3}}, ticket};
  auto encoder = PushRequestEncoder::Make(shards, {&c, 1});
  REQUIRE(encoder.ok());
  for (float& f : encoder->values(0)) f = 1.5f;
  const Buffer bytes = encoder->Finish({});
  const auto push = ParsePushRequest(bytes.span());
  REQUIRE(push.ok());
  CHECK(push->contributions[0].ticket == ticket);
  CHECK(push->groups[0].keys() == 0);
  // The checksum covers the keys that are not sent.
  const uint32_t keys_crc = announced->groups[0].crc32c;
  CHECK(CheckTicketGroup(push->groups[0], 5, keys_crc, 3).ok());
  CHECK(absl::IsDataLoss(CheckTicketGroup(push->groups[0], 5, keys_crc + 1, 3)));
  CHECK(absl::IsInvalidArgument(CheckTicketGroup(push->groups[0], 4, keys_crc, 3)));
  c.ticket = {};
  auto with_keys = PushRequestEncoder::Make(shards, {&c, 1});
  for (float& f : with_keys->values(0)) f = 1.5f;
  const Buffer longer = with_keys->Finish({});
  const auto keyed = ParsePushRequest(longer.span());
  CHECK(keyed->groups[0].crc32c == push->groups[0].crc32c);
  CHECK(absl::IsInvalidArgument(CheckTicketGroup(keyed->groups[0], 5, keys_crc, 3)));
}

TEST_CASE("only stale tickets are told as such", "[codec][ticket]") {
  CHECK(IsTicketError(absl::FailedPreconditionError("ticket 5: unknown")));
  CHECK_FALSE(IsTicketError(absl::FailedPreconditionError("header.session 5")));
  CHECK_FALSE(IsTicketError(absl::InvalidArgumentError("ticket 5")));
}

TEST_CASE("a pull's reply is written in place by several threads", "[codec]") {
  std::vector<ValueGroup> groups;
  for (uint32_t i = 0; i < 40; ++i) {
    groups.push_back({TableId(i % 3), ShardId(1u << (i % 32)), i * 37 % 500, 1 + i % 17});
  }
  auto encoder = PullReplyEncoder::Make(groups);
  REQUIRE(encoder.ok());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&encoder, t] {
      for (size_t i = t; i < encoder->groups(); i += 4) {
        const std::span<float> out = encoder->values(i);
        for (size_t k = 0; k < out.size(); ++k) out[k] = static_cast<float>(i * 1000 + k);
        if (i % 2 == 0) encoder->Seal(i);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  const Buffer bytes = encoder->Finish(kState, PullOutcome::kServed);

  const auto view = ParsePullReply(bytes.span());
  REQUIRE(view.ok());
  CHECK(view->state == kState);
  CHECK(view->outcome == PullOutcome::kServed);
  REQUIRE(view->groups.size() == groups.size());
  std::vector<float> scratch;
  for (size_t i = 0; i < groups.size(); ++i) {
    const ValueGroup& g = groups[i];
    REQUIRE(CheckReplyGroup(view->groups[i], g.table, g.shard, g.keys, g.dim).ok());
    const float* values = AlignedValues(view->groups[i], scratch);
    CHECK(scratch.empty());  // our own messages are aligned
    for (size_t k = 0; k < g.keys * g.dim; ++k) {
      REQUIRE(values[k] == static_cast<float>(i * 1000 + k));
      REQUIRE(view->groups[i].value(k) == values[k]);
    }
  }
  const auto read = Read<::strata::PullReply>(bytes);
  CHECK(read.SerializeAsString() == ToProto(*view).SerializeAsString());
  CHECK(read.groups(3).crc32c() == Crc32c(BytesOf(read.groups(3).values())));
}

TEST_CASE("a reply without values", "[codec]") {
  const Buffer bytes = PullReplyEncoder::Make({})->Finish(kState, PullOutcome::kNotYet);
  const auto view = ParsePullReply(bytes.span());
  CHECK(view->outcome == PullOutcome::kNotYet);
  CHECK(view->groups.empty());
  CHECK(Read<::strata::PullReply>(bytes).outcome() == ::strata::NOT_YET);
}

TEST_CASE("a push request carries contributions, keys and values", "[codec]") {
  const TableSpec table = Table(0, 3);
  const TableSpec dense = Table(1, 256, TableKind::kDense);
  const std::vector<Key> keys = SortedKeys(table, 333, 5);
  const std::vector<Key> rows = {Key(10), Key(11), Key(12)};
  const std::vector<ShardId> shards = {ShardId(4), ShardId(5)};
  const std::vector<PushContribution> contributions = {
      {{0, 4}, 2048, {{TableId(0), ShardId(4), keys, 3}, {TableId(1), ShardId(4), rows, 256}}},
      {{4, 5}, 0, {}},
      {{6, 7}, 512, {{TableId(0), ShardId(5), keys, 3}}}};
  auto encoder = PushRequestEncoder::Make(shards, contributions);
  REQUIRE(encoder.ok());
  REQUIRE(encoder->groups() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const std::span<float> out = encoder->values(i);
    REQUIRE(out.size() == (i == 1 ? 3 * 256 : 333 * 3));
    for (size_t k = 0; k < out.size(); ++k) out[k] = static_cast<float>(k) + 0.5f;
  }
  const PushFields fields{kHeader, Sequence(9), Step(8), TaskId(7), 6, 5, LaneId(4)};
  const Buffer bytes = encoder->Finish(fields);

  const auto view = ParsePushRequest(bytes.span());
  REQUIRE(view.ok());
  CHECK(view->fields == fields);
  CHECK(view->shards == shards);
  REQUIRE(view->contributions.size() == 3);
  CHECK(view->contributions[0].node == LaneNode{0, 4});
  CHECK(view->contributions[0].examples == 2048);
  CHECK(view->GroupsOf(view->contributions[0]).size() == 2);
  CHECK(view->GroupsOf(view->contributions[1]).empty());
  CHECK(view->GroupsOf(view->contributions[2]).size() == 1);
  std::vector<Position> positions(333);
  const GroupView& last = view->GroupsOf(view->contributions[2])[0];
  CHECK(CheckRequestGroup(last, table, GroupValues::kPerKey, kFirst, kLast, positions).ok());
  std::vector<Position> dense_positions(3);
  CHECK(CheckRequestGroup(view->groups[1], dense, GroupValues::kPerKey, Position(10), Position(12),
                          dense_positions)
            .ok());
  CHECK(dense_positions[2] == Position(12));
  std::vector<float> scratch;
  CHECK(AlignedValues(last, scratch)[998] == 998.5f);
  CHECK(scratch.empty());
  CHECK(Read<::strata::PushRequest>(bytes).SerializeAsString() ==
        ToProto(*view).SerializeAsString());
}

TEST_CASE("groups whose values go by a device's memory have none", "[codec]") {
  const std::vector<ShardId> shards = {ShardId(2)};
  const std::vector<Key> keys = {Key(3), Key(5), Key(9)};
  const uint32_t crc = Crc32c({reinterpret_cast<const uint8_t*>(keys.data()), 24});
  for (const Ticket& ticket : {Ticket{}, Ticket{1, 2, 3, 4}}) {
    const PushContribution c{{0, 1}, 7, {{TableId(0), shards[0], keys, 0}}, ticket};
    auto encoder = PushRequestEncoder::Make(shards, {&c, 1});
    REQUIRE(encoder.ok());
    CHECK(encoder->bytes(0).empty());
    const Buffer bytes = encoder->Finish({});
    const auto push = ParsePushRequest(bytes.span());
    REQUIRE(push.ok());
    const GroupView& group = push->groups[0];
    CHECK(group.keys() == (ticket ? 0 : 3));
    CHECK(group.value_bytes.empty());
    CHECK(group.crc32c == crc);
    if (!ticket) continue;
    CHECK(CheckTicketGroup(group, 3, crc, 0).ok());
    CHECK(absl::IsInvalidArgument(CheckTicketGroup(group, 3, crc, 2)));
    CHECK(absl::IsDataLoss(CheckTicketGroup(group, 3, crc + 1, 0)));
  }
  const ValueGroup value{TableId(0), shards[0], 3, 0};
  auto encoder = PullReplyEncoder::Make({&value, 1});
  REQUIRE(encoder.ok());
  const Buffer bytes = encoder->Finish({}, PullOutcome::kServed);
  const auto reply = ParsePullReply(bytes.span());
  REQUIRE(reply.ok());
  CHECK(CheckReplyGroup(reply->groups[0], TableId(0), shards[0], 3, 0).ok());
  CHECK(absl::IsInvalidArgument(CheckReplyGroup(reply->groups[0], TableId(0), shards[0], 3, 4)));
}

TEST_CASE("values that other clients leave unaligned are copied", "[codec]") {
  std::vector<uint8_t> bytes(64);
  const float v = 1.25f;
  std::memcpy(bytes.data() + 5, &v, 4);
  GroupView group;
  const size_t shift = reinterpret_cast<uintptr_t>(bytes.data()) % 4;
  REQUIRE(shift == 0);
  group.value_bytes = {bytes.data() + 5, 4};
  std::vector<float> scratch;
  CHECK(AlignedValues(group, scratch)[0] == 1.25f);
  CHECK(scratch.size() == 1);
}

TEST_CASE("WithHeader replaces the header in full", "[codec]") {
  const std::vector<Key> keys = {Key(1), Key(2)};
  const std::vector<KeyGroup> groups = {{TableId(1), ShardId(2), keys}};
  const Buffer first = *EncodePullRequest(kHeader, Step(5), 1, {}, groups);
  const Header zeros{};  // zeros replace too
  const Buffer second = *WithHeader(first, zeros);
  CHECK(ParsePullRequest(second.span())->header == zeros);
  CHECK(ParsePullRequest(second.span())->step == Step(5));
  CHECK(ParsePullRequest(second.span())->groups.size() == 1);
  CHECK(Read<::strata::PullRequest>(second).header().session() == 0);
  CHECK(ParsePullRequest(WithHeader(second, kHeader)->span())->header == kHeader);
  CHECK(second.device_values() == nullptr);
  const auto values = std::make_shared<const DeviceValues>();
  CHECK(WithHeader(second.With(values), kHeader)->device_values() == values);
}

TEST_CASE("an unknown outcome is kept as it came", "[codec]") {
  ::strata::PullReply m;
  m.set_outcome(static_cast<::strata::PullOutcome>(-5));
  const std::string bytes = m.SerializeAsString();
  const auto view = ParsePullReply(BytesOf(bytes));
  CHECK(static_cast<int32_t>(view->outcome) == -5);
  const Buffer again = PullReplyEncoder::Make({})->Finish({}, view->outcome);
  CHECK(static_cast<int>(Read<::strata::PullReply>(again).outcome()) == -5);
}

}  // namespace
}  // namespace strata::wire
