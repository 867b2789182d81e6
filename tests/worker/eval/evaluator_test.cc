// Predictions over held-out lines by a model that always says 0.25: from one server in this
// process, and from servers that say what the test says while time moves by hand.
#include "worker/eval/evaluator.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/wire/message_codec.h"
#include "tests/temp_folder.h"
#include "tests/worker/client/scripted_servers.h"
#include "tests/worker/client/served_rows.h"
#include "tests/worker/small_training.h"
#include "worker/client/cancel_flag.h"
#include "worker/eval/prediction_file.h"

namespace strata {
namespace {

class Server : public DataHandler {
 public:
  explicit Server(const ModelTables* tables) : tables_(tables) {}

  void Handle(const Caller&, DataMethod method, Buffer request, DataReply reply) override {
    if (method == DataMethod::kOpenSession) return reply(wire::EncodeOpenSessionReply({}));
    REQUIRE(method == DataMethod::kPull);
    steps.push_back(wire::ParsePullRequest(request.span())->step.value);
    if (too_old) {
      return reply(wire::PullReplyEncoder::Make({})->Finish({}, wire::PullOutcome::kTooOld));
    }
    reply(testing::ServePull(*tables_, request));
  }

  std::vector<uint64_t> steps;  // of pulls
  bool too_old = false;

 private:
  const ModelTables* const tables_;
};

constexpr uint64_t kLinesAtATime = 4096;

// Notes which lines are read; the block that begins at `empty` has none that is good.
class Lines : public testing::MadeUpSource {
 public:
  absl::StatusOr<uint64_t> ReadLines(uint64_t first, const BatchLimit& most, Batch* out) override {
    read.emplace_back(first, most.lines);
    if (cancels != nullptr) *cancels = true;
    const auto lines = MadeUpSource::ReadLines(first, most, out);
    if (first == empty) out->Clear();
    if (first >= ends) return uint64_t{0};
    if (lines.ok() && fewer > 0) return std::min(*lines, fewer);
    return lines;
  }

  std::vector<std::pair<uint64_t, uint64_t>> read;
  uint64_t empty = ~uint64_t{0};
  uint64_t fewer = 0;            // that a call reads; 0: as many as it may
  uint64_t ends = ~uint64_t{0};  // here it has no more
  std::atomic<bool>* cancels = nullptr;
};

struct Fixture {
  explicit Fixture(uint64_t lines) {
    REQUIRE(listener.ok());
    links.SetPeers({{"s", "s"}});
    ParameterClientOptions options;
    options.exchange = &exchange;
    options.links = &links;
    client = std::make_unique<ParameterClient>(options);
    EvaluatorOptions evaluate;
    evaluate.client = client.get();
    evaluate.source = &source;
    evaluate.lines = lines;
    evaluate.at_a_time.lines = kLinesAtATime;
    evaluate.tables = &tables;
    evaluate.exchange = &exchange;
    evaluate.model = &model;
    evaluate.parallel = parallel.get();
    evaluate.cancelled = &cancelled;
    evaluator = std::make_unique<Evaluator>(evaluate);
  }

  const ModelTables tables = testing::SmallTables();
  const Exchange exchange{tables, ShardMap::Even(MapEpoch(1), Partitioning(64), 1, 4)};
  Server server{&tables};
  const std::unique_ptr<DataTransport> transport = MakeInProcTransport();
  const absl::StatusOr<std::unique_ptr<DataListener>> listener = transport->Listen("s", &server);
  ServerLinks links{transport.get(), 1, Caller::Nobody()};
  std::unique_ptr<ParameterClient> client;
  Lines source;
  testing::CountingModel model;
  const std::unique_ptr<ops::Parallel> parallel = ops::MakeParallel(1);
  std::atomic<bool> cancelled{false};
  std::unique_ptr<Evaluator> evaluator;
};

// As a job evaluates whose predictions go to `path`, if to any.
absl::StatusOr<EvaluationResult> Run(Evaluator& evaluator, Step step,
                                     const std::string& path = "") {
  PredictionFile file;
  if (absl::Status s = file.Open(path); !s.ok()) return s;
  auto result = evaluator.Run(step, file);
  if (!result.ok()) return result;
  if (absl::Status s = file.Finish(); !s.ok()) return s;
  return result;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// No temporary file stands beside it.
void CheckAlone(const std::string& path) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(path).parent_path())) {
    CHECK(entry.path() == path);
  }
}

