// What users see of a job's end and of one that follows it: the last checkpoint's bytes, a rate
// that stands, metrics of one run alone.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cli/base/progress.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

// Who comes waits until he is let pass.
class Gate {
 public:
  absl::Status Pass() {
    absl::MutexLock lock(&mu_);
    const auto may = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return open_ || passes_ > 0; };
    mu_.Await(absl::Condition(&may));
    if (!open_) --passes_;
    return absl::OkStatus();
  }
  void LetOne() {
    absl::MutexLock lock(&mu_);
    ++passes_;
  }
  void Open() {
    absl::MutexLock lock(&mu_);
    open_ = true;
  }

 private:
  absl::Mutex mu_;
  int passes_ ABSL_GUARDED_BY(mu_) = 0;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
};

TEST_CASE("the last checkpoint's bytes move, and the rate stands", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::ManyFeaturesJob(folder.path(), 64, 1);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_storage()->set_durability("memory");  // no images: all that is written is the cut
  spec.mutable_checkpoint()->set_directory(folder.path() + "/checkpoints");
  constexpr size_t kLooks = 6;
  Gate gate;
  const ScopedFailpoint piece("server.snapshot.write", {.act = [&] { return gate.Pass(); }});
  std::vector<JobStatus> seen;  // one for each piece that was written
  int still = 0;                // looks at which nothing had moved: half a minute, and it fails
  EmbeddedOptions options;
  options.job = job;
  options.on_progress = [&](const JobStatus& s) {
    if (s.checkpoint_bytes() == 0) return;
    const bool moved =
        seen.empty() || s.checkpoint_written_bytes() > seen.back().checkpoint_written_bytes();
    if (!moved && ++still > 300) gate.Open();
    if (!moved) return;
    seen.push_back(s);
    if (seen.size() < kLooks) {
      gate.LetOne();
    } else {
      gate.Open();
    }
  };
  const auto end = RunEmbedded(options);
  gate.Open();
  INFO(end.status());
  REQUIRE(end.ok());
  REQUIRE(end->state() == SUCCEEDED);
  REQUIRE(seen.size() >= kLooks);
  CHECK(seen[0].checkpoint_written_bytes() == 0);
  CHECK(seen[0].checkpoint_seconds_left() == 0);
  for (size_t i = 0; i < kLooks; ++i) {
    const JobStatus& s = seen[i];
    INFO(s.ShortDebugString());
    CHECK(s.state() == RUNNING);
    CHECK(s.step() == s.total_steps());
    CHECK(s.checkpoint_written_bytes() < s.checkpoint_bytes());
    CHECK(s.examples_per_second() > 0);
    CHECK(s.examples_per_second() == seen[0].examples_per_second());
    // The first bytes may be those that the other server had when it was heard first.
    if (i > 1) CHECK(s.checkpoint_seconds_left() > 0);
    CHECK(ProgressLine(s, 0).find("last checkpoint: ") != std::string::npos);
  }
  CHECK(end->examples_per_second() == seen[0].examples_per_second());
  CHECK(end->checkpoint_bytes() == 0);
}

TEST_CASE("evaluations are none of the time that the rate counts", "[e2e]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  testing::WriteLibfm(folder.path() + "/eval.libfm", 2, 24'000, 6, 40);
  job.mutable_spec()->mutable_evaluation()->set_every_steps(1);  // 64 lines a step
  const JobStatus end = Train(job);
  REQUIRE(end.evaluations_size() >= 20);
  // Evaluating 24,000 lines takes many times as long as a step, on a busy machine too: if it were
  // counted, the rate would be about that of the whole run.
  CHECK(end.examples_per_second() >
        1.5 * static_cast<double>(end.examples()) / end.train_seconds());
}

// The steps of its lines.
std::vector<uint64_t> StepsOf(const std::string& path) {
  std::ifstream in(path);
  std::vector<uint64_t> steps;
  for (std::string line; std::getline(in, line);) {
    steps.push_back(nlohmann::json::parse(line).at("step").get<uint64_t>());
  }
  return steps;
}

TEST_CASE("a run that replaces another begins its metrics anew; one that resumes goes on",
          "[e2e]") {
  const ScratchFolder folder = Folder();
  const std::string path = folder.path() + "/metrics.jsonl";
  EmbeddedOptions options;
  options.job = testing::SmallJob(folder.path());
  JobSpec& spec = *options.job.mutable_spec();
  spec.mutable_checkpoint()->set_directory(folder.path() + "/checkpoints");
  spec.mutable_output()->set_metrics(path);
  spec.mutable_evaluation()->set_every_steps(5);
  const auto run = [&] {
    const auto end = RunEmbedded(options);
    INFO(end.status());
    REQUIRE(end.ok());
    REQUIRE(end->state() == SUCCEEDED);
    return StepsOf(path);
  };
  const auto times = [](const std::vector<uint64_t>& steps, uint64_t step) {
    return std::count(steps.begin(), steps.end(), step);
  };
  CHECK(times(run(), 20) == 1);
  options.overwrite = true;
  const std::vector<uint64_t> second = run();
  for (const uint64_t step : {5, 10, 15, 20}) CHECK(times(second, step) == 1);
  CHECK(std::is_sorted(second.begin(), second.end()));
  options.overwrite = false;
  options.resume = true;
  spec.mutable_training()->set_epochs(4);
  const std::vector<uint64_t> third = run();
  REQUIRE(third.size() > second.size());
  CHECK(std::equal(second.begin(), second.end(), third.begin()));
  CHECK(times(third, 40) == 1);
}

}  // namespace
}  // namespace strata
