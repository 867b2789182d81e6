// A session's calls and alarms, by scripted servers and a clock that is moved by hand. What events
// mean is tested in session_machine_test.cc. All runs in one thread.
#include "worker/client/server_session.h"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "tests/worker/client/scripted_servers.h"
#include "worker/client/mailbox.h"
#include "worker/client/server_links.h"

namespace strata {
namespace {

using testing::kOpen;
using testing::OpenReply;
using testing::ScriptedServers;
using Epoch = ServerSession::Epoch;
using Retry = ServerSession::Retry;

struct Fixture {
  explicit Fixture(uint32_t n = 1, const std::string& device = "")
      : links(&servers, n, Caller::Nobody()) {
    links.SetPeers(ScriptedServers::Peers(n));
    ServerSessionOptions options;
    options.links = &links;
    options.timer = &timer;
    options.mailbox = mailbox;
    options.header = {JobId(5), SessionId(6), Generation(2), MapEpoch(3)};
    options.device = device;
    options.call_timeout = absl::Seconds(11);
    options.on_not_open = [this](uint32_t server, const absl::Status& why) {
      not_open.emplace_back(server, why);
    };
    session.emplace(options);
  }

  // Makes a call like a trainer does: once the server is ready, again as OnError says.
  void Pull(uint32_t server) {
    if (!session->Ready(server)) {
      return session->Defer(server, [this, server] { Pull(server); });
    }
    session->Call(server, DataMethod::kPull, Buffer(),
                  [this, server](Epoch sent, absl::StatusOr<Buffer> reply) {
                    if (reply.ok()) {
                      session->OnAnswered(server);
                      answers.push_back(*reply);
                    } else if (session->OnError(server, sent, reply.status()) != Retry::kNever) {
                      Pull(server);
                    } else {
                      failed = reply.status();
                    }
                  });
  }
  // Lets the session do what it can without news.
  void Run() {
    mailbox->Post([] {});
    session->Wait();
    mailbox->Post([] {});
    session->Wait();
  }
  void Answer(uint32_t server, DataMethod method, absl::StatusOr<Buffer> reply) {
    servers.Next(server, method).reply(std::move(reply));
    Run();
  }

