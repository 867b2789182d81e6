// A synchronous trainer by itself: servers say what the test says, and time moves by hand. The
// trainer runs in a thread of its own, of which each call is awaited by name.
#include "worker/bsp/trainer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "ops/cuda/api/host_api.h"
#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "tests/worker/client/scripted_servers.h"
#include "tests/worker/client/served_rows.h"
#include "tests/worker/small_training.h"

namespace strata {
namespace {

using testing::OpenReply;
using testing::ScriptedServers;
using Call = ScriptedServers::Call;

constexpr auto kOpen = DataMethod::kOpenSession;
constexpr auto kPull = DataMethod::kPull;
constexpr auto kPush = DataMethod::kPush;
constexpr uint64_t kIncarnation = 70;

wire::ServerState At(uint64_t clock, uint64_t incarnation = kIncarnation) {
  return {incarnation, Generation(2), MapEpoch(3), Step(clock)};
}

struct Setup {
  uint32_t servers = 2;
  uint32_t lanes = 2;  // of the job
  uint64_t last_step = 2;
  bool prefetch = false;
  bool device = false;
  wire::ValueCodec codec = wire::ValueCodec::kFloat32;
};

class Fixture {
 public:
  explicit Fixture(const Setup& setup = {})
      : plan(testing::SmallPlan("bsp", setup.servers, setup.lanes, Step(setup.last_step))),
        exchange(plan.tables, plan.shards),
        links(&servers, setup.servers) {
    plan.prefetch = setup.prefetch;
    plan.pull_codec = setup.codec;
    links.SetAddresses(ScriptedServers::Addresses(setup.servers));
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
  ~Fixture() {
    if (trainer != nullptr) trainer->Stop();
  }

  void Start(const std::vector<uint32_t>& lanes) {
    trainer->SetLanes(lanes);
    result = std::async(std::launch::async, [this] { return trainer->Run(); });
  }
  // Every server is opened, at `clock`.
  void Open(uint64_t clock = 0, const std::string& device = "") {
    for (uint32_t s = 0; s < links.servers(); ++s) {
      servers.Next(s, kOpen).reply(OpenReply(At(clock), device));
    }
  }
  Call NextPull(uint32_t server, uint64_t step) {
    Call call = servers.Next(server, kPull);
    const auto view = wire::ParsePullRequest(call.request.span());
    REQUIRE(view.ok());
    CHECK(view->step == Step(step));
    return call;
  }
  Call NextPush(uint32_t server, uint64_t step) {
    Call call = servers.Next(server, kPush);
    const auto view = wire::ParsePushRequest(call.request.span());
    REQUIRE(view.ok());
    CHECK(view->fields.step == Step(step));
    return call;
  }
  static Sequence SequenceOf(const Call& push) {
    return wire::ParsePushRequest(push.request.span())->fields.sequence;
  }
  Buffer Weights(const Call& pull, const wire::ServerState& state,
                 const wire::Ticket& ticket = {}) const {
    return testing::ServePull(plan.tables, pull.request, state, ticket);
  }
  static Buffer Without(wire::PullOutcome outcome, const wire::ServerState& state) {
    return wire::PullReplyEncoder::Make({})->Finish(state, outcome);
  }
  void Serve(uint32_t server, uint64_t step) {
    const Call pull = NextPull(server, step);
    pull.reply(Weights(pull, At(step - 1)));
  }
  void ServeAll(uint64_t step) {
    for (uint32_t s = 0; s < links.servers(); ++s) Serve(s, step);
  }
  void Accept(uint32_t server, uint64_t step) {
    NextPush(server, step).reply(wire::EncodePushReply({At(step - 1)}));
  }
  void AcceptAll(uint64_t step) {
    for (uint32_t s = 0; s < links.servers(); ++s) Accept(s, step);
  }
  // The trainer sleeps for `ms`; wakes it.
  void AwaitPause(int ms) {
    timer.AwaitAlarms(1);
    CHECK(timer.next() == timer.Now() + absl::Milliseconds(ms));
    timer.AdvanceTo(timer.next());
  }
  WorkerJobReport Report() const {
    WorkerJobReport report;
    stats.Report(timer.Now(), &report);
    return report;
  }

  ScriptedServers servers;
  ManualTimer timer;
  TrainingPlan plan;
  const Exchange exchange;
  ServerLinks links;
  testing::MadeUpSource source;
  testing::PromptPreparer preparer{&source, &plan.tables.tables[0]};
  testing::CountingModel model;
  ops::gpu::HostApi api{{}};
  const std::unique_ptr<device::RowMemory> memory = *device::RowMemory::Make(&api, "host", nullptr);
  const std::unique_ptr<ops::Parallel> parallel = ops::MakeParallel(1);
  TrainingStats stats;
  testing::NotedBoundary boundary;
  SequenceCounter sequences;
  std::unique_ptr<BspTrainer> trainer;
  std::future<absl::Status> result;
};

TEST_CASE("a trainer goes from the smallest clock to the last step", "[bsp]") {
  Fixture f;
  f.Start({0, 1});
  f.servers.Next(0, kOpen).reply(OpenReply(At(1)));
  f.servers.Next(1, kOpen).reply(OpenReply(At(0)));
  const Call first = f.NextPull(0, 1), other = f.NextPull(1, 1);
  CHECK(wire::ParsePullRequest(first.request.span())->header ==
        wire::Header{JobId(5), SessionId(6), Generation(2), MapEpoch(3)});
  CHECK(f.boundary.calls().empty());
  first.reply(f.Weights(first, At(1)));
  other.reply(f.Weights(other, At(0)));
  const Call push = f.NextPush(0, 1), other_push = f.NextPush(1, 1);
  CHECK(Fixture::SequenceOf(push) == Fixture::SequenceOf(other_push));
  push.reply(wire::EncodePushReply({At(1)}));
  other_push.reply(wire::EncodePushReply({At(0)}));
  f.ServeAll(2);
  const Call next = f.NextPush(0, 2);
  CHECK(Fixture::SequenceOf(next).value == Fixture::SequenceOf(push).value + 1);
  next.reply(wire::EncodePushReply({At(1)}));
  f.Accept(1, 2);
  CHECK(f.Report().step() == 2);
  CHECK(f.Report().examples() == 2 * 2 * 3);
  f.ServeAll(3);  // without keys: the last step is committed
  CHECK(f.result.get().ok());
  CHECK(f.boundary.calls() == std::vector<testing::NotedBoundary::Call>{{1, false}, {2, true}});
  CHECK(f.servers.waiting() == 0);
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("gradients are summed over the lanes before they are pushed", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0, 1});
  f.Open();
  f.ServeAll(1);
  const Call push = f.NextPush(0, 1);
  const auto view = wire::ParsePushRequest(push.request.span());
  REQUIRE(view->contributions.size() == 1);
  CHECK(view->contributions[0].node == LaneNode{0, 2});
  CHECK(view->contributions[0].examples == 6);
  float most = 0;
  for (const wire::GroupView& group : view->groups) {
    if (group.table != TableId(0)) continue;
    for (size_t i = 0; i < group.floats(); ++i) most = std::max(most, group.value(i));
  }
  CHECK(most == 6);  // the key that all examples of both lanes have
}

TEST_CASE("a server that has not committed yet is asked again at once", "[bsp]") {
  Fixture f;
  f.Start({0});
  f.Open();
  f.Serve(1, 1);
  for (int i = 0; i < 3; ++i) {
    f.NextPull(0, 1).reply(Fixture::Without(wire::PullOutcome::kNotYet, At(0)));
  }
  f.Serve(0, 1);
  const Call push = f.NextPush(0, 1);
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("a lane that is behind goes on where the servers are", "[bsp]") {
  Fixture f({.last_step = 9});
  f.Start({0});
  f.Open(2);
  const Call unanswered = f.NextPull(1, 3);
  f.NextPull(0, 3).reply(Fixture::Without(wire::PullOutcome::kTooOld, At(7)));
  f.NextPull(0, 7);
  f.NextPull(1, 7);
}

TEST_CASE("a call that breaks goes again after the back-off, with what the server may have lost",
          "[bsp]") {
  Fixture f;
  f.Start({0});
  f.Open();
  f.ServeAll(1);
  const Call push = f.NextPush(0, 1);
  push.reply(wire::EncodePushReply({At(0)}));
  f.Accept(1, 1);
  const Call other = f.NextPull(1, 2);  // stays open
  f.NextPull(0, 2).reply(absl::UnavailableError("away"));
  f.AwaitPause(10);
  const Call again = f.servers.Any(0, kPush);
  CHECK(Fixture::SequenceOf(again) == Fixture::SequenceOf(push));
  f.NextPull(0, 2).reply(absl::ResourceExhaustedError("full"));
  f.AwaitPause(20);
  const Call pull = f.NextPull(0, 2);
  again.reply(wire::EncodePushReply({At(0)}));
  pull.reply(f.Weights(pull, At(1)));
  other.reply(f.Weights(other, At(1)));
  f.NextPush(0, 2);
}

TEST_CASE("a session that is lost is opened again, for that server alone", "[bsp]") {
  Fixture f;
  f.Start({0});
  f.Open();
  f.Serve(1, 1);
  f.NextPull(0, 1).reply(absl::NotFoundError("job 5 is not open"));
  f.AwaitPause(10);
  f.servers.Next(0, kOpen).reply(absl::FailedPreconditionError("not yet"));
  f.AwaitPause(20);
  f.servers.Next(0, kOpen).reply(OpenReply(At(0, 71)));
  f.Serve(0, 1);
  f.AcceptAll(1);
  f.NextPull(0, 2);
  f.NextPull(1, 2);
  CHECK(f.servers.waiting() == 0);
}

TEST_CASE("a server that turns out to be another process gets the step's contribution again",
          "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0});
  f.Open();
  f.ServeAll(1);
  f.AcceptAll(1);
  f.NextPull(0, 2).reply(Fixture::Without(wire::PullOutcome::kNotYet, At(0, 71)));
  f.NextPush(0, 1);
  f.NextPull(0, 2);
}

TEST_CASE("an error that no retry mends ends the training, and names the server", "[bsp]") {
  Fixture f;
  f.Start({0});
  std::string expected = "server 1: ";
  SECTION("of OpenSession") {
    f.servers.Next(1, kOpen).reply(absl::InvalidArgumentError("no such job"));
    expected += "no such job";
  }
  SECTION("of a pull") {
    f.Open();
    f.NextPull(1, 1).reply(absl::InvalidArgumentError("wrong keys"));
    expected += "wrong keys";
  }
  SECTION("of a push") {
    f.Open();
    f.ServeAll(1);
    f.NextPush(1, 1).reply(absl::InvalidArgumentError("wrong values"));
    expected += "wrong values";
  }
  const absl::Status s = f.result.get();
  CHECK(absl::IsInvalidArgument(s));
  CHECK(s.message() == expected);
}

TEST_CASE("an answer that cannot be read is a broken call", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0});
  f.Open();
  const Call pull = f.NextPull(0, 1);
  Buffer reply = f.Weights(pull, At(0));
  std::vector<uint8_t> bytes(reply.span().begin(), reply.span().end());
  bytes[bytes.size() / 2] ^= 0x10;  // a value
  pull.reply(Buffer::CopyOf(bytes));
  f.AwaitPause(10);
  f.Serve(0, 1);
  f.NextPush(0, 1);
}

TEST_CASE("Stop ends a trainer that backs off, and one that waits", "[bsp]") {
  Fixture f;
  f.Start({0});
  SECTION("for an address") {
    const Call open = f.servers.Next(0, kOpen), other = f.servers.Next(1, kOpen);
    f.links.SetAddresses({"", ""});
    open.reply(absl::UnavailableError("away"));
    f.timer.AwaitAlarms(1);
  }
  SECTION("for an answer") {
    f.Open();
    f.NextPull(0, 1);
  }
  f.trainer->Stop();
  CHECK(absl::IsCancelled(f.result.get()));
}

TEST_CASE("a lane that is given later starts where the servers are by then", "[bsp]") {
  Fixture f({.servers = 1, .last_step = 9});
  f.Start({0});
  f.Open();
  f.ServeAll(1);
  f.AcceptAll(1);
  const Call old = f.NextPull(0, 2);
  f.trainer->SetLanes({0, 1});
  // The clock is asked for anew.
  f.servers.Next(0, kOpen).reply(OpenReply(At(1)));
  const Call both = f.NextPull(0, 2);
  const auto keys = [](const Call& pull) {
    size_t n = 0;
    const auto view = wire::ParsePullRequest(pull.request.span());
    for (const wire::GroupView& group : view->groups) n += group.keys();
    return n;
  };
  CHECK(keys(both) > keys(old));
  old.reply(f.Weights(old, At(1)));  // nobody waits for it
  both.reply(f.Weights(both, At(1)));
  const Call push = f.NextPush(0, 2);
  CHECK(wire::ParsePushRequest(push.request.span())->contributions[0].node == LaneNode{0, 2});
}

TEST_CASE("a lane that is taken away is pulled and pushed for no longer", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0, 1});
  f.Open();
  const Call both = f.NextPull(0, 1);
  f.trainer->SetLanes({1});
  const Call one = f.NextPull(0, 1);  // no session is opened for it
  both.reply(f.Weights(both, At(0)));
  one.reply(f.Weights(one, At(0)));
  const Call push = f.NextPush(0, 1);
  CHECK(wire::ParsePushRequest(push.request.span())->contributions[0].node == LaneNode{1, 2});
  push.reply(wire::EncodePushReply({At(0)}));
  f.ServeAll(2);
  CHECK(f.boundary.calls().empty());  // lane 0 is elsewhere
}

