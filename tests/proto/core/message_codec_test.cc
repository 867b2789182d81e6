#include "proto/core/message_codec.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "proto/core/checksum.h"
#include "proto/core/message_limits.h"
#include "tests/proto/core/codec_oracle.h"

namespace strata::wire {
namespace {

using testing::ToProto;

std::span<const uint8_t> BytesOf(const std::string& s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), s.size()};
}

template <typename Proto>
Proto Read(const Buffer& b) {
  Proto m;
  REQUIRE(m.ParseFromArray(b.data(), static_cast<int>(b.size())));
  return m;
}

TableSpec Table(uint32_t id, uint32_t dim, TableKind kind = TableKind::kHashed) {
  TableSpec t;
  t.id = TableId(id);
  t.kind = kind;
  t.segments.push_back({.name = "w", .dim = dim});
  return t;
}

std::vector<Key> SortedKeys(const TableSpec& table, size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Key> keys(n);
  for (Key& k : keys) k = Key(random());
  std::sort(keys.begin(), keys.end(),
            [&table](Key a, Key b) { return table.PositionOfKey(a) < table.PositionOfKey(b); });
  return keys;
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
  CHECK(pull->codec == ValueCodec::kInt8);
  CHECK(pull->ticket == ticket);
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
}

struct Checked {
  TableSpec table = Table(2, 4);
  std::vector<Key> keys = SortedKeys(table, 100, 3);
  std::vector<float> values = std::vector<float>(400, 1.5f);
  std::vector<Position> positions = std::vector<Position>(100);
  Position first = kFirst;
  Position last = kLast;
  GroupView group;

  Checked() {
    group.table = table.id;
    group.shard = ShardId(8);
    Point();
  }
  void Point() {
    group.key_bytes = {reinterpret_cast<const uint8_t*>(keys.data()), keys.size() * 8};
    group.value_bytes = {reinterpret_cast<const uint8_t*>(values.data()), values.size() * 4};
    group.crc32c = Crc32cExtend(Crc32c(group.key_bytes), group.value_bytes);
    positions.resize(keys.size());
  }
  absl::Status Check(GroupValues v = GroupValues::kPerKey) {
    return CheckRequestGroup(group, table, v, first, last, positions);
  }
};

void CheckError(const absl::Status& s, absl::StatusCode code, std::vector<std::string> parts) {
  CHECK(s.code() == code);
  for (const std::string& part : parts) {
    INFO(s.message());
    CHECK(std::string(s.message()).find(part) != std::string::npos);
  }
}

TEST_CASE("groups of requests are checked", "[codec]") {
  Checked c;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  REQUIRE(c.Check().ok());

  SECTION("empty") {
    c.keys.clear();
    c.values.clear();
    c.Point();
    CHECK(c.group.crc32c == 0);
    CHECK(c.Check().ok());
  }
  SECTION("ragged keys") {
    c.group.key_bytes = c.group.key_bytes.first(799);
    CheckError(c.Check(), kInvalid, {"table 2", "shard 8", "799", "multiple of 8"});
  }
  SECTION("values missing") {
    c.group.value_bytes = c.group.value_bytes.first(1596);
    CheckError(c.Check(), kInvalid, {"1596", "1600", "100 keys of 16 bytes"});
  }
  SECTION("values where none belong") {
    CheckError(c.Check(GroupValues::kNone), kInvalid, {"1600", "expected 0"});
  }
  SECTION("a flipped bit in keys, values or the checksum") {
    c.values[399] = 1.25f;
    CheckError(c.Check(), absl::StatusCode::kDataLoss, {"CRC32C", "table 2"});
    c.values[399] = 1.5f;
    c.keys[50] = Key(c.keys[50].value ^ 1);
    CheckError(c.Check(), absl::StatusCode::kDataLoss, {"CRC32C"});
    c.keys[50] = Key(c.keys[50].value ^ 1);
    c.group.crc32c ^= 1;
    CheckError(c.Check(), absl::StatusCode::kDataLoss, {"CRC32C"});
  }
  SECTION("a key twice") {
    c.keys[41] = c.keys[40];
    c.Point();
    CheckError(c.Check(), kInvalid, {"key 41", "strictly ascend"});
  }
  SECTION("two keys exchanged") {
    std::swap(c.keys[98], c.keys[99]);
    c.Point();
    CheckError(c.Check(), kInvalid, {"key 99", "strictly ascend"});
  }
  SECTION("outside the shard") {
    c.first = c.table.PositionOfKey(c.keys[0]);
    c.last = c.table.PositionOfKey(c.keys[99]);
    CHECK(c.Check().ok());
    c.first = c.first.Next();
    CheckError(c.Check(), kInvalid, {"key 0", "outside the shard's"});
    c.first = kFirst;
    c.last = Position(c.last.value - 1);
    CheckError(c.Check(), kInvalid, {"key 99", "outside the shard's"});
  }
}

