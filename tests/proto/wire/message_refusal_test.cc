// What the codec does not take: groups that are wrong, messages that are malformed or too large.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/checksum.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/message_limits.h"
#include "tests/address_limit.h"
#include "tests/proto/wire/codec_samples.h"
#include "tests/skip.h"

namespace strata::wire {
namespace {

constexpr Position kFirst(0);
constexpr Position kLast(~0ull);

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
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
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
  CheckError(PullReplyEncoder::Make(rows).status(), kInvalid, {"67108864"});
  const std::vector<ValueGroup> absurd = {{TableId(0), ShardId(0), ~size_t{0}, ~uint32_t{0}}};
  CheckError(PullReplyEncoder::Make(absurd).status(), kInvalid, {"67108864"});
  const std::vector<ValueGroup> many(kMaxGroups + 1);
  CheckError(PullReplyEncoder::Make(many).status(), kInvalid, {"262145 groups"});
  const std::vector<PushContribution> pushes(kMaxContributions + 1);
  CheckError(PushRequestEncoder::Make({}, pushes).status(), kExhausted, {"contributions"});
}

TEST_CASE("a reply that there is no memory for is refused, and the next one is not", "[codec]") {
  const std::vector<ValueGroup> groups = {
      {.table = TableId(0), .shard = ShardId(0), .keys = size_t{1} << 20, .dim = 10}};
  {
    const AddressLimit limit(size_t{8} << 20);
    if (!limit.set()) STRATA_SKIP(limit.reason());
    std::vector<PullReplyEncoder> held;  // what malloc or the pool had free
    absl::Status refused;
    while (refused.ok() && held.size() < 30) {
      auto encoder = PullReplyEncoder::Make(groups);
      refused = encoder.status();
      if (encoder.ok()) held.push_back(*std::move(encoder));
    }
    CheckError(refused, absl::StatusCode::kResourceExhausted,
               {"bytes of memory", "give the process more memory"});
    CHECK(PullReplyEncoder::Make({}).ok());
  }
  CHECK(PullReplyEncoder::Make(groups).ok());
}

}  // namespace
}  // namespace strata::wire
