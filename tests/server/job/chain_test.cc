// Shards with copies: what is committed, promoted, forwarded again, and joined.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/message_codec.h"
#include "tests/server/job/bench.h"
#include "tests/server/job/copies.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

wire::PullOutcome OutcomeOf(JobBench& bench, uint64_t step) {
  return bench.Outcome(*bench.Pull(step, 0)).outcome;
}

TEST_CASE("a step is shown when the last copy has it, and not before", "[chain]") {
  const auto references = References(1, 1, 3);
  Copies copies(2);
  copies.Open(0);
  copies.Open(1);
  copies.TellAll(1, {0, 1});
  copies.Run();
  copies.OpenSession(0);
  copies[0].CheckServed(*copies[0].Pull(1, 0), references[0]);
  copies.Push(0, 1);
  // Appended here, and on its way.
  CHECK(copies.Clock(0) == 0);
  CHECK(OutcomeOf(copies[0], 2) == wire::PullOutcome::kNotYet);
  copies[0].CheckServed(*copies[0].Pull(1, 0), references[0]);
  const auto waits = copies[0].Pull(2, 1000);
  CHECK_FALSE(waits->has_value());
  // R5: it is counted once.
  const auto again = copies[0].PushStep(1, 1, {{0, 1}});
  REQUIRE(again.ok());
  CHECK(again->repeated);
  copies.Push(0, 2);  // R6: held until step 1 is committed
  CHECK(copies.Report(0).ends(0).step() == 1);
  copies[1].pool_.RunAll();
  CHECK(copies.Report(1).ends(0).step() == 1);
  copies[0].pool_.RunAll();
  copies[0].CheckServed(*waits, references[1]);
  CHECK(copies.Report(0).ends(0).step() == 2);
  copies.Run();
  CHECK(copies.Clock(0) == 2);
  copies[0].CheckServed(*copies[0].Pull(3, 0), references[2]);
  copies.Push(0, 3);
  copies.Run();
  CHECK(copies.Report(0).next_ends_size() == 3);
  CHECK(copies.Report(0).next_has_all());
  CHECK(copies.Report(1).place() == 1);
  REQUIRE(copies[0].Hash(3) == references[3].Hash());
}

TEST_CASE("a backup answers nobody but the copy before it, in its own epoch", "[chain]") {
  Copies copies(2);
  copies.Open(0);
  copies.Open(1);
  copies.TellAll(1, {0, 1});
  copies.Run();
  CHECK(absl::IsFailedPrecondition(copies[1].OpenSession()));
  CHECK(absl::IsFailedPrecondition(copies[1].Pull(1, 0)->value().status()));
  wire::ForwardRequestView question;
  question.fields.header = {JobId(1), {}, Generation(1), {}, 1};
  question.fields.cluster_id = copies[1].identity().cluster.text();
  question.fields.job_uid = copies[1].identity().job.text();
  question.fields.chain_epoch = 1;
  question.fields.from_log_id = "log-0";
  question.fields.log_id = "log-1";
  const auto ask = [&](const wire::ForwardRequestView& m) {
    return copies[1].Call(DataMethod::kForward, *wire::EncodeForwardRequest(m))->value().status();
  };
  CHECK(ask(question).ok());
  auto other = question;
  other.fields.chain_epoch = 2;
  CHECK(absl::IsFailedPrecondition(ask(other)));
  other = question;
  other.fields.log_id = "log-2";
  CHECK(absl::IsFailedPrecondition(ask(other)));
  other = question;
  other.fields.from_log_id = "log-9";
  CHECK(absl::IsFailedPrecondition(ask(other)));
  other = question;
  other.fields.header.generation = Generation(2);
  CHECK(absl::IsFailedPrecondition(ask(other)));
  other = question;
  other.fields.job_uid = copies[1].identity().cluster.text();
  CHECK(absl::IsFailedPrecondition(ask(other)));
  other = question;
  const std::vector<uint8_t> damaged(160, 7);
  other.entries.push_back({ShardId(0), damaged, damaged, 1});
  CHECK(absl::IsDataLoss(ask(other)));
}

