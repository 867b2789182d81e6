// What session credentials are worth at a server whose scheduler is away for a day.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/session_credential.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/session_error.h"
#include "server/server.h"
#include "tests/server/one_shard_job.h"
#include "tests/server/scripted_cluster.h"

namespace strata::server {
namespace {

constexpr wire::Header kHeader = {JobId(1), SessionId(5), Generation(1), MapEpoch(3)};
constexpr absl::Duration kCall = absl::Seconds(60);

// A server with a synchronous job, and the worker that hosts its one lane.
class Trained {
 public:
  Trained() {
    ServerJobDirective* job = AddJob(directive_, "memory");
    job->mutable_spec()->mutable_spec()->mutable_training()->set_mode("bsp");
    directive_.add_session_keys(signer_->Public());
    ServerOptions options = cluster_.Options();
    options.timer = &timer_;
    Host(kHeader.session.value);
    auto server = Server::Start(options);
    REQUIRE(server.ok());
    server_ = *std::move(server);
    AwaitHost();
    Sign();
    channel_ = cluster_.transport->Connect({server_->address(), "s"},
                                           {.name = "w", .role = Role::kWorker, .jobs = session_});
    const auto open = wire::EncodeOpenSessionRequest(wire::OpenSessionFor(kHeader, kIdentity));
    REQUIRE(channel_->CallAndWait(DataMethod::kOpenSession, open, kCall).ok());
  }

  // The scheduler says so the next time it is heard.
  void Host(uint64_t session) {
    ServerJobDirective& job = *directive_.mutable_server_jobs(0);
    job.clear_lane_sessions();
    job.add_lane_sessions(session);
    job.set_lane_sessions_known(true);
    job.set_lane_epoch(job.lane_epoch() + 1);
    cluster_.scheduler.Say(directive_);
  }
  void AwaitHost() {
    cluster_.scheduler.Await([&](const NodeReport& r) {
      return HasState(r, ServerJobReport::OPEN) &&
             r.server_jobs(0).lane_epoch() == directive_.server_jobs(0).lane_epoch();
    });
  }
  // The worker has a new credential, good for an hour.
  void Sign() {
    session_->Set(*signer_->Sign(
        {.cluster = kIdentity.cluster,
         .job = kIdentity.job,
         .generation = kHeader.generation,
         .session = kHeader.session,
         .worker = "w",
         .lanes = {0},
         .expires = absl::FromUnixSeconds(absl::ToUnixSeconds(timer_.Now()) + 3600)}));
  }
  void LoseScheduler(absl::Duration silent) {
    cluster_.scheduler.SetReachable(false);
    timer_.AwaitAlarms(1);  // the pause before it is tried again
    timer_.Advance(silent);
    timer_.AwaitAlarms(1);
  }
  void HearAgain() {
    cluster_.scheduler.SetReachable(true);
    timer_.AdvanceTo(timer_.next());
    cluster_.scheduler.AwaitCalls(2);  // so the first answer was followed
  }
  absl::Status Push(uint64_t step) {
    const std::vector<ShardId> shards = {ShardId(0)};
    const std::vector<wire::PushContribution> contributions = {{{0, 1}, 1, {}, {}}};
    auto encoder = wire::PushRequestEncoder::Make(shards, contributions);
    REQUIRE(encoder.ok());
    wire::PushFields fields;
    fields.header = kHeader;
    fields.sequence = Sequence(step);
    fields.step = Step(step);
    return channel_->CallAndWait(DataMethod::kPush, encoder->Finish(fields), kCall).status();
  }

 private:
  ManualTimer timer_;
  ScriptedCluster cluster_;
  NodeDirective directive_;
  absl::StatusOr<SessionSigner> signer_ = SessionSigner::New();
  const std::shared_ptr<HeldSession> session_ = std::make_shared<HeldSession>();
  std::unique_ptr<Server> server_;
  std::shared_ptr<DataChannel> channel_;
};

TEST_CASE(
    "training goes on while the scheduler is away for a day, and with a new credential when "
    "it is back",
    "[server][session]") {
  Trained t;
  CHECK(t.Push(1).ok());
  t.LoseScheduler(absl::Hours(24));
  CHECK(t.Push(2).ok());
  t.HearAgain();
  const absl::Status expired = t.Push(3);
  INFO(expired);
  CHECK(absl::IsUnauthenticated(expired));
  t.Sign();
  CHECK(t.Push(3).ok());
}

TEST_CASE("a session that the scheduler has ended is refused at once, and while it is away",
          "[server][session]") {
  Trained t;
  CHECK(t.Push(1).ok());
  t.Host(6);
  t.AwaitHost();
  CHECK(wire::IsLanesGone(t.Push(2)));
  t.LoseScheduler(absl::Hours(24));
  CHECK(wire::IsLanesGone(t.Push(2)));
}

}  // namespace
}  // namespace strata::server
