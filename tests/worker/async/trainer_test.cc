// An asynchronous trainer by itself: servers say what the test says, and time moves by hand. Lanes
// run in threads of their own, of which each call is awaited by name.
#include "worker/async/trainer.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "tests/worker/client/scripted_servers.h"
#include "tests/worker/client/served_rows.h"
#include "tests/worker/small_training.h"

namespace strata {
namespace {

using testing::kOpen;
using testing::kPull;
using testing::kPush;
using testing::OpenReply;
using testing::ScriptedServers;
using Call = ScriptedServers::Call;
using Boundaries = std::vector<testing::NotedBoundary::Call>;

constexpr auto kMark = DataMethod::kMark;
constexpr uint64_t kNoTask = ~uint64_t{0};

TaskAssignment TaskOf(uint64_t task, uint32_t lane, uint64_t first_window = 0) {
  TaskAssignment assignment;
  assignment.set_task(task);
  assignment.set_lane(lane);
  assignment.set_first_window(first_window);
  return assignment;
}

TrainingPlan PlanOf(const std::string& mode, uint32_t batches_per_window) {
  TrainingPlan plan = testing::SmallPlan(mode, 1, 2, Step(0));
  plan.spec.mutable_training()->set_n_fetch(batches_per_window);
  plan.spec.mutable_training()->set_n_push(batches_per_window);
  return plan;
}

// One server. Each task has two batches, that is windows unless the mode says otherwise.
class Fixture {
 public:
  explicit Fixture(uint64_t first_window = 0, const std::string& mode = "async",
                   uint32_t batches_per_window = 1)
      : plan(PlanOf(mode, batches_per_window)),
        exchange(plan.tables, plan.shards),
        links(&servers, 1, Caller::Nobody()) {
    links.SetPeers({{"0", "0"}});
    AsyncTrainerOptions options;
    options.plan = &plan;
    options.exchange = &exchange;
    options.links = &links;
    options.timer = &timer;
    options.source = &source;
    options.stats = &stats;
    options.sequences = &sequences;
    options.session = SessionId(6);
    options.batches_of = [](TaskId) { return 2; };
    options.boundary = &boundary;
    options.total_windows = 8;
    options.first_window = first_window;
    options.models = &models;
    trainer = AsyncTrainer::Make(options);
    result = std::async(std::launch::async, [this] { return trainer->Run(); });
  }
  ~Fixture() {
    trainer->Stop();
    servers.Close();
    while (result.valid() &&
           result.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout) {
      timer.Advance(absl::Seconds(1));  // for lanes that back off
    }
  }

