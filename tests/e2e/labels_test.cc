// Jobs with several labels and with weights: what they learn, tell and write, and that what is
// spelled out but says nothing changes no bit.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "ops/nn/loss/auc.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/predict.h"

namespace strata {
namespace {

// "user,item,click,stars,one,two,weight,seen" lines: clicks and stars of what users and items are;
// a third of the stars is empty, and of every 50th line both. `seen` are none to three other items.
void WriteLines(const std::string& path, uint64_t seed, int lines) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 0.3);
  std::ofstream out(path);
  out << "user,item,click,stars,one,two,weight,seen\n";
  for (int l = 0; l < lines; ++l) {
    const int user = static_cast<int>(random() % 40), item = static_cast<int>(random() % 25);
    const double taste = std::sin(user * 1.7) + std::cos(item * 2.3);
    const bool click =
        static_cast<double>(random() >> 11) * 0x1p-53 < 1 / (1 + std::exp(-2 * taste));
    out << 'u' << user << ",i" << item << ',';
    if (l % 50 != 7) out << (click ? 1 : 0);
    out << ',';
    if (l % 50 != 7 && l % 3 != 0) out << 3 + taste + normal(random);
    out << ",1,2," << 0.5 * (1 + l % 4) << ',';
    for (int s = 0; s < l % 4; ++s) out << (s > 0 ? "|" : "") << 'i' << (item + 7 * s + user) % 25;
    out << '\n';
  }
}

// Deepfm by the short form.
TrainingJob ClickJob(const std::string& folder) {
  TrainingJob job = testing::SmallJob(folder);
  WriteLines(folder + "/train.csv", 1, 1500);
  WriteLines(folder + "/eval.csv", 2, 400);
  JobSpec& spec = *job.mutable_spec();
  DataSpec& data = *spec.mutable_data();
  data.set_format("csv");
  data.set_train(0, folder + "/train.csv");
  data.set_eval(0, folder + "/eval.csv");
  data.set_max_bad_lines(1000);  // those without a click
  ColumnsSpec& columns = *data.mutable_columns();
  columns.set_label("click");
  columns.add_categorical("user");
  columns.add_categorical("item");
  columns.add_ignored("*");
  spec.mutable_training()->set_epochs(4);
  return job;
}

TrainingJob TwoLabels(const std::string& folder) {
  TrainingJob job = ClickJob(folder);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->mutable_columns()->clear_label();
  spec.mutable_data()->clear_max_bad_lines();
  spec.add_labels()->set_name("click");
  LabelConfig& stars = *spec.add_labels();
  stars.set_name("stars");
  stars.set_kind("real");
  stars.set_weight(0.5f);
  for (const char* metric : {"auc", "logloss", "ne", "calibration", "gauc(user)", "mse", "mae"}) {
    spec.mutable_evaluation()->add_metrics(metric);
  }
  return job;
}

constexpr const char* kModels[] = {
    "lr", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom", "mmoe", "din"};

// Din takes what was seen as a sequence in the table of the items.
void UseModel(const std::string& type, JobSpec& spec) {
  spec.mutable_model()->set_type(type);
  if (type == "mmoe") spec.mutable_model()->clear_hidden();
  if (type != "din") return;
  spec.mutable_model()->clear_embedding_dim();
  spec.mutable_model()->add_attention_hidden(6);
  spec.mutable_data()->clear_columns();
  for (const char* table : {"user", "item"}) {
    TableConfig& config = *spec.add_tables();
    config.set_name(table);
    config.set_dim(8);
  }
  for (const char* name : {"user", "item", "seen"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(name == std::string("seen") ? "sequence" : "categorical");
    field.set_table(name == std::string("user") ? "user" : "item");
    if (field.kind() == "sequence") field.set_max_length(3);
  }
}

struct Scored {
  std::vector<float> clicks, click_scores;
  double squared = 0, stars = 0, sum = 0, of_squares = 0;
};

// Of a file of "click,stars,click score,stars score" lines.
Scored ReadPredictions(const std::string& path) {
  Scored out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, ',');
    REQUIRE(parts.size() == 4);
    if (!parts[0].empty()) {
      out.clicks.push_back(std::stof(parts[0]));
      out.click_scores.push_back(std::stof(parts[2]));
    }
    if (parts[1].empty()) continue;
    const double star = std::stof(parts[1]), score = std::stof(parts[3]);
    out.squared += (star - score) * (star - score);
    out.stars += 1;
    out.sum += star;
    out.of_squares += star * star;
  }
  return out;
}

