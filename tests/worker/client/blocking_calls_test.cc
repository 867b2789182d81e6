// Calls to several servers as one: what each answer makes of them, by scripted servers and a clock
// that is moved by hand. The caller waits in a thread of its own. How they are cancelled is in
// blocking_calls_cancel_test.cc.
#include "worker/client/blocking_calls.h"

#include <catch2/catch.hpp>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/wire/buffer.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message.h"
#include "tests/worker/client/blocking_fixture.h"
#include "tests/worker/client/scripted_servers.h"

namespace strata {
namespace {

using Fixture = testing::BlockingFixture;
using testing::kOpen;
using testing::kPush;
using testing::OpenReply;
using testing::ScriptedServers;
using testing::Text;
using testing::TextOf;

TEST_CASE("a call returns when every server has answered", "[calls]") {
  Fixture f;
  f.StartOpen();
  auto first = f.servers.Next(0, kPush);
  CHECK(TextOf(first.request) == "to 0");
  f.Answer(1, Text("good"));
  CHECK(f.running());
  first.reply(Text("good"));
  CHECK(f.result.get().ok());
  CHECK_FALSE(f.calls->tried_again());
  // The sessions stay open.
  f.Start();
  f.Answer(0, Text("good"));
  f.Answer(1, Text("good"));
  CHECK(f.result.get().ok());
}

TEST_CASE("only what failed goes again, after the server's own back-off", "[calls]") {
  Fixture f;
  f.StartOpen();
  f.Answer(1, Text("good"));
  f.Answer(0, absl::UnavailableError("away"));
  f.AwaitPause(10);
  f.Answer(0, Text("unreadable"));
  f.AwaitPause(20);
  f.Answer(0, absl::ResourceExhaustedError("full"));
  f.AwaitPause(40);
  f.Answer(0, Text("good"));
  CHECK(f.result.get().ok());
  CHECK(f.calls->tried_again());
  CHECK(f.servers.waiting() == 0);
  // A call without failures begins anew.
  f.Start();
  f.Answer(0, absl::UnavailableError("away"));
  f.AwaitPause(10);
  f.Answer(0, Text("good"));
  f.Answer(1, Text("good"));
  CHECK(f.result.get().ok());
}

TEST_CASE("what failed goes again while other calls to its server are in flight, and they do not",
          "[calls]") {
  Fixture f(1);
  f.requests.push_back({0, kPush, Text("more to 0")});
  f.StartOpen();
  const auto first = f.servers.Next(0, kPush), second = f.servers.Next(0, kPush);
  first.reply(absl::ResourceExhaustedError("full"));
  f.AwaitPause(10);
  const auto again = f.servers.Next(0, kPush);
  CHECK(TextOf(again.request) == TextOf(first.request));
  again.reply(absl::UnavailableError("away"));
  f.AwaitPause(20);
  f.Answer(0, Text("good"));
  CHECK(f.servers.waiting() == 0);
  CHECK(f.running());
  second.reply(Text("good"));
  CHECK(f.result.get().ok());
  CHECK(f.servers.waiting() == 0);
}

TEST_CASE("a session that is lost meanwhile is opened again", "[calls]") {
  Fixture f(1);
  f.StartOpen();
  f.Answer(0, absl::NotFoundError("job 1 is not open"));
  f.AwaitPause(10);
  f.servers.Next(0, kOpen).reply(absl::UnavailableError("away"));
  f.AwaitPause(20);
  f.servers.Next(0, kOpen).reply(OpenReply({}));
  f.Answer(0, Text("good"));
  CHECK(f.result.get().ok());
  CHECK_FALSE(f.calls->tried_again());  // the first try was refused
}

TEST_CASE("a call that waited for its server was not tried before", "[calls]") {
  Fixture f(1);
  SECTION("that was not open") {
    f.Start();
    f.servers.Next(0, kOpen).reply(absl::UnavailableError("away"));
    f.AwaitPause(10);
    f.servers.Next(0, kOpen).reply(absl::NotFoundError("job 5 is not open"));
    f.AwaitPause(20);
  }
  SECTION("that had no address") {
    f.links.SetPeers({{"", ""}});
    f.Start();
    f.AwaitPause(10);
    f.timer.AwaitAlarms(1);
    f.links.SetPeers({{"0", "0"}});
    f.AwaitPause(20);
  }
  f.servers.Next(0, kOpen).reply(OpenReply({}));
  f.Answer(0, Text("good"));
  CHECK(f.result.get().ok());
  CHECK_FALSE(f.calls->tried_again());
}

TEST_CASE("an answer that says not yet is asked for again at once", "[calls]") {
  Fixture f(1);
  f.StartOpen();
  for (int i = 0; i < 3; ++i) f.Answer(0, Text("not yet"));
  f.Answer(0, Text("good"));
  CHECK(f.result.get().ok());
  CHECK(f.calls->tried_again());
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("a final error is returned when no call is in flight", "[calls]") {
  Fixture f;
  f.StartOpen();
  auto other = f.servers.Next(1, kPush);
  SECTION("of the call") {
    f.Answer(0, absl::InvalidArgumentError("wrong"));
    CHECK(f.running());
    other.reply(absl::UnavailableError("away"));  // not sent again
    CHECK(f.result.get() == absl::InvalidArgumentError("wrong"));
  }
  SECTION("of the answer") {
    f.Answer(0, Text("too old"));
    CHECK(f.running());
    other.reply(Text("good"));
    CHECK(f.result.get() == absl::FailedPreconditionError("too old"));
  }
  CHECK(f.servers.waiting() == 0);
}

TEST_CASE("a final error of OpenSession ends the call", "[calls]") {
  Fixture f(1);
  f.Start();
  f.servers.Next(0, kOpen).reply(absl::InvalidArgumentError("no such job"));
  CHECK(f.result.get() == absl::InvalidArgumentError("no such job"));
  CHECK(f.servers.waiting() == 0);
}

TEST_CASE("what names a stale ticket goes again with keys, in as many parts as that takes",
          "[calls]") {
  Fixture f(1);
  int encoded = 0;
  f.requests[0].with_keys = [&]() -> absl::StatusOr<std::vector<Buffer>> {
    ++encoded;
    return std::vector<Buffer>{Text("keys 1"), Text("keys 2"), Text("keys 3")};
  };
  f.StartOpen();
  SECTION("at once where the ticket was stale") {
    f.Answer(0, absl::FailedPreconditionError(absl::StrCat(wire::kTicketError, "1 is gone")));
    CHECK(f.timer.alarms() == 0);
  }
  SECTION("later where the call broke") {
    f.Answer(0, absl::UnavailableError("away"));
    f.AwaitPause(10);
  }
  std::map<std::string, ScriptedServers::Call> parts;  // they may come in any order
  for (int i = 0; i < 3; ++i) {
    auto call = f.servers.Next(0, kPush);
    parts.emplace(TextOf(call.request), std::move(call));
  }
  REQUIRE(parts.size() == 3);
  parts.at("keys 1").reply(Text("good"));
  parts.at("keys 3").reply(Text("good"));
  parts.at("keys 2").reply(absl::UnavailableError("away"));
  f.AwaitPause(10);
  const auto again = f.servers.Next(0, kPush);
  CHECK(TextOf(again.request) == "keys 2");
  again.reply(Text("good"));
  CHECK(f.result.get().ok());
  CHECK(encoded == 1);
}

TEST_CASE("a call gives up when nothing was answered for so long", "[calls]") {
  Fixture f(1, "", absl::Milliseconds(25));
  SECTION("of a server that is away") {
    f.StartOpen();
    f.Answer(0, absl::UnavailableError("away"));
    f.AwaitPause(10);
    f.Answer(0, absl::UnavailableError("away"));
    f.AwaitPause(20);
    f.Answer(0, absl::UnavailableError("still away"));
    CHECK(f.result.get() == absl::UnavailableError("still away"));
  }
  SECTION("of one without an address") {
    f.links.SetPeers({{"", ""}});
    f.Start();
    f.AwaitPause(10);
    f.AwaitPause(20);
    const absl::Status s = f.result.get();
    CHECK(absl::IsUnavailable(s));
    CHECK(s.message() == "server 0 has no address now");
  }
}

TEST_CASE("a good answer starts the time to give up anew", "[calls]") {
  Fixture f(2, "", absl::Milliseconds(25));
  f.StartOpen();
  auto other = f.servers.Next(1, kPush);
  f.Answer(0, absl::UnavailableError("away"));
  f.AwaitPause(10);
  f.Answer(0, absl::UnavailableError("away"));
  f.AwaitPause(20);
  other.reply(Text("good"));
  f.Answer(0, absl::UnavailableError("away"));
  f.AwaitPause(40);
  f.Answer(0, absl::UnavailableError("away"));
  CHECK(absl::IsUnavailable(f.result.get()));
}

TEST_CASE("rows on a device are sent to no server that does not take them", "[calls][device]") {
  Fixture f(2, "GPU-1");
  f.StartOpenAll();
  for (uint32_t s : {0, 1}) f.servers.Next(s, kOpen).reply(OpenReply({}, "GPU-1"));
  REQUIRE(f.result.get().ok());
  auto values = std::make_shared<DeviceValues>();
  values->device = "GPU-1";
  for (auto& request : f.requests) request.bytes = request.bytes.With(values);
  f.Start();
  auto other = f.servers.Next(1, kPush);
  CHECK(other.request.device_values() == values);
  f.Answer(0, absl::FailedPreconditionError("the rows lie on no device here"));
  f.AwaitPause(10);
  f.servers.Next(0, kOpen).reply(OpenReply({}));
  CHECK(f.running());
  other.reply(Text("good"));
  CHECK(absl::IsFailedPrecondition(f.result.get()));
  CHECK(f.calls->offer_ended());
  CHECK_FALSE(f.calls->OpenAndAllTakeRows());  // all are open: nothing is sent
  // The same in messages.
  for (auto& request : f.requests) request.bytes = Text("in messages");
  f.Start();
  for (uint32_t s : {0, 1}) f.Answer(s, Text("good"));
  CHECK(f.result.get().ok());
  CHECK_FALSE(f.calls->offer_ended());
}

TEST_CASE("a server that cannot be opened takes no rows now", "[calls][device]") {
  Fixture f(2, "GPU-1");
  f.StartOpenAll();
  f.servers.Next(0, kOpen).reply(OpenReply({}, "GPU-1"));
  f.servers.Next(1, kOpen).reply(absl::InvalidArgumentError("wrong"));
  CHECK_FALSE(f.result.get().ok());
  f.StartOpenAll();
  f.servers.Next(1, kOpen).reply(OpenReply({}, "GPU-1"));
  CHECK(f.result.get().ok());
}

}  // namespace
}  // namespace strata
