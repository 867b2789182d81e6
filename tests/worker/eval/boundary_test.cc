// The lines of spec.output.metrics, by a timer that is moved by hand. Evaluation itself is tested
// in tests/e2e.
#include "worker/eval/boundary.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/manual_timer.h"
#include "tests/temp_folder.h"
#include "worker/eval/evaluator.h"
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

TEST_CASE("predictions that cannot get their name leave no file behind", "[evaluator]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/predictions";
  ManualTimer timer;
  TrainingStats stats;
  const ModelTables tables;
  EvaluatorOptions evaluate;  // of no lines
  evaluate.tables = &tables;
  Evaluator evaluator(evaluate);
  EvaluationBoundaryOptions options;
  options.spec.mutable_training()->set_mode("bsp");
  options.spec.mutable_training()->set_lanes(kLanes);
  options.spec.mutable_training()->set_batch_size(kBatch);
  options.spec.mutable_output()->set_predictions(path);
  options.evaluator = &evaluator;
  options.stats = &stats;
  options.train_lines = 1000;
  options.timer = &timer;
  const auto boundary = EvaluationBoundary::Make(options);
  REQUIRE(boundary.ok());
  std::filesystem::create_directory(path);  // somebody takes the name meanwhile
  CHECK_FALSE((*boundary)->OnBoundary(Step(1), true).ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(entry.path() == path);
  }
}

}  // namespace
}  // namespace strata