TEST_CASE("entries come from the server before this one, by its certificate", "[chain]") {
  Copies copies(2);
  copies.Open(0);
  copies.Open(1);
  copies.TellAll(1, {0, 1});
  copies.Run();
  wire::ForwardRequestView question;
  question.fields.header = {JobId(1), {}, Generation(1), {}, 1};
  question.fields.cluster_id = copies[1].identity().cluster.text();
  question.fields.job_uid = copies[1].identity().job.text();
  question.fields.chain_epoch = 1;
  question.fields.from_log_id = "log-0";
  question.fields.log_id = "log-1";
  const auto ask = [&](const std::string& server, Role role) {
    return copies[1]
        .Call(DataMethod::kForward, *wire::EncodeForwardRequest(question),
              Caller{.name = server, .role = role})
        ->value()
        .status();
  };
  CHECK(ask("s0", Role::kServer).ok());
  CHECK(absl::IsFailedPrecondition(ask("s2", Role::kServer)));
  CHECK(absl::IsPermissionDenied(ask("s0", Role::kWorker)));
}

TEST_CASE("a promoted copy has every step that was shown, and forwards what the next one lacks",
          "[chain]") {
  const auto references = References(1, 1, 3);
  Copies copies(3);
  for (size_t i = 0; i < 3; ++i) copies.Open(i);
  copies.TellAll(1, {0, 1, 2});
  copies.Run();
  copies.OpenSession(0);
  copies.Push(0, 1);
  copies.Run();
  CHECK(copies.Clock(0) == 1);
  // Step 2 comes to the middle, and dies with the head on its way to the tail.
  copies.Push(0, 2);
  {
    const ScopedFailpoint lost("server.chain.received",
                               {.act = FailWith(absl::UnavailableError("lost"))});
    copies[1].pool_.RunAll();
    copies.Kill(0);
  }
  CHECK(copies.Report(1).ends(0).step() == 2);
  CHECK(copies.Report(2).ends(0).step() == 1);
  copies.Tell(1, 2, {1, 2});
  // R10: what it has is not committed; the step before is, and can be pulled.
  copies.OpenSession(1);
  copies[1].CheckServed(*copies[1].Pull(2, 0), references[1]);
  CHECK(OutcomeOf(copies[1], 3) == wire::PullOutcome::kNotYet);
  copies.Tell(2, 2, {1, 2});
  copies.Pass();
  copies[1].CheckServed(*copies[1].Pull(3, 0), references[2]);
  const auto repeated = copies[1].PushStep(1, 2, {{0, 1}});
  REQUIRE(repeated.ok());
  CHECK(repeated->repeated);
  copies.Push(1, 3);
  copies.Run();
  REQUIRE(copies[1].Hash(3) == references[3].Hash());
  // The last one alone.
  copies.Kill(1);
  copies.Tell(2, 3, {2});
  copies.Run();
  copies.OpenSession(2);
  copies[2].CheckServed(*copies[2].Pull(3, 0), references[2]);
  REQUIRE(copies[2].Hash(3) == references[3].Hash());
}

TEST_CASE("a promoted head goes by the sessions and cuts of the directive that made it one",
          "[chain]") {
  Copies copies(2);
  copies.Open(0);
  copies.Open(1);
  ServerJobDirective d = copies.Directive(0, 1, {0, 1});
  d.set_lane_epoch(4);
  d.set_lane_sessions_known(true);
  d.add_lane_sessions(77);  // not that of the bench
  CutDirective* cut = d.add_cuts();
  cut->set_cut(1);
  cut->set_step(0);
  copies.Job(0)->Follow(d);
  copies.Tell(1, 1, {0, 1});
  copies.Pass();
  copies.OpenSession(0);
  CHECK(absl::IsPermissionDenied(copies[0].PushStep(1, 1, {{0, 1}}).status()));
  CHECK(copies.Job(0)->Report().lane_epoch() == 4);
  REQUIRE(copies.Job(0)->Report().cuts_size() == 1);
  CHECK(copies.Job(0)->Report().cuts(0).state() == CutReport::DONE);
}

TEST_CASE("a head that begins anew shows its last step when the next copy has it", "[chain]") {
  const auto references = References(1, 1, 2);
  Copies copies(2);
  copies.Open(0);
  copies.Open(1);
  copies.TellAll(1, {0, 1});
  copies.Run();
  copies.OpenSession(0);
  copies.Push(0, 1);
  copies.Run();
  copies.Push(0, 2);  // does not come to the other one
  copies.Kill(1);
  copies.Restart(0);
  CHECK(copies[0].recovered_);
  copies.Tell(0, 1, {0, 1});
  copies.OpenSession(0);
  copies[0].CheckServed(*copies[0].Pull(2, 0), references[1]);
  CHECK(OutcomeOf(copies[0], 3) == wire::PullOutcome::kNotYet);
  CHECK(copies.Report(0).waits_since_unix_ms() > 0);
  copies.Pass();
  CHECK(OutcomeOf(copies[0], 3) == wire::PullOutcome::kNotYet);
  copies[1].plan().was_open = true;
  copies.Open(1);
  CHECK(copies[1].recovered_);
  copies.Tell(1, 1, {0, 1});
  copies.Pass();
  copies[0].CheckServed(*copies[0].Pull(3, 0), references[2]);
  CHECK(copies.Report(1).ends(0).step() == 2);
  CHECK(copies.Report(0).waits_since_unix_ms() == 0);
}

