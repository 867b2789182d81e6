// A synchronous trainer and the sessions that it opens: again where they were lost, and anew for
// lanes that come later.
#include <catch2/catch.hpp>
#include <cstddef>

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
using testing::kOpen;
using testing::kPush;
using testing::OpenReply;

TEST_CASE("a session that is lost is opened again, for that server alone", "[bsp]") {
  Fixture f;
  f.Start({0});
  f.Open();
  f.Serve(1, 1);
  f.NextPull(0, 1).reply(absl::NotFoundError("job 5 is not open"));
  f.AwaitPause(10);
  f.servers.Next(0, kOpen).reply(absl::FailedPreconditionError("not yet"));
  f.AwaitPause(20);
  f.servers.Next(0, kOpen).reply(OpenReply(At(0, 71)));
  f.Serve(0, 1);
  f.AcceptAll(1);
  f.NextPull(0, 2);
  f.NextPull(1, 2);
  CHECK(f.servers.waiting() == 0);
}

TEST_CASE("the late error of an older session leaves the newer one open", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0});
  f.Open();
  f.ServeAll(1);
  const Call push = f.servers.Any(0, kPush);
  f.NextPull(0, 2).reply(absl::NotFoundError("job 5 is not open"));
  f.AwaitPause(10);
  f.Open();
  const Call pull = f.NextPull(0, 2);
  push.reply(absl::NotFoundError("job 5 is not open"));
  const Call again = f.NextPush(0, 1);  // not OpenSession
  CHECK(Fixture::SequenceOf(again) == Fixture::SequenceOf(push));
  CHECK(f.timer.alarms() == 0);
  again.reply(wire::EncodePushReply({At(0)}));
  pull.reply(f.Weights(pull, At(1)));
  f.NextPush(0, 2);
}

TEST_CASE("a lane that is given later starts where the servers are by then", "[bsp]") {
  Fixture f({.servers = 1, .last_step = 9});
  f.Start({0});
  f.Open();
  f.ServeAll(1);
  f.AcceptAll(1);
  const Call old = f.NextPull(0, 2);
  f.trainer->SetLanes({0, 1});
  // The clock is asked for anew.
  f.servers.Next(0, kOpen).reply(OpenReply(At(1)));
  const Call both = f.NextPull(0, 2);
  const auto keys = [](const Call& pull) {
    size_t n = 0;
    const auto view = wire::ParsePullRequest(pull.request.span());
    for (const wire::GroupView& group : view->groups) n += group.keys();
    return n;
  };
  CHECK(keys(both) > keys(old));
  old.reply(f.Weights(old, At(1)));  // nobody waits for it
  both.reply(f.Weights(both, At(1)));
  const Call push = f.NextPush(0, 2);
  CHECK(wire::ParsePushRequest(push.request.span())->contributions[0].node == LaneNode{0, 2});
}

TEST_CASE("rows go by the servers' device until one comes back without it", "[bsp][device]") {
  Fixture f({.servers = 2, .lanes = 1, .device = true});
  f.Start({0});
  f.Open(0, "host");
  for (uint32_t s : {0, 1}) {
    const Call pull = f.NextPull(s, 1);
    REQUIRE(pull.request.device_values() != nullptr);
    pull.reply(f.Weights(pull, At(0)));
  }
  for (uint32_t s : {0, 1}) {
    const Call push = f.NextPush(s, 1);
    REQUIRE(push.request.device_values() != nullptr);
    push.reply(wire::EncodePushReply({At(0)}));
  }
  f.NextPull(0, 2).reply(absl::NotFoundError("job 5 is not open"));
  const Call there = f.NextPull(1, 2);
  f.AwaitPause(10);
  f.servers.Next(0, kOpen).reply(OpenReply(At(0, 71)));
  const Call push = f.NextPush(0, 1);
  CHECK(push.request.device_values() == nullptr);
  push.reply(wire::EncodePushReply({At(0, 71)}));
  const Call here = f.NextPull(0, 2);
  CHECK(here.request.device_values() == nullptr);
  CHECK(there.request.device_values() != nullptr);
  here.reply(f.Weights(here, At(1, 71)));
  there.reply(f.Weights(there, At(1)));
  CHECK(f.NextPush(0, 2).request.device_values() == nullptr);
  CHECK(f.NextPush(1, 2).request.device_values() != nullptr);
}

}  // namespace
}  // namespace strata
