// Pushes of a synchronous trainer that one message cannot carry.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
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

// What a push speaks for.
std::vector<ShardId> ShardsOf(const Call& push) {
  return wire::ParsePushRequest(push.request.span())->shards;
}

// A byte less than a push of the small model takes.
size_t LessThanAll() {
  Fixture whole({.servers = 1});
  whole.Start({0});
  whole.Open();
  whole.ServeAll(1);
  return whole.servers.Any(0, kPush).request.size() - 1;
}

// Step 1 is computed, and its push is in flight, in parts.
struct PartsFixture : Fixture {
  PartsFixture() : PartsFixture(LessThanAll()) {}

  // The parts of the next push, by their shards.
  std::vector<Call> NextParts(const std::vector<ShardId>& shards) {
    std::vector<Call> next;
    std::vector<ShardId> named;
    while (named.size() < shards.size()) {
      next.push_back(servers.Any(0, kPush));
      for (const ShardId shard : ShardsOf(next.back())) named.push_back(shard);
      CHECK(next.back().request.size() <= limit);
      if (!parts.empty()) CHECK(SequenceOf(next.back()) == SequenceOf(parts.front()));
    }
    CHECK(named == shards);
    return next;
  }
  static void AcceptParts(const std::vector<Call>& calls, uint64_t incarnation) {
    for (const Call& call : calls) call.reply(wire::EncodePushReply({At(0, incarnation)}));
  }
  // Returns when the trainer has done all that there was to do: the pull of the next step, which is
  // not committed, went round.
  void Settle(uint64_t incarnation) {
    for (int i = 0; i < 3; ++i) {
      servers.Any(0, kPull).reply(Without(wire::PullOutcome::kNotYet, At(0, incarnation)));
    }
    const Call pull = servers.Any(0, kPull);
    REQUIRE(servers.waiting() == 0);
    pull.reply(Without(wire::PullOutcome::kNotYet, At(0, incarnation)));
  }

  const size_t limit;
  std::vector<Call> parts;

 private:
  explicit PartsFixture(size_t most)
      : Fixture({.servers = 1, .limits = {.push_bytes = most}}), limit(most) {
    Start({0});
    Open();
    ServeAll(1);
    parts = NextParts(plan.shards.ShardsOf(0));
    REQUIRE(parts.size() > 1);
  }
};

// A server that began again between two parts has the later one alone. It says OK to that, and
// would wait for the others for ever.
TEST_CASE("of a push whose parts two processes of a server took, the first one's go again",
          "[bsp]") {
  PartsFixture f;
  const size_t later =
      f.parts.size() - GENERATE(size_t{1}, size_t{2});  // the first one that the second took
  std::vector<ShardId> lost;
  for (size_t p = 0; p < f.parts.size(); ++p) {
    const bool kept = p >= later && p > 0;
    PartsFixture::AcceptParts({f.parts[p]}, kept ? 71 : 70);
    if (kept) continue;
    for (const ShardId shard : ShardsOf(f.parts[p])) lost.push_back(shard);
  }
  PartsFixture::AcceptParts(f.NextParts(lost), 71);
  f.Settle(71);  // and no third time
}

TEST_CASE("a refused part goes again when the others are through, and they do not", "[bsp]") {
  PartsFixture f;
  const auto code = GENERATE(absl::StatusCode::kUnavailable, absl::StatusCode::kResourceExhausted);
  f.parts[0].reply(absl::Status(code, "retry later"));
  f.servers.Any(0, kPull).reply(Fixture::Without(wire::PullOutcome::kNotYet, At(0)));
  f.AwaitPause(10);  // of the pull
  f.Settle(70);
  PartsFixture::AcceptParts({f.parts.begin() + 1, f.parts.end()}, 70);
  const std::vector<Call> again = f.NextParts(ShardsOf(f.parts[0]));
  SECTION("the same process has all of it then") {
    PartsFixture::AcceptParts(again, 70);
    f.Settle(70);
  }
  SECTION("what another process does not have goes to it") {
    PartsFixture::AcceptParts(again, 71);
    std::vector<ShardId> others;
    for (size_t p = 1; p < f.parts.size(); ++p) {
      for (const ShardId shard : ShardsOf(f.parts[p])) others.push_back(shard);
    }
    PartsFixture::AcceptParts(f.NextParts(others), 71);
    f.Settle(71);
  }
}

TEST_CASE("a push that a server has is doubted as a whole when a call to it breaks", "[bsp]") {
  PartsFixture f;
  PartsFixture::AcceptParts(f.parts, 70);
  f.Settle(70);
  f.servers.Any(0, kPull).reply(absl::UnavailableError("away"));
  f.AwaitPause(10);
  PartsFixture::AcceptParts(f.NextParts(f.plan.shards.ShardsOf(0)), 70);
  f.Settle(70);
}

}  // namespace
}  // namespace strata
