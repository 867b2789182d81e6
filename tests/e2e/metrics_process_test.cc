// The seven metrics of a job with several labels and weights, as `strata status --json` and the
// lines of spec.output.metrics tell them: what loops over the predictions' lines say.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/worker/eval/metric_loops.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

using Json = nlohmann::json;

// "user,item,click,stars,weight" lines; some labels are empty, and some lines weigh nothing.
void WriteLines(const std::string& path, uint64_t seed, int lines) {
  std::mt19937_64 random(seed);
  std::ofstream out(path);
  out << "user,item,click,stars,weight\n";
  for (int l = 0; l < lines; ++l) {
    const uint64_t user = random() % 20, item = random() % 15;
    out << user << ",i" << item << ',';
    if (l % 11 != 4) out << ((user * item + random() % 3) % 2);
    out << ',';
    if (l % 3 != 0) out << static_cast<double>(user % 4 + item % 3) + 0.25;
    out << ',' << static_cast<double>(l % 5) * 0.375 << '\n';
  }
}

TrainingJob Job(const std::string& folder) {
  TrainingJob job = SmallJob(folder);
  WriteLines(folder + "/train.csv", 1, 400);
  WriteLines(folder + "/eval.csv", 2, 300);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->set_train(0, folder + "/train.csv");
  spec.mutable_data()->set_eval(0, folder + "/eval.csv");
  for (const char* field : {"user", "item"})
    spec.mutable_data()->mutable_columns()->add_categorical(field);
  spec.add_labels()->set_name("click");
  spec.add_labels()->set_name("stars");
  spec.mutable_labels(1)->set_kind("real");
  spec.set_sample_weight("weight");
  for (const char* metric : {"auc", "logloss", "ne", "calibration", "gauc(user)", "mse", "mae"}) {
    spec.mutable_evaluation()->add_metrics(metric);
  }
  spec.mutable_output()->set_predictions(folder + "/predictions.csv");
  spec.mutable_output()->set_metrics(folder + "/metrics.jsonl");
  return job;
}

// The lines that have the label of `task`, with their scores, weights and users.
std::vector<Line> LinesOf(const std::string& folder, size_t task) {
  std::ifstream evaluated(folder + "/eval.csv"), predicted(folder + "/predictions.csv");
  std::string line, prediction;
  std::getline(evaluated, line);  // the header
  std::vector<Line> lines;
  while (std::getline(evaluated, line)) {
    REQUIRE(std::getline(predicted, prediction));
    const std::vector<std::string> columns = absl::StrSplit(line, ',');
    const std::vector<std::string> scores = absl::StrSplit(prediction, ',');
    REQUIRE(scores.size() == 4);
    const std::string& label = columns[2 + task];
    CHECK(scores[task] == label);
    if (label.empty()) continue;
    lines.push_back({std::stof(label), std::stof(scores[2 + task]), std::stof(columns[4]),
                     std::stoull(columns[0])});
  }
  CHECK_FALSE(std::getline(predicted, prediction));
  return lines;
}

// By the names that JSON has.
std::map<std::string, double> MetricsOf(const std::vector<Line>& lines, bool binary) {
  std::map<std::string, double> metrics;
  metrics["mse"] =
      MeanOf(lines, [](const Line& l) { return (l.score - l.label) * (l.score - l.label); });
  metrics["mae"] = MeanOf(lines, [](const Line& l) { return std::fabs(l.score - l.label); });
  const double rate = MeanOf(lines, [](const Line& l) { return l.label; });
  metrics["calibration"] = MeanOf(lines, [](const Line& l) { return l.score; }) / rate;
  if (!binary) return metrics;
  metrics["auc"] = *AucOfPairs(lines);
  metrics["gauc"] = GaucOfPairs(lines, 20);
  metrics["logloss"] =
      MeanOf(lines, [](const Line& l) { return -std::log(l.label == 1 ? l.score : 1 - l.score); });
  metrics["ne"] = metrics["logloss"] / (-rate * std::log(rate) - (1 - rate) * std::log(1 - rate));
  return metrics;
}

TEST_CASE("status and metrics lines tell every weighted metric of every label", "[e2e]") {
  auto scratch = ScratchFolder::Make("strata-e2e");
  REQUIRE(scratch.ok());
  const std::string& folder = scratch->path();
  ProcessCluster cluster({.servers = 1, .workers = 1, .folder = folder + "/cluster"});
  const JobStatus end = cluster.AwaitEnd(cluster.Submit(Job(folder)));
  INFO(Conditions(end));
  REQUIRE(end.state() == SUCCEEDED);
  const CommandResult status =
      cluster.Strata({"status", "small", "--scheduler", cluster.address(), "--json"});
  INFO(status.out << status.err);
  REQUIRE(status.exit_code == 0);
  const Json told = Json::parse(status.out).at("evaluations").back().at("tasks");
  REQUIRE(told.size() == 2);
  std::ifstream metrics(folder + "/metrics.jsonl");
  Json last;
  for (std::string line; std::getline(metrics, line);) last = Json::parse(line);
  for (size_t task = 0; task < 2; ++task) {
    const std::vector<Line> lines = LinesOf(folder, task);
    const Json& of_line = last.at("evalTasks").at(task == 0 ? "click" : "stars");
    CHECK(told[task].at("examples") == lines.size());
    CHECK(of_line.at("examples") == lines.size());
    const auto expected = MetricsOf(lines, task == 0);
    CHECK(expected.size() == (task == 0 ? 7 : 3));
    for (const auto& [name, value] : expected) {
      INFO("label " << task << ", " << name);
      CHECK(told[task].at(name).get<double>() == Approx(value).epsilon(1e-9).margin(0));
      CHECK(of_line.at(name).get<double>() == Approx(value).epsilon(0).margin(6e-7));  // 6 digits
    }
  }
}

}  // namespace
}  // namespace strata::testing
