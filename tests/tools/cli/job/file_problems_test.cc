// What is wrong in a job file is named with its place.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/tools/cli/job/example_job.h"
#include "tools/cli/job/file.h"

namespace strata {
namespace {

TEST_CASE("an unknown field is named with its place and the nearest name", "[job_file]") {
  CHECK(Problem("batchSize: 128", "batchsize: 128") ==
        "job.yaml:15:5: spec.training: unknown field 'batchsize'; did you mean 'batchSize'?");
  CHECK(Problem("batchSize: 128", "batch_size: 128") ==
        "job.yaml:15:5: spec.training: unknown field 'batch_size'; did you mean 'batchSize'?");
  CHECK(Problem("metadata:", "metdata:") ==
        "job.yaml:3:1: unknown field 'metdata'; did you mean 'metadata'?");
  CHECK(Problem("  model:\n", "  batchSize: 3\n  model:\n") ==
        "job.yaml:10:3: spec: unknown field 'batchSize'; did you mean 'spec.training.batchSize'?");
  CHECK(Problem("batchSize: 128", "gpuCount: 1")
            .find("job.yaml:15:5: spec.training: unknown field 'gpuCount'; the fields are: mode, "
                  "lanes, batchSize, epochs, ") == 0);
}

TEST_CASE("everything wrong is told at once", "[job_file]") {
  CHECK(Problem("lanes: 4\n    batchSize: 128", "lane: 4\n    batchSize: x") ==
        "job.yaml:14:5: spec.training: unknown field 'lane'; did you mean 'lanes'?\n"
        "job.yaml:15:16: spec.training.batchSize: 'x' is not a whole number (0, 1, 2, ...)");
}

TEST_CASE("wrong types are named", "[job_file]") {
  const std::string at = "job.yaml:15:16: spec.training.batchSize: ";
  CHECK(Problem("batchSize: 128", "batchSize: -1") ==
        at + "'-1' is not a whole number (0, 1, 2, ...)");
  CHECK(Problem("batchSize: 128", "batchSize: 1.5") ==
        at + "'1.5' is not a whole number (0, 1, 2, ...)");
  CHECK(Problem("batchSize: 128", "batchSize: 4294967296") ==
        at + "4294967296 is too large; the largest is 4294967295");
  CHECK(Problem("batchSize: 128", "batchSize: 99999999999999999999") ==
        at + "99999999999999999999 is too large; the largest is 4294967295");
  CHECK(Problem("batchSize: 128", "batchSize: \"128\"") ==
        at + "expects a whole number, but \"128\" is text; write it without quotes");
  CHECK(Problem("batchSize: 128", "batchSize: [1]") == at + "expects a whole number, found a list");
  CHECK(Problem("batchSize: 128", "batchSize: {a: 1}") ==
        at + "expects a whole number, found a mapping");
  CHECK(Problem("type: deepfm", "type: [deepfm]") ==
        "job.yaml:11:11: spec.model.type: expects text, found a list");
  CHECK(Problem("[64, 32]", "64") ==
        "job.yaml:12:13: spec.model.hidden: expects a list, found '64'; write [64]");
  CHECK(Problem("[64, 32]", "[64, big]") ==
        "job.yaml:12:18: spec.model.hidden[1]: 'big' is not a whole number (0, 1, 2, ...)");
  CHECK(
      Problem("    format: criteo", "    shuffle: yes\n    format: criteo") ==
      "job.yaml:7:14: spec.data.shuffle: expects a mapping of: enabled, bufferLines; found 'yes'");
  CHECK(Problem("    format: criteo", "    shuffle: {enabled: yes}\n    format: criteo") ==
        "job.yaml:7:24: spec.data.shuffle.enabled: expects true or false, not 'yes'");
  CHECK(Problem("  training:", "  optimizer: {sparse: {learningRate: fast}}\n  training:") ==
        "job.yaml:13:38: spec.optimizer.sparse.learningRate: 'fast' is not a finite number; write "
        "one as 0.5 or 1e-3");
  CHECK(Problem("  training:", "  optimizer: {sparse: {learningRate: nan}}\n  training:") ==
        "job.yaml:13:38: spec.optimizer.sparse.learningRate: 'nan' is not a finite number; write "
        "one as 0.5 or 1e-3");
  CHECK(
      Problem("  training:", "  optimizer: {sparse: {learningRate: 1e39}}\n  training:") ==
      "job.yaml:13:38: spec.optimizer.sparse.learningRate: 1e39 is too large for a 32-bit number");
}

TEST_CASE("a share of DRAM that is none is named", "[job_file]") {
  const auto says = [](const std::string& share) {
    return SetProblem("spec.tables=[{name: item, dramShare: " + share + "}]");
  };
  const auto problem = [](const std::string& share, const std::string& what) {
    return "--set spec.tables=[{name: item, dramShare: " + share +
           "}]: spec.tables[0].dramShare: " + what;
  };
  const std::string whole = " is not a whole number (0, 1, 2, ...)";
  CHECK(says("-1") == problem("-1", "'-1'" + whole));
  CHECK(says("0.5") == problem("0.5", "'0.5'" + whole));
  CHECK(says("most") == problem("most", "'most'" + whole));
  CHECK(says("\"3\"") ==
        problem("\"3\"", "expects a whole number, but \"3\" is text; write it without quotes"));
  CHECK(says("4294967296") ==
        problem("4294967296", "4294967296 is too large; the largest is 4294967295"));
}

// A message cannot tell it from none, and of layers none are those of the default.
TEST_CASE("an empty list of layers is refused, not taken for the default's", "[job_file]") {
  const std::string why =
      "an empty list would be the default's layers; give a width for each layer, or remove it";
  CHECK(Problem("hidden: [64, 32]", "hidden: []") == "job.yaml:12:13: spec.model.hidden: " + why);
  for (const char* field : {"bottomHidden", "expertHidden", "towerHidden", "attentionHidden"}) {
    INFO(field);
    CHECK(Problem("hidden: [64, 32]", std::string(field) + ": []") ==
          absl::StrCat("job.yaml:12:", 7 + std::string(field).size(), ": spec.model.", field, ": ",
                       why));
  }
  CHECK(SetProblem("spec.model.hidden=[]") ==
        "--set spec.model.hidden=[]: spec.model.hidden: " + why);
  CHECK(SetProblem("spec.model.hidden=") == "OK");  // the default's, by intent
  CHECK(Problem("eval: [/data/test.tsv]", "eval: []") == "OK");
}

TEST_CASE("a field without a value is named", "[job_file]") {
  CHECK(Problem("batchSize: 128", "batchSize:") ==
        "job.yaml:15:5: spec.training.batchSize: has no value; give a whole number, or remove it");
}

TEST_CASE("a field given twice is refused", "[job_file]") {
  CHECK(Problem("batchSize: 128", "lanes: 8") ==
        "job.yaml:15:5: spec.training: field 'lanes' is given twice");
}

TEST_CASE("malformed YAML is told with line and column", "[job_file]") {
  CHECK(Problem("train: [train.tsv,", "train: [train.tsv\n   :") ==
        "job.yaml:9:4: end of sequence flow not found");
  CHECK(Problem("  name: clicks", "\tname: clicks") ==
        "job.yaml:4:6: illegal map value (line 4 is indented with a tab; YAML wants spaces)");
  CHECK(Problem("[64, 32]", "[64, 32") == "job.yaml:13:11: end of sequence flow not found");
}

TEST_CASE("a value that cannot be is told with its place", "[job_file]") {
  CHECK(Problem("lanes: 4", "lanes: 0") ==
        "job.yaml:14:12: spec.training.lanes: 0 is outside the limits; give a number from 1 to "
        "4096");
  CHECK(Problem("[64, 32]", "[64, 0]") ==
        "job.yaml:12:18: spec.model.hidden[1]: 0 is outside the limits; give a number from 1 to "
        "16384");
  CHECK(Problem("    format: criteo\n", "") ==
        "job.yaml: spec.data.format: is missing; give one of: criteo, criteo_csv, libfm, libsvm, "
        "libffm, csv");
}

TEST_CASE("a message is one line, whatever a user's text in it holds", "[job_file]") {
  CHECK(Problem("format: criteo", "format: \"cri\\nteo\"") ==
        "job.yaml:7:13: spec.data.format: 'cri\\nteo' is not one of: criteo, criteo_csv, libfm, "
        "libsvm, libffm, csv");
  CHECK(Problem("lanes: 4", "lanes: \"4\\n5\"") ==
        "job.yaml:14:12: spec.training.lanes: expects a whole number, but \"4\\n5\" is text; write "
        "it "
        "without quotes");
  CHECK(Problem("lanes: 4", "\"la\\nnes\": 4") ==
        "job.yaml:14:5: spec.training: unknown field 'la\\nnes'; did you mean 'lanes'?");
  CHECK(SetProblem("spec.model.type=deep\nfm").find("--set spec.model.type=deep\\nfm: ") == 0);
  for (const std::string& problem :
       {SetProblem("spec.model.type=deep\nfm"), SetProblem("spec.none=a\nb"), SetProblem("a\nb"),
        SetProblem("spec.storage.dramBytesPerServer=4\nx")}) {
    INFO(problem);
    CHECK(problem != "OK");
    CHECK(problem.find('\n') == std::string::npos);
  }
}

}  // namespace
}  // namespace strata
