// A session that hosts no lanes any more, at a server: what it sent before counts, what comes after
// is refused, and the scheduler is told only when that holds for every shard.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/session_error.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

using Answer = JobBench::Answer;

struct Revoking {
  explicit Revoking(bool synchronous) : bench(2, synchronous) {
    bench.Start();
    REQUIRE(bench.OpenSession().ok());
    job = bench.service_.Find(JobId(1));
    directive.set_map_epoch(5);
    Tell({bench.header().session.value});
    bench.pool_.RunAll();
    REQUIRE(job->Report().lane_epoch() == 1);
  }

  // The scheduler's word; shards have it when their executor runs.
  void Tell(const std::vector<uint64_t>& sessions) {
    directive.mutable_lane_sessions()->Assign(sessions.begin(), sessions.end());
    directive.set_lane_sessions_known(true);
    directive.set_lane_epoch(directive.lane_epoch() + 1);
    job->Follow(directive);
  }
  // It waits in the shards' queues.
  std::shared_ptr<Answer> Queue(DataMethod method, Buffer message) {
    auto answer = std::make_shared<Answer>();
    bench.service_.Handle(Caller::Nobody(), method, std::move(message),
                          [answer](absl::StatusOr<Buffer> b) { *answer = std::move(b); });
    return answer;
  }
  Buffer Window(uint64_t window, uint64_t cut = 0) {
    wire::PushFields f;
    f.window = window;
    f.cut = cut;
    return bench.PushMessage(1, window, {{0, 1}}, f);
  }
  Buffer Mark() {
    wire::MarkRequest m;
    m.header = bench.header();
    m.sequence = bench.NextSequence();
    m.cut = 1;
    return wire::EncodeMarkRequest(m);
  }
  bool Refused(const std::shared_ptr<Answer>& answer) {
    REQUIRE(answer->has_value());
    return wire::IsLanesGone((*answer)->status());
  }

  JobBench bench;
  std::shared_ptr<ServerJob> job;
  ServerJobDirective directive;
};

TEST_CASE("a push before the list is applied, one after it is refused by session",
          "[service][session]") {
  Revoking t(/*synchronous=*/true);
  wire::PushFields step;
  step.step = Step(1);
  const auto before = t.Queue(DataMethod::kPush, t.bench.PushMessage(1, 1, {{0, 1}}, step));
  t.Tell({4});
  const auto after = t.Queue(DataMethod::kPush, t.bench.PushMessage(1, 1, {{1, 2}}, step));
  t.bench.pool_.RunAll();
  CHECK((*before)->ok());
  CHECK(t.Refused(after));
  CHECK(absl::IsPermissionDenied((*after)->status()));
  CHECK(t.job->Report().max_clock() == 0);
  // Reading needs no lanes.
  const auto references = References(1, 2, 1);
  t.bench.CheckServed(*t.bench.Pull(1, 0), references[0]);
  // The session is back: what it sent counts still, and the step ends as if it had never left.
  t.Tell({4, t.bench.header().session.value});
  CHECK(t.bench.PushStep(1, 1, {{1, 2}}).ok());
  CHECK(t.bench.Hash(1) == references[1].Hash());
  t.job.reset();
}

TEST_CASE("a list is confirmed when no shard can apply a push of others any more",
          "[service][session]") {
  Revoking t(/*synchronous=*/false);
  const auto queued = t.Queue(DataMethod::kPush, t.Window(0));
  t.Tell({4});
  // Not while one shard has something before it.
  while (t.bench.pool_.RunOne()) {
    const bool confirmed = t.job->Report().lane_epoch() == 2;
    if (!confirmed) continue;
    REQUIRE(queued->has_value());
    const uint64_t windows = t.job->Report().windows();
    CHECK(t.Refused(t.bench.Call(DataMethod::kPush, t.Window(1))));
    CHECK(t.job->Report().windows() == windows);
  }
  CHECK(t.job->Report().lane_epoch() == 2);
  CHECK((*queued)->ok());
  CHECK(t.job->Report().windows() == 3);  // one, of three shards

  // The same list again is no news; nothing is posted for it.
  t.job->Follow(t.directive);
  t.Tell({4, 5});
  CHECK(t.job->Report().lane_epoch() == 2);
  t.bench.pool_.RunAll();
  CHECK(t.job->Report().lane_epoch() == 3);
  t.job.reset();
}

TEST_CASE("what waits for a cut goes with its session, and marks are refused",
          "[service][async][session]") {
  Revoking t(/*synchronous=*/false);
  t.directive.add_cuts()->set_cut(1);
  t.job->Follow(t.directive);
  t.bench.pool_.RunAll();
  REQUIRE(t.bench.Call(DataMethod::kMark, t.Mark())->value().ok());
  const auto held = t.bench.Call(DataMethod::kPush, t.Window(0, 1));
  REQUIRE_FALSE(held->has_value());
  t.Tell({4});
  t.bench.pool_.RunAll();
  CHECK(t.Refused(held));
  CHECK(t.Refused(t.bench.Call(DataMethod::kMark, t.Mark())));
  // Nothing of it is let go with the cut.
  t.directive.clear_cuts();
  t.directive.set_given_up_through(1);
  t.job->Follow(t.directive);
  t.bench.pool_.RunAll();
  CHECK(t.job->Report().windows() == 0);
  t.job.reset();
}

}  // namespace
}  // namespace strata::server
