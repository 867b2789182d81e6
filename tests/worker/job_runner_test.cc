// One job on a worker: the index pass, and generation after generation. Servers say what the test
// says, and time moves by hand.
#include "worker/job_runner.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/job_work.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/session_error.h"
#include "tests/proto/runtime/files/hung_files.h"
#include "tests/temp_folder.h"
#include "tests/worker/client/scripted_servers.h"
#include "tests/worker/client/served_rows.h"
#include "tests/worker/small_job.h"
#include "worker/data/reading/data_access.h"

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
  // `roots`: below which the job may read and write; none: anywhere.
  explicit Fixture(const std::vector<std::string>& roots = {}) {
    const auto paths = PathPolicy::Make(roots);
    REQUIRE(paths.ok());
    options.paths = *paths;
    options.job = JobId(5);
    options.work = &work;
    options.queue = "a";
    options.transport = &servers;
    options.data = &data;
    options.sequences = &sequences;
    options.timer = &timer;
    options.log = [this](const std::string& line) {
      absl::MutexLock lock(&mu);
      logged.push_back(line);
    };
    Begin();
  }
  // Another runner of the job, as after a new session.
  void Begin() { runner = JobRunner::Make(options); }
  // Nothing of the job runs any more.
  void End() {
    runner.reset();
    work.Drain();
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
  JobWork work{&timer};
  JobRunnerOptions options;
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
  f.End();
  CHECK(f.data.opened().empty());
}

// Files of libfm, of which the held-out one has a bad line.
WorkerJobDirective WithBadHeldOutLine(const std::string& folder) {
  std::ofstream(folder + "/train") << "1 1:1\n0 2:1\n";
  std::ofstream(folder + "/eval") << "1 1:1\n0 2:1\n7 2:1\n";
  WorkerJobDirective d = IndexDirective();
  DataSpec& data = *d.mutable_spec()->mutable_spec()->mutable_data();
  data.set_format("libfm");
  data.set_train(0, folder + "/train");
  data.set_eval(0, folder + "/eval");
  return d;
}

TEST_CASE("a bad held-out line fails the job before it trains", "[job]") {
  Fixture f;
  const TempFolder folder;
  f.options.data = DataAccess::Files();
  f.Begin();
  f.runner->Update(WithBadHeldOutLine(folder.path()), SessionId(6));
  const WorkerJobReport report =
      f.Await([](const WorkerJobReport& r) { return !r.fatal().empty() || r.has_train_index(); });
  CHECK(report.fatal().find(folder.path() + "/eval:3:1: label \"7\"") == 0);
  CHECK_FALSE(report.has_train_index());
}

TEST_CASE("held-out lines that are left out are told and logged", "[job]") {
  Fixture f;
  const TempFolder folder;
  f.options.data = DataAccess::Files();
  f.Begin();
  WorkerJobDirective d = WithBadHeldOutLine(folder.path());
  d.mutable_spec()->mutable_spec()->mutable_data()->set_max_bad_lines(1);
  f.runner->Update(d, SessionId(6));
  const WorkerJobReport report =
      f.Await([](const WorkerJobReport& r) { return !r.fatal().empty() || r.has_train_index(); });
  CHECK(report.fatal().empty());
  REQUIRE(report.troubles_size() == 1);
  CHECK(report.troubles(0).reason() == "HeldOutLinesAreBad");
  CHECK(report.troubles(0).message().find("1 bad lines of spec.data.eval are left out of each "
                                          "evaluation; the first is " +
                                          folder.path() + "/eval:3:1: label \"7\"") == 0);
  REQUIRE(f.Logged().size() == 1);
  CHECK(f.Logged()[0].find("held_out_lines_are_bad job=5 reason=\"1 bad lines of ") == 0);
}

TEST_CASE("an output that is a file of input fails the job before anything is written", "[job]") {
  Fixture f;
  const TempFolder folder;
  const std::string input = folder.path() + "/input", output = folder.path() + "/output";
  std::ofstream(input) << "1 7:1\n";
  std::filesystem::create_hard_link(input, output);
  WorkerJobDirective d = IndexDirective();
  JobSpec& spec = *d.mutable_spec()->mutable_spec();
  const bool train = GENERATE(true, false);
  (train ? spec.mutable_data()->mutable_train(0) : spec.mutable_data()->mutable_eval(0))
      ->assign(input);
  const std::string field = train ? "spec.data.train[0] " : "spec.data.eval[0] ";
  const bool metrics = GENERATE(true, false);
  const std::string path = GENERATE_COPY(input, output);
  (metrics ? spec.mutable_output()->mutable_metrics()
           : spec.mutable_output()->mutable_predictions())
      ->assign(path);
  f.runner->Update(d, SessionId(6));
  const WorkerJobReport report =
      f.Await([](const WorkerJobReport& r) { return !r.fatal().empty(); });
  CHECK(report.fatal() ==
        std::string(metrics ? "spec.output.metrics: " : "spec.output.predictions: ") + path +
            " is the same file as " + field + input + ", which the job reads; name another one");
  CHECK_FALSE(report.has_train_index());
}

TEST_CASE("a job that says what the worker does not know fails, and is not trained without it",
          "[job]") {
  const bool indexes = GENERATE(true, false);
  Fixture f;
  WorkerJobDirective d = indexes ? IndexDirective() : testing::SmallDirective("bsp", 9);
  ModelSpec& model = *d.mutable_spec()->mutable_spec()->mutable_model();
  model.GetReflection()->MutableUnknownFields(&model)->AddVarint(12345, 1);
  f.runner->Update(d, SessionId(6));
  const WorkerJobReport report =
      f.Await([](const WorkerJobReport& r) { return !r.fatal().empty(); });
  INFO(report.fatal());
  CHECK(report.fatal().find("this worker is older than the scheduler: it does not know field 12345 "
                            "of spec.model; ") == 0);
  CHECK_FALSE(report.has_train_index());
}

