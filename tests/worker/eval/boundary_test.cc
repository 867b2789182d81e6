// The lines of spec.output.metrics, by a timer that is moved by hand. Evaluation itself is tested
// in tests/e2e.
#include "worker/eval/boundary.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/job_places.h"
#include "proto/runtime/files/prediction_names.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/temp_folder.h"
#include "worker/eval/evaluator.h"
#include "worker/eval/prediction_file.h"
#include "worker/metrics/training_stats.h"

namespace strata {
namespace {

using Json = nlohmann::json;

// Two workers of two lanes each, of which one is here.
constexpr uint32_t kLanes = 4, kBatch = 10;

class Fixture {
 public:
  explicit Fixture(const std::string& mode, uint64_t lines = 1000) {
    EvaluationBoundaryOptions options;
    options.spec.mutable_training()->set_mode(mode);
    options.spec.mutable_training()->set_lanes(kLanes);
    options.spec.mutable_training()->set_batch_size(kBatch);
    options.spec.mutable_output()->set_metrics(path());
    options.stats = &stats;
    options.train_lines = lines;
    options.timer = &timer;
    auto made = EvaluationBoundary::Make(options);
    REQUIRE(made.ok());
    boundary_ = *std::move(made);
  }

  // Steps until `step` is complete, one each `time`; computes those of this worker's lanes.
  void RunTo(uint64_t step, absl::Duration time, bool last = false) {
    while (done_ < step) {
      for (int lane = 0; lane < 2; ++lane) {
        const std::vector<float> labels(kBatch, lane == 0 ? 1.0f : 0.0f);
        const std::vector<float> predictions(kBatch, lane == 0 ? 0.75f : 0.5f);
        TrainingStats::Batch batch;
        batch.examples = kBatch;
        batch.loss = 0.25 * kBatch;
        batch.weight = kBatch;
        batch.labels = labels;
        batch.predictions = predictions;
        stats.OnBatch(batch);
      }
      timer.Advance(time);
      ++done_;
      Reach(done_, last && done_ == step);
    }
  }
  void Reach(uint64_t step, bool last) {
    done_ = step;
    REQUIRE(boundary_->OnBoundary(Step(step), last).ok());
  }

