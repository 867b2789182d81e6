// One job on a worker: the index pass, and generation after generation. Servers say what the test
// says, and time moves by hand.
#include "worker/job_runner.h"

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/wire/message_codec.h"
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

class Fixture {
 public:
  Fixture() {
    JobRunnerOptions options;
    options.job = JobId(5);
    options.transport = &servers;
    options.data = &data;
    options.sequences = &sequences;
    options.timer = &timer;
    options.log = [this](const std::string& line) {
      absl::MutexLock lock(&mu);
      logged.push_back(line);
    };
    runner = JobRunner::Make(options);
  }

  // The runner reports when it likes: returns the first report that `wanted` takes, which a runner
  // that works will give.
  WorkerJobReport Await(const std::function<bool(const WorkerJobReport&)>& wanted) {
    for (int i = 0; i < 60'000; ++i) {
      WorkerJobReport report = runner->Report();
      if (wanted(report)) return report;
      absl::Notification().WaitForNotificationWithTimeout(absl::Milliseconds(1));
    }
    FAIL("no such report: " << runner->Report().ShortDebugString());
    return {};
  }
  wire::Header Open() {
    const Call open = servers.Next(0, kOpen);
    open.reply(OpenReply({70, Generation(2), MapEpoch(3), Step(0)}));
    return wire::ParseOpenSessionRequest(open.request.span())->header;
  }
  void Serve() {
    const Call pull = servers.Next(0, kPull);
    pull.reply(testing::ServePull(testing::SmallTables(), pull.request, {70}));
  }
  void Accept() { servers.Next(0, kPush).reply(wire::EncodePushReply({{70}})); }
  std::vector<std::string> Logged() {
    absl::MutexLock lock(&mu);
    return logged;
  }

  ScriptedServers servers;
  ManualTimer timer;
  testing::MadeUpData data;
  SequenceCounter sequences;
  absl::Mutex mu;
  std::vector<std::string> logged ABSL_GUARDED_BY(mu);
  std::unique_ptr<JobRunner> runner;
};

WorkerJobDirective IndexDirective() {
  WorkerJobDirective d = testing::SmallDirective("bsp", 6);
  d.mutable_spec()->mutable_spec()->mutable_data()->add_eval(std::string("eval"));
  d.clear_train_index();
  d.set_make_index(true);
  return d;
}

TEST_CASE("the index is made once, and reported until the scheduler has it", "[job]") {
  Fixture f;
  CHECK(f.runner->Report().job() == 5);
  f.runner->Update(IndexDirective(), SessionId(6));
  const WorkerJobReport report =
      f.Await([](const WorkerJobReport& r) { return r.has_train_index(); });
  CHECK(report.generation() == 2);
  CHECK_FALSE(report.ready());
  CHECK(report.train_index().files(0).path() == "train");
  CHECK(report.eval_index().files(0).path() == "eval");
  CHECK(report.fatal().empty());
  f.runner->Update(IndexDirective(), SessionId(6));
  // An index that is wanted comes before training: what is trained now was not indexed again.
  WorkerJobDirective d = testing::SmallDirective("bsp", 6);
  d.set_make_index(true);
  f.runner->Update(d, SessionId(6));
  CHECK_FALSE(f.runner->Report().has_train_index());
  CHECK_FALSE(f.runner->Report().has_eval_index());
  f.Open();
  CHECK(f.data.indexed() == std::vector<std::string>{"train", "eval"});
  CHECK(f.runner->Report().fatal().empty());
}

TEST_CASE("data that cannot be indexed fails the job", "[job]") {
  Fixture f;
  const std::string file = GENERATE("train", "eval");
  f.data.Fail(file, absl::NotFoundError(file + ": no such file"));
  f.runner->Update(IndexDirective(), SessionId(6));
  const WorkerJobReport report =
      f.Await([](const WorkerJobReport& r) { return !r.fatal().empty(); });
  CHECK(report.fatal() == file + ": no such file");
  CHECK_FALSE(report.has_train_index());
  // Nothing else is tried.
  f.runner->Update(testing::SmallDirective("bsp", 6), SessionId(6));
  f.runner.reset();
  CHECK(f.data.opened().empty());
}