TEST_CASE("folders and globs are listed below the data roots alone", "[job]") {
  const TempFolder root, outside;
  std::ofstream(root.path() + "/part-0") << "1 7:1\n";
  std::ofstream(outside.path() + "/secret") << "1 7:1\n";
  std::filesystem::create_symlink(outside.path() + "/secret", root.path() + "/part-1");
  Fixture f({root.path()});
  WorkerJobDirective d = IndexDirective();
  DataSpec& data = *d.mutable_spec()->mutable_spec()->mutable_data();
  data.clear_eval();
  const std::string paths[] = {root.path() + "/part-*", root.path(), outside.path() + "/s*",
                               root.path() + "/../*/s*"};
  data.set_train(0, paths[GENERATE(0, 1, 2, 3)]);
  f.runner->Update(d, SessionId(6));
  const WorkerJobReport report =
      f.Await([](const WorkerJobReport& r) { return !r.fatal().empty(); });
  INFO(report.fatal());
  CHECK(report.fatal().find("spec.data.train") == 0);
  CHECK(report.fatal().find("--data-root") != std::string::npos);
}

TEST_CASE("a job is trained to its end, at a rate by the given clock", "[job]") {
  Fixture f;
  f.runner->Update(testing::SmallDirective("bsp", 9), SessionId(6));
  const wire::Header header = f.Open();
  CHECK(header == wire::Header{JobId(5), SessionId(6), Generation(2), MapEpoch(3), 1});
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
  f.End();
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
  f.End();
  CHECK(f.Logged() == std::vector<std::string>{"job_failed job=5 reason=\"server 0: wrong keys\""});
}

TEST_CASE("training whose lanes are others' ends, and begins again at the scheduler's word",
          "[job]") {
  Fixture f;
  WorkerJobDirective d = testing::SmallDirective("bsp", 6);
  f.runner->Update(d, SessionId(6));
  const auto gone = [&](size_t times) {
    f.Open();
    f.Serve();
    const absl::Status refused = wire::LanesGone(SessionId(6), 3);
    const Call push = f.servers.Any(0, kPush), next = f.servers.Any(0, kPull);
    push.reply(refused);
    const WorkerJobReport report =
        f.Await([&](const WorkerJobReport&) { return f.Logged().size() == times; });
    CHECK(f.Logged().back() ==
          absl::StrCat("lanes_gone job=5 reason=\"server 0: ", refused.message(), "\""));
    CHECK(report.fatal().empty());  // the job goes on, elsewhere
    CHECK_FALSE(report.finished());
    next.reply(absl::UnavailableError("away"));  // nobody waits for it
    CHECK(f.servers.waiting() == 0);
  };
  gone(1);
  f.runner->Heard();  // the lanes are its own still
  gone(2);
  const std::vector<uint32_t> lanes(d.lanes().begin(), d.lanes().end());
  d.clear_lanes();
  f.runner->Update(d, SessionId(6));
  f.runner->Heard();
  CHECK(f.servers.waiting() == 0);
  d.mutable_lanes()->Assign(lanes.begin(), lanes.end());
  f.runner->Update(d, SessionId(6));
  gone(3);
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
  f.End();
  pull.reply(absl::UnavailableError("away"));
  CHECK(f.servers.waiting() == 0);
}

// Indexes until nobody wants it any more.
class EndlessData : public testing::MadeUpData {
 public:
  absl::StatusOr<InputIndex> BuildIndex(const JobSpec&, const std::vector<std::string>&,
                                        const IndexOptions& options) override {
    begun.Notify();
    while (!options.cancelled()) std::this_thread::yield();
    return absl::CancelledError("not wanted any more");
  }
  absl::Notification begun;
};

TEST_CASE("an index pass ends with its runner", "[job]") {
  EndlessData data;
  Fixture f;
  f.options.data = &data;
  f.Begin();
  f.runner->Update(IndexDirective(), SessionId(6));
  data.begun.WaitForNotification();
  f.End();
  CHECK(f.work.Sum().running == 0);
}

TEST_CASE("input that hangs holds up neither who ends the job nor, for ever, its next runner",
          "[job][hang]") {
  Fixture f;
  TempFolder folder;
  const std::string input = folder.path() + "/input";
  std::ofstream(input) << "1 1:1\n";
  f.options.data = DataAccess::Files();
  WorkerJobDirective d = IndexDirective();
  DataSpec& data = *d.mutable_spec()->mutable_spec()->mutable_data();
  data.set_format("libfm");
  data.clear_eval();
  data.set_train(0, input);
  testing::Hang files(input);
  f.Begin();
  f.runner->Update(d, SessionId(6));
  files->AwaitHung(1);
  f.Begin();  // the one that hangs is told to end, and not waited for
  f.runner->Update(d, SessionId(7));
  CHECK(f.runner->Report().fatal().empty());
  CHECK(f.work.Of("a").running == 1);
  f.timer.Advance(JobWork::kPatience);
  f.work.Pump();
  files->AwaitHung(2);
  CHECK(f.work.Of("a").passed == 1);
  files->Release();
  CHECK(f.Await([](const WorkerJobReport& r) { return r.has_train_index(); }).fatal().empty());
  f.End();
}

}  // namespace
}  // namespace strata
