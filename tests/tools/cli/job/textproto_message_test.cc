// A job in protobuf's text format.
#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "proto/strata/job.pb.h"
#include "tests/tools/cli/job/example_job.h"
#include "tools/cli/job/file.h"

namespace strata {
namespace {

constexpr char kTextproto[] = R"(# Comments are allowed.
api_version: "strata/v1"
kind: "TrainingJob"
metadata { name: "clicks" }
spec {
  data {
    format: "criteo"
    train: ["train.tsv", "../more/day1.tsv"]
    eval: "/data/test.tsv"
  }
  model { type: "deepfm" hidden: 64 hidden: 32 }
  training {
    lanes: 4
    batch_size: 128
  }
}
)";

std::string TextprotoProblem(const std::string& from, const std::string& to) {
  REQUIRE(std::string(kTextproto).find(from) != std::string::npos);
  const std::string text = absl::StrReplaceAll(kTextproto, {{from, to}});
  absl::StatusOr<TrainingJob> job = ParseJobText(text, "job.textproto", "/jobs", {});
  if (job.ok()) return "OK";
  CHECK(absl::IsInvalidArgument(job.status()));
  return std::string(job.status().message());
}

TEST_CASE("a job in protobuf's text format is the job of its YAML", "[job_file]") {
  const auto yaml = Parse(kJob, {"spec.training.seed=7"});
  REQUIRE(yaml.ok());
  for (const char* name : {"job.textproto", "a/b.pbtxt", "job.txtpb"}) {
    const auto job = ParseJobText(kTextproto, name, "/jobs", {"spec.training.seed=7"});
    INFO(job.status().ToString());
    REQUIRE(job.ok());
    CHECK(job->SerializeAsString() == yaml->SerializeAsString());
  }
  CHECK(ParseJobText(std::string("\xEF\xBB\xBF") + kTextproto, "job.textproto", "/jobs", {}).ok());
  CHECK_FALSE(ParseJobText(kTextproto, "job.yaml", "/jobs", {}).ok());
}

TEST_CASE("what is wrong in the text format is told by line", "[job_file]") {
  CHECK(TextprotoProblem("lanes", "lane") ==
        "job.textproto:13:9: unknown field 'lane'; did you mean 'lanes'?");
  CHECK(TextprotoProblem("batch_size", "batchSize") ==
        "job.textproto:14:14: unknown field 'batchSize'; did you mean 'batch_size'?");
  CHECK(TextprotoProblem("lanes: 4", "embedding_dim: 4") ==
        "job.textproto:13:18: unknown field 'embedding_dim'; did you mean "
        "'spec.model.embedding_dim'?");
  CHECK(
      TextprotoProblem("batch_size: 128", "batch_size: 0") ==
      "job.textproto:14:5: spec.training.batchSize: 0 is outside the limits; give a number from 1 "
      "to 1048576");
  CHECK(TextprotoProblem("eval: \"/data/test.tsv\"", "eval: [\"a\", \"\"]") ==
        "job.textproto:9:5: spec.data.eval[1]: is empty; name a file");
  CHECK(TextprotoProblem("name: \"clicks\"", "") ==
        "job.textproto: metadata.name: is missing; name the job");
  CHECK(TextprotoProblem("lanes: 4", "lanes: \"4\"") ==
        "job.textproto:13:12: Expected integer, got: \"4\"");
  CHECK(TextprotoProblem("lanes: 4", "lanes: 4 lanes: 5").find("job.textproto:13:") == 0);
  CHECK(TextprotoProblem("lanes: 4", "lanes: -1").find("job.textproto:13:") == 0);
  CHECK(TextprotoProblem("lanes: 4", "lanes: 4294967296").find("job.textproto:13:") == 0);
  CHECK(TextprotoProblem("lanes: 4", "local_learning_rate: nan") ==
        "job.textproto:13:5: spec.training.localLearningRate: nan is not a finite 32-bit number");
  CHECK(TextprotoProblem("hidden: 64 hidden: 32", "hidden: [ ]") ==
        "job.textproto:11:26: spec.model.hidden: an empty list would be the default's layers; give "
        "a width for each layer, or remove it");
  CHECK(TextprotoProblem("hidden: 64 hidden: 32", "hidden: [64, 32]") == "OK");
  CHECK(TextprotoProblem("train: [\"train.tsv\", \"../more/day1.tsv\"]",
                         "train: \"hidden: []\" # hidden: []") == "OK");
  CHECK(TextprotoProblem("eval: \"/data/test.tsv\"", "eval: []") == "OK");
  CHECK(TextprotoProblem("training {", "training {{").find("job.textproto:12:") == 0);
  CHECK(TextprotoProblem("# Comments are allowed.", std::string("\0", 1)) ==
        "job.textproto: holds a zero byte; is it text?");
}

}  // namespace
}  // namespace strata
