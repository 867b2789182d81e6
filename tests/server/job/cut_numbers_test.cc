// Numbers of cuts and steps that cannot exist.
#include <catch2/catch.hpp>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/wire/message_codec.h"
#include "server/protocol/cut_barrier.h"
#include "tests/server/job/bench.h"
#include "tests/server/job/two_lanes.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

// A client that is wrong, or worse.
TEST_CASE("marks and pushes of cuts that cannot exist are refused, and leave nothing",
          "[service][async][cut]") {
  TwoLanes t;
  const uint64_t pending = GENERATE(0, 1);
  t.Follow(pending, 0);
  const uint64_t held = t.bench.memory_.used();
  for (const uint64_t cut : {uint64_t{2}, uint64_t{3}, uint64_t{1} << 60, ~uint64_t{0}}) {
    for (uint64_t i = 0; i < 100; ++i) {
      INFO(cut << " " << i);
      const auto push = t.Push(i, cut);
      REQUIRE(push->has_value());
      CHECK(absl::IsUnavailable(push->value().status()));
      CHECK(absl::StrContains(push->value().status().message(), absl::StrCat("push.cut ", cut)));
      const auto mark = t.AskToMark(i % 2, cut, i);
      REQUIRE(mark->has_value());
      CHECK(absl::IsUnavailable(mark->value().status()));
      CHECK(absl::StrContains(mark->value().status().message(), absl::StrCat("mark.cut ", cut)));
    }
  }
  CHECK(t.bench.memory_.used() == held);
  t.Pass(2 * CutBarrier::kMostPatience);
  CHECK(t.job->Report().given_up_through() == 0);
  CHECK(t.job->Report().windows() == 3);  // window 0 on each shard
  // Nobody waits, and the next cut is taken.
  REQUIRE(t.Push(1, 0)->value().ok());
  t.CheckNext(1, 2);
  REQUIRE(t.Push(2, 1)->value().ok());
  t.CheckNext(2, 3);
  t.job.reset();
}

// Its own lanes alone lose by it, and not for long.
TEST_CASE("a push of the next cut, which was not begun, holds back nobody else",
          "[service][async][cut]") {
  TwoLanes t;
  const auto held = t.Push(1, 1);
  REQUIRE_FALSE(held->has_value());
  REQUIRE(t.Push(2, 0)->value().ok());
  t.Pass(CutBarrier::kPatience);
  REQUIRE(held->value().ok());
  CHECK(t.job->Report().given_up_through() == 1);
  t.Follow(1, 0);
  CHECK(t.StateOf(1) == CutReport::REFUSED);
  t.CheckNext(2, 3);
  t.job.reset();
}

TEST_CASE("synchronous: a push of a cut, or of a step that cannot be the next, leaves nothing",
          "[service]") {
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const auto push = [&](uint64_t step, uint64_t task, uint64_t window, uint64_t cut) {
    wire::PushFields f;
    f.step = Step(step);
    f.task = TaskId(task);
    f.window = window;
    f.cut = cut;
    return bench.Call(DataMethod::kPush, bench.PushMessage(1, 1, {{0, 1}}, f))->value().status();
  };
  for (const uint64_t many : {uint64_t{2}, uint64_t{1} << 60, ~uint64_t{0}}) {
    INFO(many);
    CHECK(absl::IsInvalidArgument(push(1, many, 0, 0)));
    CHECK(absl::IsInvalidArgument(push(1, 0, many, 0)));
    CHECK(absl::IsInvalidArgument(push(1, 0, 0, many)));
    CHECK(absl::IsFailedPrecondition(push(many, 0, 0, 0)));
  }
  CHECK(absl::IsInvalidArgument(push(0, 0, 0, 0)));
  CHECK(bench.memory_.used() == 0);
  CHECK(push(1, 0, 0, 0).ok());
  bench.CheckServed(*bench.Pull(2, 0), References(1, 1, 1)[1]);
}

}  // namespace
}  // namespace strata::server
