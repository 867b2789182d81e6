// Blocking calls that are cancelled: they return at once, whatever they wait for. No time passes.
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/wire/buffer.h"
#include "proto/wire/device_values.h"
#include "tests/worker/client/blocking_fixture.h"
#include "tests/worker/client/scripted_servers.h"
#include "worker/client/blocking_calls.h"

namespace strata {
namespace {

using Fixture = testing::BlockingFixture;
using testing::kOpen;
using testing::kPush;
using testing::OpenReply;
using testing::Text;
using testing::TextOf;

TEST_CASE("a call that is cancelled before it began sends nothing", "[calls][cancel]") {
  Fixture f(1);
  f.cancelled.Set();
  f.Start();
  CHECK(absl::IsCancelled(f.Result()));
  CHECK(f.servers.waiting() == 0);
}

TEST_CASE("a call that is cancelled while it backs off does not wait for the end",
          "[calls][cancel]") {
  Fixture f(1);
  SECTION("of a call") {
    f.StartOpen();
    f.Answer(0, absl::UnavailableError("away"));
  }
  SECTION("of an opening") {
    f.Start();
    f.servers.Next(0, kOpen).reply(absl::UnavailableError("away"));
  }
  SECTION("without an address") {
    f.links.SetPeers({{"", ""}});
    f.Start();
  }
  f.timer.AwaitAlarms(1);
  f.cancelled.Set();
  CHECK(absl::IsCancelled(f.Result()));
  CHECK(f.servers.waiting() == 0);
}

TEST_CASE("a call that is cancelled while servers think does not wait for them",
          "[calls][cancel]") {
  Fixture f;
  f.StartOpen();
  const auto first = f.servers.Next(0, kPush), second = f.servers.Next(1, kPush);
  SECTION("all of them") {}
  SECTION("the last one") { first.reply(Text("good")); }
  SECTION("one, and another refused") {
    first.reply(absl::InvalidArgumentError("wrong"));
    CHECK(f.running());
    f.cancelled.Set();
    CHECK(f.Result() == absl::InvalidArgumentError("wrong"));
    return;
  }
  f.cancelled.Set();
  CHECK(absl::IsCancelled(f.Result()));
  CHECK(f.servers.waiting() == 0);
}

TEST_CASE("an answer that a cancelled call did not wait for is not the next one's",
          "[calls][cancel]") {
  Fixture f(1);
  f.StartOpen();
  const auto late = f.servers.Next(0, kPush);
  f.cancelled.Set();
  REQUIRE(absl::IsCancelled(f.Result()));
  f.cancelled.Clear();
  f.requests[0].bytes = Text("another");
  SECTION("that comes before it") {
    late.reply(Text("good"));
    f.Start();
  }
  SECTION("that comes while it waits") {
    f.Start();
    late.reply(Text("good"));
  }
  SECTION("be it an error, which says nothing of the server now") {
    late.reply(absl::NotFoundError("job 5 is not open"));
    f.Start();
  }
  SECTION("nor that of a device") {
    late.reply(absl::NotFoundError("job 5 is not open"));
    CHECK_FALSE(f.calls->OpenAndAllTakeRows());  // runs the mail
    f.Start();
  }
  const auto next = f.servers.Next(0, kPush);  // without OpenSession
  CHECK(TextOf(next.request) == "another");
  CHECK(f.running());
  next.reply(Text("good"));
  CHECK(f.Result().ok());
  CHECK_FALSE(f.calls->tried_again());
  CHECK(f.timer.alarms() == 0);
}

// A lane that is idle now makes no next call for long.
TEST_CASE("what an answer holds that a cancelled call did not wait for goes at once",
          "[calls][cancel]") {
  Fixture f;
  f.StartOpen();
  const auto first = f.servers.Next(0, kPush), second = f.servers.Next(1, kPush);
  f.cancelled.Set();
  REQUIRE(absl::IsCancelled(f.Result()));
  const auto held = std::make_shared<DeviceValues>();
  first.reply(Text("good").With(held));
  CHECK(held.use_count() == 1);
  second.reply(absl::UnavailableError("away"));
  // The next call has its own answers.
  f.cancelled.Clear();
  f.Start();
  f.Answer(0, Text("good").With(held));
  f.Answer(1, Text("good"));
  CHECK(f.Result().ok());
  CHECK(held.use_count() == 1);
}

TEST_CASE("a call that is cancelled while a server is opened does not wait for it",
          "[calls][cancel]") {
  Fixture f(1, "GPU-1");
  SECTION("by the call") { f.Start(); }
  SECTION("to ask for its device") { f.StartOpenAll(); }
  const auto open = f.servers.Next(0, kOpen);
  f.cancelled.Set();
  CHECK_FALSE(f.Result().ok());
  CHECK(f.servers.waiting() == 0);
  f.cancelled.Clear();
  // The answer counts whenever it comes: the server is not opened a second time.
  f.Start();
  open.reply(OpenReply({}));
  f.Answer(0, Text("good"));
  CHECK(f.Result().ok());
  CHECK(f.servers.waiting() == 0);
}

TEST_CASE("answers that come when the calls are gone go nowhere", "[calls][cancel]") {
  Fixture f;
  f.Start();
  f.servers.Next(0, kOpen).reply(OpenReply({}));
  const auto call = f.servers.Next(0, kPush), open = f.servers.Next(1, kOpen);
  f.cancelled.Set();
  CHECK(absl::IsCancelled(f.Result()));
  f.calls.reset();
  call.reply(Text("good"));
  open.reply(OpenReply({}));
  f.cancelled.Clear();
  f.cancelled.Set();  // wakes nobody
}

}  // namespace
}  // namespace strata
