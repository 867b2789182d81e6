#include "worker/metrics/training_stats.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "absl/time/time.h"
#include "ops/nn/loss/auc.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/strata/control.pb.h"

namespace strata {
namespace {

constexpr size_t kBatch = 50;

struct Examples {
  std::vector<float> labels, predictions;
  double loss = 0;
};

// Predictions that know something of their labels; as loss, the sum of the labels' distances.
Examples Draw(std::mt19937_64& random, size_t n) {
  std::normal_distribution<double> normal(0, 1);
  Examples out;
  for (size_t i = 0; i < n; ++i) {
    const float label = random() % 3 == 0 ? 1.0f : 0.0f;
    const double logit = normal(random) + (label > 0 ? 0.7 : -0.7);
    out.labels.push_back(label);
    out.predictions.push_back(static_cast<float>(1 / (1 + std::exp(-logit))));
    out.loss += std::abs(label - out.predictions.back());
  }
  return out;
}

TrainingStats::Batch BatchOf(const std::vector<float>& labels,
                             const std::vector<float>& predictions, double loss) {
  TrainingStats::Batch batch;
  batch.examples = labels.size();
  batch.loss = loss;
  batch.weight = static_cast<double>(labels.size());
  batch.labels = labels;
  batch.predictions = predictions;
  return batch;
}

void Train(TrainingStats& stats, const Examples& batch, uint64_t step, absl::Time now) {
  stats.OnBatch(BatchOf(batch.labels, batch.predictions, batch.loss));
  stats.OnStep(step, now);
}

double RateAt(const TrainingStats& stats, const Clock& clock) {
  WorkerJobReport report;
  stats.Report(clock.Now(), &report);
  return report.examples_per_second();
}

TEST_CASE("loss and AUC are those of the recent steps", "[stats]") {
  std::mt19937_64 random(1);
  TrainingStats stats;
  const absl::Time now = absl::UnixEpoch();
  std::vector<Examples> all;
  size_t first = 0;  // of the steps that count
  for (uint64_t step = 1; step <= 300; ++step) {
    all.push_back(Draw(random, kBatch));
    Train(stats, all.back(), step, now);
    // Two halves of kRecentSteps: when the younger is full, the older goes.
    if (step % TrainingStats::kRecentSteps == 0) first = step - TrainingStats::kRecentSteps;
    if (step % 37 != 0) continue;
    Examples recent;
    for (size_t s = first; s < all.size(); ++s) {
      const Examples& e = all[s];
      recent.labels.insert(recent.labels.end(), e.labels.begin(), e.labels.end());
      recent.predictions.insert(recent.predictions.end(), e.predictions.begin(),
                                e.predictions.end());
      recent.loss += e.loss;
    }
    const auto quality = stats.RecentQuality();
    INFO("step " << step);
    REQUIRE(quality);
    CHECK(quality->loss == Approx(recent.loss / static_cast<double>(recent.labels.size())));
    // 4096 bins: a pair is misjudged only within one of them.
    const double exact = ops::Auc(recent.predictions, recent.labels);
    REQUIRE(quality->auc);
    CHECK(*quality->auc == Approx(exact).margin(0.001));
    CHECK(exact > 0.7);
    WorkerJobReport report;
    stats.Report(now, &report);
    CHECK(report.training_loss() == quality->loss);
    CHECK(report.training_auc() == *quality->auc);
    CHECK(report.examples() == step * kBatch);
    CHECK(report.step() == step);
  }
  CHECK(stats.examples() == 300 * kBatch);
}

TEST_CASE("what was not measured is not told", "[stats]") {
  TrainingStats stats;
  CHECK_FALSE(stats.RecentQuality());
  const std::vector<float> ones(4, 1.0f);
  stats.OnBatch(BatchOf(ones, std::vector<float>(4, 0.5f), 2.0));
  REQUIRE(stats.RecentQuality());
  CHECK(stats.RecentQuality()->loss == 0.5);
  CHECK_FALSE(stats.RecentQuality()->auc);  // no example of the other class
  WorkerJobReport report;
  stats.Report(absl::UnixEpoch(), &report);
  CHECK(std::isnan(report.training_auc()));
  CHECK(report.training_loss() == 0.5);
}

TEST_CASE("loss and AUC are told with the weights that they are means by", "[stats]") {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> labels = {1, 0, kNone, 0}, scores = {0.75f, 0.25f, 0.5f, 1};
  const std::vector<float> weights = {2, 0.5f, 4, 0};
  TrainingStats stats;
  const auto told = [&stats] {
    WorkerJobReport report;
    stats.Report(absl::UnixEpoch(), &report);
    return report;
  };
  CHECK((told().training_weight() == 0 && told().training_auc_weight() == 0));
  TrainingStats::Batch batch = BatchOf(labels, scores, 13);
  batch.weights = weights;
  batch.weight = 6.5;  // the third example has another label
  stats.OnBatch(batch);
  CHECK(told().training_loss() == 2);
  CHECK(told().training_weight() == 6.5);
  CHECK(told().training_auc() == 1);
  CHECK(told().training_auc_weight() == 2.5);
  // Without an AUC there is nothing that it would count for.
  TrainingStats other;
  other.SetBinary(false);
  other.OnBatch(batch);
  WorkerJobReport report;
  other.Report(absl::UnixEpoch(), &report);
  CHECK((report.training_weight() == 6.5 && report.training_auc_weight() == 0));
}

TEST_CASE("the first line that was left out is told", "[stats]") {
  TrainingStats stats;
  WorkerJobReport report;
  stats.Report(absl::UnixEpoch(), &report);
  CHECK(report.troubles().empty());
  stats.OnFirstBadLine("train.csv:3:1: label \"x\"", absl::UnixEpoch() + absl::Seconds(5));
  stats.Report(absl::UnixEpoch(), &report);
  REQUIRE(report.troubles_size() == 1);
  CHECK(report.troubles(0).reason() == "LinesAreBad");
  CHECK(report.troubles(0).message() == "the first bad line is train.csv:3:1: label \"x\"");
  CHECK(report.troubles(0).since_unix_ms() == 5000);
}

TEST_CASE("scores at the ends have their places", "[stats]") {
  const std::vector<float> labels = {1, 0, 1, 0}, scores = {1, 0, 2, -1};
  TrainingStats stats;
  stats.OnBatch(BatchOf(labels, scores, 0));
  CHECK(*stats.RecentQuality()->auc == ops::Auc(scores, labels));
  CHECK(*stats.RecentQuality()->auc == 1);
}

TEST_CASE("steps that scored what is no number have no AUC", "[stats]") {
  const std::vector<float> labels = {1, 0}, good = {0.75f, 0.25f};
  const std::vector<float> bad = {std::numeric_limits<float>::quiet_NaN(), 0.25f};
  TrainingStats stats;
  stats.OnBatch(BatchOf(labels, good, 0));
  CHECK(stats.RecentQuality()->auc == 1);
  const std::vector<float> weights = {0, 1};
  TrainingStats::Batch batch = BatchOf(labels, bad, 0);
  batch.weights = weights;
  stats.OnBatch(batch);  // it weighs nothing
  CHECK(stats.RecentQuality()->auc == 1);
  batch.weights = {};
  stats.OnBatch(batch);
  CHECK_FALSE(stats.RecentQuality()->auc);
  uint64_t step = 0;
  for (int half = 0; half < 2; ++half) {
    CHECK_FALSE(stats.RecentQuality()->auc);
    for (uint32_t s = 0; s < TrainingStats::kRecentSteps; ++s) {
      stats.OnStep(++step, absl::UnixEpoch());
    }
    stats.OnBatch(BatchOf(labels, good, 0));
  }
  CHECK(stats.RecentQuality()->auc == 1);  // they are gone
}

TEST_CASE("the rate is that of the last moments", "[stats]") {
  std::mt19937_64 random(2);
  const Examples batch = Draw(random, kBatch);
  ManualClock clock;
  TrainingStats stats;
  CHECK(RateAt(stats, clock) == 0);
  uint64_t step = 0;
  const auto run = [&](int steps, absl::Duration each) {
    for (int i = 0; i < steps; ++i) {
      clock.Advance(each);
      Train(stats, batch, ++step, clock.Now());
    }
  };
  run(1, absl::Milliseconds(700));  // until then a job prepares itself
  CHECK(RateAt(stats, clock) == 0);
  // A job shorter than a second has a rate: 5 batches in 50 ms.
  run(5, absl::Milliseconds(10));
  CHECK(RateAt(stats, clock) == Approx(5000));
  run(1000, absl::Milliseconds(10));
  CHECK(RateAt(stats, clock) == Approx(5000).epsilon(0.01));

  // While nothing moves it falls; a minute later next to nothing is left.
  double before = RateAt(stats, clock);
  for (int s = 0; s < 60; ++s) {
    clock.Advance(absl::Seconds(1));
    CHECK(RateAt(stats, clock) < before);
    before = RateAt(stats, clock);
  }
  CHECK(before < 5000.0 * 2 / 60);
  // Then training is ten times slower, which is told two spans later: the stall is forgotten.
  run(30, absl::Milliseconds(100));
  CHECK(RateAt(stats, clock) == Approx(500).epsilon(0.01));
}

TEST_CASE("the rate is that of training alone", "[stats]") {
  std::mt19937_64 random(4);
  const Examples batch = Draw(random, kBatch);
  ManualClock clock;
  TrainingStats stats;
  uint64_t step = 0;
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      clock.Advance(absl::Milliseconds(10));
      Train(stats, batch, ++step, clock.Now());
    }
  };
  stats.Stand(clock.Now());  // before the first step
  clock.Advance(absl::Hours(1));
  stats.GoOn(clock.Now());
  run(301);
  CHECK(RateAt(stats, clock) == Approx(5000));
  // While an evaluation lasts nothing moves, and after it nothing is to be forgotten.
  stats.Stand(clock.Now());
  clock.Advance(absl::Minutes(10));
  CHECK(RateAt(stats, clock) == Approx(5000));
  stats.GoOn(clock.Now());
  CHECK(RateAt(stats, clock) == Approx(5000));
  run(150);
  CHECK(RateAt(stats, clock) == Approx(5000));
  // A stall that is none counts: 50 examples in 5 s, at the end of 22500 in 4.5 s.
  clock.Advance(absl::Seconds(5) - absl::Milliseconds(10));
  run(1);
  stats.OnTrained();
  CHECK(RateAt(stats, clock) == Approx(22550 / 9.5));
  clock.Advance(absl::Minutes(10));  // the last checkpoint
  CHECK(RateAt(stats, clock) == Approx(22550 / 9.5));
  stats.OnFinished();
  CHECK(RateAt(stats, clock) == Approx(22550 / 9.5));
}

