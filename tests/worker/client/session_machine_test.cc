// What each event makes of a session: no transport, no clock.
#include "worker/client/session_machine.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/id_source.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "tests/worker/client/scripted_servers.h"

namespace strata {
namespace {

using Epoch = SessionMachine::Epoch;
using Retry = SessionMachine::Retry;
using Wait = SessionMachine::Wait;
using testing::OpenReply;

const absl::Time kNow = absl::FromUnixSeconds(1000);

wire::ServerState StateOf(uint64_t incarnation, uint64_t epoch = 1, uint64_t clock = 0) {
  return {incarnation, Generation(1), MapEpoch(epoch), Step(clock)};
}

wire::Ticket TicketOf(uint64_t number) { return {1, number, 10, 5}; }

// Opens every server; each says that it is `incarnation`.
SessionMachine Opened(uint32_t servers, const std::string& device = "", uint64_t incarnation = 7) {
  SessionMachine machine(servers, device);
  for (uint32_t s = 0; s < servers; ++s) {
    machine.OnOpenSent(s);
    REQUIRE(machine.OnOpenAnswered(s, OpenReply(StateOf(incarnation), device), kNow).ok());
  }
  return machine;
}

// A call to server 0 fails at once.
Retry Fail(SessionMachine& machine, const absl::Status& status, absl::Time now = kNow) {
  return machine.OnError(0, machine.epoch(0), status, now);
}
void Reopen(SessionMachine& machine, absl::Time now = kNow) {
  machine.OnOpenSent(0);
  REQUIRE(machine.OnOpenAnswered(0, OpenReply(StateOf(7)), now).ok());
}

void Learn(SessionMachine& machine, uint32_t servers) {
  for (uint32_t s = 0; s < servers; ++s) machine.tickets().Learn(Step(1), s, {0}, TicketOf(s + 1));
}
bool HasTicket(SessionMachine& machine, uint32_t server) {
  return static_cast<bool>(machine.tickets().ForPull(Step(1), server, {0}));
}

TEST_CASE("a session is opened before the first call", "[session]") {
  SessionMachine machine(2, "");
  CHECK(machine.servers() == 2);
  CHECK(machine.WaitOf(0, kNow) == Wait::kClosed);
  machine.OnOpenSent(0);
  CHECK(machine.opening(0));
  CHECK(machine.WaitOf(0, kNow) == Wait::kOpening);
  REQUIRE(machine.OnOpenAnswered(0, OpenReply(StateOf(7, 3, 41)), kNow).ok());
  CHECK(machine.open(0));
  CHECK(machine.WaitOf(0, kNow) == Wait::kNothing);
  CHECK(machine.state(0) == StateOf(7, 3, 41));
  CHECK(machine.WaitOf(1, kNow) == Wait::kClosed);  // of its own
}

TEST_CASE("each class of errors does one thing to a session", "[session]") {
  struct Case {
    absl::Status status;
    Retry retry;
    Wait after;  // the back-off
  };
  const Case cases[] = {
      {absl::UnavailableError("x"), Retry::kLater, Wait::kNothing},
      {absl::DeadlineExceededError("x"), Retry::kLater, Wait::kNothing},
      {absl::AbortedError("x"), Retry::kLater, Wait::kNothing},
      {absl::CancelledError("x"), Retry::kLater, Wait::kNothing},
      {absl::ResourceExhaustedError("x"), Retry::kLater, Wait::kNothing},
      {absl::DataLossError("x"), Retry::kLater, Wait::kNothing},
      {absl::FailedPreconditionError("session 3 is unknown"), Retry::kLater, Wait::kClosed},
      {absl::NotFoundError("job 3 is not open"), Retry::kLater, Wait::kClosed},
      {absl::InvalidArgumentError("x"), Retry::kNever, Wait::kNothing},
      {absl::PermissionDeniedError("x"), Retry::kNever, Wait::kNothing},
      {absl::UnauthenticatedError("x"), Retry::kLater, Wait::kNothing},
      {absl::InternalError("x"), Retry::kNever, Wait::kNothing},
      {absl::UnknownError("x"), Retry::kNever, Wait::kNothing},
  };
  for (const Case& c : cases) {
    INFO(c.status);
    SessionMachine machine = Opened(2);
    Learn(machine, 2);
    CHECK(Fail(machine, c.status) == c.retry);
    const bool waits = c.retry == Retry::kLater;
    CHECK(machine.WaitOf(0, kNow) == (waits ? Wait::kTime : Wait::kNothing));
    if (waits) CHECK(machine.not_before(0) == kNow + absl::Milliseconds(10));
    CHECK(machine.WaitOf(0, kNow + absl::Milliseconds(10)) == c.after);
    CHECK_FALSE(HasTicket(machine, 0));
    // Nothing of it concerns the other server.
    CHECK(machine.WaitOf(1, kNow) == Wait::kNothing);
    CHECK(HasTicket(machine, 1));
  }
}

TEST_CASE("a stale ticket is no failure of the server", "[session]") {
  SessionMachine machine = Opened(2);
  Learn(machine, 2);
  const auto stale = absl::FailedPreconditionError(absl::StrCat(wire::kTicketError, "4 is gone"));
  CHECK(Fail(machine, stale) == Retry::kAtOnce);
  CHECK(machine.WaitOf(0, kNow) == Wait::kNothing);
  CHECK_FALSE(HasTicket(machine, 0));
  CHECK(HasTicket(machine, 1));
  CHECK(Fail(machine, absl::AbortedError("x")) == Retry::kLater);
  CHECK(machine.not_before(0) == kNow + absl::Milliseconds(10));  // the first
}

TEST_CASE("waits grow with failures in a row, and an answer ends the row", "[session]") {
  SessionMachine machine = Opened(1);
  absl::Time now = kNow;
  for (const int ms : {10, 20, 40, 80, 160, 320, 640, 1000, 1000}) {
    CHECK(Fail(machine, absl::UnavailableError("x"), now) == Retry::kLater);
    CHECK(machine.not_before(0) - now == absl::Milliseconds(ms));
    CHECK(machine.WaitOf(0, machine.not_before(0) - absl::Nanoseconds(1)) == Wait::kTime);
    now = machine.not_before(0);
    CHECK(machine.WaitOf(0, now) == Wait::kNothing);
  }
  machine.OnAnswered(0);
  Fail(machine, absl::UnavailableError("x"), now);
  CHECK(machine.not_before(0) - now == absl::Milliseconds(10));
}

TEST_CASE("a server that opens every session and refuses every call is asked ever more slowly",
          "[session]") {
  SessionMachine machine = Opened(1);
  absl::Time now = kNow;
  for (const int ms : {10, 20, 40, 80, 160, 320, 640, 1000, 1000}) {
    Fail(machine, absl::NotFoundError("session 3 is unknown"), now);
    CHECK(machine.not_before(0) - now == absl::Milliseconds(ms));
    now = machine.not_before(0);
    CHECK(machine.WaitOf(0, now) == Wait::kClosed);
    Reopen(machine, now);
    CHECK(machine.WaitOf(0, now) == Wait::kNothing);
  }
}

// Draws the middle of the first half, whatever is asked.
class Quarter : public IdSource {
 public:
  Drawn Draw() override { return {0, uint64_t{1} << 62}; }
};

TEST_CASE("waits are spread by what the machine was given, each server's", "[session]") {
  Quarter random;
  SessionMachine machine(2, "", &random);
  for (const uint32_t server : {0, 1}) {
    for (const double ms : {7.5, 15.0, 30.0}) {
      machine.OnUnreachable(server, kNow);
      CHECK(machine.not_before(server) - kNow == absl::Milliseconds(ms));
    }
  }
}

TEST_CASE("calls that break together are one failure", "[session]") {
  SessionMachine machine = Opened(2);
  const absl::Status broken = absl::UnavailableError("the connection broke");
  const absl::Time first = kNow + absl::Milliseconds(10);
  const Epoch sent = machine.epoch(0);
  for (int i = 0; i < 5; ++i) {
    CHECK(machine.OnError(0, sent, broken, kNow) == Retry::kLater);
    CHECK(machine.not_before(0) == first);
  }
  CHECK(machine.WaitOf(1, kNow) == Wait::kNothing);
  // Also where one of them breaks when the others have gone again.
  CHECK(machine.OnError(0, sent, broken, first) == Retry::kLater);
  CHECK(machine.WaitOf(0, first) == Wait::kNothing);
  // Those that have gone again break together, too.
  const Epoch again = machine.epoch(0);
  for (int i = 0; i < 5; ++i) CHECK(machine.OnError(0, again, broken, first) == Retry::kLater);
  CHECK(machine.not_before(0) == first + absl::Milliseconds(20));
}

TEST_CASE("a session that is lost is closed by whichever of its calls says so", "[session]") {
  SessionMachine machine = Opened(1);
  const Epoch sent = machine.epoch(0);
  Fail(machine, absl::UnavailableError("x"));
  machine.OnError(0, sent, absl::NotFoundError("x"), kNow);
  CHECK(machine.not_before(0) == kNow + absl::Milliseconds(10));
  CHECK(machine.WaitOf(0, machine.not_before(0)) == Wait::kClosed);
}

TEST_CASE("what was sent in an older session does not touch the newer one", "[session]") {
  SessionMachine machine = Opened(2);
  const Epoch sent = machine.epoch(0);
  SECTION("that was lost") { Fail(machine, absl::NotFoundError("x")); }
  SECTION("that was to be opened again") { machine.CloseAll(); }
  const absl::Time now = kNow + absl::Milliseconds(10);
  machine.OnOpenSent(0);
  CHECK(machine.OnError(0, sent, absl::UnavailableError("late"), now) == Retry::kLater);
  REQUIRE(machine.OnOpenAnswered(0, OpenReply(StateOf(7)), now).ok());
  CHECK(machine.WaitOf(0, now) == Wait::kNothing);
  for (const auto& late : {absl::NotFoundError("late"), absl::UnavailableError("late")}) {
    Learn(machine, 2);
    CHECK(machine.OnError(0, sent, late, now) == Retry::kLater);
    CHECK(machine.open(0));
    CHECK(machine.WaitOf(0, now) == Wait::kNothing);
    // Its call goes again, and so with keys.
    CHECK_FALSE(HasTicket(machine, 0));
    CHECK(HasTicket(machine, 1));
  }
  // With the ticket that is stale it would go again and again.
  Learn(machine, 1);
  const auto stale = absl::FailedPreconditionError(absl::StrCat(wire::kTicketError, "4 is gone"));
  CHECK(machine.OnError(0, sent, stale, now) == Retry::kAtOnce);
  CHECK_FALSE(HasTicket(machine, 0));
  // A final error is one whenever it comes.
  CHECK(machine.OnError(0, sent, absl::InvalidArgumentError("x"), now) == Retry::kNever);
  // The newer session's own calls close it.
  Fail(machine, absl::NotFoundError("x"), now);
  CHECK_FALSE(machine.open(0));
}

TEST_CASE("what was sent may have arrived, unless the server refused it", "[session]") {
  const Epoch sent = SessionMachine(1, "").epoch(0);
  CHECK(SessionMachine::MayHaveArrived(sent, absl::UnavailableError("the answer was lost")));
  CHECK(SessionMachine::MayHaveArrived(sent, absl::DeadlineExceededError("x")));
  CHECK(SessionMachine::MayHaveArrived(sent, absl::ResourceExhaustedError("x")));
  CHECK(SessionMachine::MayHaveArrived(sent, absl::DataLossError("unreadable")));
  CHECK_FALSE(SessionMachine::MayHaveArrived(sent, absl::FailedPreconditionError("session 3")));
  CHECK_FALSE(SessionMachine::MayHaveArrived(sent, absl::NotFoundError("job 3 is not open")));
  CHECK_FALSE(SessionMachine::MayHaveArrived(Epoch::kNotSent, absl::UnavailableError("x")));
}

TEST_CASE("a call that was not sent says nothing of its server", "[session]") {
  SessionMachine machine = Opened(1);
  CHECK(machine.OnError(0, Epoch::kNotSent, absl::UnavailableError("no address"), kNow) ==
        Retry::kLater);
  CHECK(machine.WaitOf(0, kNow) == Wait::kNothing);
}

TEST_CASE("an error of OpenSession counts as a call's", "[session]") {
  const auto answered = [](const absl::StatusOr<Buffer>& reply) {
    SessionMachine machine(1, "");
    machine.OnOpenSent(0);
    const absl::Status s = machine.OnOpenAnswered(0, reply, kNow);
    CHECK_FALSE(machine.opening(0));
    CHECK_FALSE(machine.open(0));
    return std::pair(s, machine.WaitOf(0, kNow));
  };
  using Result = std::pair<absl::Status, Wait>;
  const absl::Status away = absl::UnavailableError("away"), fenced = absl::NotFoundError("fenced"),
                     wrong = absl::InvalidArgumentError("wrong");
  CHECK(answered(away) == Result(away, Wait::kTime));
  CHECK(answered(fenced) == Result(fenced, Wait::kTime));
  CHECK(answered(wrong) == Result(wrong, Wait::kClosed));
  // Bytes that are no answer.
  const uint8_t bytes[] = {0xff, 0xff, 0xff};
  CHECK(absl::IsInvalidArgument(answered(Buffer::CopyOf(bytes)).first));
}

TEST_CASE("a server without an address is waited for as one that is away", "[session]") {
  SessionMachine machine(1, "");
  machine.OnUnreachable(0, kNow);
  CHECK(machine.not_before(0) == kNow + absl::Milliseconds(10));
  machine.OnUnreachable(0, kNow);
  CHECK(machine.not_before(0) == kNow + absl::Milliseconds(20));
  CHECK(machine.WaitOf(0, kNow) == Wait::kTime);
  CHECK(machine.WaitOf(0, machine.not_before(0)) == Wait::kClosed);
}

TEST_CASE("tickets end with the process and the shard map that gave them", "[session]") {
  const auto reopened = [](const wire::ServerState& state) {
    SessionMachine machine = Opened(2);
    Learn(machine, 2);
    machine.CloseAll();
    CHECK(machine.WaitOf(0, kNow) == Wait::kClosed);
    machine.OnOpenSent(0);
    REQUIRE(machine.OnOpenAnswered(0, OpenReply(state), kNow).ok());
    CHECK(HasTicket(machine, 1));
    return HasTicket(machine, 0);
  };
  CHECK(reopened(StateOf(7)));
  CHECK(reopened(StateOf(7, 1, 99)));  // the clock alone went on
  CHECK_FALSE(reopened(StateOf(8)));
  CHECK_FALSE(reopened(StateOf(7, 2)));
}

TEST_CASE("a server takes rows on the worker's device as long as it says so", "[session]") {
  SessionMachine machine = Opened(2, "GPU-1");
  CHECK(machine.takes_rows(0));
  CHECK(machine.all_take_rows());
  const auto reopen = [&](const std::string& device) {
    machine.CloseAll();
    machine.OnOpenSent(1);
    REQUIRE(machine.OnOpenAnswered(1, OpenReply(StateOf(8), device), kNow).ok());
  };
  for (const char* other : {"", "GPU-2"}) {
    reopen(other);
    CHECK_FALSE(machine.takes_rows(1));
    CHECK(machine.takes_rows(0));
    CHECK_FALSE(machine.all_take_rows());
  }
  reopen("GPU-1");
  CHECK(machine.all_take_rows());
  // A worker without a device sends messages, whatever is offered.
  SessionMachine host(1, "");
  host.OnOpenSent(0);
  REQUIRE(host.OnOpenAnswered(0, OpenReply(StateOf(8), "GPU-1"), kNow).ok());
  CHECK_FALSE(host.takes_rows(0));
}

TEST_CASE("to close leaves a session that is being opened", "[session]") {
  SessionMachine machine = Opened(2);
  Fail(machine, absl::NotFoundError("x"));
  machine.OnOpenSent(0);
  // Neither an error of a call nor CloseAll makes it be opened twice.
  Fail(machine, absl::NotFoundError("x"));
  machine.CloseAll();
  CHECK(machine.opening(0));
  CHECK(machine.WaitOf(1, kNow) == Wait::kClosed);
  REQUIRE(machine.OnOpenAnswered(0, OpenReply(StateOf(7)), kNow).ok());
  CHECK(machine.open(0));
}

}  // namespace
}  // namespace strata