  ScriptedServers servers;
  ManualTimer timer;
  ServerLinks links;
  const std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  std::vector<std::pair<uint32_t, absl::Status>> not_open;
  std::vector<Buffer> answers;
  absl::Status failed;
  std::optional<ServerSession> session;
};

TEST_CASE("the first call opens the session and goes once it is open", "[session]") {
  Fixture f;
  f.Pull(0);
  f.Run();
  auto open = f.servers.Next(0, kOpen);
  const auto request = wire::ParseOpenSessionRequest(open.request.span());
  REQUIRE(request.ok());
  CHECK(request->header == f.session->header().To(0));
  CHECK(request->header.session == SessionId(6));
  CHECK(open.timeout == absl::Seconds(11));
  CHECK(f.servers.waiting() == 0);  // neither a second OpenSession nor the pull
  open.reply(OpenReply({}));
  f.Run();
  const auto pull = f.servers.Next(0, DataMethod::kPull);
  CHECK(pull.timeout == absl::Seconds(11));
  CHECK(f.answers.empty());
  pull.reply(Buffer());
  f.Run();
  CHECK(f.answers.size() == 1);
  // From now on calls go at once.
  f.Pull(0);
  f.Answer(0, DataMethod::kPull, Buffer());
  CHECK(f.answers.size() == 2);
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("an answer of a process that was replaced is dropped, and its call goes to the next one",
          "[session][copies]") {
  Fixture f(2);
  f.Pull(0);
  f.Pull(1);
  f.Run();
  for (const uint32_t server : {0, 1}) f.Answer(server, kOpen, OpenReply({}));
  const auto old = f.servers.Next(0, DataMethod::kPull);
  const auto other = f.servers.Next(1, DataMethod::kPull);
  std::vector<DataPeer> peers = ScriptedServers::Peers(2);
  peers[0] = {"", "0"};  // nothing is known of another process yet
  f.links.SetPeers(peers);
  f.Run();
  CHECK(f.servers.waiting() == 0);
  peers[0] = {"0/again", "the next head"};
  f.links.SetPeers(peers);
  CHECK(f.links.health()->silent().empty());
  f.Run();
  f.timer.Advance(absl::Seconds(1));
  f.Run();
  f.Run();
  // It waits for no answer of the one before, which may be long in coming.
  REQUIRE(f.servers.waiting() == 1);
  const auto again = f.servers.Next(0, DataMethod::kPull);
  old.reply(wire::EncodeOpenSessionRequest({}));
  f.Run();
  CHECK(f.answers.empty());
  again.reply(Buffer());
  other.reply(Buffer());
  f.Run();
  REQUIRE(f.answers.size() == 2);
  for (const Buffer& answer : f.answers) CHECK(answer.size() == 0);
}

// Until then it may write there.
TEST_CASE("a call with rows on a device ends when the process that was replaced has answered it",
          "[session][copies]") {
  Fixture f(1, "GPU-1");
  const bool before = GENERATE(true, false);
  f.session->Ready(0);
  f.Answer(0, kOpen, OpenReply({}, "GPU-1"));
  std::vector<absl::Status> ends;
  f.session->Call(0, DataMethod::kPull, Buffer().With(std::make_shared<DeviceValues>()),
                  [&ends](Epoch, absl::StatusOr<Buffer> reply) { ends.push_back(reply.status()); });
  const auto call = f.servers.Next(0, DataMethod::kPull);
  if (before) call.reply(Buffer());
  f.links.SetPeers({{"0/again", "0"}});
  f.Run();
  REQUIRE(ends.size() == (before ? 1 : 0));
  if (before) {
    CHECK(ends[0] == absl::OkStatus());
    return;
  }
  call.reply(Buffer());
  f.Run();
  REQUIRE(ends.size() == 1);
  CHECK(absl::IsCancelled(ends[0]));
}

TEST_CASE("a process whose address comes back is the same one", "[session][copies]") {
  Fixture f;
  f.Pull(0);
  f.Run();
  f.Answer(0, kOpen, OpenReply({}));
  const auto pull = f.servers.Next(0, DataMethod::kPull);
  f.links.SetPeers({{"", "0"}});
  f.links.SetPeers(ScriptedServers::Peers(1));
  pull.reply(Buffer());
  f.Run();
  CHECK(f.answers.size() == 1);
}

TEST_CASE("what waits goes in the order it came, for each server by itself", "[session]") {
  Fixture f(2);
  std::vector<int> ran;
  for (const int i : {1, 2, 3}) f.session->Defer(0, [&ran, i] { ran.push_back(i); });
  f.session->Defer(1, [&ran] { ran.push_back(10); });
  f.Run();
  f.Answer(1, kOpen, OpenReply({}));
  CHECK(ran == std::vector<int>{10});
  f.Answer(0, kOpen, OpenReply({}));
  CHECK(ran == std::vector<int>{10, 1, 2, 3});
  f.session->Defer(0, [&ran] { ran.push_back(4); });
  f.session->DropDeferred();
  f.Run();
  CHECK(ran.size() == 4);
}

TEST_CASE("a call that fails goes again after the back-off, not before", "[session]") {
  Fixture f;
  f.Pull(0);
  f.Run();
  f.Answer(0, kOpen, OpenReply({}));
  const absl::Status errors[] = {absl::UnavailableError("away"),
                                 absl::ResourceExhaustedError("the request memory is in use"),
                                 absl::DataLossError("a checksum")};
  int ms = 10;
  for (const absl::Status& error : errors) {
    f.Answer(0, DataMethod::kPull, error);
    REQUIRE(f.timer.alarms() == 1);
    CHECK(f.timer.next() == f.timer.Now() + absl::Milliseconds(ms));
    f.timer.Advance(absl::Milliseconds(ms) - absl::Nanoseconds(1));
    f.Run();
    CHECK(f.servers.waiting() == 0);
    f.timer.Advance(absl::Nanoseconds(1));
    f.session->Wait();  // the alarm is the mail
    f.Run();
    REQUIRE(f.servers.waiting() == 1);
    ms *= 2;
  }
  f.Answer(0, DataMethod::kPull, Buffer());
  CHECK(f.answers.size() == 1);
  f.Pull(0);
  f.Answer(0, DataMethod::kPull, absl::UnavailableError("away"));
  CHECK(f.timer.next() == f.timer.Now() + absl::Milliseconds(10));
}

TEST_CASE("a connection that breaks with several calls is one failure", "[session]") {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.Pull(0);
  f.Run();
  f.Answer(0, kOpen, OpenReply({}));
  for (const int ms : {10, 20, 40}) {
    REQUIRE(f.servers.waiting() == 3);
    for (int i = 0; i < 3; ++i) f.Answer(0, DataMethod::kPull, absl::UnavailableError("broke"));
    CHECK(f.timer.alarms() == 1);
    CHECK(f.timer.next() == f.timer.Now() + absl::Milliseconds(ms));
    f.timer.AdvanceTo(f.timer.next());
    f.Run();
  }
  for (int i = 0; i < 3; ++i) f.Answer(0, DataMethod::kPull, Buffer());
  CHECK(f.answers.size() == 3);
}

TEST_CASE("the late error of an older session leaves the newer one open", "[session]") {
  Fixture f;
  const absl::Status lost = absl::FailedPreconditionError("session 6 was not opened");
  f.Pull(0);
  f.Pull(0);
  f.Run();
  f.Answer(0, kOpen, OpenReply({}));
  const auto late = f.servers.Next(0, DataMethod::kPull);
  f.Answer(0, DataMethod::kPull, lost);
  f.timer.AdvanceTo(f.timer.next());
  f.Run();
  f.Answer(0, kOpen, OpenReply({}));
  const auto again = f.servers.Next(0, DataMethod::kPull);
  late.reply(lost);
  f.Run();
  CHECK(f.timer.alarms() == 0);
  REQUIRE(f.servers.waiting() == 1);
  f.Answer(0, DataMethod::kPull, Buffer());  // not OpenSession
  again.reply(Buffer());
  f.Run();
  CHECK(f.answers.size() == 2);
}

TEST_CASE("a server that opens each session and refuses each call is asked ever more slowly",
          "[session]") {
  Fixture f;
  f.Pull(0);
  f.Run();
  for (const int ms : {10, 20, 40, 80, 160, 320, 640, 1000, 1000}) {
    f.Answer(0, kOpen, OpenReply({}));
    f.Answer(0, DataMethod::kPull, absl::FailedPreconditionError("session 6 was not opened"));
    CHECK(f.servers.waiting() == 0);
    CHECK(f.timer.next() == f.timer.Now() + absl::Milliseconds(ms));
    f.timer.AdvanceTo(f.timer.next());
    f.Run();
  }
  f.Answer(0, kOpen, OpenReply({}));
  f.Answer(0, DataMethod::kPull, Buffer());
  CHECK(f.answers.size() == 1);
}

TEST_CASE("asking again and again sets one alarm", "[session]") {
  Fixture f;
  f.session->OnError(0, f.session->machine().epoch(0), absl::UnavailableError("away"));
  for (int i = 0; i < 5; ++i) CHECK_FALSE(f.session->Ready(0));
  CHECK(f.timer.alarms() == 1);
  f.session.reset();
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("a server that was started again is opened again, and its device taken away",
          "[session]") {
  Fixture f(2, "GPU-1");
  f.Pull(0);
  f.Pull(1);
  f.Run();
  f.Answer(0, kOpen, OpenReply({7, Generation(2), MapEpoch(3), Step(4)}, "GPU-1"));
  f.Answer(1, kOpen, OpenReply({7, Generation(2), MapEpoch(3), Step(4)}, "GPU-1"));
  CHECK(f.session->machine().all_take_rows());
  f.session->tickets().Learn(Step(5), 0, {0}, {7, 1, 10, 5});
  f.servers.Next(0, DataMethod::kPull);  // the process that had it is gone
  f.links.SetPeers({{"0/again", "0"}, {"1", "1"}});
  f.Run();
  f.timer.Advance(absl::Milliseconds(10));
  f.Run();
  f.Answer(0, DataMethod::kPull, absl::FailedPreconditionError("session 6 was not opened"));
  f.timer.Advance(absl::Milliseconds(20));
  f.Run();
  f.Answer(0, kOpen, OpenReply({8, Generation(2), MapEpoch(3), Step(3)}));
  CHECK(f.session->machine().state(0).incarnation == 8);
  CHECK(f.session->machine().state(0).clock == Step(3));
  CHECK_FALSE(f.session->machine().takes_rows(0));
  CHECK(f.session->machine().takes_rows(1));
  CHECK_FALSE(f.session->tickets().ForPull(Step(5), 0, {0}));
  f.Answer(0, DataMethod::kPull, Buffer());
  f.Answer(1, DataMethod::kPull, Buffer());
  CHECK(f.answers.size() == 2);
  CHECK(f.not_open.empty());
}

TEST_CASE("a stale ticket's call goes again at once, in the same session", "[session]") {
  Fixture f;
  f.Pull(0);
  f.Run();
  f.Answer(0, kOpen, OpenReply({}));
  f.Answer(0, DataMethod::kPull,
           absl::FailedPreconditionError(absl::StrCat(wire::kTicketError, "1 is gone")));
  REQUIRE(f.servers.waiting() == 1);
  f.Answer(0, DataMethod::kPull, Buffer());
  CHECK(f.answers.size() == 1);
  CHECK(f.timer.alarms() == 0);
}

// A server of another map epoch or generation, or one whom the scheduler told to refuse this
// session: it may change its mind, and the scheduler tells the worker if not.
TEST_CASE("a session that a server refuses is asked for again, ever more slowly", "[session]") {
  Fixture f;
  f.Pull(0);
  f.Run();
  const absl::Status refused = absl::FailedPreconditionError("header.map_epoch 3: job 5 is at 4");
  for (const int ms : {10, 20, 40, 80, 160, 320, 640, 1000, 1000}) {
    f.Answer(0, kOpen, refused);
    REQUIRE(f.not_open.size() == 1);
    CHECK(f.not_open.back() == std::pair<uint32_t, absl::Status>(0, refused));
    f.not_open.clear();
    CHECK(f.servers.waiting() == 0);
    CHECK(f.timer.next() == f.timer.Now() + absl::Milliseconds(ms));
    f.timer.AdvanceTo(f.timer.next());
    f.Run();
  }
  f.Answer(0, kOpen, OpenReply({}));
  f.Answer(0, DataMethod::kPull, Buffer());
  CHECK(f.answers.size() == 1);
}

TEST_CASE("a final error of OpenSession is the owner's to act upon", "[session]") {
  Fixture f;
  f.session->Ready(0);
  const absl::Status wrong = absl::InvalidArgumentError("header.job 5 is no job");
  f.Answer(0, kOpen, wrong);
  REQUIRE(f.not_open.size() == 1);
  CHECK(f.not_open[0].second == wrong);
  CHECK(f.servers.waiting() == 0);
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("a server that has no address is looked for, and opened where it appears", "[session]") {
  Fixture f;
  f.links.SetPeers({{"", ""}});
  f.Pull(0);
  f.Run();
  REQUIRE(f.not_open.size() == 1);
  CHECK(absl::IsUnavailable(f.not_open[0].second));
  CHECK(f.timer.next() == f.timer.Now() + absl::Milliseconds(10));
  f.timer.Advance(absl::Milliseconds(10));
  f.Run();
  CHECK(f.not_open.size() == 2);
  CHECK(f.timer.next() == f.timer.Now() + absl::Milliseconds(20));
  f.links.SetPeers({{"0", "0"}});
  f.Run();
  CHECK(f.servers.waiting() == 0);
  f.timer.Advance(absl::Milliseconds(20));
  f.Run();
  f.Answer(0, kOpen, OpenReply({}));
  f.Answer(0, DataMethod::kPull, Buffer());
  CHECK(f.answers.size() == 1);
}

TEST_CASE("a call to a server whose address is gone fails as mail", "[session]") {
  Fixture f;
  f.links.SetPeers({{"", ""}});
  absl::Status status;
  Epoch when = f.session->machine().epoch(0);
  f.session->Call(0, DataMethod::kPull, Buffer(), [&](Epoch sent, absl::StatusOr<Buffer> reply) {
    when = sent;
    status = reply.status();
  });
  CHECK(status.ok());
  f.Run();
  CHECK(absl::IsUnavailable(status));
  CHECK(when == Epoch::kNotSent);
}

TEST_CASE("an answer that comes when the session is gone goes nowhere", "[session]") {
  Fixture f;
  f.Pull(0);
  f.Run();
  auto open = f.servers.Next(0, kOpen);
  f.session.reset();
  open.reply(OpenReply({}));
  CHECK(f.answers.empty());
}

}  // namespace
}  // namespace strata
