// What each job of jobs.txt trains, to the bit: its model hash, and what it says of its quality.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/bad_input/user.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_jobs.h"

namespace strata::golden {
namespace {

using Json = nlohmann::ordered_json;

// Where training stops before its last step, servers' counters are those of their last reports.
bool CountsAreOfTheEnd(const GoldenJob& job) {
  for (const std::string& field : job.fields) {
    if (field.rfind("evaluation.patience=", 0) == 0) return false;
  }
  return true;
}

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

TEST_CASE("small jobs train the models that they always trained", "[golden]") {
  const User user;
  WriteData(user);
  GoldenFile golden("jobs");
  for (const GoldenJob& job : ReadJobs()) {
    const std::string end = TrainJob(user, job);
    if (end.empty()) continue;
    golden.Check(job.name, Result(user, job, Json::parse(end)));
  }
  golden.Finish();
}

}  // namespace
}  // namespace strata::golden
