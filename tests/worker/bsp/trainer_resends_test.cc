// What a synchronous trainer sends a second time, and what it sends instead of keys.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
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
using testing::kIncarnation;
using testing::kPush;

TEST_CASE("a server that turns out to be another process gets the step's contribution again",
          "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0});
  f.Open();
  f.ServeAll(1);
  f.AcceptAll(1);
  f.NextPull(0, 2).reply(Fixture::Without(wire::PullOutcome::kNotYet, At(0, 71)));
  f.NextPush(0, 1);
  f.NextPull(0, 2);
}

// What a server gives for these keys.
wire::Ticket TicketFor(const std::vector<wire::GroupView>& views, uint64_t number) {
  std::vector<std::vector<Key>> keys;
  std::vector<wire::KeyGroup> groups;
  uint64_t count = 0;
  for (const wire::GroupView& view : views) {
    auto& list = keys.emplace_back();
    for (size_t i = 0; i < view.keys(); ++i) list.push_back(view.key(i));
    count += list.size();
  }
  for (size_t g = 0; g < keys.size(); ++g) {
    groups.push_back({views[g].table, views[g].shard, keys[g]});
  }
  return {kIncarnation, number, count, wire::FingerprintOf(groups)};
}

TEST_CASE("a push names the ticket of its pull, and goes with keys where that is stale", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0});
  f.Open();
  const Call pull = f.NextPull(0, 1);
  const auto asked = wire::ParsePullRequest(pull.request.span());
  CHECK(asked->want_ticket);
  const wire::Ticket ticket = TicketFor(asked->groups, 4);
  pull.reply(f.Weights(pull, At(0), ticket));
  const Call push = f.NextPush(0, 1);
  const auto named = wire::ParsePushRequest(push.request.span());
  CHECK(named->contributions[0].ticket == ticket);
  for (const wire::GroupView& group : named->groups) CHECK(group.keys() == 0);
  push.reply(absl::FailedPreconditionError(absl::StrCat(wire::kTicketError, "4 is gone")));
  const Call next = f.NextPull(0, 2);
  const Call again = f.NextPush(0, 1);
  const auto with_keys = wire::ParsePushRequest(again.request.span());
  CHECK_FALSE(with_keys->contributions[0].ticket);
  size_t keys = 0;
  for (const wire::GroupView& group : with_keys->groups) keys += group.keys();
  CHECK(keys == ticket.keys);
  CHECK(Fixture::SequenceOf(again) == Fixture::SequenceOf(push));
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("the next step's keys are announced, and a pull may name them", "[bsp]") {
  absl::Notification answered;
  Fixture f({.servers = 1, .last_step = 3, .prefetch = true});
  f.model.on_step = [&] { answered.WaitForNotification(); };
  f.Start({0});
  f.Open();
  f.ServeAll(1);
  const Call announced = f.servers.Next(0, DataMethod::kPrefetch);
  const auto keys = wire::ParsePrefetchRequest(announced.request.span());
  CHECK(keys->step == Step(2));
  SECTION("what goes wrong is left to the pull") {
    announced.reply(absl::InvalidArgumentError("wrong"));
    answered.Notify();
    f.AcceptAll(1);
    f.ServeAll(2);
  }
  SECTION("a ticket stands for the keys, once") {
    const wire::Ticket ticket = TicketFor(keys->groups, 4);
    announced.reply(wire::EncodePrefetchReply({At(0), ticket}));
    answered.Notify();
    f.AcceptAll(1);
    const Call pull = f.NextPull(0, 2);
    CHECK(wire::ParsePullRequest(pull.request.span())->ticket == ticket);
    CHECK(wire::ParsePullRequest(pull.request.span())->groups.empty());
    pull.reply(absl::AbortedError("x"));
    f.AwaitPause(10);
    const Call push_again = f.servers.Any(0, kPush);
    const Call again = f.NextPull(0, 2);
    CHECK_FALSE(wire::ParsePullRequest(again.request.span())->ticket);
    CHECK(wire::ParsePullRequest(again.request.span())->groups.size() == keys->groups.size());
  }
}

}  // namespace
}  // namespace strata