  std::vector<Json> Lines() const {
    std::ifstream in(path());
    std::vector<Json> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  ManualTimer timer;
  const absl::Time begun = timer.Now();
  TrainingStats stats;

 private:
  std::string path() const { return folder_.path() + "/metrics.jsonl"; }

  const TempFolder folder_;
  std::unique_ptr<EvaluationBoundary> boundary_;
  uint64_t done_ = 0;
};

TEST_CASE("bsp: the rate of each line is the whole job's since the line before", "[metrics]") {
  Fixture f("bsp");
  f.RunTo(101, absl::Milliseconds(50));  // 40 lines a step: 800/s
  const std::vector<Json> lines = f.Lines();
  REQUIRE(lines.size() == 5);
  for (size_t i = 0; i < lines.size(); ++i) {
    CHECK(lines[i]["step"] == 1 + 20 * (i + 1));
    CHECK(lines[i]["examplesPerSecond"] == 800.0);
    CHECK(lines[i]["loss"] == 0.25);
    CHECK(lines[i]["auc"] == 1.0);
    CHECK(lines[i]["examples"] == 40 * (1 + 20 * (i + 1)));
    CHECK(lines[i]["unixMs"] ==
          absl::ToUnixMillis(f.begun + (i + 1) * absl::Seconds(1) + absl::Milliseconds(50)));
  }
}

TEST_CASE("a job of less than a second has its rate in the last line", "[metrics]") {
  Fixture f("bsp");
  f.RunTo(11, absl::Milliseconds(20), true);
  REQUIRE(f.Lines().size() == 1);
  CHECK(f.Lines()[0]["step"] == 11);
  CHECK(f.Lines()[0]["examplesPerSecond"] == 2000.0);
}

TEST_CASE("steps that are not full count what they took", "[metrics]") {
  Fixture f("bsp", 990);  // the 25th step takes what is left of an epoch: 30 lines
  f.RunTo(26, absl::Milliseconds(40));
  REQUIRE(f.Lines().size() == 1);
  CHECK(f.Lines()[0]["examplesPerSecond"] == 990.0);
}

TEST_CASE("a stall lies in the line after it and in no other", "[metrics]") {
  Fixture f("bsp");
  f.RunTo(21, absl::Milliseconds(50));
  f.timer.Advance(absl::Seconds(100));
  f.RunTo(22, absl::ZeroDuration());
  f.RunTo(42, absl::Milliseconds(50));
  const std::vector<Json> lines = f.Lines();
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["examplesPerSecond"] == 800.0);
  CHECK(lines[1]["examplesPerSecond"] == 0.4);
  CHECK(lines[2]["examplesPerSecond"] == 800.0);
}

TEST_CASE("after a restart nothing is told that was not measured", "[metrics]") {
  Fixture f("bsp");
  f.Reach(600, true);
  REQUIRE(f.Lines().size() == 1);
  CHECK(f.Lines()[0]["step"] == 600);
  CHECK(f.Lines()[0]["loss"].is_null());
  CHECK(f.Lines()[0]["auc"].is_null());
  CHECK(f.Lines()[0]["examplesPerSecond"].is_null());
  // What was trained before the restart is in no rate.
  f.RunTo(620, absl::Milliseconds(50));
  REQUIRE(f.Lines().size() == 2);
  CHECK(f.Lines()[1]["examplesPerSecond"] == 800.0);
}

TEST_CASE("asynchronous modes tell the rate of this worker's lanes", "[metrics]") {
  Fixture f("async");
  f.RunTo(21, absl::Milliseconds(50));
  REQUIRE(f.Lines().size() == 1);
  CHECK(f.Lines()[0]["examplesPerSecond"] == 400.0);
}

TEST_CASE("asynchronous modes tell what full windows of the whole job took", "[metrics]") {
  Fixture f("async");
  f.Reach(7, true);
  CHECK(f.Lines()[0]["examples"] == 7 * kBatch);
  f.Reach(101, true);  // tasks' last windows are short
  CHECK(f.Lines()[1]["examples"] == 1000);
}

// Predictions at `path` of a job that evaluates, over no lines.
struct Predicts {
  explicit Predicts(const std::string& path) {
    options.spec.mutable_training()->set_mode("bsp");
    options.spec.mutable_training()->set_lanes(kLanes);
    options.spec.mutable_training()->set_batch_size(kBatch);
    options.spec.mutable_output()->set_predictions(path);
    options.evaluator = &evaluator;
    options.stats = &stats;
    options.train_lines = 1000;
    options.timer = &timer;
  }
  ManualTimer timer;
  TrainingStats stats;
  const ModelTables tables;
  Evaluator evaluator{EvaluatorOptions{.tables = &tables}};  // of no lines
  EvaluationBoundaryOptions options;
};

TEST_CASE("predictions that cannot get their name leave no file behind", "[evaluator]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/predictions";
  const Predicts job(path);
  const auto boundary = EvaluationBoundary::Make(job.options);
  REQUIRE(boundary.ok());
  std::filesystem::create_directory(path);  // somebody takes the name meanwhile
  CHECK_FALSE((*boundary)->OnBoundary(Step(1), true).ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(entry.path() == path);
  }
}

EvaluationResult Evaluated(uint64_t step, uint64_t positives, double auc, double loss) {
  EvaluationResult result;
  result.set_step(step);
  result.set_examples(10);
  result.set_positives(positives);
  result.set_auc(auc);
  result.set_logloss(loss);
  return result;
}

// The verdict after step 3, which evaluates no lines, of a job whose patience is 2.
StepBoundary::Verdict VerdictAfter(std::vector<EvaluationResult> history, bool real) {
  Predicts job("");
  job.options.spec.mutable_evaluation()->set_every_steps(1);
  job.options.spec.mutable_evaluation()->set_patience(2);
  if (real) {
    LabelConfig& label = *job.options.spec.add_labels();
    label.set_name("stars");
    label.set_kind("real");
    for (EvaluationResult& e : history) e.clear_positives();
  }
  job.options.history = std::move(history);
  const auto boundary = EvaluationBoundary::Make(job.options);
  REQUIRE(boundary.ok());
  const auto verdict = (*boundary)->OnBoundary(Step(3), false);
  REQUIRE(verdict.ok());
  return *verdict;
}

TEST_CASE("a metric that is defined is better than none, and none is better than nothing",
          "[evaluator]") {
  const auto go_on = StepBoundary::Verdict::kGoOn, stop = StepBoundary::Verdict::kStop;
  const double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(VerdictAfter({Evaluated(1, 10, 0.5, 1), Evaluated(2, 4, 0.25, 1)}, false) == go_on);
  CHECK(VerdictAfter({Evaluated(1, 4, 0.25, 1), Evaluated(2, 10, 0.5, 1)}, false) == stop);
  CHECK(VerdictAfter({Evaluated(1, 4, 0.25, 1), Evaluated(2, 4, 0.5, 1)}, false) == go_on);
  CHECK(VerdictAfter({Evaluated(1, 0, 0, none), Evaluated(2, 0, 0, 1)}, true) == go_on);
  CHECK(VerdictAfter({Evaluated(1, 0, 0, 1), Evaluated(2, 0, 0, none)}, true) == stop);
  // The first is the best so far without a metric, too; those behind it are no better.
  CHECK(VerdictAfter({Evaluated(2, 10, 0.5, 1)}, false) == go_on);
  CHECK(VerdictAfter({Evaluated(1, 10, 0.5, 1), Evaluated(2, 10, 0.5, 1)}, false) == stop);
}

TEST_CASE("a run's first evaluation is its best one until another defines the metric",
          "[evaluator]") {
  Predicts job("");
  job.options.spec.mutable_evaluation()->set_every_steps(1);
  job.options.spec.mutable_evaluation()->set_patience(2);
  const auto boundary = EvaluationBoundary::Make(job.options);
  REQUIRE(boundary.ok());
  for (const uint64_t step : {1, 2}) {
    CHECK(*(*boundary)->OnBoundary(Step(step), false) == StepBoundary::Verdict::kGoOn);
    WorkerJobReport report;
    job.stats.Report(job.timer.Now(), &report);
    CHECK(report.best_step() == 1);
  }
}

// The kernel's files, and the names in a folder that are made, given or taken away.
class Recorded : public FileSystem {
 public:
  explicit Recorded(const std::string& folder) : folder_(folder) {
    FileSystem::ReplaceKernel(this);
  }
  ~Recorded() override { FileSystem::ReplaceKernel(nullptr); }
  int Open(const std::string& path, int flags) override {
    if ((flags & O_ACCMODE) != O_RDONLY) Note(path);
    return FileSystem::Open(path, flags);
  }
  int Rename(const std::string& from, const std::string& to) override {
    Note(from);
    Note(to);
    return FileSystem::Rename(from, to);
  }
  int Remove(const std::string& path) override {
    Note(path);
    return FileSystem::Remove(path);
  }
  std::set<std::string> names;