TEST_CASE("every line is read once, in order, and counts", "[evaluator]") {
  Fixture f(kLinesAtATime + 904);
  const auto result = Run(*f.evaluator, Step(8));
  REQUIRE(result.ok());
  CHECK(f.source.read ==
        std::vector<std::pair<uint64_t, uint64_t>>{{0, kLinesAtATime}, {4096, kLinesAtATime}});
  CHECK(f.server.steps == std::vector<uint64_t>{8, 8});
  CHECK(result->step() == 7);
  CHECK(result->examples() == 6);
  CHECK(result->positives() == 2);
  CHECK(result->auc() == 0.5);  // all scores are one
  CHECK(result->logloss() == Approx(-(std::log(0.25) + 2 * std::log(0.75)) / 3));
  CHECK(result->calibration() == Approx(0.25 * 6 / 2));
}

TEST_CASE("lines that a call did not read come with the next", "[evaluator]") {
  Fixture f(10);
  f.source.fewer = 4;
  REQUIRE(Run(*f.evaluator, Step(2)).ok());
  CHECK(f.source.read == std::vector<std::pair<uint64_t, uint64_t>>{
                             {0, kLinesAtATime}, {4, kLinesAtATime}, {8, kLinesAtATime}});
}

TEST_CASE("weights of now are those of step 0", "[evaluator]") {
  Fixture f(3);
  const auto result = Run(*f.evaluator, Step(0));
  REQUIRE(result.ok());
  CHECK(result->step() == 0);
  CHECK(f.server.steps == std::vector<uint64_t>{0});
}

TEST_CASE("lines of which none is good need no weights", "[evaluator]") {
  Fixture f(2 * kLinesAtATime);
  f.source.empty = 0;
  const auto result = Run(*f.evaluator, Step(2));
  REQUIRE(result.ok());
  CHECK(result->examples() == 3);
  CHECK(f.server.steps.size() == 1);
}

TEST_CASE("predictions appear whole or not at all", "[evaluator]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/predictions";
  std::ofstream(path) << "of before\n";
  Fixture f(2 * kLinesAtATime);
  SECTION("whole") {
    REQUIRE(Run(*f.evaluator, Step(2), path).ok());
    CHECK(TextOf(path) == "1,0.25\n0,0.25\n0,0.25\n1,0.25\n0,0.25\n0,0.25\n");
  }
  SECTION("not where a line is bad") {
    f.source.Fail(absl::InvalidArgumentError("file:7:1: bad"));
    CHECK(Run(*f.evaluator, Step(2), path).status() == absl::InvalidArgumentError("file:7:1: bad"));
    CHECK(TextOf(path) == "of before\n");
  }
  SECTION("not where lines are missing that were indexed") {
    f.source.ends = kLinesAtATime;
    CHECK(Run(*f.evaluator, Step(2), path).status() ==
          absl::InternalError("reading stopped after 4096 of the 8192 lines that were indexed, "
                              "which is an error of this program; submit the job again"));
    CHECK(TextOf(path) == "of before\n");
  }
  SECTION("not where the servers have gone on") {
    f.server.too_old = true;
    const absl::Status s = Run(*f.evaluator, Step(2), path).status();
    CHECK(absl::IsFailedPrecondition(s));
    CHECK(s.message() == "step 2 is older than clock 0 keeps");
    CHECK(TextOf(path) == "of before\n");
  }
  SECTION("not where training is stopped") {
    f.source.cancels = &f.cancelled;
    CHECK(absl::IsCancelled(Run(*f.evaluator, Step(2), path).status()));
    CHECK(f.server.steps.size() == 1);
    CHECK(TextOf(path) == "of before\n");
  }
  SECTION("not where its name is taken by a folder") {
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    const absl::Status s = Run(*f.evaluator, Step(2), path).status();
    CHECK(s.message() == "predictions: cannot complete " + path + ": Is a directory");
  }
  CheckAlone(path);
}