TEST_CASE("a restart begins at nothing", "[stats]") {
  std::mt19937_64 random(3);
  ManualClock clock;
  TrainingStats again;  // each generation has its own
  WorkerJobReport report;
  again.Report(clock.Now(), &report);
  CHECK(report.examples() == 0);
  CHECK(report.examples_per_second() == 0);
  CHECK_FALSE(again.RecentQuality());
  // It goes on at step 600: the steps before are not counted.
  Train(again, Draw(random, kBatch), 600, clock.Now());
  clock.Advance(absl::Seconds(2));
  Train(again, Draw(random, kBatch), 601, clock.Now());
  CHECK(RateAt(again, clock) == Approx(kBatch / 2.0));
}

TEST_CASE("gradients that are not finite are a trouble that names fields and keys", "[stats]") {
  TrainingStats stats;
  stats.NameFields({"site", "user"});
  const auto told = [&] {
    WorkerJobReport report;
    stats.Report(absl::UnixEpoch(), &report);
    return report;
  };
  stats.OnNotFinite({});
  CHECK(told().not_finite().empty());
  stats.OnStep(1, absl::UnixEpoch());
  CHECK(told().troubles_size() == 0);
  stats.OnNotFinite({{7, 1}, {9, 0}, {11, 5}});
  CHECK(told().troubles_size() == 0);
  REQUIRE(told().not_finite_size() == 3);
  CHECK(told().not_finite(0).key() == 7);
  CHECK(told().not_finite(0).field() == "user");
  CHECK(told().not_finite(2).field() == "field 5");
  stats.OnStep(2, absl::UnixEpoch() + absl::Seconds(3));
  stats.OnNotFinite({{1, 1}});
  stats.OnStep(3, absl::UnixEpoch() + absl::Seconds(4));
  REQUIRE(told().troubles_size() == 1);
  const Trouble trouble = told().troubles(0);
  CHECK(trouble.reason() == "GradientsNotFinite");
  CHECK(trouble.since_unix_ms() == 3000);
  CHECK(trouble.message().find("at step 2;") != std::string::npos);
  CHECK(trouble.message().find("of user (key 7), site (key 9), field 5 (key 11); ") !=
        std::string::npos);
  // Later ones are told by key and field, to the scheduler alone, each once, up to a bound.
  REQUIRE(told().not_finite_size() == 4);
  CHECK(told().not_finite(3).key() == 1);
  CHECK_FALSE(stats.knows_not_finite());
  std::vector<TrainingStats::Feature> many;
  for (uint64_t key = 1; key < 100; ++key) many.push_back({key, 0});
  stats.OnNotFinite(many);
  CHECK(stats.knows_not_finite());
  REQUIRE(told().not_finite_size() == TrainingStats::kMostNotFinite);
  CHECK(told().not_finite(0).field() == "user");
  CHECK(told().not_finite(4).key() == 2);
  CHECK(told().troubles(0).message() == trouble.message());
  Trouble other;
  other.set_reason("MetricsLost");
  stats.SetTrouble(other);
  CHECK(told().troubles_size() == 2);
}

