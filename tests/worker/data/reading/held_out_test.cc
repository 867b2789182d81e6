#include "worker/data/reading/held_out.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/worker/data/files/scratch_file.h"
#include "worker/data/files/text_files.h"
#include "worker/data/index/index.h"
#include "worker/data/reading/file_batch_source.h"

namespace strata {
namespace {

// A csv file of an item and labels click (binary) and stars (real), whose lines have weights.
class Job {
 public:
  explicit Job(const std::string& lines)
      : path(folder_.Write("eval.csv", "item,click,stars,w\n" + lines)) {
    spec.mutable_data()->set_format("csv");
    FieldConfig& item = *spec.add_fields();
    item.set_name("item");
    item.set_column("item");
    item.set_kind("categorical");
    for (const char* name : {"click", "stars"}) {
      LabelConfig& label = *spec.add_labels();
      label.set_name(name);
      label.set_column(name);
      label.set_kind(std::string(name) == "click" ? "binary" : "real");
      label.set_loss(std::string(name) == "click" ? "logistic" : "squared");
    }
    spec.set_sample_weight("w");
    spec.mutable_training()->set_lanes(1);
    spec.mutable_training()->set_batch_size(8);
    spec.mutable_data()->mutable_shuffle()->set_buffer_lines(8);
  }

  absl::StatusOr<HeldOutLines> Check(const Cancelled& cancelled = nullptr) const {
    const auto files = std::make_shared<TextFiles>();
    const auto index = BuildIndex(spec, {path}, files.get(), {.labels = Labels::kOptional});
    REQUIRE(index.ok());
    const auto source = OpenFileBatchSource(spec, *index, index->shape(), files);
    REQUIRE(source.ok());
    return CheckHeldOut(spec, index->lines(), source->get(), cancelled);
  }
  std::string Error() const { return std::string(Check().status().message()); }

 private:
  const ScratchFolder folder_;

 public:
  const std::string path;
  JobSpec spec;
};

TEST_CASE("good held-out lines have nothing to be told", "[held_out]") {
  const Job job("i1,1,2,1\ni2,0,,0\n\ni3,,3,\n");
  const auto checked = job.Check();
  REQUIRE(checked.ok());
  CHECK(checked->bad_lines == 0);
  CHECK(checked->first_bad_line.empty());
}

TEST_CASE("bad held-out lines are named, and refused beyond the limit", "[held_out]") {
  Job job("i1,1,2,1\ni2,0,3,-1\ni3,1,4,1\ni3,2,4,1\n");
  const std::string first = job.path + ":3:8: column w: weight \"-1\" is negative";
  CHECK(job.Error().find(first) == 0);
  CHECK(job.Error().find("set spec.data.maxBadLines to skip such lines") != std::string::npos);
  job.spec.mutable_data()->set_max_bad_lines(1);
  CHECK(job.Check().status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(job.Error().find("spec.data.eval: more than 1 bad lines; the first is " + first) == 0);
  CHECK(job.Error().find("raise spec.data.maxBadLines") != std::string::npos);
  job.spec.mutable_data()->set_max_bad_lines(2);
  const auto checked = job.Check();
  REQUIRE(checked.ok());
  CHECK(checked->bad_lines == 2);
  CHECK(checked->first_bad_line.find(first) == 0);
}

TEST_CASE("patience needs an AUC to go by", "[held_out]") {
  const auto error = [](const std::string& lines) {
    Job job(lines);
    REQUIRE(job.Check().ok());
    job.spec.mutable_evaluation()->set_patience(2);
    return job.Error();
  };
  const std::string begin =
      "spec.evaluation.patience: it goes by the AUC of label click, which is not defined on the "
      "lines of spec.data.eval: ";
  const std::string remedy = "; give held-out lines of both classes, or remove patience";
  CHECK(error("i1,1,2,1\ni2,0,,1\n") == "");
  CHECK(error("i1,1,2,1\ni2,1,,1\ni2,,,1\n") == begin + "all 2 labels are 1" + remedy);
  CHECK(error("i1,0,2,1\n") == begin + "all 1 labels are 0" + remedy);
  // A line of weight 0 tells nothing.
  CHECK(error("i1,0,2,1\ni1,1,2,0\n") == begin + "all 1 labels are 0" + remedy);
  CHECK(error("i1,,2,1\ni1,1,2,0\n") ==
        begin + "no line of a weight above 0 has that label" + remedy);
}

TEST_CASE("patience needs a loss of a first label that is not binary", "[held_out]") {
  Job job("i1,1,,1\ni2,0,,1\n");
  job.spec.mutable_labels()->SwapElements(0, 1);
  job.spec.mutable_evaluation()->set_patience(2);
  job.spec.clear_sample_weight();
  CHECK(job.Error() ==
        "spec.evaluation.patience: it goes by the loss of label stars, which is not defined on the "
        "lines of spec.data.eval: no line has that label; give held-out lines that have it, or "
        "remove patience");
  job.spec.mutable_labels()->SwapElements(0, 1);
  CHECK(job.Check().ok());
}

TEST_CASE("a check that nobody wants any more ends", "[held_out]") {
  const Job job("i1,1,2,1\n");
  CHECK(absl::IsCancelled(job.Check([] { return true; }).status()));
}

}  // namespace
}  // namespace strata
