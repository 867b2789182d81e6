// That the jobs of jobs.txt are of every kind: each field of a job file is given by some job, and
// each of its choices. Which there are, the program says.
#include <yaml-cpp/yaml.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bad_input/user.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_jobs.h"

namespace strata::golden {
namespace {

// Left out: what comes of it depends on the moment, or on the machine; sequences, which no model of
// this version reads.
const std::set<std::string> kFieldsLeftOut = {"spec.checkpoint.everySteps"};
const std::set<std::string> kChoicesLeftOut = {
    "spec.worker.device=auto", "spec.worker.device=cuda:UUID", "spec.storage.gpuBackend=cuda",
    "spec.evaluation.metrics=gauc(FIELD)"};

// Of all optimizers it is one kind of field: spec.optimizer.*.beta1. A table's life cycle is read
// as the job's.
std::string Kind(const std::string& path) {
  static const std::regex which(
      "^spec\\.(optimizer\\.(sparse|dense|linear)|tables\\.(optimizer|linear))\\.");
  static const std::regex life("^spec\\.tables\\.lifeCycle\\.");
  return std::regex_replace(std::regex_replace(path, which, "spec.optimizer.*."), life,
                            "spec.lifeCycle.");
}

// The schema of spec, as the program explains it.
nlohmann::json Schema(const User& user) {
  const ProgramResult r = user.Strata("explain spec --recursive --json");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  return nlohmann::json::parse(r.out);
}

// Fields without fields of their own.
void AddLeaves(const nlohmann::json& field, std::vector<nlohmann::json>& leaves) {
  if (!field.contains("fields")) {
    leaves.push_back(field);
    return;
  }
  for (const auto& below : field.at("fields")) AddLeaves(below, leaves);
}

// "PATH=VALUE" of each leaf of YAML; the path of a list's members is the list's.
void AddGiven(const YAML::Node& node, const std::string& path, std::set<std::string>& given) {
  if (node.IsMap()) {
    for (const auto& entry : node) AddGiven(entry.second, path + '.' + entry.first.Scalar(), given);
  } else if (node.IsSequence()) {
    for (const auto& member : node) AddGiven(member, path, given);
  } else {
    given.insert(path + '=' + node.Scalar());
  }
}

// "spec.model.type=lr": what jobs give, in the table, by their data, and in what all of them share.
std::set<std::string> GivenByJobs() {
  std::set<std::string> given, data;
  for (const GoldenJob& job : ReadJobs()) {
    for (const std::string& field : job.fields) {
      given.insert("spec." + field);
      const size_t equals = field.find('=');
      if (field[equals + 1] != '[') continue;
      AddGiven(YAML::Load(field.substr(equals + 1)), "spec." + field.substr(0, equals), given);
    }
    data.insert(job.data);
  }
  for (const std::string& name : data) {
    AddGiven(YAML::Load(DataField(name) + ReadWhole(SourcePath("job.yaml"))), "spec", given);
  }
  return given;
}

// What may be chosen for a field, by the program's complaint about another value; none where it may
// be any text. `job` is a good one as PrepareJob tells it.
std::vector<std::string> ChoicesOf(const User& user, const std::string& job,
                                   const std::string& path) {
  static const std::string kList = "spec.data.columns.multiValued.", kNone = "no-such-choice";
  std::string set = path + '=' + kNone;
  if (path.rfind(kList, 0) == 0) {
    const std::string field = path.substr(kList.size());
    set = "spec.data.columns.multiValued=[{column: genres, " + field + ": " + kNone + "}]";
    if (field == "column") return {};
  }
  const ProgramResult r = user.Strata("validate " + job + " --set '" + set + "'");
  static const std::string kSays = "'" + kNone + "' is not one of: ";
  const size_t at = r.err.find(kSays);
  if (at == std::string::npos) return {};
  const size_t from = at + kSays.size();
  std::istringstream words(r.err.substr(from, r.err.find('\n', from) - from));
  std::vector<std::string> choices;
  for (std::string word; words >> word;) {
    if (word.back() == ',') word.pop_back();
    choices.push_back(word);
  }
  return choices;
}

TEST_CASE("each field of a job file is given by some job of the table", "[golden]") {
  const User user;
  std::vector<nlohmann::json> leaves;
  AddLeaves(Schema(user), leaves);
  CHECK(leaves.size() > 80);
  std::set<std::string> given;
  for (const std::string& field : GivenByJobs()) {
    given.insert(Kind(field.substr(0, field.find('='))));
  }
  for (const nlohmann::json& leaf : leaves) {
    const auto path = leaf.at("path").get<std::string>();
    INFO(path);
    CHECK(given.contains(Kind(path)) != kFieldsLeftOut.contains(path));
  }
}

TEST_CASE("each choice of a job file is made by some job of the table", "[golden]") {
  const User user;
  WriteData(user);
  // Between them, every field may be given.
  const std::string jobs[] = {PrepareJob(user, JobNamed("deepfm_criteo")),
                              PrepareJob(user, JobNamed("wide_deep_csv"))};
  std::vector<nlohmann::json> leaves;
  AddLeaves(Schema(user), leaves);
  // A schedule is the same code for the three optimizers, a type is not.
  const auto kind = [](const std::string& choice) {
    return choice.find(".schedule.") == std::string::npos ? choice : Kind(choice);
  };
  std::set<std::string> given, choices;
  for (const std::string& field : GivenByJobs()) given.insert(kind(field));
  int fields = 0;
  for (const nlohmann::json& leaf : leaves) {
    if (leaf.at("type") != "text") continue;
    const auto path = leaf.at("path").get<std::string>();
    const size_t before = choices.size();
    for (const std::string& job : jobs) {
      for (const std::string& c : ChoicesOf(user, job, path)) choices.insert(path + '=' + c);
    }
    fields += choices.size() > before;
  }
  CHECK(fields >= 19);
  for (const std::string& choice : choices) {
    INFO(choice);
    CHECK(given.contains(kind(choice)) != kChoicesLeftOut.contains(choice));
  }
}

}  // namespace
}  // namespace strata::golden