TEST_CASE("a call that was put off is not made for lanes that are gone", "[bsp]") {
  Fixture f;
  f.Start({0, 1});
  f.Open();
  const Call both = f.NextPull(1, 1);
  f.NextPull(0, 1).reply(absl::UnavailableError("away"));
  f.timer.AwaitAlarms(1);
  f.trainer->SetLanes({1});
  f.Serve(1, 1);  // asked for lane 1 alone: the trainer knows
  f.timer.AdvanceTo(f.timer.next());
  f.Serve(0, 1);
  const Call push = f.NextPush(0, 1);  // so no other pull came before it
  CHECK(wire::ParsePushRequest(push.request.span())->contributions[0].node == LaneNode{1, 2});
}

TEST_CASE("the boundary may end the training, well or not", "[bsp]") {
  Fixture f({.servers = 1, .lanes = 1, .last_step = 9});
  SECTION("well") {
    f.boundary.StopAfter(Step(1));
    f.Start({0});
    f.Open();
    f.ServeAll(1);
    f.AcceptAll(1);
    f.ServeAll(2);
    CHECK(f.result.get().ok());
  }
  SECTION("not") {
    f.boundary.FailAfter(Step(1), absl::InternalError("no room for predictions"));
    f.Start({0});
    f.Open();
    f.ServeAll(1);
    f.AcceptAll(1);
    f.ServeAll(2);
    CHECK(f.result.get() == absl::InternalError("no room for predictions"));
  }
  CHECK(f.servers.waiting() == 0);  // nothing of step 2 was pushed
}

