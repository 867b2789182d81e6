// A run has its own model: whatever other runs left in the same storage directory, and under the
// same numbers.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/files_below.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

TrainingJob JobIn(const std::string& folder, double rate, const std::string& storage) {
  TrainingJob job = testing::SmallJob(folder);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(rate);
  spec.mutable_storage()->set_directory(storage);
  return job;
}

// Trains until `steps` steps are committed, and ends as if it had been killed then.
void TrainAndDie(const TrainingJob& job, const std::string& folder, uint64_t steps) {
  EmbeddedClusterOptions options;
  options.directory = folder;
  auto cluster = EmbeddedCluster::Start(options);
  REQUIRE(cluster.ok());
  SubmitRequest submit;
  *submit.mutable_job() = job;
  submit.set_request_id("embedded");
  auto id = (*cluster)->scheduler().Submit(submit, absl::Seconds(10));
  REQUIRE(id.ok());
  JobRef ref;
  ref.set_job(id->job());
  while (true) {
    auto status = (*cluster)->scheduler().GetJob(ref, absl::Seconds(10));
    REQUIRE(status.ok());
    REQUIRE(status->state() != FAILED);
    REQUIRE(status->state() != SUCCEEDED);
    if (status->step() >= steps) return;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

TEST_CASE("a run never goes on with the model of one before it", "[e2e][identity]") {
  const ScratchFolder folder = Folder();
  const std::string storage = folder.path() + "/storage";
  const JobStatus alone = Train(JobIn(folder.path(), .2, folder.path() + "/alone"));
  SECTION("that was killed") {
    TrainingJob before = JobIn(folder.path(), .05, storage);
    before.mutable_spec()->mutable_training()->set_epochs(2000);
    TrainAndDie(before, folder.path() + "/killed", 5);
    REQUIRE(!testing::FilesBelow(storage).empty());
  }
  SECTION("that has ended") { Train(JobIn(folder.path(), .05, storage)); }
  const JobStatus second = Train(JobIn(folder.path(), .2, storage));
  CHECK(second.model_hash() == alone.model_hash());
  CHECK(second.result().auc() == alone.result().auc());
}

TEST_CASE("two runs in one storage directory at once train two models", "[e2e][identity]") {
  const ScratchFolder folder = Folder();
  const std::string storage = folder.path() + "/storage";
  const double rates[] = {.05, .2};
  std::vector<std::string> alone, together(2);
  std::vector<TrainingJob> jobs;
  for (const double rate : rates) {
    alone.push_back(Train(JobIn(folder.path(), rate, folder.path() + "/alone")).model_hash());
    jobs.push_back(JobIn(folder.path(), rate, storage));
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] {
      EmbeddedOptions options;
      options.job = jobs[i];
      const auto status = RunEmbedded(options);
      if (status.ok()) together[i] = status->model_hash();
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(together == alone);
  CHECK(alone[0] != alone[1]);
  CHECK(testing::FilesBelow(storage) == std::vector<std::string>());
}

TEST_CASE("a run that has ended leaves nothing but its outputs", "[e2e][identity]") {
  const ScratchFolder folder = Folder();
  const std::string storage = folder.path() + "/storage";
  Train(JobIn(folder.path(), .2, storage));
  CHECK(testing::FilesBelow(storage) == std::vector<std::string>());
}

}  // namespace
}  // namespace strata
