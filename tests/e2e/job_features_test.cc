// What a job file promises beside training: early stopping, metrics, predictions, bad lines, the
// formats, and starting from a checkpoint.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/nn/loss/auc.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "proto/job/evaluation_result.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/worker/data/files/compressed.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/checkpoint/verify.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/predict.h"
#include "tools/cluster/embedded/scratch_folder.h"
#include "tools/generate/criteo_generator.h"

namespace strata {
namespace {

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

JobStatus Train(const TrainingJob& job) {
  EmbeddedOptions options;
  options.job = job;
  auto status = RunEmbedded(options);
  INFO(status.status());
  REQUIRE(status.ok());
  return *status;
}

std::string Last(const JobStatus& status) {
  return status.conditions_size() == 0 ? ""
                                       : status.conditions(status.conditions_size() - 1).message();
}

JobStatus Succeed(const TrainingJob& job) {
  JobStatus status = Train(job);
  INFO(Last(status));
  REQUIRE(status.state() == SUCCEEDED);
  return status;
}

std::string Text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::string> Lines(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in.good());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

double AucOfFile(const std::string& path) {
  std::vector<float> scores, labels;
  for (const std::string& line : Lines(path)) {
    labels.push_back(line[0] == '1' ? 1.0f : 0.0f);
    scores.push_back(std::strtof(line.c_str() + 2, nullptr));
  }
  return ops::Auc(scores, labels);
}

// 600 lines, 10 steps an epoch: nine of 64 and one of 24 examples.
uint64_t LinesAt(uint64_t step) { return step / 10 * 600 + step % 10 * 64; }

// The metrics of a job of SmallJob's that took `seconds` from before its start to after its end.
void CheckMetrics(const std::string& path, const JobStatus& status, double seconds) {
  int evaluated = 0;
  uint64_t step = 1;  // the first boundary: the rate of the first line counts from it
  double training = 0;
  for (const std::string& text : Lines(path)) {
    INFO(text);
    const nlohmann::json line = nlohmann::json::parse(text);
    const uint64_t now = line["step"];
    REQUIRE(now > step);
    REQUIRE(now <= status.total_steps());
    CHECK((line["loss"] > 0 && line["loss"] < 5));
    CHECK((line["auc"] > 0.3 && line["auc"] <= 1));
    REQUIRE(line["examplesPerSecond"] > 0);
    training +=
        static_cast<double>(LinesAt(now) - LinesAt(step)) / line["examplesPerSecond"].get<double>();
    step = now;
    if (!line.contains("evalAuc")) continue;
    REQUIRE(evaluated < status.evaluations_size());
    const EvaluationResult& e = status.evaluations(evaluated++);
    CHECK(now == e.step());
    CHECK(line["evalAuc"] == Approx(e.auc()).margin(1e-6));
    CHECK(line["evalLogloss"] == Approx(e.logloss()).margin(1e-6));
  }
  CHECK(evaluated == status.evaluations_size());
  // Rates times the times that they are of give the examples: in no more time than there was.
  CHECK(training > 0);
  CHECK(training <= seconds);
}

// Without a schema nothing of the rows would be read, and initial values predict something, too.
void CheckPredictsBySchema(const PredictOptions& options) {
  const Manifest whole = *ReadManifest(options.checkpoint_dir);
  const auto problem = [&](const Manifest& manifest) {
    REQUIRE(WriteManifest(options.checkpoint_dir, manifest).ok());
    const absl::Status s = RunPredict(options).status();
    CHECK(s.ok() != absl::IsDataLoss(s));
    return std::string(s.message());
  };
  Manifest other = whole;
  other.mutable_schema()->mutable_tensors(0)->set_first_row(7);
  CHECK(absl::StrContains(problem(other), " has 1 rows from 7, not 1 from "));
  other.clear_schema();
  CHECK(absl::StrContains(problem(other), "does not say what its model is made of"));
  CHECK(problem(whole).empty());
}

TEST_CASE("with patience the best evaluation is kept and reported", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_training()->set_epochs(30);  // far past where 600 lines are known by heart
  spec.mutable_evaluation()->set_every_steps(5);
  spec.mutable_evaluation()->set_patience(4);
  spec.mutable_checkpoint()->set_directory(folder.path() + "/ck");
  spec.mutable_checkpoint()->set_every_steps(3);  // many younger ones before the end
  spec.mutable_checkpoint()->set_keep(1);
  spec.mutable_output()->set_predictions(folder.path() + "/predictions.csv");
  spec.mutable_output()->set_metrics(folder.path() + "/metrics.jsonl");
  const absl::Time began = absl::Now();
  const JobStatus status = Succeed(job);
  const absl::Duration took = absl::Now() - began;

  REQUIRE(status.evaluations_size() >= 5);
  double best = 0;
  for (const EvaluationResult& e : status.evaluations()) best = std::max(best, e.auc());
  CHECK(status.result().auc() == best);
  const EvaluationResult& last = status.evaluations(status.evaluations_size() - 1);
  CHECK(last.step() < status.total_steps());  // it did stop early
  CHECK(last.step() == status.result().step() + 4 * 5);
  CHECK(status.step() == status.result().step());

  const auto verified = VerifyCheckpoint(folder.path() + "/ck");
  REQUIRE(verified.ok());
  CHECK(verified->step == status.result().step());
  CHECK(verified->model_hash == status.model_hash());
  CHECK(AucOfFile(status.predictions()) == Approx(best).epsilon(1e-6));

  PredictOptions predict;
  predict.checkpoint_dir = status.checkpoint();
  predict.inputs = {folder.path() + "/eval.libfm"};
  predict.output = folder.path() + "/again.csv";
  REQUIRE(RunPredict(predict).ok());
  CHECK(Lines(predict.output) == Lines(status.predictions()));
  CheckPredictsBySchema(predict);

  CheckMetrics(folder.path() + "/metrics.jsonl", status, absl::ToDoubleSeconds(took));
}

TEST_CASE("bad lines are counted, and one too many fails the job", "[e2e]") {
  for (const std::string mode : {"bsp", "async"}) {
    INFO(mode);
    const ScratchFolder folder = Folder();
    TrainingJob job = testing::SmallJob(folder.path());
    JobSpec& spec = *job.mutable_spec();
    spec.mutable_training()->set_mode(mode);
    spec.mutable_training()->set_epochs(1);
    std::ofstream(folder.path() + "/train.libfm", std::ios::app) << "1 x:1\n7 5:1\n0 5:nan\n";

    spec.mutable_data()->set_max_bad_lines(3);
    const JobStatus skipped = Succeed(job);
    CHECK(skipped.bad_lines() == 3);
    CHECK(skipped.examples() == 600);

    spec.mutable_data()->set_max_bad_lines(2);
    const JobStatus failed = Train(job);
    CHECK(failed.state() == FAILED);
    CHECK(Last(failed).find("maxBadLines is 2") != std::string::npos);

    spec.mutable_data()->set_max_bad_lines(0);
    const JobStatus stopped = Train(job);
    CHECK(stopped.state() == FAILED);
    INFO(Last(stopped));
    CHECK(Last(stopped).find("train.libfm:60") != std::string::npos);
  }
}

// The first of them by name: keys are the data's numbers, and tensors have names.
void CheckRefused(const JobStatus& status) {
  REQUIRE(status.refused_size() > 0);
  for (const RefusedRow& row : status.refused()) {
    INFO(row.table() << " " << row.key() << " " << row.field());
    CHECK(row.refused() > 0);
    CHECK(row.refused() <= status.refused_rows());
    if (row.table() == 1) {
      CHECK_FALSE(row.field().empty());
      continue;
    }
    CHECK(row.key() < 6000);
    // Where the loss of its batch was finite, nobody knows it.
    const std::string field = absl::StrCat("field ", row.key() / 1000);
    CHECK((row.field().empty() || row.field() == field));
  }
  // The worker knows fields: features of field f are numbered from 1000 f.
  std::string told;
  for (const JobCondition& c : status.conditions()) {
    if (c.reason() == "GradientsNotFinite") told = c.message();
  }
  INFO(told);
  const std::regex feature("field ([1-5]) .key ([1-5])[0-9]{3}.");
  int named = 0;
  for (std::sregex_iterator at(told.begin(), told.end(), feature), end; at != end; ++at, ++named) {
    CHECK((*at)[1] == (*at)[2]);
  }
  CHECK(named > 0);
}

TEST_CASE("updates that are not finite are refused, counted, and the job goes on", "[e2e]") {
  const std::string mode = GENERATE("bsp", "easgd");
  INFO(mode);
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_training()->set_mode(mode);
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->clear_hidden();
  const JobStatus calm = Succeed(job);
  CHECK(calm.refused_rows() == 0);
  // Each step multiplies the weights by thousands, until their products are no numbers.
  spec.mutable_optimizer()->mutable_sparse()->set_type("sgd");
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(9e5f);
  const JobStatus status = Succeed(job);
  CHECK(status.refused_rows() > 0);
  // Easgd: by lanes' own copies, which name none.
  if (mode == "bsp") CheckRefused(status);
  CHECK(status.examples() == calm.examples());
  // What is held out is judged by weights that are all finite, whose products may be no numbers:
  // then nothing is told of it.
  const EvaluationResult& result = status.result();
  CHECK(result.examples() > 0);
  CHECK(AucOf(result).has_value() == LossOf(result).has_value());
  if (mode == "bsp") CHECK_FALSE(LossOf(result));
}

TEST_CASE("one set of examples trains alike as libfm, libsvm and csv", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  job.mutable_spec()->mutable_training()->set_epochs(4);
  const double libfm = Succeed(job).result().auc();
  CHECK(libfm > 0.6);

  job.mutable_spec()->mutable_data()->set_format("libsvm");
  CHECK(Succeed(job).result().auc() == Approx(libfm).margin(0.05));

  for (const std::string name : {"train", "eval"}) {
    std::ofstream out(folder.path() + "/" + name + ".csv");
    out << "clicked,a,b,c,d,e,f,unused\n";
    for (const std::string& line : Lines(folder.path() + "/" + name + ".libfm")) {
      std::istringstream in(line);
      std::string word;
      in >> word;
      out << (word == "1" ? '1' : '0');
      while (in >> word) out << ",id" << word.substr(0, word.find(':'));
      out << ",x\n";
    }
  }
  DataSpec& data = *job.mutable_spec()->mutable_data();
  data.set_format("csv");
  data.set_train(0, folder.path() + "/train.csv");
  data.set_eval(0, folder.path() + "/eval.csv");
  data.mutable_columns()->set_label("clicked");
  for (const char* column : {"a", "b", "c", "d", "e", "f"}) {
    data.mutable_columns()->add_categorical(column);
  }
  data.mutable_columns()->add_ignored("*");
  const JobStatus csv = Succeed(job);
  CHECK(csv.result().auc() == Approx(libfm).margin(0.05));
  CHECK(csv.result().examples() == 200);
}

TEST_CASE("criteo's integers train as numbers and as buckets", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  CriteoGeneratorOptions lines;
  lines.rows = 20'000;
  lines.vocabulary = 1000;
  REQUIRE(GenerateCriteo(lines, folder.path() + "/train.tsv").ok());
  lines.first_row = 20'000;
  lines.rows = 5'000;
  REQUIRE(GenerateCriteo(lines, folder.path() + "/eval.tsv").ok());
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("criteo");
  spec.mutable_data()->set_train(0, folder.path() + "/train.tsv");
  spec.mutable_data()->set_eval(0, folder.path() + "/eval.tsv");
  spec.mutable_training()->set_epochs(1);
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(0.02f);
  std::string hash;
  for (const std::string integers : {"dense", "bucket"}) {
    INFO(integers);
    spec.mutable_data()->set_integer_features(integers);
    const JobStatus status = Succeed(job);
    CHECK(status.result().auc() > 0.72);
    CHECK(status.model_hash() != hash);
    hash = status.model_hash();
  }
}

TEST_CASE("--overwrite keeps the earlier checkpoints while the input cannot be read", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  const std::string directory = folder.path() + "/ck";
  job.mutable_spec()->mutable_checkpoint()->set_directory(directory);
  const JobStatus first = Succeed(job);
  EmbeddedOptions options;
  options.job = job;
  options.overwrite = true;
  DataSpec& data = *options.job.mutable_spec()->mutable_data();
  const std::string whole = Gzip(Text(data.train(0)));
  data.set_train(0, folder.path() + "/cut.gz");
  std::ofstream(data.train(0), std::ios::binary) << whole.substr(0, whole.size() / 2);
  auto failed = RunEmbedded(options);
  REQUIRE(failed.ok());
  CHECK(failed->state() == FAILED);
  auto kept = VerifyCheckpoint(directory);
  REQUIRE(kept.ok());
  CHECK(kept->model_hash == first.model_hash());

  // Read whole, it takes their place, of another length though it is.
  std::ofstream(data.train(0), std::ios::binary) << whole;
  options.job.mutable_spec()->mutable_training()->set_epochs(1);
  const auto second = RunEmbedded(options);
  REQUIRE(second.ok());
  REQUIRE(second->state() == SUCCEEDED);
  kept = VerifyCheckpoint(directory);
  REQUIRE(kept.ok());
  CHECK(kept->step == 10);
  CHECK(kept->model_hash == second->model_hash());
  CHECK_FALSE(std::filesystem::exists(first.checkpoint()));
}

TEST_CASE("a job starts from the weights of another's checkpoint", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  const std::string mode = GENERATE("bsp", "async");
  INFO(mode);
  job.mutable_spec()->mutable_training()->set_mode(mode);
  job.mutable_spec()->mutable_training()->set_epochs(4);
  job.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/first");
  const JobStatus first = Succeed(job);

  job.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint(first.checkpoint());
  job.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/second");
  job.mutable_spec()->mutable_training()->set_epochs(1);
  job.mutable_spec()->mutable_optimizer()->mutable_sparse()->set_learning_rate(1e-6f);
  job.mutable_spec()->mutable_optimizer()->mutable_dense()->set_learning_rate(1e-9f);
  const JobStatus second = Succeed(job);
  // Its own steps, from 1, and its own windows, also those that the first job has done.
  CHECK(second.step() == (mode == "bsp" ? 10 : 38));
  CHECK(second.examples() == 600);
  CHECK(second.result().auc() == Approx(first.result().auc()).margin(1e-3));
  CHECK(second.model_hash() != first.model_hash());
}

TEST_CASE("a job that starts from another model says what it takes, and takes no more", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  job.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/first");
  const JobStatus first = Succeed(job);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_model()->set_hidden(0, 12);
  InitFromSpec& init = *spec.mutable_model()->mutable_init_from();
  init.set_checkpoint(first.checkpoint());
  spec.mutable_checkpoint()->set_directory(folder.path() + "/second");
  EmbeddedOptions options;
  options.job = job;
  const absl::Status refused = RunEmbedded(options).status();
  INFO(refused);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(absl::StrContains(refused.message(), "tensor layer_0_weight was (48, 16), is (48, 12)"));

  // Rates of nothing: what it has at the end is what it began with.
  init.set_new_tensors("allow");
  init.set_dropped_tensors("allow");
  init.set_optimizer_state("reset");
  spec.mutable_optimizer()->mutable_sparse()->set_type("sgd");
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(1e-30f);
  spec.mutable_optimizer()->mutable_dense()->set_type("sgd");
  spec.mutable_optimizer()->mutable_dense()->set_learning_rate(1e-30f);
  spec.mutable_training()->set_epochs(1);
  const JobStatus second = Succeed(job);
  std::string told;
  for (const JobCondition& c : second.conditions()) {
    if (c.reason() == "StartsFrom") told = c.message();
  }
  CHECK(absl::StrContains(told,
                          ": loaded: table features, tensor bias, tensor layer_1_bias, "
                          "tensor output_weight"));
  CHECK(absl::StrContains(told, "; other shape: tensor layer_0_weight was (48, 16), is (48, 12)"));
  const auto rows = [](const std::string& checkpoint, const std::string& tensor) {
    const auto open = CheckpointRows::Open(checkpoint);
    REQUIRE(open.ok());
    std::map<uint64_t, std::vector<float>> out;  // by key: weights
    const uint32_t table = tensor.empty() ? 0 : 1;
    uint64_t first_row = 0, count = UINT64_MAX;
    for (const TensorSpec& t : open->tables().tables[1].tensors) {
      if (t.name == tensor) first_row = t.first.value, count = t.Rows(256);
    }
    const PartitionRange all = {PartitionId(0), PartitionId(open->manifest().partitions() - 1)};
    const absl::Status read =
        open->ReadPartitions(table, all, [&](Position position, const uint8_t* row) {
          const uint64_t key = position.value - first_row;
          if (key >= count) return absl::OkStatus();
          std::vector<float>& weights = out[key];
          weights.resize(open->layout(table).dim);
          std::memcpy(weights.data(), row, weights.size() * 4);
          return absl::OkStatus();
        });
    REQUIRE(read.ok());
    return out;
  };
  CHECK(rows(first.checkpoint(), "").size() > 100);
  CHECK(rows(first.checkpoint(), "") == rows(second.checkpoint(), ""));
  CHECK(rows(first.checkpoint(), "output_weight") == rows(second.checkpoint(), "output_weight"));
  CHECK(rows(first.checkpoint(), "layer_0_weight") != rows(second.checkpoint(), "layer_0_weight"));
}

}  // namespace
}  // namespace strata
