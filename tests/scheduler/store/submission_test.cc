#include "scheduler/store/submission.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "proto/core/checksum.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/may_pass.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/state/state.pb.h"
#include "tests/proto/runtime/files/one_failure.h"
#include "tests/scheduler/state/saved_jobs.h"
#include "tests/scheduler/store/written_checkpoints.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

// What a submission of `now` says that starts from a checkpoint with the manifest `saved`.
std::string InitProblem(TrainingJob now, const Manifest& saved) {
  const TempFolder temp;
  const std::string folder = temp.path() + "/" + CheckpointFolderName(3);
  REQUIRE(WriteManifest(folder, saved).ok());
  SubmitRequest request;
  *request.mutable_job() = std::move(now);
  request.mutable_job()->mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint(
      folder);
  const auto found = PrepareCheckpoints(request);
  if (found.ok()) {
    REQUIRE(found->init_schema.has_value());
    CHECK(found->init_schema->model() == saved.job().spec().model().type());
    REQUIRE(found->init.has_value());
    CHECK(found->init->model_hash() == saved.model_hash());
    return "OK";
  }
  return absl::StrReplaceAll(found.status().message(), {{folder, "F"}});
}

std::string InitProblem(TrainingJob now, const TrainingJob& then) {
  return InitProblem(std::move(now), SavedBy(then));
}

TEST_CASE("a job starts from state of its own optimizers only", "[scheduler][submission]") {
  const TrainingJob saved = JobOf("adagrad", "adagrad", "adam");
  CHECK(InitProblem(saved, saved) == "OK");
  CHECK(InitProblem(JobOf("momentum", "momentum", "adam"), saved) ==
        "spec.model.initFrom F does not fit the job:\n"
        "  table features: embedding: the optimizer was adagrad, is momentum; weight: the "
        "optimizer was adagrad, is momentum; set that optimizer, or "
        "spec.model.initFrom.optimizerState: reset");
  CHECK(InitProblem(JobOf("adagrad", "adagrad", "ftrl"), saved) ==
        "spec.model.initFrom F does not fit the job:\n"
        "  tensor bias: the optimizer was adam, is ftrl; set that optimizer, or "
        "spec.model.initFrom.optimizerState: reset");
  TrainingJob reset = JobOf("momentum", "momentum", "adam");
  reset.mutable_spec()->mutable_model()->mutable_init_from()->set_optimizer_state("reset");
  CHECK(InitProblem(reset, saved) == "OK");
  TrainingJob elastic = saved;
  elastic.mutable_spec()->mutable_training()->set_mode("easgd");
  CHECK(absl::StrContains(InitProblem(elastic, saved),
                          "table features: embedding: the optimizer was adagrad, is none (mode "
                          "easgd)"));
  CHECK(InitProblem(elastic, elastic) == "OK");
  // Neither has state.
  TrainingJob plain = JobOf("sgd", "sgd", "sgd");
  elastic.mutable_spec()->mutable_optimizer()->Clear();
  *elastic.mutable_spec()->mutable_optimizer() = plain.spec().optimizer();
  CHECK(InitProblem(elastic, plain) == "OK");
}

// All of a job that newTensors allows would begin anew without a word; or read other rows.
TEST_CASE("a job starts from no manifest without a schema, nor with that of another job",
          "[scheduler][submission]") {
  TrainingJob job = JobOf("adagrad", "adagrad", "adam");
  InitFromSpec& init = *job.mutable_spec()->mutable_model()->mutable_init_from();
  init.set_new_tensors("allow");
  init.set_dropped_tensors("allow");
  Manifest saved = SavedBy(job);
  CHECK(InitProblem(job, saved) == "OK");
  saved.mutable_schema()->mutable_tensors(0)->set_first_row(7);
  CHECK(absl::StartsWith(InitProblem(job, saved),
                         "spec.model.initFrom F is no whole checkpoint: the manifest's schema is "
                         "not that of its own job: tensor bias has 1 rows from 7, not 1 from "));
  saved.clear_schema();
  CHECK(InitProblem(job, saved) ==
        "spec.model.initFrom F is no whole checkpoint: the manifest does not say what its model is "
        "made of (schema); put back a whole copy, or name another");
}