// A worker that was taken for lost, and the one in its place.
TEST_CASE("predictions of two that write to one place are those of the last to finish, whole",
          "[evaluator]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/predictions";
  const bool first_ends_first = GENERATE(true, false);
  INFO("the first ends first " << first_ends_first);
  PredictionFile first, second;
  REQUIRE(first.Open(path).ok());
  REQUIRE(first.Append("1,0.25\n").ok());
  REQUIRE(second.Open(path).ok());
  REQUIRE(second.Append("0,0.75\n").ok());
  REQUIRE(first.Append("1,0.5\n").ok());
  REQUIRE(second.Append("0,0.875\n").ok());
  REQUIRE((first_ends_first ? first : second).Finish().ok());
  CHECK(TextOf(path) == (first_ends_first ? "1,0.25\n1,0.5\n" : "0,0.75\n0,0.875\n"));
  REQUIRE((first_ends_first ? second : first).Finish().ok());
  CHECK(TextOf(path) == (first_ends_first ? "0,0.75\n0,0.875\n" : "1,0.25\n1,0.5\n"));
  CheckAlone(path);
}

TEST_CASE("what a lost worker left of its predictions is taken over", "[evaluator]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/predictions";
  std::ofstream(path + ".next.tmp") << "0,0.125\n0,0.125\n0,0.125\n";
  PredictionFile file;
  REQUIRE(file.Open(path).ok());
  REQUIRE(file.Append("1,0.5\n").ok());
  REQUIRE(file.Finish().ok());
  CHECK(TextOf(path) == "1,0.5\n");
  CheckAlone(path);
}

TEST_CASE("a file that cannot be made is named before anything is read", "[evaluator]") {
  Fixture f(3);
  const absl::Status s = Run(*f.evaluator, Step(2), "/no/such/folder/predictions").status();
  CHECK(absl::IsFailedPrecondition(s));
  CHECK(s.message() ==
        "predictions: cannot open /no/such/folder/predictions: No such file or directory");
  CHECK(f.source.read.empty());
}

// Evaluates two blocks of lines in a thread of its own, with two servers that the test speaks for.
// A file of predictions is there from before.
class Scripted {
 public:
  static constexpr absl::Duration kGiveUpAfter = absl::Seconds(1);
  using Call = testing::ScriptedServers::Call;

  Scripted() {
    std::ofstream(path()) << "of before\n";
    links_.SetPeers(testing::ScriptedServers::Peers(2));
    ParameterClientOptions options;
    options.exchange = &exchange_;
    options.links = &links_;
    options.timer = &timer;
    options.give_up_after = kGiveUpAfter;
    options.cancelled = &cancelled;
    client_ = std::make_unique<ParameterClient>(options);
    EvaluatorOptions evaluate;
    evaluate.client = client_.get();
    evaluate.source = &source;
    evaluate.lines = 2 * kLinesAtATime;
    evaluate.at_a_time.lines = kLinesAtATime;
    evaluate.tables = &tables_;
    evaluate.exchange = &exchange_;
    evaluate.model = &model_;
    evaluate.parallel = parallel_.get();
    evaluate.cancelled = &cancelled.value();
    evaluator_ = std::make_unique<Evaluator>(evaluate);
    result_ = std::async(std::launch::async, [this] { return Run(*evaluator_, Step(3), path()); });
    for (const uint32_t s : {0, 1}) {
      servers.Next(s, testing::kOpen).reply(testing::OpenReply({}));
    }
  }
  ~Scripted() {
    cancelled.Set();
    servers.Close();
  }