TEST_CASE("a job of two labels learns both, and tells of each", "[e2e]") {
  const ScratchFolder folder = Folder();
  for (const char* type : kModels) {
    INFO(type);
    TrainingJob job = TwoLabels(folder.path());
    JobSpec& spec = *job.mutable_spec();
    UseModel(type, spec);
    spec.mutable_optimizer()->mutable_dense()->set_learning_rate(0.01f);
    spec.mutable_training()->set_epochs(10);
    spec.mutable_output()->set_predictions(folder.path() + "/" + type + ".csv");
    spec.mutable_output()->set_metrics(folder.path() + "/" + type + ".jsonl");
    const JobStatus status = Train(job);
    const EvaluationResult& result = status.result();
    REQUIRE(result.tasks_size() == 2);
    const TaskResult &click = result.tasks(0), &stars = result.tasks(1);
    CHECK((click.label() == "click" && stars.label() == "stars"));
    CHECK(result.examples() == 400);
    CHECK(click.examples() == 392);
    const Scored scored = ReadPredictions(folder.path() + "/" + type + ".csv");
    CHECK(static_cast<double>(stars.examples()) == scored.stars);
    CHECK(click.auc() > 0.75);
    CHECK(click.auc() == Approx(ops::Auc(scored.click_scores, scored.clicks)).epsilon(1e-9));
    CHECK(result.auc() == click.auc());
    CHECK((click.has_gauc() && click.gauc() > 0.6));
    CHECK((click.normalised_entropy() > 0.3 && click.normalised_entropy() < 1));
    const double mean = scored.sum / scored.stars;
    const double variance = scored.of_squares / scored.stars - mean * mean;
    CHECK(stars.mse() == Approx(scored.squared / scored.stars).epsilon(1e-5));
    CHECK(stars.mse() < 0.75 * variance);
    CHECK((stars.has_mae() && !stars.has_auc()));
    std::ifstream metrics(folder.path() + "/" + type + ".jsonl");
    nlohmann::json last;
    for (std::string line; std::getline(metrics, line);) last = nlohmann::json::parse(line);
    CHECK(last["evalTasks"]["click"]["auc"] == Approx(click.auc()).margin(1e-6));
    CHECK(last["evalTasks"]["stars"]["mse"] == Approx(stars.mse()).margin(1e-6));
  }
}

TEST_CASE("a GPU's code learns of labels and weights what the CPU learns", "[e2e][device]") {
  const ScratchFolder folder = Folder();
  for (const char* type : kModels) {
    INFO(type);
    TrainingJob job = TwoLabels(folder.path());
    JobSpec& spec = *job.mutable_spec();
    UseModel(type, spec);
    spec.set_sample_weight("weight");
    spec.mutable_worker()->set_device("cpu");
    const JobStatus cpu = Train(job);
    spec.mutable_worker()->set_device("host");
    const JobStatus host = Train(job);
    const auto near = [&](double (TaskResult::*metric)() const, int task) {
      return std::fabs((cpu.result().tasks(task).*metric)() -
                       (host.result().tasks(task).*metric)()) < 0.005;
    };
    CHECK(near(&TaskResult::auc, 0));
    CHECK(near(&TaskResult::loss, 0));
    CHECK(near(&TaskResult::mse, 1));
    CHECK(host.step() == cpu.step());
    spec.mutable_replicas()->set_workers(2);
    CHECK(Train(job).model_hash() == host.model_hash());
  }
}

