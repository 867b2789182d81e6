// A synchronous trainer by itself: its steps, its lanes, and its end. What goes wrong between it
// and servers is in trainer_openings_test.cc, trainer_backoffs_test.cc and trainer_resends_test.cc.
#include "worker/bsp/trainer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "tests/worker/bsp/trainer_fixture.h"
#include "tests/worker/client/scripted_servers.h"
#include "tests/worker/small_training.h"

namespace strata {
namespace {

using Call = testing::ScriptedServers::Call;
using Fixture = testing::TrainerFixture;
using testing::At;
using testing::kOpen;
using testing::NotedBoundary;
using testing::OpenReply;

TEST_CASE("a trainer goes from the smallest clock to the last step", "[bsp]") {
  Fixture f;
  f.Start({0, 1});
  f.servers.Next(0, kOpen).reply(OpenReply(At(1)));
  f.servers.Next(1, kOpen).reply(OpenReply(At(0)));
  const Call first = f.NextPull(0, 1), other = f.NextPull(1, 1);
  CHECK(wire::ParsePullRequest(first.request.span())->header ==
        wire::Header{JobId(5), SessionId(6), Generation(2), MapEpoch(3)});
  CHECK(f.boundary.calls().empty());
  first.reply(f.Weights(first, At(1)));
  other.reply(f.Weights(other, At(0)));
  const Call push = f.NextPush(0, 1), other_push = f.NextPush(1, 1);
  CHECK(Fixture::SequenceOf(push) == Fixture::SequenceOf(other_push));
  push.reply(wire::EncodePushReply({At(1)}));
  other_push.reply(wire::EncodePushReply({At(0)}));
  f.ServeAll(2);
  const Call next = f.NextPush(0, 2);
  CHECK(Fixture::SequenceOf(next).value == Fixture::SequenceOf(push).value + 1);
  next.reply(wire::EncodePushReply({At(1)}));
  f.Accept(1, 2);
  CHECK(f.Report().step() == 2);
  CHECK(f.Report().examples() == 2 * 2 * 3);
  f.ServeAll(3);  // without keys: the last step is committed
  CHECK(f.result.get().ok());
  CHECK(f.boundary.calls() == std::vector<NotedBoundary::Call>{{1, false}, {2, true}});
  CHECK(f.servers.waiting() == 0);
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("gradients are summed over the lanes before they are pushed", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0, 1});
  f.Open();
  f.ServeAll(1);
  const Call push = f.NextPush(0, 1);
  const auto view = wire::ParsePushRequest(push.request.span());
  REQUIRE(view->contributions.size() == 1);
  CHECK(view->contributions[0].node == LaneNode{0, 2});
  CHECK(view->contributions[0].examples == 6);
  float most = 0;
  for (const wire::GroupView& group : view->groups) {
    if (group.table != TableId(0)) continue;
    for (size_t i = 0; i < group.floats(); ++i) most = std::max(most, group.value(i));
  }
  CHECK(most == 6);  // the key that all examples of both lanes have
}

TEST_CASE("a server that has not committed yet is asked again at once", "[bsp]") {
  Fixture f;
  f.Start({0});
  f.Open();
  f.Serve(1, 1);
  for (int i = 0; i < 3; ++i) {
    f.NextPull(0, 1).reply(Fixture::Without(wire::PullOutcome::kNotYet, At(0)));
  }
  f.Serve(0, 1);
  const Call push = f.NextPush(0, 1);
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("a lane that is behind goes on where the servers are", "[bsp]") {
  Fixture f({.last_step = 9});
  f.Start({0});
  f.Open(2);
  const Call unanswered = f.NextPull(1, 3);
  f.NextPull(0, 3).reply(Fixture::Without(wire::PullOutcome::kTooOld, At(7)));
  f.NextPull(0, 7);
  f.NextPull(1, 7);
}

TEST_CASE("an error that no retry mends ends the training, and names the server", "[bsp]") {
  Fixture f;
  f.Start({0});
  std::string expected = "server 1: ";
  SECTION("of OpenSession") {
    f.servers.Next(1, kOpen).reply(absl::InvalidArgumentError("no such job"));
    expected += "no such job";
  }
  SECTION("of a pull") {
    f.Open();
    f.NextPull(1, 1).reply(absl::InvalidArgumentError("wrong keys"));
    expected += "wrong keys";
  }
  SECTION("of a push") {
    f.Open();
    f.ServeAll(1);
    f.NextPush(1, 1).reply(absl::InvalidArgumentError("wrong values"));
    expected += "wrong values";
  }
  const absl::Status s = f.result.get();
  CHECK(absl::IsInvalidArgument(s));
  CHECK(s.message() == expected);
}

TEST_CASE("Stop ends a trainer that backs off, and one that waits", "[bsp]") {
  Fixture f;
  f.Start({0});
  SECTION("for an address") {
    const Call open = f.servers.Next(0, kOpen), other = f.servers.Next(1, kOpen);
    f.links.SetPeers({{"", ""}, {"", ""}});
    open.reply(absl::UnavailableError("away"));
    f.timer.AwaitAlarms(1);
  }
  SECTION("for an answer") {
    f.Open();
    f.NextPull(0, 1);
  }
  f.trainer->Stop();
  CHECK(absl::IsCancelled(f.result.get()));
}

TEST_CASE("a lane that is taken away is pulled and pushed for no longer", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0, 1});
  f.Open();
  const Call both = f.NextPull(0, 1);
  f.trainer->SetLanes({1});
  const Call one = f.NextPull(0, 1);  // no session is opened for it
  both.reply(f.Weights(both, At(0)));
  one.reply(f.Weights(one, At(0)));
  const Call push = f.NextPush(0, 1);
  CHECK(wire::ParsePushRequest(push.request.span())->contributions[0].node == LaneNode{1, 2});
  push.reply(wire::EncodePushReply({At(0)}));
  f.ServeAll(2);
  CHECK(f.boundary.calls().empty());  // lane 0 is elsewhere
}

TEST_CASE("the boundary may end the training, well or not", "[bsp]") {
  Fixture f({.servers = 1, .lanes = 1, .last_step = 9});
  SECTION("well") {
    f.boundary.StopAfter(Step(1));
    f.Start({0});
    f.Open();
    f.ServeAll(1);
    f.AcceptAll(1);
    f.ServeAll(2);
    CHECK(f.result.get().ok());
  }
  SECTION("not") {
    f.boundary.FailAfter(Step(1), absl::InternalError("no room for predictions"));
    f.Start({0});
    f.Open();
    f.ServeAll(1);
    f.AcceptAll(1);
    f.ServeAll(2);
    CHECK(f.result.get() == absl::InternalError("no room for predictions"));
  }
  CHECK(f.servers.waiting() == 0);  // nothing of step 2 was pushed
}

TEST_CASE("bad data ends the training", "[bsp]") {
  Fixture f;
  f.source.Fail(absl::InvalidArgumentError("file:7:1: bad"));
  f.Start({0});
  f.Open();
  CHECK(f.result.get() == absl::InvalidArgumentError("file:7:1: bad"));
}

TEST_CASE("pulls in another codec keep rows off the device", "[bsp][device]") {
  Fixture f({.servers = 1, .device = true, .codec = wire::ValueCodec::kBf16});
  f.Start({0});
  f.Open(0, "host");
  CHECK(f.NextPull(0, 1).request.device_values() == nullptr);
}

}  // namespace
}  // namespace strata