TEST_CASE("with fewer full copies than asked for nothing is committed", "[chain]") {
  Copies copies(1);
  copies.Open(0);
  copies.Tell(0, 1, {0}, std::nullopt, 0, 2);
  copies.OpenSession(0);
  copies.Push(0, 1);
  CHECK(copies.Clock(0) == 0);
  copies.Tell(0, 2, {0}, std::nullopt, 0, 1);
  copies.Run();
  CHECK(copies.Clock(0) == 1);
}

TEST_CASE("a window is answered when the last copy has it", "[chain]") {
  Copies copies(2, /*synchronous=*/false);
  copies.Open(0);
  copies.Open(1);
  copies.TellAll(1, {0, 1});
  copies.Run();
  copies.OpenSession(0);
  const auto first = PushWindow(copies[0], 0);
  CHECK_FALSE(first->has_value());
  // Sent again, as by a worker that waited long enough: one of the two is answered.
  const auto again = PushWindow(copies[0], 0);
  REQUIRE(first->has_value());
  CHECK(absl::IsUnavailable((*first)->status()));
  CHECK_FALSE(again->has_value());
  const auto second = PushWindow(copies[0], 1);
  copies.Run();
  REQUIRE(again->has_value());
  REQUIRE((*again)->ok());
  CHECK(wire::ParsePushReply((**again).value().span())->repeated);
  REQUIRE(second->has_value());
  CHECK((*second)->ok());
  const auto before = RowsOf(copies[0]);
  copies.Kill(0);
  copies.Tell(1, 2, {1});
  copies.Run();
  CHECK(RowsOf(copies[1]) == before);
  copies.OpenSession(1);
  const auto repeated = PushWindow(copies[1], 1);
  REQUIRE(repeated->has_value());
  CHECK(wire::ParsePushReply((**repeated).value().span())->repeated);
}

TEST_CASE("a head whose log takes nothing sends nothing on", "[chain]") {
  Copies copies(2, /*synchronous=*/false);
  copies.Open(0);
  copies.Open(1);
  copies.TellAll(1, {0, 1});
  copies.OpenSession(0);
  {
    const ScopedFailpoint full("log.append",
                               {.act = FailWith(absl::ResourceExhaustedError("disk full"))});
    const auto refused = PushWindow(copies[0], 0);
    REQUIRE(refused->has_value());
    CHECK_FALSE((*refused)->ok());
  }
  copies.Pass();
  // R1: its place in the log goes to another window.
  for (const uint64_t window : {1, 0}) {
    const auto pushed = PushWindow(copies[0], window);
    copies.Pass();
    REQUIRE(pushed->has_value());
    CHECK((*pushed)->ok());
  }
  const auto before = RowsOf(copies[0]);
  copies.Kill(0);
  copies.Tell(1, 2, {1});
  copies.Run();
  CHECK(RowsOf(copies[1]) == before);
}

// A chain of one with `steps`, to which copy 1 joins.
void Join(Copies& copies, uint64_t steps) {
  copies.Open(0);
  copies.Tell(0, 1, {0});
  copies.OpenSession(0);
  for (uint64_t step = 1; step <= steps; ++step) copies.Push(0, step);
  copies.Run();
  copies.Open(1, /*joins=*/true);
  copies.Tell(0, 2, {0}, 1);
  copies.Tell(1, 2, {0}, 1);
}