 private:
  void Note(const std::string& path) {
    if (path.starts_with(folder_)) names.insert(path);
  }
  const std::string folder_;
};

TEST_CASE("each name that predictions are written under is one that nothing else may have",
          "[evaluator]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/predictions";
  const Predicts job(path);
  Recorded files(folder.path());
  const auto boundary = EvaluationBoundary::Make(job.options);
  REQUIRE(boundary.ok());
  REQUIRE((*boundary)->OnBoundary(Step(1), true).ok());
  REQUIRE(std::filesystem::exists(path));
  // Others write there, too, until one finds no name.
  std::list<PredictionFile> others;
  while (others.emplace_back().Open(path).ok()) continue;
  CHECK(others.size() == 5);
  const std::vector<std::string> known = NamesInTraining(path);
  std::set<std::string> names(known.begin(), known.end());
  CHECK(names.erase(NextPredictions(path)) == 1);  // of earlier versions
  CHECK(files.names == names);
  for (const std::string& name : known) {
    CAPTURE(name);
    JobSpec spec = job.options.spec;
    spec.mutable_data()->add_eval(name);
    CHECK_FALSE(CheckJobPlaces(spec).ok());
    spec.mutable_data()->Clear();
    spec.mutable_output()->set_metrics(name);
    CHECK_FALSE(CheckJobPlaces(spec).ok());
  }
}

TEST_CASE("predictions replace what a link leads to, and never what a process has open",
          "[evaluator]") {
  const TempFolder folder;
  const std::string link = folder.path() + "/link", target = folder.path() + "/to/target";
  std::filesystem::create_directory(folder.path() + "/to");
  std::filesystem::create_symlink("to/target", link);
  for (const bool there : {false, true}) {
    CAPTURE(there);
    if (there) std::ofstream(target) << "old";
    const Predicts job(link);
    const auto boundary = EvaluationBoundary::Make(job.options);
    REQUIRE(boundary.ok());
    REQUIRE((*boundary)->OnBoundary(Step(1), true).ok());
    CHECK(std::filesystem::is_symlink(link));
    CHECK(std::filesystem::file_size(target) == 0);
  }
  std::filesystem::remove(link);
  // As /dev/stdout where the shell leads it to a file.
  std::ofstream(target) << "old";
  const int fd = FileSystem::Kernel().Open(target, O_RDWR);
  REQUIRE(fd >= 0);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(fd), link);
  const absl::Status refused = EvaluationBoundary::Make(Predicts(link).options).status();
  INFO(refused);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(refused.message().find("spec.output.predictions: cannot write " + link) == 0);
  CHECK(refused.message().find("a pipe or a device") != std::string::npos);
  FileSystem::Kernel().Close(fd);
}

}  // namespace
}  // namespace strata
