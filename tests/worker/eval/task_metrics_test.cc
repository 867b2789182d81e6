#include "worker/eval/task_metrics.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "ops/natural_log.h"
#include "proto/job/evaluation_result.h"
#include "tests/worker/eval/metric_loops.h"

namespace strata {
namespace {

using testing::AucOfPairs;
using testing::GaucOfPairs;
using testing::Line;
using testing::MeanOf;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

std::vector<TaskSpec> Tasks() {
  std::vector<TaskSpec> tasks(3);
  tasks[0].name = "click";
  tasks[1].name = "stars";
  tasks[1].kind = LabelKind::kReal;
  tasks[1].loss = TaskLoss::kHuber;
  tasks[2].name = "visits";
  tasks[2].kind = LabelKind::kCount;
  tasks[2].loss = TaskLoss::kPoisson;
  return tasks;
}

// Four lines of two features each; the second field is the group.
Batch Lines() {
  Batch b;
  b.Clear();
  b.size = 4;
  b.tasks = 3;
  b.labels = {1, 2, 4, 0, kNone, 0, kNone, 5, 1, 0, 1, kNone};
  b.weights = {1, 0.5f, 3, 2};
  for (uint32_t i = 0; i < 4; ++i) {
    b.keys.insert(b.keys.end(), {100 + i, i < 2 ? 7u : 8u});
    b.offsets.push_back(2 * (i + 1));
  }
  return b;
}

const std::vector<float> kPredictions = {0.8f, 2.5f, 3, 0.4f, 1, 1, 0.5f, 2, 2, 0.9f, 1, 9};

TEST_CASE("each label is measured over the lines that have it, by their weights", "[eval]") {
  MetricsPlan plan;
  plan.by_task = true;
  plan.gauc_field = "user";
  TaskMetrics metrics(Tasks(), plan, 1);
  metrics.Add(Lines(), kPredictions);
  EvaluationResult result;
  metrics.Fill(&result);
  REQUIRE(result.tasks_size() == 3);
  const TaskResult& click = result.tasks(0);
  CHECK(click.label() == "click");
  CHECK(click.examples() == 3);
  CHECK(click.weight() == 3.5);
  CHECK(click.positives() == 1);
  CHECK(click.auc() == Approx(0.5 / 2.5));  // above the one of .5, below the one of 2
  CHECK(click.gauc() == 1);                 // the other group has no click
  const double logloss = -(std::log(0.8) + 0.5 * std::log(0.6) + 2 * std::log(0.1)) / 3.5;
  CHECK(click.logloss() == Approx(logloss).epsilon(1e-6));
  const double rate = 1 / 3.5, entropy = -rate * std::log(rate) - (1 - rate) * std::log(1 - rate);
  CHECK(click.normalised_entropy() == Approx(logloss / entropy).epsilon(1e-6));
  CHECK(click.calibration() == Approx(0.8 + 0.2 + 1.8).epsilon(1e-6));
  CHECK_FALSE(click.has_mse());
  const TaskResult& stars = result.tasks(1);
  CHECK(stars.examples() == 3);
  CHECK(stars.weight() == 6);
  CHECK(stars.mse() == Approx((0.25 + 3 * 9 + 0) / 6));
  CHECK(stars.mae() == Approx((0.5 + 3 * 3 + 0) / 6));
  CHECK(stars.loss() == Approx((0.125 + 3 * 2.5) / 6));  // huber of 3 is 2.5
  CHECK_FALSE(stars.has_auc());
  CHECK_FALSE(stars.has_positives());
  const TaskResult& visits = result.tasks(2);
  CHECK(visits.loss() ==
        Approx((3 - 4 * std::log(3) + 0.5 * 1 + 3 * (2 - std::log(2))) / 4.5).epsilon(1e-6));
  CHECK(visits.calibration() == Approx((3 + 0.5 + 6) / (4 + 0 + 3.0)).epsilon(1e-6));
  // Of the first label:
  CHECK(result.examples() == 4);
  CHECK(result.auc() == click.auc());
  CHECK(result.logloss() == click.logloss());
  CHECK(result.positives() == 1);
}

TEST_CASE("lines without a value of gauc's field are a group of their own", "[eval]") {
  // Of libffm, say: any number is a key, 0 too, and a line may lack a field.
  Batch batch;
  batch.Clear();
  batch.tasks = 1;
  std::vector<float> scores;
  const auto add = [&](float label, float score, std::optional<uint64_t> user) {
    batch.labels.push_back(label);
    scores.push_back(score);
    batch.keys.push_back(5);
    batch.fields.push_back(0);
    if (user) batch.keys.push_back(*user);
    if (user) batch.fields.push_back(1);
    batch.offsets.push_back(static_cast<uint32_t>(batch.keys.size()));
    ++batch.size;
  };
  add(1, 0.9f, 0);
  add(0, 0.1f, 0);
  add(1, 0.2f, std::nullopt);
  add(0, 0.8f, std::nullopt);
  add(0, 0.3f, std::nullopt);
  add(1, 0.6f, std::numeric_limits<uint64_t>::max());
  add(0, 0.5f, std::numeric_limits<uint64_t>::max());
  std::vector<TaskSpec> tasks(1);
  MetricsPlan plan;
  plan.by_task = true;
  plan.gauc_field = "user";
  TaskMetrics metrics(tasks, plan, 1);
  metrics.Add(batch, scores);
  EvaluationResult result;
  metrics.Fill(&result);
  CHECK(result.tasks(0).gauc() == Approx((2 * 1 + 3 * 0 + 2 * 1) / 7.0));
}

TEST_CASE("what was asked for is told, and what is not defined is absent", "[eval]") {
  MetricsPlan plan;
  plan.by_task = plan.given = true;
  plan.mse = plan.auc = true;
  TaskMetrics metrics(Tasks(), plan, std::nullopt);
  Batch batch = Lines();
  for (size_t i = 0; i < 4; ++i) batch.labels[3 * i] = 1;  // one class
  metrics.Add(batch, kPredictions);
  EvaluationResult result;
  metrics.Fill(&result);
  CHECK_FALSE(result.tasks(0).has_auc());
  CHECK(result.auc() == 0.5);
  CHECK(result.tasks(0).has_mse());
  CHECK_FALSE(result.tasks(0).has_logloss());
  CHECK_FALSE(result.tasks(1).has_mae());
  CHECK(result.tasks(2).has_loss());
}

TEST_CASE("one of two classes that weighs nothing leaves no AUC", "[eval]") {
  const bool ones = GENERATE(true, false);
  TaskMetrics metrics(Tasks(), {.by_task = true}, std::nullopt);
  Batch batch = Lines();  // the first label is 1, 0, none, 0
  batch.weights = ones ? std::vector<float>{0, 0.5f, 3, 2} : std::vector<float>{1, 0, 3, 0};
  metrics.Add(batch, kPredictions);
  EvaluationResult result;
  metrics.Fill(&result);
  CHECK_FALSE(result.tasks(0).has_auc());
  CHECK(AucOf(result) == std::nullopt);
  CHECK(LossOf(result) == result.tasks(0).loss());
}

TEST_CASE("predictions that are no numbers leave a label nothing but its lines", "[eval]") {
  const uint32_t task = GENERATE(0, 1, 2);
  const float prediction = std::numeric_limits<float>::quiet_NaN();
  INFO("label " << task);
  MetricsPlan plan;
  plan.by_task = plan.given = true;
  plan.auc = plan.logloss = plan.ne = plan.calibration = plan.mse = plan.mae = true;
  plan.gauc_field = "user";
  std::vector<TaskSpec> tasks = Tasks();
  const auto measure = [&](uint32_t bad) {
    std::vector<float> predictions = kPredictions;
    predictions[bad] = prediction;
    TaskMetrics metrics(tasks, plan, 1);
    metrics.Add(Lines(), predictions);
    EvaluationResult result;
    metrics.Fill(&result);
    return result;
  };
  const EvaluationResult whole = measure(task == 0 ? 6 : task == 1 ? 4 : 11);  // of an empty label
  const EvaluationResult result = measure(task);                               // of the first line
  for (int t = 0; t < 3; ++t) {
    INFO(t);
    if (t != static_cast<int>(task)) {
      CHECK(result.tasks(t).SerializeAsString() == whole.tasks(t).SerializeAsString());
      continue;
    }
    CHECK(whole.tasks(t).has_loss());
    TaskResult lines;
    lines.set_label(whole.tasks(t).label());
    lines.set_examples(whole.tasks(t).examples());
    lines.set_weight(whole.tasks(t).weight());
    if (t == 0) lines.set_positives(whole.tasks(t).positives());
    CHECK(result.tasks(t).ShortDebugString() == lines.ShortDebugString());
  }
  if (task > 0) return;
  CHECK(AucOf(whole));
  CHECK_FALSE(AucOf(result));
  CHECK_FALSE(LossOf(result));
  CHECK_FALSE(CalibrationOf(result));
}

TEST_CASE("a first label that no line has, or none that weighs something, leaves nothing",
          "[eval]") {
  const bool weightless = GENERATE(true, false);
  TaskMetrics metrics(Tasks(), {.by_task = true}, std::nullopt);
  Batch batch = Lines();
  for (size_t i = 0; i < 4; ++i) {
    if (weightless) batch.weights[i] = 0;
    if (!weightless) batch.labels[3 * i] = kNone;
  }
  metrics.Add(batch, kPredictions);
  EvaluationResult result;
  metrics.Fill(&result);
  CHECK(result.examples() == 4);
  CHECK(AucOf(result) == std::nullopt);
  CHECK(LossOf(result) == std::nullopt);
}

TEST_CASE("a first label that is no class gives its loss", "[eval]") {
  MetricsPlan plan;
  plan.by_task = true;
  std::vector<TaskSpec> tasks = Tasks();
  std::swap(tasks[0], tasks[1]);
  TaskMetrics metrics(tasks, plan, std::nullopt);
  metrics.Add(Lines(), kPredictions);
  EvaluationResult result;
  metrics.Fill(&result);
  CHECK_FALSE(result.has_positives());
  CHECK(result.auc() == 0.5);
  CHECK(result.logloss() == result.tasks(0).loss());
}

TEST_CASE("a count's loss, by which training stops, has the same bits on every machine", "[eval]") {
  const std::vector<TaskSpec> tasks = {Tasks()[2]};
  Batch batch;
  batch.Clear();
  batch.tasks = batch.size = 1;
  batch.labels = {7};
  batch.keys = {1};
  batch.offsets.push_back(1);
  int others = 0;  // libm's logarithm is another one for some of them
  for (int i = 1; i <= 20000; ++i) {
    const float score = 0.0137f * static_cast<float>(i);
    TaskMetrics metrics(tasks, {.by_task = true}, std::nullopt);
    metrics.Add(batch, {score});
    EvaluationResult result;
    metrics.Fill(&result);
    const double loss = double{score} - 7 * ops::NaturalLog(double{score});
    others += result.tasks(0).loss() == loss && LossOf(result) == loss ? 0 : 1;
    CHECK(loss == Approx(double{score} - 7 * std::log(double{score})).epsilon(1e-12).margin(1e-12));
  }
  CHECK(others == 0);
}

TEST_CASE("a prediction beyond floats is measured as the greatest one", "[eval]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr double kGreatest = std::numeric_limits<float>::max();
  const double label = GENERATE(0.0, 3.0);
  std::vector<TaskSpec> tasks = Tasks();
  std::swap(tasks[0], tasks[2]);
  TaskMetrics metrics(tasks, {.by_task = true}, std::nullopt);
  Batch batch = Lines();
  batch.weights.clear();
  std::vector<float> predictions(12, 1.0f);
  for (size_t i = 0; i < 4; ++i) batch.labels[3 * i] = 1;
  batch.labels[3] = static_cast<float>(label);
  predictions[3] = kInfinity;
  predictions[4] = -kInfinity;  // of a label that this line does not have
  predictions[10] = -kInfinity;
  metrics.Add(batch, predictions);
  EvaluationResult result;
  metrics.Fill(&result);
  const TaskResult& visits = result.tasks(0);
  CHECK(visits.mae() == Approx(kGreatest / 4));
  CHECK(visits.mse() == Approx(kGreatest * kGreatest / 4));
  CHECK(visits.calibration() == Approx(kGreatest / (3 + label)));
  const double loss = (3 * 1 + kGreatest - label * std::log(kGreatest)) / 4;
  CHECK(visits.loss() == Approx(loss));
  CHECK(LossOf(result) == visits.loss());  // what patience goes by
  const TaskResult& stars = result.tasks(1);
  CHECK(stars.mae() == Approx(kGreatest / 3));
  CHECK(stars.loss() == Approx(kGreatest / 3));  // Huber's, of delta 1
}

TEST_CASE("every metric of every label is what loops over its lines say, to 1e-9", "[eval]") {
  const bool weighted = GENERATE(true, false);
  constexpr uint32_t kLines = 700, kGroups = 30;
  MetricsPlan plan;
  plan.by_task = plan.given = true;
  plan.auc = plan.logloss = plan.ne = plan.calibration = plan.mse = plan.mae = true;
  plan.gauc_field = "user";
  TaskMetrics metrics(Tasks(), plan, 1);
  std::vector<std::vector<Line>> lines(3);
  uint64_t state = 12345;
  const auto next = [&state](uint64_t below) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % below;
  };
  for (uint32_t b = 0; b < 7; ++b) {
    Batch batch;
    batch.Clear();
    batch.size = kLines / 7;
    batch.tasks = 3;
    std::vector<float> scores;
    for (uint32_t i = 0; i < batch.size; ++i) {
      const uint64_t group = next(kGroups);
      const auto weight = static_cast<float>(next(6)) * 0.375f;  // some weigh nothing
      if (weighted) batch.weights.push_back(weight);
      batch.keys.insert(batch.keys.end(), {next(9), group});
      batch.offsets.push_back(2 * (i + 1));
      for (uint32_t t = 0; t < 3; ++t) {
        const bool binary = t == 0;
        const float score = static_cast<float>(next(binary ? 64 : 900) + 1) / (binary ? 65 : 100);
        const float label = binary   ? static_cast<float>(next(65) < score * 65)
                            : t == 1 ? static_cast<float>(next(900)) / 100 - 1
                                     : static_cast<float>(next(9));
        const bool none = next(5) == 0;
        batch.labels.push_back(none ? kNone : label);
        scores.push_back(score);
        if (!none) lines[t].push_back({label, score, weighted ? weight : 1.0f, group});
      }
    }
    metrics.Add(batch, scores);
  }
  EvaluationResult result;
  metrics.Fill(&result);
  const auto near = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };
  const auto logloss = [](const Line& l) {
    return -std::log(l.label == 1 ? l.score : 1 - l.score);
  };
  for (int t = 0; t < 3; ++t) {
    INFO(t);
    const TaskResult& task = result.tasks(t);
    const std::vector<Line>& all = lines[static_cast<size_t>(t)];
    CHECK(task.examples() == all.size());
    CHECK(task.mse() == near(MeanOf(all, [](const Line& l) {
            return (l.score - l.label) * (l.score - l.label);
          })));
    CHECK(task.mae() ==
          near(MeanOf(all, [](const Line& l) { return std::fabs(l.score - l.label); })));
    CHECK(task.calibration() == near(MeanOf(all, [](const Line& l) { return l.score; }) /
                                     MeanOf(all, [](const Line& l) { return l.label; })));
    if (t > 0) continue;
    const double rate = MeanOf(all, [](const Line& l) { return l.label; });
    const double entropy = -rate * std::log(rate) - (1 - rate) * std::log(1 - rate);
    CHECK(task.auc() == near(*AucOfPairs(all)));
    CHECK(task.gauc() == near(GaucOfPairs(all, kGroups)));
    CHECK(task.logloss() == near(MeanOf(all, logloss)));
    CHECK(task.normalised_entropy() == near(MeanOf(all, logloss) / entropy));
  }
  CHECK(result.tasks(1).loss() == near(MeanOf(lines[1], [](const Line& l) {
          const double r = std::fabs(l.score - l.label);
          return r <= 1 ? r * r / 2 : r - 0.5;
        })));
  CHECK(result.tasks(2).loss() == near(MeanOf(lines[2], [](const Line& l) {
          return l.score - l.label * std::log(l.score);
        })));
}

TEST_CASE("no examples at all", "[eval]") {
  TaskMetrics metrics(Tasks(), {.by_task = true}, std::nullopt);
  EvaluationResult result;
  metrics.Fill(&result);
  CHECK(result.examples() == 0);
  CHECK(result.tasks(0).examples() == 0);
  CHECK_FALSE(result.tasks(0).has_logloss());
}

}  // namespace
}  // namespace strata