TEST_CASE("predict writes a column for each label and each score", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = TwoLabels(folder.path());
  job.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/ck");
  job.mutable_spec()->mutable_output()->set_predictions(folder.path() + "/trained.csv");
  const JobStatus status = Train(job);
  PredictOptions predict;
  predict.checkpoint_dir = folder.path() + "/ck";
  predict.inputs = {folder.path() + "/eval.csv"};
  predict.output = folder.path() + "/predicted.csv";
  const auto summary = RunPredict(predict);
  REQUIRE(summary.ok());
  CHECK(summary->result.tasks(1).mse() == status.result().tasks(1).mse());
  std::stringstream trained, predicted;
  trained << std::ifstream(folder.path() + "/trained.csv").rdbuf();
  predicted << std::ifstream(predict.output).rdbuf();
  CHECK(trained.str() == predicted.str());
}

TEST_CASE("what says nothing changes no bit", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = ClickJob(folder.path());
  const JobStatus status = Train(job);
  TrainingJob weighted = job;
  for (const char* column : {"one", "two"}) {  // the same weight everywhere
    INFO(column);
    weighted.mutable_spec()->set_sample_weight(column);
    CHECK(Train(weighted).model_hash() == status.model_hash());
  }
  // By name; lines whose label is empty are no longer bad, but say nothing. (Their features are
  // updated with gradients of zero, and a row's count of updates is part of the hash.)
  job.mutable_spec()->mutable_data()->mutable_columns()->clear_label();
  job.mutable_spec()->add_labels()->set_name("click");
  const JobStatus named = Train(job);
  CHECK(named.bad_lines() == 0);
  CHECK(named.result().logloss() == status.result().logloss());
  CHECK(named.result().auc() == status.result().auc());
  CHECK(named.result().tasks(0).examples() == status.result().examples());
  job.mutable_spec()->mutable_labels(0)->set_weight(2);  // adagrad and adam hardly know
  CHECK(Train(job).model_hash() != named.model_hash());
}

// Of libffm the data say how many fields there are.
TEST_CASE("gauc goes by a field of libffm that spec.fields names", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  testing::WriteLibffm(folder.path() + "/train.libffm", 1, 600, 6, 40, 1000);
  testing::WriteLibffm(folder.path() + "/eval.libffm", 2, 200, 6, 40, 1000);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libffm");
  spec.mutable_data()->set_train(0, folder.path() + "/train.libffm");
  spec.mutable_data()->set_eval(0, folder.path() + "/eval.libffm");
  FieldConfig& user = *spec.add_fields();
  user.set_name("user");
  user.set_column("2");
  user.set_kind("multiValued");
  spec.mutable_evaluation()->add_metrics("auc");
  spec.mutable_evaluation()->add_metrics("gauc(user)");
  spec.mutable_checkpoint()->set_directory(folder.path() + "/ck");
  const JobStatus status = Train(job);
  REQUIRE(status.result().tasks_size() == 1);
  const TaskResult& trained = status.result().tasks(0);
  CHECK(trained.has_gauc());
  CHECK(trained.gauc() != trained.auc());  // 40 groups of the lines
  PredictOptions predict;
  predict.checkpoint_dir = folder.path() + "/ck";
  predict.inputs = {folder.path() + "/eval.libffm"};
  predict.output = folder.path() + "/predicted.csv";
  const auto summary = RunPredict(predict);
  REQUIRE(summary.ok());
  CHECK(summary->result.tasks(0).has_gauc());
  CHECK(summary->result.tasks(0).gauc() == trained.gauc());
}

TEST_CASE("patience goes by the loss of a first label that is no class", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = TwoLabels(folder.path());
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_labels()->SwapElements(0, 1);
  spec.mutable_training()->set_epochs(60);
  spec.mutable_evaluation()->set_every_steps(8);
  spec.mutable_evaluation()->set_patience(2);
  spec.mutable_checkpoint()->set_directory(folder.path() + "/ck");
  spec.mutable_optimizer()->mutable_dense()->set_learning_rate(0.02f);
  const JobStatus status = Train(job);
  REQUIRE(status.evaluations_size() >= 3);
  double best = status.evaluations(0).tasks(0).loss();
  for (const EvaluationResult& e : status.evaluations()) {
    best = std::min(best, e.tasks(0).loss());
    CHECK(e.logloss() == e.tasks(0).loss());
    CHECK_FALSE(e.has_positives());
  }
  CHECK(status.result().tasks(0).loss() == best);
  CHECK(status.step() < status.total_steps());
}

}  // namespace
}  // namespace strata