  // What Run returned; waits for it, and fails the test where it never does.
  absl::Status Result() {
    REQUIRE(result.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    return result.get();
  }
  void Open() { servers.Next(0, kOpen).reply(OpenReply({})); }
  // Answers the pull of a lane's next window.
  void Serve() {
    const Call pull = servers.Next(0, kPull);
    CHECK(wire::ParsePullRequest(pull.request.span())->step == Step(0));
    pull.reply(testing::ServePull(plan.tables, pull.request));
  }
  static wire::PushFields FieldsOf(const Call& push) {
    return wire::ParsePushRequest(push.request.span())->fields;
  }
  Call NextPush(uint64_t task, uint64_t window, uint32_t lane) {
    Call push = servers.Next(0, kPush);
    CHECK(FieldsOf(push).task == TaskId(task));
    CHECK(FieldsOf(push).window == window);
    CHECK(FieldsOf(push).lane == LaneId(lane));
    return push;
  }
  void Accept(const Call& push) { push.reply(wire::EncodePushReply({})); }
  Call NextMark(uint64_t cut, uint64_t task, uint64_t window) {
    Call mark = servers.Next(0, kMark);
    const auto view = wire::ParseMarkRequest(mark.request.span());
    REQUIRE(view.ok());
    CHECK(view->cut == cut);
    CHECK(view->task == TaskId(task));
    CHECK(view->window == window);
    return mark;
  }
  void Marked(const Call& mark) { mark.reply(wire::EncodeMarkReply({})); }
  WorkerJobReport Report() const {
    WorkerJobReport report;
    stats.Report(timer.Now(), &report);
    return report;
  }

  ScriptedServers servers;
  ManualTimer timer;
  const TrainingPlan plan;
  const Exchange exchange;
  ServerLinks links;
  testing::MadeUpSource source;
  testing::CountingModels models;
  TrainingStats stats;
  testing::NotedBoundary boundary;
  SequenceCounter sequences;
  std::unique_ptr<AsyncTrainer> trainer;
  std::future<absl::Status> result;
};

TEST_CASE("a lane works off its tasks, window by window", "[async]") {
  Fixture f;
  f.trainer->SetTasks({TaskOf(3, 1), TaskOf(4, 1, 1)});
  f.Open();
  uint64_t sequence = 0;
  for (const auto& [task, window] : {std::pair<uint64_t, uint64_t>{3, 0}, {3, 1}, {4, 1}}) {
    f.Serve();
    const Call push = f.NextPush(task, window, 1);
    CHECK(Fixture::FieldsOf(push).sequence.value == ++sequence);
    CHECK(Fixture::FieldsOf(push).header.session == SessionId(6));
    CHECK(wire::ParsePushRequest(push.request.span())->contributions[0].examples == 3);
    f.Accept(push);
  }
  // What the lane does next says that it is done with the tasks.
  f.trainer->SetCut(1, {1});
  f.Marked(f.NextMark(1, kNoTask, 0));
  const WorkerJobReport report = f.Report();
  CHECK(std::vector<uint64_t>(report.done_tasks().begin(), report.done_tasks().end()) ==
        std::vector<uint64_t>{3, 4});
  CHECK(report.step() == 3);
  CHECK(f.boundary.calls().empty());  // lane 0 is elsewhere
  // Of the second task, too, whose first window another lane has done.
  REQUIRE(report.task_counts_size() == 2);
  for (const TaskCounts& counts : report.task_counts()) {
    INFO(counts.task());
    CHECK(counts.examples() == 6);
    CHECK(counts.bad_lines() == 2);
  }
}

TEST_CASE("lanes work side by side, and a task that is told again is no other one", "[async]") {
  Fixture f;
  f.trainer->SetTasks({TaskOf(1, 0)});
  f.Open();
  const Call pull = f.servers.Next(0, kPull);
  f.trainer->SetTasks({TaskOf(1, 0), TaskOf(2, 1)});
  f.Open();  // lane 1's own session
  f.Serve();
  f.Accept(f.NextPush(2, 0, 1));
  f.Serve();
  f.Accept(f.NextPush(2, 1, 1));
  pull.reply(testing::ServePull(f.plan.tables, pull.request));
  f.Accept(f.NextPush(1, 0, 0));
  f.Serve();
  f.Accept(f.NextPush(1, 1, 0));
  f.trainer->SetCut(1, {0, 1});
  for (int lane = 0; lane < 2; ++lane) f.Marked(f.NextMark(1, kNoTask, 0));
  const WorkerJobReport report = f.Report();
  CHECK(std::set<uint64_t>(report.done_tasks().begin(), report.done_tasks().end()) ==
        std::set<uint64_t>{1, 2});
}

TEST_CASE("lanes mark a cut before their next window, idle ones at once", "[async]") {
  Fixture f;
  f.trainer->SetTasks({TaskOf(3, 0)});
  f.Open();
  f.Serve();
  const Call push = f.NextPush(3, 0, 0);
  CHECK(Fixture::FieldsOf(push).cut == 0);
  f.trainer->SetCut(7, {0, 1});
  f.Open();
  f.Marked(f.NextMark(7, kNoTask, 0));
  CHECK(f.Report().marked_cut() == 0);  // lane 0 has not
  f.Accept(push);
  f.Marked(f.NextMark(7, 3, 1));
  f.Serve();
  const Call next = f.NextPush(3, 1, 0);
  CHECK(Fixture::FieldsOf(next).cut == 7);
  // Lane 1 has its answer, and may not have said so yet.
  const absl::Time give_up = absl::Now() + absl::Seconds(30);
  while (f.Report().marked_cut() != 7 && absl::Now() < give_up)
    absl::SleepFor(absl::Milliseconds(1));
  CHECK(f.Report().marked_cut() == 7);
  // An older cut is no news, and one that is given up is not marked.
  f.trainer->SetCut(6, {0, 1});
  f.trainer->SetGivenUp(8);
  f.trainer->SetCut(8, {0, 1});
  f.Accept(next);
  // A lane that is elsewhere now is marked there.
  f.trainer->SetCut(9, {1});
  f.Marked(f.NextMark(9, kNoTask, 0));
  f.trainer->SetTasks({TaskOf(3, 0), TaskOf(9, 0)});
  f.Serve();
}

// A mark counts the windows that the lane has pushed: one that is on its way would be in no file.
TEST_CASE("a lane marks a cut when its pushes are answered, also one that it heard of before",
          "[async]") {
  Fixture f;
  f.trainer->SetTasks({TaskOf(3, 0)});
  f.Open();
  const Call pull = f.servers.Next(0, kPull);
  f.trainer->SetCut(7, {0});  // while the window is in work
  pull.reply(testing::ServePull(f.plan.tables, pull.request));
  const Call push = f.NextPush(3, 0, 0);
  CHECK(Fixture::FieldsOf(push).cut == 0);
  CHECK(f.servers.waiting() == 0);
  f.Accept(push);
  f.Marked(f.NextMark(7, 3, 1));
  f.Serve();
  CHECK(Fixture::FieldsOf(f.NextPush(3, 1, 0)).cut == 7);
}

TEST_CASE("a lane does not mark a cut that is given up", "[async]") {
  Fixture f;
  f.trainer->SetCut(0, {0});
  f.trainer->SetTasks({TaskOf(3, 0)});
  f.Open();
  f.Serve();
  const Call push = f.NextPush(3, 0, 0);
  f.trainer->SetCut(7, {0});
  f.trainer->SetGivenUp(7);  // before the lane came to its boundary
  f.Accept(push);
  f.Serve();
  const Call next = f.NextPush(3, 1, 0);
  CHECK(Fixture::FieldsOf(next).cut == 0);
  f.trainer->SetCut(8, {0});
  f.trainer->SetGivenUp(6);  // told before
  f.Accept(next);
  f.Marked(f.NextMark(8, kNoTask, 0));
}

TEST_CASE("a task that another lane has got is left alone at once", "[async]") {
  Fixture f;
  f.trainer->SetTasks({TaskOf(3, 1), TaskOf(4, 1)});
  f.Open();
  f.Serve();
  const Call push = f.NextPush(3, 0, 1);
  f.trainer->SetTasks({TaskOf(4, 1)});
  f.Serve();       // of task 4, though the push hangs
  f.Accept(push);  // nobody waits for it
  f.Accept(f.NextPush(4, 0, 1));
  f.Serve();
  f.Accept(f.NextPush(4, 1, 1));
  f.trainer->SetCut(1, {1});
  f.Marked(f.NextMark(1, kNoTask, 0));
  CHECK(f.Report().done_tasks_size() == 1);
  REQUIRE(f.Report().task_counts_size() == 1);
  CHECK(f.Report().task_counts(0).task() == 4);
}

TEST_CASE("windows of a task that were done before are counted, all their batches", "[async]") {
  Fixture f(/*first_window=*/0, "downpour", /*batches_per_window=*/2);
  // Or whatever a checkpoint says.
  const uint64_t done = GENERATE(uint64_t{1}, uint64_t{1} << 63, ~uint64_t{0});
  INFO(done);
  f.trainer->SetTasks({TaskOf(3, 1, done), TaskOf(4, 1)});
  f.Open();
  const Call pull = f.servers.Next(0, kPull);  // of task 4
  const WorkerJobReport report = f.Report();
  REQUIRE(report.done_tasks_size() == 1);
  CHECK(report.done_tasks(0) == 3);
  REQUIRE(report.task_counts_size() == 2);
  for (const TaskCounts& counts : report.task_counts()) {
    INFO(counts.task());
    CHECK(counts.examples() == 6);
    CHECK(counts.bad_lines() == 2);
  }
}

TEST_CASE("what was read of a task is told before it is done", "[async]") {
  Fixture f;
  f.trainer->SetTasks({TaskOf(3, 1)});
  f.Open();
  f.Serve();
  const Call push = f.NextPush(3, 0, 1);
  const WorkerJobReport report = f.Report();
  CHECK(report.done_tasks_size() == 0);
  REQUIRE(report.task_counts_size() == 1);
  CHECK(report.task_counts(0).task() == 3);
  CHECK(report.task_counts(0).examples() == 3);
  CHECK(report.task_counts(0).bad_lines() == 1);
  f.Accept(push);
  f.Serve();
}

TEST_CASE("a push that breaks goes again after the back-off: the same work, the same number",
          "[async]") {
  Fixture f;
  f.trainer->SetTasks({TaskOf(3, 1)});
  f.Open();
  f.Serve();
  const Call push = f.NextPush(3, 0, 1);
  for (const int ms : {10, 20, 40}) {
    (ms == 10 ? push : f.NextPush(3, 0, 1)).reply(absl::UnavailableError("away"));
    f.timer.AwaitAlarms(1);
    CHECK(f.timer.next() == f.timer.Now() + absl::Milliseconds(ms));
    f.timer.AdvanceTo(f.timer.next());
  }
  const Call again = f.NextPush(3, 0, 1);
  CHECK(Fixture::FieldsOf(again) == Fixture::FieldsOf(push));
  again.reply(absl::NotFoundError("job 5 is not open"));
  f.timer.AwaitAlarms(1);
  f.timer.AdvanceTo(f.timer.next());
  f.Open();
  f.Accept(f.NextPush(3, 0, 1));
  f.Serve();
}

TEST_CASE("the host of lane 0 evaluates as its windows go on, and when all tasks are done",
          "[async]") {
  Fixture f(/*first_window=*/4);
  f.trainer->SetCut(0, {0});
  f.trainer->SetTasks({TaskOf(3, 0)});
  f.Open();
  for (const uint64_t window : {0, 1}) {
    f.Serve();
    f.Accept(f.NextPush(3, window, 0));
  }
  f.trainer->SetCut(1, {0});
  f.Marked(f.NextMark(1, kNoTask, 0));
  // Two lanes: each window of this one stands for two, up to the last but one.
  CHECK(f.boundary.calls() == Boundaries{{6, false}, {7, false}});
  CHECK_FALSE(f.Report().finished());
  f.boundary.FailAfter(Step(8), absl::InternalError("no room for predictions"));
  f.trainer->SetAllDone();
  CHECK(f.result.get() == absl::InternalError("no room for predictions"));
  CHECK(f.boundary.calls().back() == testing::NotedBoundary::Call{8, true});
}

TEST_CASE("after the end lanes go on marking cuts until they are stopped", "[async]") {
  Fixture f;
  f.trainer->SetCut(0, {0});
  f.trainer->SetAllDone();
  f.boundary.AwaitCalls(1);
  f.trainer->SetCut(5, {0});
  f.Open();
  f.Marked(f.NextMark(5, kNoTask, 0));
  f.trainer->SetCut(6, {0});
  f.Marked(f.NextMark(6, kNoTask, 0));
  f.trainer->Stop();
  CHECK(absl::IsCancelled(f.result.get()));
  CHECK(f.boundary.calls() == Boundaries{{8, true}});
  CHECK(f.Report().finished());
}

TEST_CASE("a worker without lane 0 does not evaluate", "[async]") {
  Fixture f;
  f.trainer->SetCut(0, {1});
  f.trainer->SetAllDone();
  f.trainer->SetCut(5, {1});
  f.Open();
  f.Marked(f.NextMark(5, kNoTask, 0));
  f.trainer->Stop();
  CHECK(absl::IsCancelled(f.result.get()));
  CHECK(f.boundary.calls().empty());
  CHECK_FALSE(f.Report().finished());
}

TEST_CASE("an error that no retry mends ends the training", "[async]") {
  Fixture f;
  f.trainer->SetTasks({TaskOf(3, 1)});
  SECTION("of a server") {
    f.Open();
    f.Serve();
    f.NextPush(3, 0, 1).reply(absl::InvalidArgumentError("wrong values"));
    CHECK(f.result.get() == absl::InvalidArgumentError("wrong values"));
  }
  SECTION("of OpenSession") {
    f.servers.Next(0, kOpen).reply(absl::InvalidArgumentError("no such job"));
    CHECK(f.result.get() == absl::InvalidArgumentError("no such job"));
  }
  SECTION("of the data") {
    f.Open();
    f.Serve();
    const Call push = f.NextPush(3, 0, 1);
    f.source.Fail(absl::InvalidArgumentError("file:7:1: bad"));
    f.Accept(push);
    CHECK(f.result.get() == absl::InvalidArgumentError("file:7:1: bad"));
  }
}

TEST_CASE("Stop ends lanes at once, whatever they wait for", "[async]") {
  Fixture f;
  f.trainer->SetTasks({TaskOf(3, 1)});
  Call hangs{};
  SECTION("a server to be opened") { hangs = f.servers.Next(0, kOpen); }
  SECTION("an answer") {
    f.Open();
    hangs = f.servers.Next(0, kPull);
  }
  SECTION("an answer to what changes the model") {
    f.Open();
    f.Serve();
    hangs = f.NextPush(3, 0, 1);
  }
  SECTION("the end of a pause") {
    f.Open();
    f.servers.Next(0, kPull).reply(absl::UnavailableError("away"));
    f.timer.AwaitAlarms(1);
  }
  f.trainer->Stop();
  CHECK(absl::IsCancelled(f.Result()));
  CHECK(f.servers.waiting() == 0);
}

}  // namespace
}  // namespace strata
