// Quality of din and mmoe on generated visits whose labels a known teacher drew: of din against the
// teacher and against the same model over the mean of the history, of mmoe with two labels against
// two models of one. Settings are those of tools/examples/movielens_din.yaml and
// movielens_mmoe.yaml.
#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "proto/strata/job.pb.h"
#include "tests/quality/data_set.h"
#include "tests/quality/train_job.h"
#include "tests/skip.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "tools/generate/movielens_generator.h"

namespace strata {
namespace {

using testing::MeanOverSeeds;
using testing::QualityJob;
using testing::SetTraining;
using testing::TrainAndEvaluate;

struct Visits {
  std::string train;
  std::string eval;
  uint64_t train_lines = 0;
  MovielensResult teacher;  // of eval
};

Visits MakeVisits(const std::string& folder, uint64_t lines, uint64_t seed) {
  Visits visits = {folder + "/train.csv", folder + "/eval.csv", lines, {}};
  MovielensGeneratorOptions options;
  options.items = 200;
  options.most_history = 20;
  options.seed = seed;
  options.rows = lines;
  REQUIRE(GenerateMovielens(options, visits.train).ok());
  options.first_row = lines;
  options.rows = 20'000;
  const auto teacher = GenerateMovielens(options, visits.eval);
  REQUIRE(teacher.ok());
  visits.teacher = *teacher;
  std::fprintf(stderr, "teacher: clicked AUC %.4f, rating mse %.4f\n", teacher->click_auc,
               teacher->rating_mse);
  return visits;
}

// `clicks` says what becomes of the history.
TrainingJob VisitsJob(const Visits& visits, const std::string& model, uint32_t epochs,
                      const std::string& clicks) {
  TrainingJob job = QualityJob("csv", visits.train, visits.eval, model, 0.1f, epochs);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_model()->clear_embedding_dim();
  spec.mutable_model()->set_init_scale(0.1f);
  spec.mutable_optimizer()->mutable_dense()->set_learning_rate(0.002f);
  JobSpec columns;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      R"(
    tables { name: "item" dim: 16 }
    tables { name: "user" dim: 8 }
    tables { name: "tag" dim: 4 }
    fields { name: "user" column: "user_id" kind: "categorical" table: "user" }
    fields { name: "item" column: "item_id" kind: "categorical" table: "item" }
    fields { name: "clicks" column: "clicked_items" table: "item" )" +
          clicks + R"( }
    fields { name: "tags" kind: "multiValued" pooling: "mean" table: "tag" }
    fields { name: "price" kind: "numeric" transform { type: "log" } })",
      &columns));
  *spec.mutable_tables() = columns.tables();
  *spec.mutable_fields() = columns.fields();
  return job;
}

constexpr char kSequence[] = R"(kind: "sequence" max_length: 20)";
constexpr char kMean[] = R"(kind: "multiValued" pooling: "mean")";

double ClickAuc(const Visits& visits, const std::string& clicks, uint64_t seed) {
  TrainingJob job = VisitsJob(visits, "din", 4, clicks);
  JobSpec& spec = *job.mutable_spec();
  spec.add_labels()->set_name("clicked");
  if (clicks == kSequence) spec.mutable_model()->add_attention_hidden(32);
  for (const uint32_t width : {64u, 32u}) spec.mutable_model()->add_hidden(width);
  SetTraining(job, "bsp", 1, 256, seed);
  return TrainAndEvaluate(job, visits.train_lines).auc();
}

// A fifth of the lines is not enough to come close to the teacher, but to leave the mean behind.
TEST_CASE("din beats the mean of the history on few lines, of any seed", "[quality]") {
  auto folder = ScratchFolder::Make("strata-quality");
  REQUIRE(folder.ok());
  for (const uint64_t seed : {1, 2, 3}) {
    INFO("seed " << seed);
    const Visits visits = MakeVisits(folder->path(), 40'000, seed);
    const double mean = ClickAuc(visits, kMean, seed);
    CHECK(ClickAuc(visits, kSequence, seed) >= mean + 0.01);
  }
}

TEST_CASE("din comes close to the teacher of visits, above the mean", "[quality]") {
  auto folder = ScratchFolder::Make("strata-quality");
  REQUIRE(folder.ok());
  const Visits visits = MakeVisits(folder->path(), 200'000, 1);
  const auto auc = [&](const std::string& clicks) {
    return MeanOverSeeds([&](uint64_t seed) { return ClickAuc(visits, clicks, seed); });
  };
  const double din = auc(kSequence), mean = auc(kMean);
  std::fprintf(stderr, "din %.4f: teacher %.4f - .02, mean %.4f + .01\n", din,
               visits.teacher.click_auc, mean);
  CHECK(din >= visits.teacher.click_auc - 0.02);
  CHECK(din < visits.teacher.click_auc + 0.005);  // above the teacher: the eval lines leaked
  CHECK(din >= mean + 0.01);
}

enum class Labels { kBoth, kClicked, kRating };

// By label, in the order of the job.
std::vector<TaskResult> OfMmoe(const Visits& visits, Labels labels, uint64_t seed) {
  TrainingJob job = VisitsJob(visits, "mmoe", 3, kMean);
  JobSpec& spec = *job.mutable_spec();
  if (labels != Labels::kRating) spec.add_labels()->set_name("clicked");
  if (labels != Labels::kClicked) {
    LabelConfig& rating = *spec.add_labels();
    rating.set_name("rating");
    rating.set_kind("real");
    rating.set_weight(0.2f);
    rating.set_mean(3.2f);
  }
  SetTraining(job, "bsp", 1, 256, seed);
  const EvaluationResult result = TrainAndEvaluate(job, visits.train_lines);
  REQUIRE(result.tasks_size() == spec.labels_size());
  return {result.tasks().begin(), result.tasks().end()};
}

// Synchronous jobs have the same bits anywhere: there is no spread to leave room for, and each of
// the three seeds is above by itself.
TEST_CASE("mmoe of two labels is not below two models of one", "[quality]") {
  auto folder = ScratchFolder::Make("strata-quality");
  REQUIRE(folder.ok());
  const Visits visits = MakeVisits(folder->path(), 200'000, 1);
  // Sums over the seeds.
  double mse = 0, mse_alone = 0;
  const double auc = MeanOverSeeds([&](uint64_t seed) {
    const std::vector<TaskResult> both = OfMmoe(visits, Labels::kBoth, seed);
    mse += both[1].mse();
    return both[0].auc();
  });
  const double auc_alone = MeanOverSeeds([&](uint64_t seed) {
    mse_alone += OfMmoe(visits, Labels::kRating, seed)[0].mse();
    return OfMmoe(visits, Labels::kClicked, seed)[0].auc();
  });
  std::fprintf(stderr, "mmoe: clicked AUC %.4f, alone %.4f; summed rating mse %.4f, alone %.4f\n",
               auc, auc_alone, mse, mse_alone);
  CHECK(auc >= auc_alone);
  CHECK(mse <= mse_alone);
}

}  // namespace
}  // namespace strata
