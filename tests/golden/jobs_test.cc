// What each job of jobs.txt trains, to the bit: its model hash, and what it says of its quality.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/bad_input/user.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_jobs.h"

namespace strata::golden {
namespace {

using Json = nlohmann::ordered_json;

// Where training stops before its last step, servers' counters are those of their last reports.
bool CountsAreOfTheEnd(const GoldenJob& job) { return job.Value("evaluation.patience").empty(); }

// One line. Counts that are zero are left out.
std::string Result(const User& user, const GoldenJob& job, const Json& end) {
  std::string text = "modelHash=" + end.at("modelHash").get<std::string>();
  for (const char* field : {"step", "examples", "auc", "logloss"}) {
    text += std::string(" ") + field + '=' + end.at(field).dump();
  }
  const bool counts = CountsAreOfTheEnd(job);
  for (const char* field : {"badLines", "refusedRows", "clippedRows"}) {
    if (counts && end.at(field) != 0) text += std::string(" ") + field + '=' + end.at(field).dump();
  }
  if (counts && end.contains("lifeCycle")) {
    for (const auto& [rule, rows] : end.at("lifeCycle").items()) {
      if (rows != 0) text += ' ' + rule + '=' + rows.dump();
    }
  }
  return text + " predictions=" + Fingerprint(user.Read(job.name + "/predictions.csv"));
}

// The lines of evaluations. When there are others depends on the moment, and so do the rate and of
// which steps loss and auc are.
std::string MetricsOfEvaluations(const std::string& metrics) {
  std::string text;
  std::istringstream in(metrics);
  for (std::string line; std::getline(in, line);) {
    Json json = Json::parse(line);
    if (!json.contains("evalAuc")) continue;
    for (const char* field : {"loss", "auc", "examplesPerSecond", "unixMs"}) {
      Json& value = json.at(field);
      if (value.is_number() || value.is_null()) value = "<number or null>";
    }
    text += json.dump() + '\n';
  }
  return text;
}

TEST_CASE("small jobs train the models that they always trained", "[golden]") {
  const User user;
  WriteData(user);
  GoldenFile golden("jobs");
  for (const GoldenJob& job : ReadJobs()) {
    const std::string end = TrainJob(user, job);
    if (end.empty()) continue;
    golden.Check(job.name, Result(user, job, Json::parse(end)));
    if (const std::string file = job.Value("output.metrics"); !file.empty()) {
      const std::string metrics = user.Read(job.name + "/" + file);
      golden.Check(job.name + "/" + file, MetricsOfEvaluations(metrics));
    }
  }
  golden.Finish();
}

}  // namespace
}  // namespace strata::golden