TEST_CASE("a job that starts from another one's checkpoint hears of weights of lines",
          "[scheduler][submission]") {
  const TrainingJob without = CsvJob("fm", {"user", "item"});
  TrainingJob with = without;
  with.mutable_spec()->set_sample_weight("w");
  CHECK(InitProblem(with, with) == "OK");
  CHECK(InitProblem(without, with) ==
        "spec.model.initFrom F does not fit the job:\n"
        "  spec.sampleWeight was w, is none; allow it with spec.model.initFrom.newTensors: allow");
  CHECK(absl::StrContains(InitProblem(with, without), "spec.sampleWeight was none, is w; "));
  with.mutable_spec()->mutable_model()->mutable_init_from()->set_new_tensors("allow");
  CHECK(InitProblem(with, without) == "OK");
}

// It is read by who begins, and may be pruned since.
TEST_CASE("a job that goes on from its own checkpoint asks nothing of what it began from",
          "[scheduler][submission]") {
  const TempFolder temp;
  SubmitRequest request;
  *request.mutable_job() = JobOf("adagrad", "adagrad", "adam");
  JobSpec& spec = *request.mutable_job()->mutable_spec();
  spec.mutable_checkpoint()->set_directory(temp.path() + "/c");
  spec.mutable_model()->mutable_init_from()->set_checkpoint(temp.path() + "/gone");
  request.set_resume(true);
  CHECK(absl::StrContains(PrepareCheckpoints(request).status().message(), "/gone"));
  Manifest own = SavedBy(request.job());
  own.set_step(3);
  REQUIRE(WriteManifest(temp.path() + "/c/" + CheckpointFolderName(3), own).ok());
  const auto found = PrepareCheckpoints(request);
  INFO(found.status());
  REQUIRE(found.ok());
  CHECK(found->complete.size() == 1);
  CHECK_FALSE(found->init_schema.has_value());
  request.set_resume(false);
  CHECK(absl::StrContains(PrepareCheckpoints(request).status().message(), "/gone"));
}

