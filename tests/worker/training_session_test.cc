// One generation of a job assembled from a directive: servers say what the test says, and time
// moves by hand. The trainers themselves are tested in tests/worker/bsp/trainer_test.cc and
// tests/worker/async/trainer_test.cc.
#include "worker/training_session.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/wire/message_codec.h"
#include "tests/temp_folder.h"
#include "tests/worker/client/scripted_servers.h"
#include "tests/worker/client/served_rows.h"
#include "tests/worker/small_job.h"

namespace strata {
namespace {

using testing::kOpen;
using testing::kPull;
using testing::kPush;
using testing::OpenReply;
using testing::ScriptedServers;
using Call = ScriptedServers::Call;

wire::ServerState At(uint64_t clock) { return {70, Generation(2), MapEpoch(3), Step(clock)}; }

class Fixture {
 public:
  explicit Fixture(WorkerJobDirective directive) : d(std::move(directive)) {
    data.Fail("", absl::OkStatus());
  }
  ~Fixture() {
    if (session != nullptr) session->Stop();
    servers.Close();
    while (result.valid() &&
           result.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout) {
      timer.Advance(absl::Seconds(1));  // for a client that backs off
    }
  }

  absl::Status Make() {
    TrainingSessionOptions options;
    options.directive = d;
    options.member = SessionId(6);
    options.sequences = &sequences;
    options.transport = &servers;
    options.timer = &timer;
    options.data = &data;
    options.stats = &stats;
    auto made = TrainingSession::Make(options);
    if (!made.ok()) return made.status();
    session = *std::move(made);
    return absl::OkStatus();
  }
  void Start() {
    REQUIRE(Make().ok());
    session->Update(d);
    result = std::async(std::launch::async, [this] { return session->Run(); });
  }
  void Open(uint64_t clock = 0) {
    const Call open = servers.Next(0, kOpen);
    CHECK(wire::ParseOpenSessionRequest(open.request.span())->header ==
          wire::Header{JobId(5), SessionId(6), Generation(2), MapEpoch(3), 1});
    open.reply(OpenReply(At(clock)));
  }
  void Serve(uint64_t step) {
    const Call pull = servers.Next(0, kPull);
    CHECK(wire::ParsePullRequest(pull.request.span())->step == Step(step));
    pull.reply(testing::ServePull(testing::SmallTables(), pull.request, At(step)));
  }
  void Accept() { servers.Next(0, kPush).reply(wire::EncodePushReply({At(0)})); }
  WorkerJobReport Report() const {
    WorkerJobReport report;
    stats.Report(timer.Now(), &report);
    return report;
  }

