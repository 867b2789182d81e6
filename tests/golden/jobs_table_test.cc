// That the jobs of jobs.txt are of every kind: each field of a job file is given by some job, and
// each of its choices.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/bad_input/user.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_jobs.h"

namespace strata::golden {
namespace {

// Left out: what comes of it depends on the moment.
const std::set<std::string> kLeftOut = {"spec.checkpoint.everySteps"};

// FIELD=VALUE that some job gives. Data and what all jobs share are looked up by the field's name.
constexpr const char* kChoices[] = {
    "model.type=lr",
    "model.type=fm",
    "model.type=wide_deep",
    "model.type=deepfm",
    "model.type=dcn_v2",
    "model.type=dlrm",
    "data.integerFeatures=dense",
    "data.integerFeatures=bucket",
    "training.pullCodec=float32",
    "training.pullCodec=bf16",
    "training.pullCodec=int8",
    "training.mode=bsp",
    "training.mode=async",
    "training.mode=downpour",
    "training.mode=easgd",
    "worker.device=host",
    "worker.precision=fp32",
    "worker.precision=tf32",
    "worker.precision=bf16",
    "storage.durability=memory",
    "storage.durability=logged",
    "storage.durability=synced",
    "storage.ssd=rowfile",
    "storage.ssd=rocksdb",
    "storage.eviction=lrfu",
    "storage.eviction=lfu",
    "storage.eviction=lru",
    "storage.gpuBackend=host",
    "lifeCycle.admission.type=always",
    "lifeCycle.admission.type=exact",
    "lifeCycle.admission.type=counting",
    "lifeCycle.admission.type=probability",
};
constexpr const char* kFormats[] = {"criteo", "criteo_csv", "libfm", "libsvm", "libffm", "csv"};
constexpr const char* kOptimizers[] = {"sgd",  "momentum", "adagrad", "rowwise_adagrad",
                                       "adam", "ftrl"};
constexpr const char* kSchedules[] = {"constant", "step", "cosine", "poly"};

// Of the three optimizers it is one kind of field: spec.optimizer.*.beta1.
std::string Kind(const std::string& path) {
  static const std::regex which("^spec\\.optimizer\\.(sparse|dense|linear)\\.");
  return std::regex_replace(path, which, "spec.optimizer.*.");
}

void AddLeaves(const nlohmann::json& field, std::set<std::string>& leaves) {
  if (!field.contains("fields")) {
    leaves.insert(Kind(field.at("path").get<std::string>()));
    return;
  }
  for (const auto& below : field.at("fields")) AddLeaves(below, leaves);
}

// What jobs give, as "model.type=lr".
std::set<std::string> GivenByJobs() {
  std::set<std::string> given;
  for (const GoldenJob& job : ReadJobs()) given.insert(job.fields.begin(), job.fields.end());
  return given;
}

// What is not in the table: data, and what all jobs share.
std::string SharedText() {
  std::string text = ReadWhole(SourcePath("job.yaml"));
  std::set<std::string> data;
  for (const GoldenJob& job : ReadJobs()) data.insert(job.data);
  for (const std::string& name : data) text += DataField(name);
  return text;
}

TEST_CASE("each field of a job file is given by some job of the table", "[golden]") {
  const User user;
  const ProgramResult r = user.Strata("explain spec --recursive --json");
  REQUIRE(r.exit_code == 0);
  std::set<std::string> leaves;
  AddLeaves(nlohmann::json::parse(r.out), leaves);
  CHECK(leaves.size() > 80);
  std::set<std::string> given;
  for (const std::string& field : GivenByJobs()) {
    given.insert(Kind("spec." + field.substr(0, field.find('='))));
  }
  const std::string shared = SharedText();
  for (const std::string& leaf : leaves) {
    const std::string name = leaf.substr(leaf.rfind('.') + 1);
    INFO(leaf);
    const bool is_given = given.contains(leaf) || shared.find(name + ": ") != std::string::npos;
    CHECK(is_given != kLeftOut.contains(leaf));
  }
}

TEST_CASE("each choice of a job file is made by some job of the table", "[golden]") {
  const std::set<std::string> given = GivenByJobs();
  std::vector<std::string> choices(std::begin(kChoices), std::end(kChoices));
  for (const std::string type : kOptimizers) {
    for (const std::string which : {"sparse", "dense", "linear"}) {
      choices.push_back("optimizer." + which + ".type=" + type);
    }
  }
  for (const std::string& choice : choices) {
    INFO(choice);
    CHECK(given.contains(choice));
  }
  for (const std::string type : kSchedules) {
    INFO("schedule " << type);
    CHECK((given.contains("optimizer.sparse.schedule.type=" + type) ||
           given.contains("optimizer.linear.schedule.type=" + type) ||
           given.contains("optimizer.dense.schedule.type=" + type)));
  }
  const std::string shared = SharedText();
  for (const std::string format : kFormats) {
    INFO(format);
    CHECK(shared.find("format: " + format + ",") != std::string::npos);
  }
}

}  // namespace
}  // namespace strata::golden