TEST_CASE("tables have keys of their own among those that are not finite", "[stats]") {
  TrainingStats stats;
  stats.NameFields({"user", "site"});
  stats.OnNotFinite({{7, 0, 0}, {7, 1, 2}});
  stats.OnNotFinite({{7, 0, 0}, {7, 0, 2}, {7, 1, 3}});
  WorkerJobReport report;
  stats.OnStep(1, absl::UnixEpoch());
  stats.Report(absl::UnixEpoch(), &report);
  REQUIRE(report.not_finite_size() == 3);
  CHECK((report.not_finite(0).table() == 0 && report.not_finite(0).field() == "user"));
  CHECK((report.not_finite(1).table() == 2 && report.not_finite(1).field() == "site"));
  CHECK(report.not_finite(2).table() == 3);
  REQUIRE(report.troubles_size() == 1);
  CHECK(report.troubles(0).message().find("of user (key 7), site (key 7), site (key 7); ") !=
        std::string::npos);
}

TaskCounts Lines(uint64_t task, uint64_t examples, uint64_t bad_lines) {
  TaskCounts counts;
  counts.set_task(task);
  counts.set_examples(examples);
  counts.set_bad_lines(bad_lines);
  return counts;
}

TEST_CASE("what is told of a task only grows, until nobody asks for it", "[stats]") {
  TrainingStats stats;
  const auto told = [&] {
    WorkerJobReport report;
    stats.Report(absl::UnixEpoch(), &report);
    return report;
  };
  stats.OnTaskRead(Lines(3, 2, 1));
  stats.OnTaskRead(Lines(4, 1, 0));
  REQUIRE(told().task_counts_size() == 2);
  CHECK(told().done_tasks_size() == 0);
  stats.OnDoneTask(Lines(3, 5, 2));
  stats.OnTaskRead(Lines(3, 3, 1));  // of a lane that it was taken from
  REQUIRE(told().done_tasks_size() == 1);
  CHECK(told().task_counts(0).examples() == 5);
  CHECK(told().task_counts(0).bad_lines() == 2);
  stats.KeepTasks([](uint64_t task) { return task == 4; });
  CHECK(told().done_tasks_size() == 0);
  REQUIRE(told().task_counts_size() == 1);
  CHECK(told().task_counts(0).task() == 4);
  // Done although nobody asks for it any more: with what it holds.
  stats.OnTaskRead(Lines(5, 1, 1));
  stats.KeepTasks([](uint64_t) { return false; });
  stats.OnDoneTask(Lines(5, 1, 1));
  REQUIRE(told().task_counts_size() == 1);
  CHECK(told().task_counts(0).bad_lines() == 1);
}

TEST_CASE("evaluations are told until the scheduler has them", "[stats]") {
  TrainingStats stats;
  WorkerJobDirective told;
  const absl::Time now = absl::FromUnixSeconds(1767225600);
  const auto reported = [&] {
    WorkerJobReport report;
    stats.Report(now, &report);
    return report.evaluations_size();
  };
  EvaluationResult result;
  for (uint64_t step = 1; step <= 5000; ++step) {
    result.set_step(step);
    result.set_auc(0.5);
    stats.OnEvaluation(result);
    REQUIRE(reported() <= 10);
    if (step % 10 != 0) continue;
    REQUIRE(reported() == 10);
    told.clear_evaluations();
    for (uint64_t known = step - 9; known <= step; ++known) {
      result.set_step(known);
      *told.add_evaluations() = result;
    }
    stats.ForgetEvaluations(told.evaluations());
    REQUIRE(reported() == 0);
  }
  // Another result of a step, as after a roll-back, is news.
  result.set_auc(0.75);
  stats.OnEvaluation(result);
  stats.ForgetEvaluations(told.evaluations());
  CHECK(reported() == 1);
}

}  // namespace
}  // namespace strata
