// Pulls of a synchronous trainer whose replies one message cannot carry.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/message_limits.h"
#include "tests/worker/bsp/trainer_fixture.h"
#include "tests/worker/client/scripted_servers.h"

namespace strata {
namespace {

using Call = testing::ScriptedServers::Call;
using Fixture = testing::TrainerFixture;
using testing::At;
using testing::TrainerSetup;

std::vector<ShardId> ShardsOf(const Call& pull) {
  return wire::ParsePullRequest(pull.request.span())->shards;
}

// The most that one shard of the small model takes, so that each is asked for by itself.
size_t BytesOfShard() {
  Fixture f({.servers = 1});
  f.Start({0});
  f.Open();
  const Call pull = f.NextPull(0, 1);
  const auto view = wire::ParsePullRequest(pull.request.span());
  std::vector<size_t> bytes(f.plan.shards.shards().size(), 300);
  for (const wire::GroupView& g : view->groups) {
    const size_t row = f.plan.tables.tables[g.table.value].dim() * sizeof(float);
    bytes[g.shard.value] += wire::MaxGroupBytes(g.keys(), 0) + g.keys() * (row + 16);
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

struct PartsFixture : Fixture {
  explicit PartsFixture(TrainerSetup setup = {.servers = 1, .lanes = 1})
      : Fixture([&] {
          setup.limits.pull_bytes = BytesOfShard();
          return setup;
        }()) {}

  // The parts of the next pull, by their shards.
  std::vector<Call> NextParts(uint64_t step, const std::vector<ShardId>& shards) {
    std::vector<Call> parts;
    std::vector<ShardId> named;
    while (named.size() < shards.size()) {
      parts.push_back(NextPull(0, step));
      for (const ShardId shard : ShardsOf(parts.back())) named.push_back(shard);
    }
    CHECK(named == shards);
    return parts;
  }
  std::vector<ShardId> All() const { return plan.shards.ShardsOf(0); }
};

TEST_CASE("a pull whose reply is too large goes in parts, and its rows are trained on", "[bsp]") {
  // What a step is pushed, with its pull in one piece.
  std::vector<uint8_t> pushed;
  {
    Fixture whole({.servers = 1, .lanes = 1});
    whole.Start({0});
    whole.Open();
    whole.ServeAll(1);
    const Call push = whole.NextPush(0, 1);
    pushed.assign(push.request.span().begin(), push.request.span().end());
  }
  PartsFixture f;
  f.Start({0});
  f.Open();
  const std::vector<Call> parts = f.NextParts(1, f.All());
  REQUIRE(parts.size() > 1);
  for (const Call& part : parts) {
    CHECK_FALSE(wire::ParsePullRequest(part.request.span())->want_ticket);
    part.reply(f.Weights(part, At(0)));
  }
  const Call push = f.NextPush(0, 1);
  CHECK(std::vector<uint8_t>(push.request.span().begin(), push.request.span().end()) == pushed);
}

TEST_CASE("of a pull in parts only what was not served is asked for again", "[bsp]") {
  PartsFixture f;
  f.Start({0});
  f.Open();
  const std::vector<Call> parts = f.NextParts(1, f.All());
  REQUIRE(parts.size() >= 3);
  for (size_t p = 0; p + 1 < parts.size(); ++p) parts[p].reply(f.Weights(parts[p], At(0)));
  SECTION("a server that was busy") {
    parts.back().reply(absl::ResourceExhaustedError("this server holds much; retry later"));
    f.AwaitPause(10);
  }
  SECTION("a shard that has not committed the step before") {
    parts.back().reply(Fixture::Without(wire::PullOutcome::kNotYet, At(0)));
  }
  const std::vector<Call> again = f.NextParts(1, ShardsOf(parts.back()));
  REQUIRE(again.size() == 1);
  again[0].reply(f.Weights(again[0], At(0)));
  f.AcceptAll(1);
  // The next step's pull is of all of them.
  f.NextParts(2, f.All());
}

// A pull of step 2 is in flight, in parts, and the push of step 1. The server says of that again
// and again that its ticket is stale, so it goes again at once: by that a test knows that the
// trainer has seen what was said to it before.
struct InFlightFixture : PartsFixture {
  InFlightFixture() {
    Start({0});
    Open();
    ServeParts(NextParts(1, All()));
    push = NextPush(0, 1);
    parts = NextParts(2, All());
    REQUIRE(parts.size() >= 3);
  }

  void ServeParts(const std::vector<Call>& calls) const {
    for (const Call& call : calls) call.reply(Weights(call, At(1)));
  }
  void SayStale() const {
    push.reply(absl::FailedPreconditionError(absl::StrCat(wire::kTicketError, "4 is gone")));
  }
  // Returns when the trainer has done all that there was to do.
  void Settle() {
    for (int i = 0; i < 3; ++i) {
      SayStale();
      push = servers.Any(0, testing::kPush);
    }
  }
  // The same when a part broke, and the wait for the server is over.
  void SettleLater() {
    SayStale();
    AwaitPause(10);
    push = servers.Any(0, testing::kPush);
    Settle();
  }
  // The pull is answered: step 2 is computed.
  void AwaitComputed() {
    push.reply(wire::EncodePushReply({At(0)}));
    const Call next = servers.Any(0, testing::kPush);
    CHECK(wire::ParsePushRequest(next.request.span())->fields.step == Step(2));
  }

  std::vector<Call> parts;
  Call push;
};

TEST_CASE("a refused part is asked for again when the others are through, and they are not",
          "[bsp]") {
  InFlightFixture f;
  const auto code = GENERATE(absl::StatusCode::kUnavailable, absl::StatusCode::kResourceExhausted);
  f.parts[0].reply(absl::Status(code, "retry later"));
  f.SettleLater();
  REQUIRE(f.servers.waiting() == 0);
  std::vector<ShardId> due = ShardsOf(f.parts[0]);
  size_t through = 1;
  SECTION("the others are served") {}
  SECTION("a shard has not committed the step before") {
    f.parts[1].reply(Fixture::Without(wire::PullOutcome::kNotYet, At(0)));
    for (const ShardId shard : ShardsOf(f.parts[1])) due.push_back(shard);
    through = 2;
  }
  SECTION("another one breaks") {
    f.parts[1].reply(absl::DeadlineExceededError("no answer"));
    f.Settle();
    REQUIRE(f.servers.waiting() == 0);
    for (const ShardId shard : ShardsOf(f.parts[1])) due.push_back(shard);
    through = 2;
  }
  f.ServeParts({f.parts.begin() + through, f.parts.end()});
  const std::vector<Call> again = f.NextParts(2, due);
  CHECK(again.size() == through);
  f.Settle();
  REQUIRE(f.servers.waiting() == 0);
  f.ServeParts(again);
  f.AwaitComputed();
}

TEST_CASE("a session that a part finds lost is opened once, while the others are in flight",
          "[bsp]") {
  InFlightFixture f;
  f.parts[0].reply(absl::FailedPreconditionError("another map epoch"));
  f.SayStale();
  f.AwaitPause(10);
  f.servers.Next(0, testing::kOpen).reply(testing::OpenReply(At(0)));
  f.push = f.servers.Next(0, testing::kPush);
  f.Settle();
  REQUIRE(f.servers.waiting() == 0);
  f.ServeParts({f.parts.begin() + 1, f.parts.end()});
  f.ServeParts(f.NextParts(2, ShardsOf(f.parts[0])));
  f.AwaitComputed();
}

TEST_CASE("a part that never will be answered ends training while others are in flight", "[bsp]") {
  InFlightFixture f;
  f.parts[0].reply(absl::InvalidArgumentError("wrong"));
  CHECK(absl::IsInvalidArgument(f.result.get()));
}

TEST_CASE("parts in flight hold up no lanes that are left when another goes", "[bsp]") {
  PartsFixture f({.servers = 1, .lanes = 2});
  f.Start({0, 1});
  f.Open();
  const std::vector<Call> both = f.NextParts(1, f.All());
  REQUIRE(both.size() >= 3);
  both[0].reply(absl::UnavailableError("away"));
  f.trainer->SetLanes({1});
  f.AwaitPause(10);
  const std::vector<Call> alone = f.NextParts(1, f.All());
  // What comes late is of nobody's pull.
  for (size_t p = 1; p < both.size(); ++p) both[p].reply(f.Weights(both[p], At(0)));
  for (const Call& part : alone) part.reply(f.Weights(part, At(0)));
  const Call push = f.NextPush(0, 1);
  CHECK(wire::ParsePushRequest(push.request.span())->contributions[0].node == LaneNode{1, 2});
}

TEST_CASE("a lane goes on where the part that is furthest says", "[bsp]") {
  PartsFixture f({.servers = 1, .lanes = 1, .last_step = 9});
  f.Start({0});
  f.Open();
  const std::vector<Call> parts = f.NextParts(1, f.All());
  REQUIRE(parts.size() >= 3);
  parts[0].reply(Fixture::Without(wire::PullOutcome::kTooOld, At(5)));
  parts[1].reply(Fixture::Without(wire::PullOutcome::kTooOld, At(4)));
  for (size_t p = 2; p < parts.size(); ++p) {
    parts[p].reply(Fixture::Without(wire::PullOutcome::kNotYet, At(3)));
  }
  f.NextParts(5, f.All());
}

TEST_CASE("keys are not announced whose pull goes in parts", "[bsp]") {
  PartsFixture f({.servers = 1, .lanes = 1, .prefetch = true});
  f.Start({0});
  f.Open();
  for (const Call& part : f.NextParts(1, f.All())) part.reply(f.Weights(part, At(0)));
  f.AcceptAll(1);  // nothing came before that
}

TEST_CASE("a step that is too large for one shard ends the job, with the remedy", "[bsp]") {
  const auto end = [](size_t limit) {
    Fixture f({.servers = 1, .lanes = 1, .limits = {.pull_bytes = limit}});
    f.Start({0});
    f.Open();
    const absl::Status status = f.result.get();
    CHECK(absl::IsResourceExhausted(status));
    return std::string(status.message());
  };
  for (const char* part : {"server 0", "of one shard", "a pull of ", "limit of a message is 2400;",
                           "spec.training.batchSize", "spec.storage.shardsPerServer"}) {
    CHECK_THAT(end(2400), Catch::Contains(part));
  }
  // Fewer keys do not make the dense layers smaller.
  for (const char* part : {"server 0", "a tensor of the model lies in one shard",
                           "limit of a message is 1;", "spec.model.hidden"}) {
    CHECK_THAT(end(1), Catch::Contains(part));
  }
}

}  // namespace
}  // namespace strata