  void Serve(const Call& pull) { pull.reply(testing::ServePull(tables_, pull.request)); }
  void ServeNext(uint32_t server) { Serve(servers.Next(server, testing::kPull)); }
  void Break(uint32_t server) {
    servers.Next(server, testing::kPull).reply(absl::UnavailableError("away"));
  }
  // The evaluator sleeps for `ms` and asks nobody; wakes it.
  void AwaitPause(int ms) {
    timer.AwaitAlarms(1);
    CHECK(timer.next() == timer.Now() + absl::Milliseconds(ms));
    CHECK(servers.waiting() == 0);
    timer.AdvanceTo(timer.next());
  }
  // Waits for it, and fails the test where it never comes.
  absl::StatusOr<EvaluationResult> Result() {
    REQUIRE(result_.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    return result_.get();
  }
  std::string path() const { return folder_.path() + "/predictions"; }

  testing::ScriptedServers servers;
  ManualTimer timer;
  CancelFlag cancelled;
  Lines source;

 private:
  const TempFolder folder_;
  const ModelTables tables_ = testing::SmallTables();
  const Exchange exchange_{tables_, ShardMap::Even(MapEpoch(1), Partitioning(64), 2, 4)};
  ServerLinks links_{&servers, 2, Caller::Nobody()};
  testing::CountingModel model_;
  const std::unique_ptr<ops::Parallel> parallel_ = ops::MakeParallel(1);
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<Evaluator> evaluator_;
  std::future<absl::StatusOr<EvaluationResult>> result_;
};

TEST_CASE("a server that is away is asked again after the back-off, and every line counts once",
          "[evaluator]") {
  Scripted f;
  f.ServeNext(0);
  for (const int ms : {10, 20, 40}) {
    f.Break(1);
    f.AwaitPause(ms);
  }
  f.ServeNext(1);
  // In the second block, it has forgotten its session.
  f.ServeNext(0);
  f.servers.Next(1, testing::kPull).reply(absl::NotFoundError("job 0 is not open"));
  f.AwaitPause(10);
  f.servers.Next(1, testing::kOpen).reply(testing::OpenReply({}));
  f.ServeNext(1);
  const auto result = f.Result();
  REQUIRE(result.ok());
  CHECK(result->step() == 2);
  CHECK(result->examples() == 6);
  CHECK(f.source.read.size() == 2);
  CHECK(f.servers.waiting() == 0);
  CHECK(TextOf(f.path()) == "1,0.25\n0,0.25\n0,0.25\n1,0.25\n0,0.25\n0,0.25\n");
}

TEST_CASE("an evaluation gives up when its time is over, and leaves no half file", "[evaluator]") {
  Scripted f;
  for (const uint32_t s : {0, 1}) f.ServeNext(s);
  f.ServeNext(0);
  const absl::Time last_success = f.timer.Now();
  for (const int ms : {10, 20, 40, 80, 160, 320, 640}) {
    CHECK(f.timer.Now() - last_success < Scripted::kGiveUpAfter);
    f.Break(1);
    f.AwaitPause(ms);
  }
  CHECK(f.timer.Now() - last_success > Scripted::kGiveUpAfter);
  f.Break(1);
  CHECK(f.Result().status() == absl::UnavailableError("away"));
  CHECK(f.timer.alarms() == 0);
  CHECK(f.servers.waiting() == 0);
  CHECK(TextOf(f.path()) == "of before\n");
  CheckAlone(f.path());
}

TEST_CASE("an evaluation that is stopped in a block ends at once", "[evaluator]") {
  Scripted f;
  for (const uint32_t s : {0, 1}) f.ServeNext(s);
  f.ServeNext(0);
  Scripted::Call hangs{};
  SECTION("while it waits for an answer") { hangs = f.servers.Next(1, testing::kPull); }
  SECTION("while it backs off") {
    f.Break(1);
    f.timer.AwaitAlarms(1);
  }
  f.cancelled.Set();
  CHECK(absl::IsCancelled(f.Result().status()));
  CHECK(f.source.read.size() == 2);
  CHECK(f.servers.waiting() == 0);
  CHECK(TextOf(f.path()) == "of before\n");
  CheckAlone(f.path());
  if (hangs.reply != nullptr) f.Serve(hangs);  // nobody waits for it
}

}  // namespace
}  // namespace strata