TEST_CASE("bad data ends the training", "[bsp]") {
  Fixture f;
  f.source.Fail(absl::InvalidArgumentError("file:7:1: bad"));
  f.Start({0});
  f.Open();
  CHECK(f.result.get() == absl::InvalidArgumentError("file:7:1: bad"));
}

// What a server gives for these keys.
wire::Ticket TicketFor(const std::vector<wire::GroupView>& views, uint64_t number) {
  std::vector<std::vector<Key>> keys;
  std::vector<wire::KeyGroup> groups;
  uint64_t count = 0;
  for (const wire::GroupView& view : views) {
    auto& list = keys.emplace_back();
    for (size_t i = 0; i < view.keys(); ++i) list.push_back(view.key(i));
    count += list.size();
  }
  for (size_t g = 0; g < keys.size(); ++g) {
    groups.push_back({views[g].table, views[g].shard, keys[g]});
  }
  return {kIncarnation, number, count, wire::FingerprintOf(groups)};
}

TEST_CASE("a push names the ticket of its pull, and goes with keys where that is stale", "[bsp]") {
  Fixture f({.servers = 1});
  f.Start({0});
  f.Open();
  const Call pull = f.NextPull(0, 1);
  const auto asked = wire::ParsePullRequest(pull.request.span());
  CHECK(asked->want_ticket);
  const wire::Ticket ticket = TicketFor(asked->groups, 4);
  pull.reply(f.Weights(pull, At(0), ticket));
  const Call push = f.NextPush(0, 1);
  const auto named = wire::ParsePushRequest(push.request.span());
  CHECK(named->contributions[0].ticket == ticket);
  for (const wire::GroupView& group : named->groups) CHECK(group.keys() == 0);
  push.reply(absl::FailedPreconditionError(absl::StrCat(wire::kTicketError, "4 is gone")));
  const Call next = f.NextPull(0, 2);
  const Call again = f.NextPush(0, 1);
  const auto with_keys = wire::ParsePushRequest(again.request.span());
  CHECK_FALSE(with_keys->contributions[0].ticket);
  size_t keys = 0;
  for (const wire::GroupView& group : with_keys->groups) keys += group.keys();
  CHECK(keys == ticket.keys);
  CHECK(Fixture::SequenceOf(again) == Fixture::SequenceOf(push));
  CHECK(f.timer.alarms() == 0);
}