  ScriptedServers servers;
  ManualTimer timer;
  testing::MadeUpData data;
  SequenceCounter sequences;
  TrainingStats stats;
  WorkerJobDirective d;
  std::unique_ptr<TrainingSession> session;
  std::future<absl::Status> result;
};

WorkerJobDirective WithEvaluation(WorkerJobDirective d) {
  d.mutable_spec()->mutable_spec()->mutable_data()->add_eval(std::string("eval"));
  *d.mutable_eval_index() = testing::SmallIndex("eval", 5);
  return d;
}

TEST_CASE("a synchronous job trains all steps and evaluates the last", "[session]") {
  Fixture f(WithEvaluation(testing::SmallDirective("bsp", 6)));
  f.Start();
  CHECK(f.data.opened() == std::vector<std::string>{"train", "eval"});
  f.Open();
  for (uint64_t step = 1; step <= 2; ++step) {
    f.Serve(step);
    f.Accept();
  }
  f.Serve(3);
  f.Open();    // the evaluator's own
  f.Serve(3);  // the weights after step 2
  CHECK(f.result.get().ok());
  const WorkerJobReport report = f.Report();
  REQUIRE(report.evaluations_size() == 1);
  CHECK(report.evaluations(0).step() == 2);
  CHECK(report.evaluations(0).examples() == 3);
  CHECK(report.examples() == 6);
  f.d.mutable_evaluations()->CopyFrom(report.evaluations());  // the scheduler has it
  f.session->Update(f.d);
  CHECK(f.Report().evaluations_size() == 0);
}

TEST_CASE("an evaluation reads by batches of training where a device computes", "[session]") {
  for (const char* device : {"cpu", "host"}) {
    WorkerJobDirective d = WithEvaluation(testing::SmallDirective("bsp", 3));
    d.mutable_spec()->mutable_spec()->mutable_worker()->set_device(device);
    Fixture f(std::move(d));
    f.Start();
    f.Open();
    f.Serve(1);
    f.Accept();
    f.Serve(2);
    f.Open();
    f.Serve(2);
    CHECK(f.result.get().ok());
    REQUIRE(f.data.limits().size() == 1);
    const bool whole = std::string(device) == "host";
    CHECK(f.data.limits()[0].least == (whole ? 3 : 1));
    CHECK(f.data.limits()[0].lines == (whole ? 4095 : 4096));
  }
}

TEST_CASE("Stop ends an evaluation that waits for a server", "[session]") {
  Fixture f(WithEvaluation(testing::SmallDirective("bsp", 6)));
  f.Start();
  f.Open();
  for (uint64_t step = 1; step <= 2; ++step) {
    f.Serve(step);
    f.Accept();
  }
  f.Serve(3);
  Call hangs{};
  SECTION("to be open") { hangs = f.servers.Next(0, kOpen); }
  SECTION("to answer") {
    f.Open();
    hangs = f.servers.Next(0, kPull);
  }
  f.session->Stop();
  REQUIRE(f.result.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK(absl::IsCancelled(f.result.get()));
}

TEST_CASE("a job without held-out lines evaluates nothing", "[session]") {
  WorkerJobDirective d = testing::SmallDirective("bsp", 3);
  d.mutable_eval_index();  // empty, as the scheduler sends it
  Fixture f(std::move(d));
  f.Start();
  CHECK(f.data.opened() == std::vector<std::string>{"train"});
  f.Open();
  f.Serve(1);
  f.Accept();
  f.Serve(2);
  CHECK(f.result.get().ok());
  CHECK(f.Report().evaluations_size() == 0);
}

TEST_CASE("an asynchronous job works on its tasks and evaluates when all are done", "[session]") {
  WorkerJobDirective d = WithEvaluation(testing::SmallDirective("async", 6));
  TaskAssignment& task = *d.add_tasks();
  task.set_task(1);
  Fixture f(d);
  f.Start();
  f.Open();
  f.Serve(0);
  f.Accept();
  d.clear_tasks();
  d.set_all_tasks_done(true);
  d.set_cut(4);
  f.session->Update(d);
  // The evaluation and the mark may come in either order.
  bool marked = false, evaluated = false;
  while (!marked || !evaluated) {
    const Call call = f.servers.NextOf(0);
    switch (call.method) {
      case DataMethod::kMark:
        call.reply(wire::EncodeMarkReply({}));
        marked = true;
        break;
      case DataMethod::kOpenSession:
        call.reply(OpenReply(At(0)));
        break;
      default:
        call.reply(testing::ServePull(testing::SmallTables(), call.request));
        evaluated = true;
    }
  }
}

TEST_CASE("a step to stop at ends the training well", "[session]") {
  WorkerJobDirective d = testing::SmallDirective("bsp", 30);
  Fixture f(d);
  f.Start();
  f.Open();
  f.Serve(1);
  f.Accept();
  d.set_stop_at_step(1);
  f.session->Update(d);
  CHECK(f.result.get().ok());
}

TEST_CASE("Stop ends the training at once", "[session]") {
  const std::string mode = GENERATE("bsp", "async");
  INFO(mode);
  Fixture f(testing::SmallDirective(mode, 30));
  f.Start();
  if (mode == "bsp") f.Open();
  f.session->Stop();
  CHECK(absl::IsCancelled(f.result.get()));
}

TEST_CASE("a newer directive moves servers and lanes", "[session]") {
  WorkerJobDirective d = testing::SmallDirective("bsp", 30);
  d.mutable_spec()->mutable_spec()->mutable_training()->set_lanes(2);
  Fixture f(d);
  f.Start();
  f.Open();
  const Call pull = f.servers.Next(0, kPull);
  d.set_server_addresses(0, "");
  f.session->Update(d);
  pull.reply(absl::UnavailableError("away"));
  f.timer.AwaitAlarms(1);
  f.timer.AdvanceTo(f.timer.next());
  f.timer.AwaitAlarms(1);  // no address, still
  d.set_server_addresses(0, "0/again");
  f.session->Update(d);
  f.timer.AdvanceTo(f.timer.next());
  const Call again = f.servers.Next(0, kPull);
  // The same lanes are no news: no session is opened for them.
  f.session->Update(d);
  d.add_lanes(1);
  f.session->Update(d);
  f.Open();
  f.servers.Next(0, kPull);
  (void)again;
}

TEST_CASE("what cannot be trained is said before anything is sent", "[session]") {
  Fixture f(WithEvaluation(testing::SmallDirective("bsp", 6)));
  absl::Status expected;
  const TempFolder folder;
  SECTION("a directive that contradicts itself") {
    f.d.mutable_shards(2)->set_first_partition(40);
    CHECK(absl::IsInvalidArgument(f.Make()));
  }
  SECTION("an input without lines") {
    f.d.mutable_train_index()->clear_tasks();
    CHECK(absl::IsInvalidArgument(f.Make()));
  }
  SECTION("training data that is not what was indexed") {
    f.data.Fail("train", absl::FailedPreconditionError("train: changed"));
    CHECK(f.Make() == absl::FailedPreconditionError("train: changed"));
  }
  SECTION("held-out data that is not what was indexed") {
    f.data.Fail("eval", absl::FailedPreconditionError("eval: changed"));
    CHECK(f.Make() == absl::FailedPreconditionError("eval: changed"));
  }
  SECTION("a GPU that the worker has not") {
    f.d.mutable_spec()->mutable_spec()->mutable_worker()->set_device("cuda:GPU-1");
    CHECK(absl::IsFailedPrecondition(f.Make()));
  }
  SECTION("a metrics file that cannot be made") {
    f.d.mutable_spec()->mutable_spec()->mutable_output()->set_metrics(folder.path() + "/no/such");
    const absl::Status s = f.Make();
    CHECK_FALSE(s.ok());
    CHECK(s.message().find("spec.output.metrics: ") == 0);
  }
  CHECK(f.servers.waiting() == 0);
}

}  // namespace
}  // namespace strata