// Each of these was taken without a word, and rows loaded as those of other tensors or features.
TEST_CASE("a job starts from a model of the same tensors and fields only",
          "[scheduler][submission]") {
  const TrainingJob saved = CsvJob("deepfm", {"user", "item"});
  TrainingJob wider = saved;
  wider.mutable_spec()->mutable_model()->set_hidden(0, 6);
  CHECK(absl::StrContains(InitProblem(wider, saved),
                          "\n  tensor layer_0_weight was (8, 8), is "
                          "(8, 6); let it begin anew"));
  CHECK(absl::StrContains(InitProblem(CsvJob("deepfm", {"user", "item", "shop"}), saved),
                          "\n  tensor layer_0_weight was (8, 8), is (12, 8); let it"));
  CHECK(absl::StrContains(InitProblem(CsvJob("deepfm", {"item", "user"}), saved),
                          "\n  tensor layer_0_weight (8, 8) goes by the fields in their order"));
  CHECK(absl::StrContains(InitProblem(saved, CsvJob("fm", {"user", "item"})),
                          "\n  spec.model.type was fm, is deepfm; allow it"));
  CHECK(absl::StrContains(InitProblem(CsvJob("wide_deep", {"user", "item"}), saved),
                          "\n  spec.model.type was deepfm, is wide_deep; allow it"));
  TrainingJob partitions = saved;
  partitions.mutable_spec()->mutable_storage()->set_partitions(32);
  CHECK(InitProblem(partitions, saved) ==
        "spec.storage.partitions is 32 but spec.model.initFrom F was made with 64; set "
        "spec.storage.partitions to that");
  TrainingJob allowed = CsvJob("deepfm", {"item", "user", "shop"});
  InitFromSpec& init = *allowed.mutable_spec()->mutable_model()->mutable_init_from();
  init.set_new_tensors("allow");
  init.set_dropped_tensors("allow");
  CHECK(InitProblem(allowed, saved) == "OK");
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

using testing::OneFailure;

TEST_CASE("a file that cannot be read once has a job neither go on from less nor replace it",
          "[scheduler][submission]") {
  const TempFolder temp;
  WriteCheckpoints(temp.path());
  SubmitRequest request;
  *request.mutable_job() = JobOf("adagrad", "adagrad", "adam");
  request.mutable_job()->mutable_spec()->mutable_checkpoint()->set_directory(temp.path());
  const bool resume = GENERATE(true, false);
  const bool manifest = GENERATE(true, false);
  CAPTURE(resume, manifest);
  request.set_resume(resume);
  request.set_overwrite(!resume);
  const OneFailure files(manifest ? OneFailure::Call::kOpen : OneFailure::Call::kLook,
                         manifest ? kNewestManifest : kNewestFile, EIO);
  const absl::Status refused = PrepareCheckpoints(request).status();
  INFO(refused);
  CHECK(files.over());
  CHECK(MayPass(refused));
  CHECK(absl::StrContains(refused.message(), "spec.checkpoint.directory: "));
  CHECK(absl::StrContains(refused.message(), manifest ? kNewestManifest : kNewestFile));
  const auto found = PrepareCheckpoints(request);
  REQUIRE(found.ok());
  CHECK(found->complete.size() == (resume ? 2 : 0));
  CHECK(found->replaced.size() == (resume ? 0 : 2));
  for (const RemovalRecord& removal : found->replaced) CHECK(removal.has_meant());
}

TEST_CASE("the manifest of what is replaced is read again, or the job waits",
          "[scheduler][submission]") {
  const TempFolder temp;
  WriteCheckpoints(temp.path());
  SubmitRequest request;
  *request.mutable_job() = JobOf("adagrad", "adagrad", "adam");
  request.mutable_job()->mutable_spec()->mutable_checkpoint()->set_directory(temp.path());
  request.set_overwrite(true);
  // A manifest that is damaged for good has nothing that is meant.
  REQUIRE(WritePlainFile(temp.path() + kNewestManifest, "x").ok());
  const auto found = PrepareCheckpoints(request);
  REQUIRE(found.ok());
  REQUIRE(found->replaced.size() == 2);
  CHECK(found->replaced[0].has_meant() != found->replaced[1].has_meant());
}

TEST_CASE("newer checkpoints that a resumed job cannot go on from are told, or refused",
          "[scheduler][submission]") {
  const TempFolder temp;
  WriteCheckpoints(temp.path());
  SubmitRequest request;
  *request.mutable_job() = JobOf("adagrad", "adagrad", "adam");
  request.mutable_job()->mutable_spec()->mutable_checkpoint()->set_directory(temp.path());
  request.set_resume(true);
  CHECK(PrepareCheckpoints(request)->damaged.empty());
  SECTION("damage is told") {
    const bool manifest = GENERATE(true, false);
    if (manifest) {
      REQUIRE(WritePlainFile(temp.path() + kNewestManifest, "x").ok());
    } else {
      REQUIRE(std::filesystem::remove(temp.path() + kNewestFile));
    }
    const auto found = PrepareCheckpoints(request);
    INFO(found.status());
    REQUIRE(found.ok());
    REQUIRE(found->complete.size() == 1);
    CHECK(absl::StrContains(found->damaged,
                            temp.path() + (manifest ? kNewestManifest : kNewestFile)));
  }
  SECTION("what is older than the newest whole one is not") {
    REQUIRE(std::filesystem::remove(temp.path() + "/step-000000000003/a.strata"));
    const auto found = PrepareCheckpoints(request);
    REQUIRE(found.ok());
    CHECK(found->complete.size() == 1);
    CHECK(found->damaged.empty());
  }
  SECTION("another format is refused") {
    const std::string json = R"({"format":3,"step":"4"})";
    const uint32_t crc = Crc32c({reinterpret_cast<const uint8_t*>(json.data()), json.size()});
    const std::string text = absl::StrFormat("%s\ncrc32c %08x\n", json, crc);
    REQUIRE(WritePlainFile(temp.path() + kNewestManifest, text).ok());
    const absl::Status refused = PrepareCheckpoints(request).status();
    INFO(refused);
    CHECK(absl::IsFailedPrecondition(refused));
    CHECK(absl::StrContains(refused.message(), "its newest checkpoint cannot be read"));
    CHECK(absl::StrContains(refused.message(), "has format "));
    CHECK(absl::StrContains(refused.message(), "to go on from " + temp.path()));
    // Nothing is wrong with it where it is the only one, either.
    std::filesystem::remove_all(temp.path() + "/step-000000000003");
    const absl::Status alone = PrepareCheckpoints(request).status();
    INFO(alone);
    CHECK(absl::IsFailedPrecondition(alone));
    CHECK(absl::StrContains(alone.message(), "its newest checkpoint cannot be read"));
    CHECK_FALSE(absl::StrContains(alone.message(), "damaged"));
    CHECK_FALSE(absl::StrContains(alone.message(), "--overwrite"));
  }
}

// The process's files while it lives: before the newest manifest is read a second time, another
// checkpoint takes its place.
class Replaced : public FileSystem {
 public:
  explicit Replaced(std::string folder) : folder_(std::move(folder)) {
    FileSystem::ReplaceKernel(this);
  }
  ~Replaced() override { FileSystem::ReplaceKernel(nullptr); }
  int Open(const std::string& path, int flags) override {
    if (path.ends_with(kNewestManifest) && ++reads_ == 2) {
      Manifest other = SavedBy(JobOf("adagrad", "adagrad", "adam"));
      other.set_step(9);
      other.set_job_uid(kIdentity.cluster.text());
      FileSystem kernel;
      REQUIRE(WriteManifest(folder_, other, kernel).ok());
    }
    return FileSystem::Open(path, flags);
  }

 private:
  const std::string folder_;
  int reads_ = 0;
};

TEST_CASE("a job goes on from the manifest that was checked, whatever comes in its place",
          "[scheduler][submission]") {
  const TempFolder temp;
  WriteCheckpoints(temp.path(), kIdentity);
  const Replaced files(temp.path() + "/" + CheckpointFolderName(4));
  SubmitRequest request;
  *request.mutable_job() = JobOf("adagrad", "adagrad", "adam");
  request.mutable_job()->mutable_spec()->mutable_checkpoint()->set_directory(temp.path());
  const bool resume = GENERATE(true, false);
  request.set_resume(resume);
  request.set_overwrite(!resume);
  const auto found = PrepareCheckpoints(request);
  REQUIRE(found.ok());
  if (resume) {
    REQUIRE(found->complete.size() == 2);
    CHECK(found->complete[1].step() == 4);
    CHECK(found->complete[1].job_uid() == kIdentity.job.text());
  } else {
    REQUIRE(found->replaced.size() == 2);
    CHECK(found->replaced[1].meant().step() == 4);
  }
}

TEST_CASE("what was accepted is not asked again whether its places are its own",
          "[scheduler][submission]") {
  const TempFolder temp;
  SubmitRequest request;
  JobSpec& spec = *request.mutable_job()->mutable_spec();
  spec.mutable_checkpoint()->set_directory(temp.path() + "/rows");
  spec.mutable_storage()->set_directory(temp.path() + "/rows");
  CHECK(absl::IsInvalidArgument(CheckPlaces(request)));
  CHECK(CheckPlaces(request, {}, nullptr, Asked::kAccepted).ok());
  CHECK(PrepareCheckpoints(request).ok());
}

}  // namespace
}  // namespace strata::scheduler
