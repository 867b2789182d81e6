// Shards with copies: what waits in their queues while the scheduler's configurations, and closed
// tasks, go on.
#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message_codec.h"
#include "tests/server/job/bench.h"
#include "tests/server/job/copies.h"

namespace strata::server {
namespace {

// A chain of one, to which copy 1 joins; it has what copy 0 has.
void Join(Copies& copies) {
  copies.Open(0);
  copies.Tell(0, 1, {0});
  copies.Open(1, /*joins=*/true);
  copies.Tell(0, 2, {0}, 1);
  copies.Tell(1, 2, {0}, 1);
  copies.Pass();
  copies.OpenSession(0);
  REQUIRE(copies.Report(1).ends_size() == 3);
}

// Arrives at once, and is applied when that copy runs.
void QueueStep(JobBench& bench, uint64_t step) {
  wire::PushFields f;
  f.step = Step(step);
  bench.service_.Handle(Caller::Nobody(), DataMethod::kPush,
                        bench.PushMessage(1, step, {{0, 1}}, f), [](absl::StatusOr<Buffer> b) {
                          INFO(b.status());
                          CHECK(b.ok());
                        });
}

TEST_CASE("a copy that joins hears of closed tasks before it has their windows", "[chain]") {
  Copies copies(2, /*synchronous=*/false);
  copies[1].plan().log_bytes = 1;  // an image after each entry
  Join(copies);
  ServerJobDirective closed = copies.Directive(1, 2, {0}, 1);
  closed.set_closed_below(1);
  copies.Job(1)->Follow(closed);
  copies.Pass();
  for (const uint64_t window : {0, 2, 1}) {
    const auto pushed = PushWindow(copies[0], window);
    copies.Pass();
    REQUIRE(pushed->value().ok());
  }
  CHECK(copies.Job(1)->images_written() > 0);
  const auto rows = RowsOf(copies[0]);
  // It is the only one that is left, and begins anew.
  copies.TellAll(3, {0, 1}, std::nullopt, /*learners=*/1);
  copies.TellAll(3, {0, 1});
  copies.Kill(0);
  copies.Restart(1);
  copies.Tell(1, 4, {1});
  copies.Run();
  CHECK(RowsOf(copies[1]) == rows);
}

TEST_CASE("entries that arrived under an earlier configuration are not appended under a later one",
          "[chain]") {
  Copies copies(2, /*synchronous=*/false);
  copies.Open(0);
  copies.Open(1);
  copies.TellAll(1, {0, 1});
  copies.Run();
  copies.OpenSession(0);
  PushWindow(copies[0], 0);  // on its way: what follows goes in one call
  for (const uint64_t window : {1, 3, 2}) PushWindow(copies[0], window);
  {
    const ScopedFailpoint lost("server.chain.acked",
                               {.act = FailWith(absl::UnavailableError("lost"))});
    copies[1].pool_.RunAll();
  }
  const auto promote = [&] {
    copies.Tell(1, 2, {1});
    copies.OpenSession(1);
    CHECK(PushWindow(copies[1], 2)->value().ok());
    return absl::OkStatus();
  };
  // The question, then windows 1, 3 and 2: between the look at who sends them and the queue.
  const ScopedFailpoint late("server.chain.checked", {.act = promote, .first_hit = 2, .hits = 1});
  copies[0].timer_.Advance(absl::Seconds(1));
  REQUIRE(FailpointHits("server.chain.checked") >= 2);
  copies.Run();
  // Window 3 would follow, and be new: not its number in the log nor the ledger refuses it.
  CHECK(copies.Report(1).ends(0).step() == 2);
  for (const uint64_t window : {1, 3}) CHECK(PushWindow(copies[1], window)->value().ok());
  const auto again = PushWindow(copies[1], 2);
  CHECK(wire::ParsePushReply((**again).value().span())->repeated);
  Copies alone(1, /*synchronous=*/false);
  alone.Open(0);
  alone.Tell(0, 1, {0});
  alone.OpenSession(0);
  for (const uint64_t window : {0, 2, 1, 3}) CHECK(PushWindow(alone[0], window)->value().ok());
  CHECK(RowsOf(copies[1]) == RowsOf(alone[0]));
}

TEST_CASE("a copy whose log is another one than that of the copy before it says that it is lost",
          "[chain]") {
  Copies copies(2, /*synchronous=*/false);
  copies.Open(0);
  copies.Open(1);
  // Each alone, as no scheduler tells them: window 5 is number 1 of one log and 2 of the other.
  copies.Tell(0, 1, {0});
  copies.Tell(1, 1, {1});
  copies.OpenSession(0);
  copies.OpenSession(1);
  REQUIRE(PushWindow(copies[1], 5)->value().ok());
  for (const uint64_t window : {7, 5}) REQUIRE(PushWindow(copies[0], window)->value().ok());
  copies.TellAll(2, {0, 1});
  copies.Pass();
  const ServerJobReport lost = copies.Job(1)->Report();
  CHECK(lost.state() == ServerJobReport::LOST);
  INFO(lost.message());
  CHECK(absl::StrContains(lost.message(), "window 5 of task 0 came as number 2"));
  CHECK(copies.Job(0)->Report().state() == ServerJobReport::OPEN);
  // Without it the other one goes on.
  copies.Tell(0, 3, {0});
  copies.Pass();
  CHECK(PushWindow(copies[0], 6)->value().ok());
}

TEST_CASE("a learner has all when it has what was shown, however fast it is told again",
          "[chain]") {
  Copies copies(2);
  Join(copies);
  QueueStep(copies[0], 1);
  copies.Tell(1, 4, {0, 1}, std::nullopt, /*learners=*/1);
  copies.Job(0)->Follow(copies.Directive(0, 3, {0, 1}, std::nullopt, 1));
  copies.Job(0)->Follow(copies.Directive(0, 4, {0, 1}, std::nullopt, 1));
  copies[0].pool_.RunAll();
  CHECK(copies.Report(1).ends(0).step() == 0);
  const bool all = copies.Report(0).next_has_all();
  CHECK((copies.Clock(0) == 0 || !all));
  copies.Pass();
  CHECK(copies.Clock(0) == 1);
  CHECK(copies.Report(0).next_has_all());
}

TEST_CASE("of two configurations of one epoch the one that was told last holds", "[chain]") {
  Copies copies(2);
  Join(copies);
  copies.Tell(1, 3, {0, 1}, std::nullopt, 1, 2);
  copies.Job(0)->Follow(copies.Directive(0, 3, {0, 1}, std::nullopt, 1, 2));
  copies.Job(0)->Follow(copies.Directive(0, 3, {0, 1}, std::nullopt, 0, 2));
  copies.Pass();
  copies.Push(0, 1);
  copies.Pass();
  CHECK(copies.Clock(0) == 1);
}

TEST_CASE("the clock of a copy is what all copies have, and stays when it leads", "[chain]") {
  Copies copies(3);
  for (size_t i = 0; i < 3; ++i) copies.Open(i);
  copies.TellAll(1, {0, 1, 2});
  copies.Run();
  copies.OpenSession(0);
  copies.Push(0, 1);
  copies[1].pool_.RunAll();
  CHECK(copies.Report(1).ends(0).step() == 1);
  const uint64_t before = copies.Clock(1);
  CHECK(before == 0);
  copies.Kill(0);
  copies.Job(1)->Follow(copies.Directive(1, 2, {1, 2}));
  copies[2].pool_.RunAll();  // its answer comes while that is on its way
  copies[1].pool_.RunAll();
  CHECK(copies.Clock(1) >= before);
  copies.Tell(2, 2, {1, 2});
  copies.Pass();
  CHECK(copies.Clock(1) == 1);
}

// Each shard ends while another one does.
TEST_CASE("a copy that joined begins with what it has, whichever shards ended at one time",
          "[chain]") {
  Copies copies(2);
  copies[0].plan().log_bytes = 1;  // an image after each step, so that they are sent at one time
  copies.Open(0);
  copies.Tell(0, 1, {0});
  copies.OpenSession(0);
  for (uint64_t step = 1; step <= 3; ++step) copies.Push(0, step);
  copies.Run();
  REQUIRE(copies.Job(0)->images_written() >= 3);
  copies.Open(1, /*joins=*/true);
  const auto others = [&] {
    copies[1].pool_.RunAll();
    return absl::OkStatus();
  };
  {
    const ScopedFailpoint meanwhile("server.chain.counted", {.act = others});
    copies.Tell(0, 2, {0}, 1);
    copies.Tell(1, 2, {0}, 1);
    copies.Pass();
    CHECK(FailpointHits("server.chain.counted") == 3);
  }
  REQUIRE(copies.Report(1).ends_size() == 3);
  copies.Restart(1);
  CHECK(copies[1].recovered_);
}

}  // namespace
}  // namespace strata::server