TEST_CASE("a job is trained to its end, at a rate by the given clock", "[job]") {
  Fixture f;
  f.runner->Update(testing::SmallDirective("bsp", 9), SessionId(6));
  const wire::Header header = f.Open();
  CHECK(header == wire::Header{JobId(5), SessionId(6), Generation(2), MapEpoch(3)});
  CHECK(f.runner->Report().ready());
  CHECK(f.runner->Report().generation() == 2);
  f.Serve();
  f.Accept();
  f.timer.Advance(absl::Seconds(2));
  f.Serve();
  f.Accept();
  const Call third = f.servers.Next(0, kPull);  // so step 2 is computed
  const WorkerJobReport report = f.runner->Report();
  CHECK(report.examples() == 6);
  CHECK(report.examples_per_second() == 1.5);
  CHECK_FALSE(report.finished());
  third.reply(testing::ServePull(testing::SmallTables(), third.request, {70}));
  f.Accept();
  f.Serve();
  CHECK(f.Await([](const WorkerJobReport& r) { return r.finished(); }).fatal().empty());
  CHECK(f.runner->RowsThere() == 0);
  CHECK(f.runner->Stages().path[static_cast<size_t>(Stage::kPull)] > 0);
  // The same generation is not trained again.
  f.runner->Update(testing::SmallDirective("bsp", 9), SessionId(6));
  f.runner.reset();
  CHECK(f.servers.waiting() == 0);
}

TEST_CASE("a new generation ends the one before, whose answers no longer matter", "[job]") {
  Fixture f;
  WorkerJobDirective d = testing::SmallDirective("bsp", 30);
  f.runner->Update(d, SessionId(6));
  f.Open();
  const Call old = f.servers.Next(0, kPull);
  d.set_generation(3);
  f.runner->Update(d, SessionId(7));
  const wire::Header header = f.Open();
  CHECK(header.generation == Generation(3));
  CHECK(header.session == SessionId(7));
  CHECK(f.runner->Report().generation() == 3);
  old.reply(absl::InvalidArgumentError("wrong"));
  f.Serve();
  f.Accept();
  CHECK(f.runner->Report().fatal().empty());
  CHECK(f.Logged().empty());
}

TEST_CASE("what ends the training fails the job, and is logged", "[job]") {
  Fixture f;
  f.runner->Update(testing::SmallDirective("bsp", 6), SessionId(6));
  f.Open();
  f.servers.Next(0, kPull).reply(absl::InvalidArgumentError("wrong keys"));
  const WorkerJobReport report =
      f.Await([](const WorkerJobReport& r) { return !r.fatal().empty(); });
  CHECK(report.fatal() == "server 0: wrong keys");
  CHECK(report.generation() == 2);
  f.runner.reset();
  CHECK(f.Logged() == std::vector<std::string>{"job_failed job=5 reason=\"server 0: wrong keys\""});
}

TEST_CASE("what cannot be begun fails the job", "[job]") {
  Fixture f;
  f.data.Fail("train", absl::FailedPreconditionError("train: changed"));
  f.runner->Update(testing::SmallDirective("bsp", 6), SessionId(6));
  const WorkerJobReport report =
      f.Await([](const WorkerJobReport& r) { return !r.fatal().empty(); });
  CHECK(report.fatal() == "train: changed");
  CHECK_FALSE(report.ready());
}

TEST_CASE("a runner that goes away stops its training", "[job]") {
  Fixture f;
  f.runner->Update(testing::SmallDirective("bsp", 6), SessionId(6));
  f.Open();
  const Call pull = f.servers.Next(0, kPull);
  f.runner.reset();
  pull.reply(absl::UnavailableError("away"));
  CHECK(f.servers.waiting() == 0);
}

}  // namespace
}  // namespace strata
