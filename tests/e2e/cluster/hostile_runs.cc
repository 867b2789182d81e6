#include "tests/e2e/cluster/hostile_runs.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/runtime/files/file_system.h"
#include "tests/e2e/cluster/small_job.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kCall = absl::Seconds(30);
// Jobs at once, each of which takes a worker: those that wait for another try leave the processor
// to others. One worker is left for a good job.
constexpr uint32_t kAtOnce = 24;
// In which each must have come to its end, or say what it waits for.
constexpr absl::Duration kHangs = absl::Seconds(60);

// Whether some message of a failure names both.
bool Names(const JobStatus& status, const HostileCase& c) {
  for (const JobCondition& condition : status.conditions()) {
    if (condition.reason() == "DiskNotCounted") continue;  // said of every job with a folder
    if (absl::StrContains(condition.message(), c.field) &&
        absl::StrContains(condition.message(), c.named)) {
      return true;
    }
  }
  return false;
}

}  // namespace

void SetPlace(const std::string& field, const std::string& path, JobSpec& spec) {
  if (field == "spec.storage.directory") {
    spec.mutable_storage()->set_directory(path);
  } else if (field == "spec.checkpoint.directory") {
    spec.mutable_checkpoint()->set_directory(path);
  } else if (field == "spec.output.metrics") {
    spec.mutable_output()->set_metrics(path);
  } else if (field == "spec.output.predictions") {
    spec.mutable_output()->set_predictions(path);
  } else if (field == "spec.output.removed") {
    spec.mutable_output()->set_removed(path);
    spec.mutable_life_cycle()->mutable_removal()->set_every_steps(1);
    spec.mutable_life_cycle()->mutable_removal()->set_ttl_steps(1);
  } else if (field == "spec.model.initFrom") {
    spec.mutable_model()->mutable_init_from()->set_checkpoint(path);
  } else if (field == "spec.data.train") {
    spec.mutable_data()->set_train(0, path);
  } else {
    REQUIRE(field == "spec.data.eval");
    spec.mutable_data()->set_eval(0, path);
  }
}

bool IsFinal(JobState state) { return state == SUCCEEDED || state == FAILED || state == CANCELLED; }

std::string Said(const JobStatus& status) {
  std::string text = JobState_Name(status.state());
  for (const JobCondition& c : status.conditions()) {
    absl::StrAppend(&text, "\n  ", c.reason(), ": ", c.message());
  }
  return text;
}

HostileCluster::HostileCluster() : folder_(*ScratchFolder::Make("strata-hostile")) {
  static FaultyFiles& faulty = *new FaultyFiles;  // who opened a file holds on to it
  files_ = &faulty;
  FileSystem::ReplaceKernel(&faulty);
  job_ = SmallJob(folder_.path());
  WriteLibfm(folder_.path() + "/train.libfm", 1, 32, 3, 5);
  WriteLibfm(folder_.path() + "/eval.libfm", 2, 8, 3, 5);
  JobSpec& spec = *job_.mutable_spec();
  spec.mutable_model()->set_type("lr");
  spec.mutable_model()->clear_hidden();
  spec.mutable_model()->clear_embedding_dim();
  spec.mutable_training()->set_lanes(1);
  spec.mutable_training()->set_batch_size(8);
  spec.mutable_training()->set_epochs(1);
  spec.mutable_storage()->set_partitions(4);
  spec.mutable_storage()->set_shards_per_server(1);
  Start({});
}

HostileCluster::~HostileCluster() {
  cluster_.reset();
  FileSystem::ReplaceKernel(nullptr);
}

void HostileCluster::Start(PathPolicy paths) {
  cluster_.reset();
  EmbeddedClusterOptions options;
  options.directory = folder_.path() + "/servers";
  options.workers = kAtOnce;
  options.paths = std::move(paths);
  auto cluster = EmbeddedCluster::Start(options);
  REQUIRE(cluster.ok());
  cluster_ = *std::move(cluster);
}

std::string HostileCluster::NewFolder() {
  const std::string path = absl::StrCat(folder(), "/case-", ++folders_);
  fs::create_directory(path);
  return path;
}