TEST_CASE("a copy that has nothing gets an image and the log, joins, and is full", "[chain]") {
  const auto references = References(1, 1, 8);
  Copies copies(2);
  Join(copies, 5);
  CHECK(copies.Report(1).ends_size() == 0);
  copies.Pass();
  REQUIRE(copies.Report(1).ends_size() == 3);
  CHECK(copies.Report(1).ends(0).step() == 5);
  copies.Push(0, 6);  // nobody waits for who joins
  CHECK(copies.Clock(0) == 6);
  copies.Run();
  CHECK(copies.Report(1).ends(0).step() == 6);
  copies.TellAll(3, {0, 1}, std::nullopt, /*learners=*/1);
  copies.Run();
  CHECK(copies.Report(0).next_has_all());
  copies.Push(0, 7);
  CHECK(copies.Clock(0) == 6);  // a learner counts
  copies.Run();
  CHECK(copies.Clock(0) == 7);
  copies.TellAll(3, {0, 1});
  // It begins anew with what it has by now.
  copies.Restart(1);
  CHECK(copies[1].recovered_);
  copies.Tell(1, 3, {0, 1});
  copies.Pass();
  copies.Push(0, 8);
  copies.Pass();
  CHECK(copies.Clock(0) == 8);
  copies.Kill(0);
  copies.Tell(1, 4, {1});
  copies.Run();
  copies.OpenSession(1);
  copies[1].CheckServed(*copies[1].Pull(8, 0), references[7]);
  REQUIRE(copies[1].Hash(8) == references[8].Hash());
}

TEST_CASE("a copy that was away gets from the log what memory has no more", "[chain]") {
  const auto references = References(1, 1, 12);
  Copies copies(2);
  Join(copies, 3);
  copies.Pass();
  CHECK(copies.Report(1).ends(0).step() == 3);
  copies.Kill(1);
  for (uint64_t step = 4; step <= 12; ++step) copies.Push(0, step);
  copies.Restart(0);
  copies.Tell(0, 2, {0}, 1);
  copies[1].plan().was_open = true;
  copies.Open(1, /*joins=*/true);
  CHECK(copies[1].recovered_);
  copies.Tell(1, 2, {0}, 1);
  copies.Pass();
  CHECK(copies.Report(1).ends(0).step() == 12);
  copies.TellAll(3, {0, 1}, std::nullopt, 1);
  copies.Run();
  copies.Kill(0);
  copies.Tell(1, 4, {1});
  copies.Run();
  copies.OpenSession(1);
  REQUIRE(copies[1].Hash(12) == references[12].Hash());
}

TEST_CASE("a copy tells which neighbour is gone, and which is silent", "[chain]") {
  Copies copies(3);
  for (size_t i = 0; i < 3; ++i) copies.Open(i);
  copies.TellAll(1, {0, 1, 2});
  CHECK(copies.Job(0)->peers().empty());
  CHECK(copies.Job(1)->peers().empty());
  copies.Kill(0);
  for (int i = 0; i < 5; ++i) copies.Pass(absl::Milliseconds(100));  // within half a second
  CHECK(copies.Job(2)->peers().empty());
  const auto gone = copies.Job(1)->peers();
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].name() == "s0");
  CHECK(gone[0].role() == NodeRole::SERVER);
  CHECK(gone[0].kind() == PeerTrouble::CLOSED);
  CHECK(gone[0].incarnation() == 1);
  copies.TellAll(2, {1, 2});
  CHECK(copies.Job(1)->peers().empty());
  // Another generation of configurations is an answer as well.
  copies.Tell(1, 3, {1, 2});
  copies.Pass();
  CHECK(copies.Job(1)->peers().empty());
  const ScopedFailpoint silent("server.chain.received",
                               {.act = FailWith(absl::DeadlineExceededError("no reply"))});
  copies.Pass();
  const auto quiet = copies.Job(1)->peers();
  REQUIRE(quiet.size() == 1);
  CHECK(quiet[0].name() == "s2");
  CHECK(quiet[0].kind() == PeerTrouble::SILENT);
  CHECK(quiet[0].for_ms() >= 500);
}

TEST_CASE("files under another log id are none: the copy begins with nothing", "[chain]") {
  Copies copies(2);
  Join(copies, 3);
  copies.Pass();
  copies.Kill(1);
  copies.SetLog(1, "log-later");
  copies.Open(1, /*joins=*/true);
  CHECK_FALSE(copies[1].recovered_);
  copies.Tell(0, 3, {0}, 1);
  copies.Tell(1, 3, {0}, 1);
  CHECK(copies.Report(1).ends_size() == 0);
  copies.Pass();
  REQUIRE(copies.Report(1).ends_size() == 3);
  CHECK(copies.Report(1).ends(0).step() == 3);
}

}  // namespace
}  // namespace strata::server