TEST_CASE("groups of replies are checked", "[codec]") {
  std::vector<float> values(12, 2.0f);
  GroupView g;
  g.table = TableId(1);
  g.shard = ShardId(2);
  g.value_bytes = {reinterpret_cast<const uint8_t*>(values.data()), 48};
  g.crc32c = Crc32c(g.value_bytes);
  CHECK(CheckReplyGroup(g, TableId(1), ShardId(2), 3, 4).ok());
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  CheckError(CheckReplyGroup(g, TableId(1), ShardId(3), 3, 4), kInvalid, {"shard 3"});
  CheckError(CheckReplyGroup(g, TableId(0), ShardId(2), 3, 4), kInvalid, {"table 0"});
  CheckError(CheckReplyGroup(g, TableId(1), ShardId(2), 4, 4), kInvalid, {"48", "64"});
  g.crc32c += 1;
  CheckError(CheckReplyGroup(g, TableId(1), ShardId(2), 3, 4), absl::StatusCode::kDataLoss, {});
  g.key_bytes = g.value_bytes;
  CheckError(CheckReplyGroup(g, TableId(1), ShardId(2), 3, 4), kInvalid, {"keys"});
}

TEST_CASE("malformed messages are refused with the place and the reason", "[codec]") {
  const auto refused = [](const std::string& bytes, const std::string& part) {
    const auto view = ParsePullRequest(BytesOf(bytes));
    INFO(view.status().message());
    CHECK(view.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(view.status().message()).find(part) != std::string::npos);
  };
  using std::string_literals::operator""s;
  refused("\x10"s, "PullRequest, field 2 at byte 0: ends inside a number");
  refused("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, "more than 10 bytes");
  refused("\x15\x01\x01\x01\x01"s, "wire type 5, expected 0");
  refused("\x0a\x05\x08\x01"s, "length 5, but only 2 bytes left");
  refused("\x10\x01\x0a\x02\x11\x01"s, "Header, field 2 at byte 4: ends inside a number");
  refused("\x00\x01"s, "bad tag");
  refused("\x04"s, "bad tag");
  refused("\x7c"s, "wire type 4");
  refused("\x7e"s, "wire type 6");
  refused("\x7b"s, "group 15 has no end");
  refused("\x7b\x74"s, "ends group 14 inside group 15");
  refused("\xff\xff\xff\xff\xff\x01"s, "more than 5 bytes");
  refused(std::string(100, '\x7b'), "nested deeper than 32");
}

TEST_CASE("bounds on counts and sizes", "[codec]") {
  constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
  std::string groups;
  for (size_t i = 0; i <= kMaxGroups; ++i) groups.append("\x2a\x00", 2);
  CheckError(ParsePullRequest(BytesOf(groups)).status(), kExhausted,
             {"262144", "PullRequest, field 5"});
  groups.resize(groups.size() - 2);
  CHECK(ParsePullRequest(BytesOf(groups))->groups.size() == kMaxGroups);

  std::string contributions;
  for (size_t i = 0; i <= kMaxContributions; ++i) contributions.append("\x4a\x00", 2);
  CheckError(ParsePushRequest(BytesOf(contributions)).status(), kExhausted, {"16384"});

  std::string shards;
  for (size_t i = 0; i <= kMaxShards; ++i) shards.append("\x20\x01", 2);
  CheckError(ParsePullRequest(BytesOf(shards)).status(), kExhausted, {"1048576"});

  const std::vector<uint8_t> big(kMaxMessageBytes + 1);
  CheckError(ParsePullRequest(big).status(), kExhausted, {"67108865", "67108864"});

  // Encoders refuse before they allocate.
  const std::vector<ValueGroup> rows = {{TableId(0), ShardId(0), kMaxMessageBytes / 64, 16}};
  CheckError(PullReplyEncoder::Make(rows).status(), kExhausted, {"67108864"});
  const std::vector<ValueGroup> absurd = {{TableId(0), ShardId(0), ~size_t{0}, ~uint32_t{0}}};
  CheckError(PullReplyEncoder::Make(absurd).status(), kExhausted, {"67108864"});
  const std::vector<ValueGroup> many(kMaxGroups + 1);
  CheckError(PullReplyEncoder::Make(many).status(), kExhausted, {"262145 groups"});
  const std::vector<PushContribution> pushes(kMaxContributions + 1);
  CheckError(PushRequestEncoder::Make({}, pushes).status(), kExhausted, {"contributions"});
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