absl::StatusOr<JobRef> HostileCluster::Submit(TrainingJob job, bool overwrite) {
  SubmitRequest request;
  request.set_overwrite(overwrite);
  job.mutable_metadata()->set_name(absl::StrCat("job-", ++jobs_));
  request.set_request_id(job.metadata().name());
  *request.mutable_job() = std::move(job);
  auto reply = scheduler().Submit(request, kCall);
  if (!reply.ok()) return reply.status();
  JobRef ref;
  ref.set_job(reply->job());
  return ref;
}

JobStatus HostileCluster::Status(const JobRef& ref) {
  auto status = scheduler().GetJob(ref, kCall);
  REQUIRE(status.ok());
  return *status;
}

void HostileCluster::Cancel(const JobRef& ref) { REQUIRE(scheduler().CancelJob(ref, kCall).ok()); }

JobStatus HostileCluster::TrainWell(TrainingJob job) {
  auto ref = Submit(std::move(job));
  INFO(ref.status());
  REQUIRE(ref.ok());
  for (const absl::Time from = absl::Now();; absl::SleepFor(absl::Milliseconds(1))) {
    const JobStatus status = Status(*ref);
    for (const JobCondition& c : status.conditions()) UNSCOPED_INFO(c.message());
    REQUIRE(absl::Now() - from < kHangs);
    if (status.state() == SUCCEEDED) return status;
    REQUIRE(status.state() != FAILED);
  }
}

void HostileCluster::CopyCheckpoint(const std::string& path) {
  if (checkpoint_.empty()) {
    TrainingJob job = job_;
    job.mutable_spec()->mutable_checkpoint()->set_directory(NewFolder());
    checkpoint_ = TrainWell(job).checkpoint();
  }
  fs::copy(checkpoint_, path, fs::copy_options::recursive);
}

void HostileRuns::Add(HostileCase c) {
  if (c.named.empty()) c.named = c.path;
  TrainingJob job = cluster_.job();
  SetPlace(c.field, c.path, *job.mutable_spec());
  auto ref = cluster_.Submit(std::move(job), c.overwrite);
  ++count_;
  if (!ref.ok()) {
    INFO(c.field << "=" << c.named << ": " << ref.status());
    CHECK(c.outcome == Outcome::kFails);
    CHECK(absl::StrContains(ref.status().message(), c.field));
    CHECK(absl::StrContains(ref.status().message(), c.named));
    CHECK(Met(c));
    return;
  }
  running_.push_back({std::move(c), *ref, absl::Now()});
  while (running_.size() + 1 >= kAtOnce) Look();
}

void HostileRuns::Finish() {
  while (!running_.empty()) Look();
}

bool HostileRuns::Met(const HostileCase& c) const {
  return c.fault.empty() || cluster_.files().failures(c.fault) > 0;
}

void HostileRuns::Look() {
  absl::SleepFor(absl::Milliseconds(1));
  for (size_t i = 0; i < running_.size();) {
    if (Done(running_[i])) {
      running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

bool HostileRuns::Done(Run& run) {
  const JobStatus status = cluster_.Status(run.ref);
  INFO(run.c.field << "=" << run.c.named << "\n" << Said(status));
  REQUIRE(absl::Now() - run.since < kHangs);
  if (!IsFinal(status.state())) {
    if (run.c.outcome == Outcome::kWaits && !run.cancelled && Names(status, run.c)) {
      run.cancelled = true;
      cluster_.Cancel(run.ref);
    }
    return false;
  }
  if (!Met(run.c)) return false;  // what a job leaves is removed after its end
  switch (run.c.outcome) {
    case Outcome::kFails:
      CHECK(status.state() == FAILED);
      CHECK(Names(status, run.c));
      break;
    case Outcome::kWaits:
      CHECK(status.state() == CANCELLED);
      CHECK(run.cancelled);
      break;
    case Outcome::kSays:
      CHECK(Names(status, run.c));
      CHECK(status.state() == SUCCEEDED);
      break;
    case Outcome::kWorks:
      CHECK(status.state() == SUCCEEDED);
  }
  return true;
}

}  // namespace strata::testing
