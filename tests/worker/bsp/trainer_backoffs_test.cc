// A synchronous trainer that waits before it asks a server again.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "tests/worker/bsp/trainer_fixture.h"
#include "tests/worker/client/scripted_servers.h"

namespace strata {
namespace {

using Call = testing::ScriptedServers::Call;
using Fixture = testing::TrainerFixture;
using testing::At;
using testing::kPull;
using testing::kPush;

TEST_CASE("a call that breaks goes again after the back-off, with what the server may have lost",
          "[bsp]") {
  Fixture f;
  f.Start({0});
  f.Open();
  f.ServeAll(1);
  const Call push = f.NextPush(0, 1);
  push.reply(wire::EncodePushReply({At(0)}));
  f.Accept(1, 1);
  const Call other = f.NextPull(1, 2);  // stays open
  f.NextPull(0, 2).reply(absl::UnavailableError("away"));
  f.AwaitPause(10);
  const Call again = f.servers.Any(0, kPush);
  CHECK(Fixture::SequenceOf(again) == Fixture::SequenceOf(push));
  f.NextPull(0, 2).reply(absl::ResourceExhaustedError("full"));
  f.AwaitPause(20);
  const Call pull = f.NextPull(0, 2);
  again.reply(wire::EncodePushReply({At(0)}));
  pull.reply(f.Weights(pull, At(1)));
  other.reply(f.Weights(other, At(1)));
  f.NextPush(0, 2);
}

TEST_CASE("a connection that breaks with a pull and a push in flight is one failure", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0});
  f.Open();
  f.ServeAll(1);
  for (const int ms : {10, 20, 40}) {
    const Call push = f.servers.Any(0, kPush), pull = f.servers.Any(0, kPull);
    push.reply(absl::UnavailableError("broke"));
    pull.reply(absl::UnavailableError("broke"));
    f.AwaitPause(ms);
  }
  f.servers.Any(0, kPush).reply(wire::EncodePushReply({At(0)}));
  const Call pull = f.servers.Any(0, kPull);
  pull.reply(f.Weights(pull, At(1)));
  f.NextPush(0, 2);
}

TEST_CASE("an answer without an outcome is no good one", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0});
  f.Open();
  for (const int ms : {10, 20, 40}) {
    f.NextPull(0, 1).reply(Fixture::Without(wire::PullOutcome::kUnspecified, At(0)));
    f.AwaitPause(ms);
  }
  f.Serve(0, 1);
  f.NextPush(0, 1);
}

TEST_CASE("an answer that cannot be read is a broken call", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0});
  f.Open();
  const Call pull = f.NextPull(0, 1);
  Buffer reply = f.Weights(pull, At(0));
  std::vector<uint8_t> bytes(reply.span().begin(), reply.span().end());
  bytes[bytes.size() / 2] ^= 0x10;  // a value
  pull.reply(Buffer::CopyOf(bytes));
  f.AwaitPause(10);
  f.Serve(0, 1);
  f.NextPush(0, 1);
}

TEST_CASE("a call that was put off is not made for lanes that are gone", "[bsp]") {
  Fixture f;
  f.Start({0, 1});
  f.Open();
  const Call both = f.NextPull(1, 1);
  f.NextPull(0, 1).reply(absl::UnavailableError("away"));
  f.timer.AwaitAlarms(1);
  f.trainer->SetLanes({1});
  f.Serve(1, 1);  // asked for lane 1 alone: the trainer knows
  f.timer.AdvanceTo(f.timer.next());
  f.Serve(0, 1);
  const Call push = f.NextPush(0, 1);  // so no other pull came before it
  CHECK(wire::ParsePushRequest(push.request.span())->contributions[0].node == LaneNode{1, 2});
}

}  // namespace
}  // namespace strata