TEST_CASE("the next step's keys are announced, and a pull may name them", "[bsp]") {
  absl::Notification answered;
  Fixture f({.servers = 1, .last_step = 3, .prefetch = true});
  f.model.on_step = [&] { answered.WaitForNotification(); };
  f.Start({0});
  f.Open();
  f.ServeAll(1);
  const Call announced = f.servers.Next(0, DataMethod::kPrefetch);
  const auto keys = wire::ParsePrefetchRequest(announced.request.span());
  CHECK(keys->step == Step(2));
  SECTION("what goes wrong is left to the pull") {
    announced.reply(absl::InvalidArgumentError("wrong"));
    answered.Notify();
    f.AcceptAll(1);
    f.ServeAll(2);
  }
  SECTION("a ticket stands for the keys, once") {
    const wire::Ticket ticket = TicketFor(keys->groups, 4);
    announced.reply(wire::EncodePrefetchReply({At(0), ticket}));
    answered.Notify();
    f.AcceptAll(1);
    const Call pull = f.NextPull(0, 2);
    CHECK(wire::ParsePullRequest(pull.request.span())->ticket == ticket);
    CHECK(wire::ParsePullRequest(pull.request.span())->groups.empty());
    pull.reply(absl::AbortedError("x"));
    f.AwaitPause(10);
    const Call push_again = f.servers.Any(0, kPush);
    const Call again = f.NextPull(0, 2);
    CHECK_FALSE(wire::ParsePullRequest(again.request.span())->ticket);
    CHECK(wire::ParsePullRequest(again.request.span())->groups.size() == keys->groups.size());
  }
}

