#include "tests/worker/bsp/trainer_fixture.h"

#include <catch2/catch.hpp>

#include "absl/time/time.h"
#include "proto/wire/message_codec.h"
#include "tests/worker/client/served_rows.h"

namespace strata::testing {

wire::ServerState At(uint64_t clock, uint64_t incarnation) {
  return {incarnation, Generation(2), MapEpoch(3), Step(clock)};
}

TrainerFixture::TrainerFixture(const TrainerSetup& setup)
    : plan(SmallPlan("bsp", setup.servers, setup.lanes, Step(setup.last_step))),
      exchange(plan.tables, plan.shards, setup.limits),
      links(&servers, setup.servers, Caller::Nobody()) {
  plan.prefetch = setup.prefetch;
  plan.pull_codecs = setup.codec;
  links.SetPeers(ScriptedServers::Peers(setup.servers));
  BspTrainerOptions options;
  options.plan = &plan;
  options.exchange = &exchange;
  options.links = &links;
  options.timer = &timer;
  options.preparer = &preparer;
  options.model = &model;
  if (setup.device) options.rows = memory.get();
  options.parallel = parallel.get();
  options.stats = &stats;
  options.boundary = &boundary;
  options.sequences = &sequences;
  options.session = SessionId(6);
  trainer = BspTrainer::Make(options);
}

TrainerFixture::~TrainerFixture() {
  if (trainer != nullptr) trainer->Stop();
}

void TrainerFixture::Start(const std::vector<uint32_t>& lanes) {
  trainer->SetLanes(lanes);
  result = std::async(std::launch::async, [this] { return trainer->Run(); });
}

void TrainerFixture::Open(uint64_t clock, const std::string& device) {
  for (uint32_t s = 0; s < links.servers(); ++s) {
    servers.Next(s, kOpen).reply(OpenReply(At(clock), device));
  }
}

TrainerFixture::Call TrainerFixture::NextPull(uint32_t server, uint64_t step) {
  Call call = servers.Next(server, kPull);
  const auto view = wire::ParsePullRequest(call.request.span());
  REQUIRE(view.ok());
  CHECK(view->step == Step(step));
  return call;
}

TrainerFixture::Call TrainerFixture::NextPush(uint32_t server, uint64_t step) {
  Call call = servers.Next(server, kPush);
  const auto view = wire::ParsePushRequest(call.request.span());
  REQUIRE(view.ok());
  CHECK(view->fields.step == Step(step));
  return call;
}

Sequence TrainerFixture::SequenceOf(const Call& push) {
  return wire::ParsePushRequest(push.request.span())->fields.sequence;
}

Buffer TrainerFixture::Weights(const Call& pull, const wire::ServerState& state,
                               const wire::Ticket& ticket) const {
  return ServePull(plan.tables, pull.request, state, ticket);
}

Buffer TrainerFixture::Without(wire::PullOutcome outcome, const wire::ServerState& state) {
  return wire::PullReplyEncoder::Make({})->Finish(state, outcome);
}

void TrainerFixture::Serve(uint32_t server, uint64_t step) {
  const Call pull = NextPull(server, step);
  pull.reply(Weights(pull, At(step - 1)));
}

void TrainerFixture::ServeAll(uint64_t step) {
  for (uint32_t s = 0; s < links.servers(); ++s) Serve(s, step);
}

void TrainerFixture::Accept(uint32_t server, uint64_t step) {
  NextPush(server, step).reply(wire::EncodePushReply({At(step - 1)}));
}

void TrainerFixture::AcceptAll(uint64_t step) {
  for (uint32_t s = 0; s < links.servers(); ++s) Accept(s, step);
}

void TrainerFixture::AwaitPause(int ms) {
  timer.AwaitAlarms(1);
  CHECK(timer.next() == timer.Now() + absl::Milliseconds(ms));
  timer.AdvanceTo(timer.next());
}

WorkerJobReport TrainerFixture::Report() const {
  WorkerJobReport report;
  stats.Report(timer.Now(), &report);
  return report;
}

}  // namespace strata::testing
