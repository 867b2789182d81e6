#include "scheduler/store/submission.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

TrainingJob JobOf(const std::string& sparse, const std::string& linear, const std::string& dense) {
  TrainingJob job;
  OptimizersSpec& o = *job.mutable_spec()->mutable_optimizer();
  o.mutable_sparse()->set_type(sparse);
  if (!linear.empty()) o.mutable_linear()->set_type(linear);
  o.mutable_dense()->set_type(dense);
  return job;
}

std::string ResumeProblem(const TrainingJob& now, const TrainingJob& then) {
  Manifest saved;
  *saved.mutable_job() = then;
  const absl::Status status = CheckResumable(now, saved);
  return status.ok() ? "OK" : std::string(status.message());
}

TEST_CASE("a job resumes with the optimizers that wrote the state", "[scheduler][submission]") {
  const TrainingJob saved = JobOf("adagrad", "ftrl", "adam");
  CHECK(ResumeProblem(saved, saved) == "OK");
  CHECK(ResumeProblem(JobOf("momentum", "ftrl", "adam"), saved) ==
        "spec.optimizer.sparse.type is momentum but the checkpoint to resume from was made with "
        "adagrad; resume with the same value, or start anew with --overwrite");
  CHECK(ResumeProblem(JobOf("adagrad", "adam", "adam"), saved)
            .starts_with("spec.optimizer.linear.type is adam but"));
  CHECK(ResumeProblem(JobOf("adagrad", "ftrl", "ftrl"), saved)
            .starts_with("spec.optimizer.dense.type is ftrl but"));
  // A checkpoint of before there was a `linear`: it was as `sparse`.
  CHECK(ResumeProblem(JobOf("adagrad", "adagrad", "adam"), JobOf("adagrad", "", "adam")) == "OK");
  CHECK(ResumeProblem(JobOf("adagrad", "ftrl", "adam"), JobOf("adagrad", "", "adam")) != "OK");
}

TEST_CASE("a job resumes with the windows that were numbered", "[scheduler][submission]") {
  TrainingJob saved = JobOf("adagrad", "adagrad", "adam");
  TrainingSpec& training = *saved.mutable_spec()->mutable_training();
  training.set_mode("downpour");
  training.set_n_fetch(4);
  training.set_n_push(4);
  TrainingJob now = saved;
  now.mutable_spec()->mutable_training()->set_n_fetch(2);
  CHECK(ResumeProblem(now, saved) == "OK");
  now.mutable_spec()->mutable_training()->set_n_push(2);
  CHECK(ResumeProblem(now, saved).starts_with("spec.training.nPush is 2 but"));
  training.set_mode("easgd");
  training.set_tau(8);
  now = saved;
  now.mutable_spec()->mutable_training()->set_tau(4);
  CHECK(ResumeProblem(now, saved).starts_with("spec.training.tau is 4 but"));
}

TEST_CASE("a job starts from state of its own optimizers only", "[scheduler][submission]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/" + CheckpointFolderName(3);
  Manifest saved;
  *saved.mutable_job() = JobOf("adagrad", "adagrad", "adam");
  saved.mutable_job()->mutable_spec()->mutable_training()->set_mode("bsp");
  saved.set_model_hash(std::string(32, '0'));
  REQUIRE(WriteManifest(folder, saved).ok());
  const auto problem = [&](TrainingJob job) {
    SubmitRequest request;
    *request.mutable_job() = std::move(job);
    request.mutable_job()->mutable_spec()->mutable_model()->set_init_from(folder);
    const absl::Status status = PrepareCheckpoints(request).status();
    return status.ok() ? "OK" : std::string(status.message());
  };
  CHECK(problem(JobOf("adagrad", "adagrad", "adam")) == "OK");
  CHECK(problem(JobOf("momentum", "momentum", "adam")) ==
        "spec.optimizer.sparse.type is momentum but the optimizer state in spec.model.initFrom " +
            folder + " is of adagrad; set spec.optimizer.sparse.type to that");
  CHECK(problem(JobOf("adagrad", "adagrad", "ftrl")) != "OK");
  TrainingJob elastic = JobOf("adagrad", "adagrad", "adam");
  elastic.mutable_spec()->mutable_training()->set_mode("easgd");
  CHECK(problem(elastic) ==
        "spec.training.mode is easgd but spec.model.initFrom " + folder +
            " was made in mode bsp: rows of easgd have no optimizer state, and "
            "spec.optimizer.sparse.type of the other is adagrad; start from a checkpoint of the "
            "same mode, or of sgd");
}

TEST_CASE("places of a submitted job are held against each other", "[scheduler][submission]") {
  const TempFolder temp;
  SubmitRequest request;
  JobSpec& spec = *request.mutable_job()->mutable_spec();
  spec.mutable_output()->set_metrics(temp.path() + "/out");
  spec.mutable_output()->set_predictions(temp.path() + "/x/../out");
  spec.mutable_storage()->set_directory(temp.path() + "/rows");
  std::vector<std::string> looked;
  const auto looking = [&](absl::string_view field, const std::string&) {
    looked.emplace_back(field);
  };
  const absl::Status s = CheckOutputs(request, looking);
  CHECK(absl::IsInvalidArgument(s));
  CHECK(absl::StrContains(s.message(), "spec.output.metrics"));
  CHECK(absl::StrContains(s.message(), "spec.output.predictions"));
  CHECK(!looked.empty());
  CHECK(std::count(looked.begin(), looked.end(), "spec.storage.directory") == 0);
  spec.mutable_output()->Clear();
  spec.mutable_checkpoint()->set_directory(temp.path() + "/rows");
  CHECK(absl::IsInvalidArgument(CheckPlaces(request)));
  spec.mutable_checkpoint()->set_directory(temp.path() + "/c");
  CHECK(CheckPlaces(request).ok());
}

TEST_CASE("a job resumes with the shape of the model that was saved", "[scheduler][submission]") {
  TrainingJob saved = JobOf("adagrad", "", "adam");
  ModelSpec& model = *saved.mutable_spec()->mutable_model();
  model.set_type("dlrm");
  model.add_bottom_hidden(64);
  model.set_cross_layers(3);
  model.set_cross_rank(0);
  const auto problem = [&](void (*change)(ModelSpec&)) {
    TrainingJob now = saved;
    change(*now.mutable_spec()->mutable_model());
    return ResumeProblem(now, saved);
  };
  CHECK(problem([](ModelSpec&) {}) == "OK");
  CHECK(problem([](ModelSpec& m) {
          m.add_bottom_hidden(8);
        }).starts_with("spec.model.bottomHidden is [64, 8] but"));
  CHECK(problem([](ModelSpec& m) {
          m.set_cross_layers(2);
        }).starts_with("spec.model.crossLayers is 2 but"));
  CHECK(
      problem([](ModelSpec& m) { m.set_cross_rank(4); }).starts_with("spec.model.crossRank is 4"));
}

}  // namespace
}  // namespace strata::scheduler