TEST_CASE("rows go by the servers' device until one comes back without it", "[bsp][device]") {
  Fixture f({.servers = 2, .lanes = 1, .device = true});
  f.Start({0});
  f.Open(0, "host");
  for (uint32_t s : {0, 1}) {
    const Call pull = f.NextPull(s, 1);
    REQUIRE(pull.request.device_values() != nullptr);
    pull.reply(f.Weights(pull, At(0)));
  }
  for (uint32_t s : {0, 1}) {
    const Call push = f.NextPush(s, 1);
    REQUIRE(push.request.device_values() != nullptr);
    push.reply(wire::EncodePushReply({At(0)}));
  }
  f.NextPull(0, 2).reply(absl::NotFoundError("job 5 is not open"));
  const Call there = f.NextPull(1, 2);
  f.AwaitPause(10);
  f.servers.Next(0, kOpen).reply(OpenReply(At(0, 71)));
  const Call push = f.NextPush(0, 1);
  CHECK(push.request.device_values() == nullptr);
  push.reply(wire::EncodePushReply({At(0, 71)}));
  const Call here = f.NextPull(0, 2);
  CHECK(here.request.device_values() == nullptr);
  CHECK(there.request.device_values() != nullptr);
  here.reply(f.Weights(here, At(1, 71)));
  there.reply(f.Weights(there, At(1)));
  CHECK(f.NextPush(0, 2).request.device_values() == nullptr);
  CHECK(f.NextPush(1, 2).request.device_values() != nullptr);
}

TEST_CASE("pulls in another codec keep rows off the device", "[bsp][device]") {
  Fixture f({.servers = 1, .device = true, .codec = wire::ValueCodec::kBf16});
  f.Start({0});
  f.Open(0, "host");
  CHECK(f.NextPull(0, 1).request.device_values() == nullptr);
}

}  // namespace
}  // namespace strata
