// The bytes of data-plane messages of fixed contents, as message_codec.h writes them.
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "tests/golden/golden_file.h"
#include "tests/proto/wire/codec_samples.h"

namespace strata::golden {
namespace {

using namespace wire;  // NOLINT: all of the codec's names

// 32 bytes a line.
std::string Hex(const Buffer& message) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = std::to_string(message.size()) + " bytes";
  for (size_t i = 0; i < message.size(); ++i) {
    if (i % 32 == 0) text += '\n';
    const uint8_t byte = message.data()[i];
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

const Header kHeader{JobId(7), SessionId(0xfedcba9876543210ull), Generation(3), MapEpoch(300)};
const ServerState kState{0x0123456789abcdefull, Generation(2), MapEpoch(9), Step(12345)};
const Ticket kTicket{0xfeedull << 40, 129, 5, 0xdeadbeef};
const std::array<ShardId, 2> kShards = {ShardId(0), ShardId(300)};

// Keys of table 0 in order of position, and dense rows of table 1.
struct Keys {
  std::vector<Key> a = SortedKeys(Table(0, 3), 5, 1);
  std::vector<Key> b = SortedKeys(Table(0, 3), 1, 2);
  std::vector<Key> dense = {Key(1ull << 58), Key((1ull << 58) + 1)};

  std::vector<KeyGroup> Groups() const {
    return {
        {TableId(0), kShards[0], a}, {TableId(0), kShards[1], b}, {TableId(1), kShards[1], dense}};
  }
};

void FillValues(GroupWriter& out) {
  for (size_t g = 0; g < out.groups(); ++g) {
    const std::span<float> values = out.values(g);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(g + 1) * 0.25f - static_cast<float>(i);
    }
  }
}

void FillBytes(GroupWriter& out) {
  for (size_t g = 0; g < out.groups(); ++g) {
    const std::span<uint8_t> bytes = out.bytes(g);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(g * 64 + i * 3);
  }
}

TEST_CASE("small messages have the bytes that they always had", "[golden][codec]") {
  GoldenFile golden("small_messages");
  golden.Check("open_session_request", Hex(EncodeOpenSessionRequest({kHeader})));
  golden.Check("open_session_request of zeros", Hex(EncodeOpenSessionRequest({})));
  golden.Check("open_session_request of a job",
               Hex(EncodeOpenSessionRequest(
                   OpenSessionFor(kHeader, {{0x0123456789abcdef, 1}, {2, 0xfedcba9876543210}}))));
  golden.Check("open_session_reply", Hex(EncodeOpenSessionReply({kState})));
  golden.Check("open_session_reply of zeros", Hex(EncodeOpenSessionReply({})));
  golden.Check("prefetch_reply", Hex(EncodePrefetchReply({kState, kTicket})));
  golden.Check("prefetch_reply without ticket", Hex(EncodePrefetchReply({kState, {}})));
  golden.Check("push_reply", Hex(EncodePushReply({kState, false})));
  golden.Check("push_reply repeated", Hex(EncodePushReply({kState, true})));
  golden.Check("mark_request",
               Hex(EncodeMarkRequest({kHeader, Sequence(4), LaneId(5), 6, TaskId(7), 1ull << 63})));
  golden.Check("mark_request of zeros", Hex(EncodeMarkRequest({})));
  golden.Check("mark_reply", Hex(EncodeMarkReply({kState})));
  golden.Check("mark_reply of zeros", Hex(EncodeMarkReply({})));
  golden.Finish();
}

TEST_CASE("pulls have the bytes that they always had", "[golden][codec]") {
  GoldenFile golden("pull_messages");
  const Keys keys;
  const std::vector<KeyGroup> groups = keys.Groups();
  const Buffer pull = *EncodePullRequest(kHeader, Step(77), 250, kShards, groups);
  golden.Check("pull_request", Hex(pull));
  golden.Check("pull_request under another header",
               Hex(*WithHeader(pull, {JobId(7), SessionId(1), Generation(4), MapEpoch(301)})));
  golden.Check("pull_request of nothing", Hex(*EncodePullRequest({}, Step(0), 0, {}, {})));
  golden.Check(
      "pull_request that wants a ticket, in bf16",
      Hex(*EncodePullRequest(kHeader, Step(1), 0, kShards, groups, {true, ValueCodec::kBf16, {}})));
  golden.Check("pull_request by ticket, in int8",
               Hex(*EncodePullRequest(kHeader, Step(2), 1000, kShards, {},
                                      {false, ValueCodec::kInt8, kTicket})));
  golden.Check("prefetch_request", Hex(*EncodePrefetchRequest(kHeader, Step(78), kShards, groups)));
  golden.Check("prefetch_request of nothing",
               Hex(*EncodePrefetchRequest(kHeader, Step(1), {}, {})));
  golden.Check("fingerprint of keys", std::to_string(FingerprintOf(groups)));

  const std::vector<ValueGroup> floats = {{TableId(0), kShards[0], 5, 3},
                                          {TableId(0), kShards[1], 0, 3},
                                          {TableId(1), kShards[1], 2, 8}};
  auto reply = *PullReplyEncoder::Make(floats);
  FillValues(reply);
  golden.Check("pull_reply", Hex(reply.Finish(kState, PullOutcome::kServed)));
  for (const ValueCodec codec : {ValueCodec::kBf16, ValueCodec::kInt8}) {
    const std::vector<ValueGroup> coded = {{TableId(0), kShards[0], 5, 3, codec},
                                           {TableId(1), kShards[1], 1, 8}};
    auto encoder = *PullReplyEncoder::Make(coded);
    FillBytes(encoder);
    golden.Check(codec == ValueCodec::kBf16 ? "pull_reply in bf16" : "pull_reply in int8",
                 Hex(encoder.Finish(kState, PullOutcome::kServed, kTicket)));
  }
  const std::vector<ValueGroup> there = {{TableId(0), kShards[0], 5, 0}};
  golden.Check("pull_reply by a device",
               Hex(PullReplyEncoder::Make(there)->Finish(kState, PullOutcome::kServed)));
  golden.Check("pull_reply not yet",
               Hex(PullReplyEncoder::Make({})->Finish(kState, PullOutcome::kNotYet)));
  golden.Check("pull_reply too old",
               Hex(PullReplyEncoder::Make({})->Finish(kState, PullOutcome::kTooOld)));
  golden.Finish();
}

Buffer Push(std::span<const PushContribution> contributions, const PushFields& fields) {
  auto encoder = *PushRequestEncoder::Make(kShards, contributions);
  FillValues(encoder);
  return encoder.Finish(fields);
}

TEST_CASE("pushes have the bytes that they always had", "[golden][codec]") {
  GoldenFile golden("push_messages");
  const Keys keys;
  const PushFields step{kHeader, Sequence(9), Step(8), TaskId(0), 0, 0, LaneId(0)};
  const PushFields window{kHeader, Sequence(1ull << 40), Step(0), TaskId(1234), 56, 7, LaneId(3)};
  const std::vector<PushContribution> all = {
      {{0, 4},
       2048,
       {{TableId(0), kShards[0], keys.a, 3}, {TableId(1), kShards[1], keys.dense, 8}}},
      {{4, 5}, 0, {}},
      {{6, 7}, 512, {{TableId(0), kShards[1], keys.b, 3}}}};
  golden.Check("push_request", Hex(Push(all, step)));
  golden.Check("push_request under another header", Hex(*WithHeader(Push(all, step), {})));
  golden.Check("push_request of a window", Hex(Push({all.data() + 2, 1}, window)));
  const PushContribution by_ticket{{0, 1}, 32, {{TableId(0), kShards[0], keys.a, 3}}, kTicket};
  golden.Check("push_request by ticket", Hex(Push({&by_ticket, 1}, step)));
  const PushContribution there{{0, 1}, 32, {{TableId(0), kShards[0], keys.a, 0}}};
  golden.Check("push_request by a device", Hex(Push({&there, 1}, step)));
  golden.Check("push_request of nothing", Hex(Push({}, {})));
  golden.Finish();
}

}  // namespace
}  // namespace strata::golden
