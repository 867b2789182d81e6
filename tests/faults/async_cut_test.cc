// Promise P6, and what it asks of checkpoints of asynchronous jobs: a cut that fails, or whose
// scheduler died after it had told some lanes and not the others, holds nobody up for longer than
// seconds, loses no window, and the next one is taken.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/e2e/cluster/unnamed_files.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

constexpr uint32_t kEpochs = 200;
constexpr uint64_t kWindows = 38;  // a pass: 600 lines in windows of 16

// So long that nobody misses a process that stands still, or that a busy machine keeps waiting.
constexpr int kLeaseMs = 60'000;
// At most: a call ends as soon as its cut is taken or given up.
constexpr absl::Duration kCut = absl::Seconds(60);

// Two servers; two workers, of which the second stands still from the beginning of a cut: its lanes
// do not mark it.
class CutWithoutMarks {
 public:
  explicit CutWithoutMarks(const std::string& failpoint)
      : folder_(*ScratchFolder::Make("strata-fault")),
        cluster_({.folder = folder_.path() + "/cluster",
                  .lease_ms = kLeaseMs,
                  .server_flags = {"--metrics-listen=127.0.0.1:0"}}) {
    if (!failpoint.empty()) {
      cluster_.Kill("server-1");
      cluster_.Start("server-1", failpoint);
      cluster_.AwaitRegistered();
    }
    TrainingJob job = SmallJob(folder_.path());
    JobSpec& spec = *job.mutable_spec();
    spec.mutable_training()->set_mode("async");
    spec.mutable_training()->set_epochs(kEpochs);
    spec.mutable_replicas()->set_servers(2);
    spec.mutable_replicas()->set_workers(2);
    spec.mutable_checkpoint()->set_directory(folder_.path() + "/checkpoints");
    id_ = cluster_.Submit(job);
    cluster_.AwaitStep(id_, 20);
    cluster_.process("worker-1").Signal(SIGSTOP);
  }

  ProcessCluster& cluster() { return cluster_; }
  uint64_t id() const { return id_; }
  double Examples() const { return cluster_.ExamplesOf("worker-0"); }

  absl::Status TakeCheckpoint(absl::Duration wait) {
    CreateCheckpointRequest request;
    request.mutable_job()->set_job(id_);
    request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
    return cluster_.scheduler().CreateCheckpoint(request, wait + absl::Seconds(5)).status();
  }
  // Worker 0 trains, though worker 1 stands still.
  void AwaitWindows() {
    const double before = Examples();
    AwaitThat("windows go on", [&] { return Examples() > before + 20 * 16; });
  }
  // A lane of worker 0 has marked a cut: what it pushes from now on is held back.
  void AwaitMark() {
    AwaitThat("a mark", [&] {
      return cluster_.MetricOf("server-0", "strata_server_mark_requests_total") > 0 ||
             cluster_.MetricOf("server-1", "strata_server_mark_requests_total") > 0;
    });
  }
  // Whether some shard had to end a cut by itself.
  bool LostPatience() const {
    for (const char* server : {"server-0", "server-1"}) {
      const std::string log = folder_.path() + "/cluster/" + server + ".log.err";
      if (ReadFile(log).find("cut_given_up") != std::string::npos) return true;
    }
    return false;
  }
  // Each window counts once, and checkpoints are taken again.
  void CheckEndsWhole() {
    cluster_.process("worker-1").Signal(SIGCONT);
    CHECK(TakeCheckpoint(kCut) == absl::OkStatus());
    const JobStatus end = cluster_.AwaitEnd(id_);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.step() == kEpochs * kWindows);
    CHECK(end.examples() == kEpochs * 600);
    CHECK(end.rollbacks() == 0);
    const CommandResult verify =
        cluster_.Strata({"checkpoint", "verify", folder_.path() + "/checkpoints"});
    INFO(verify.err);
    CHECK(verify.exit_code == 0);
  }

 private:
  const ScratchFolder folder_;
  ProcessCluster cluster_;
  uint64_t id_ = 0;
};

TEST_CASE("a server fails a cut before another has all marks: windows go on", "[faults][p6]") {
  CutWithoutMarks t("server.cut=error(UNAVAILABLE)*1");
  CHECK_FALSE(t.TakeCheckpoint(kCut).ok());
  CHECK(HasCondition(t.cluster().Status(t.id()), "CheckpointFailed"));
  t.AwaitWindows();
  CHECK_FALSE(t.LostPatience());
  t.CheckEndsWhole();
}

TEST_CASE("a scheduler dies after it has told one worker of a cut: windows go on", "[faults][p6]") {
  CutWithoutMarks t("");
  CHECK_FALSE(t.TakeCheckpoint(absl::ZeroDuration()).ok());  // begun, and not waited for
  t.AwaitMark();
  t.cluster().Kill("scheduler");
  AwaitThat("a shard ends the cut by itself", [&] { return t.LostPatience(); });
  t.AwaitWindows();
  t.cluster().Start("scheduler");
  t.CheckEndsWhole();
}

// Where a server or the scheduler dies in the midst of a cut.
TEST_CASE("whatever dies in a cut, the next checkpoint leaves nothing of it", "[faults][p5]") {
  const auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  ProcessCluster cluster(
      {.workers = 1, .folder = folder->path() + "/cluster", .lease_ms = kLeaseMs});
  TrainingJob job = SmallJob(folder->path());
  JobSpec& spec = *job.mutable_spec();
  const bool async = GENERATE(true, false);
  spec.mutable_training()->set_mode(async ? "async" : "bsp");
  spec.mutable_training()->set_epochs(1'000'000);
  spec.mutable_replicas()->set_servers(2);
  const std::string directory = folder->path() + "/c";
  spec.mutable_checkpoint()->set_directory(directory);
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 20);
  const auto take = [&](absl::Duration wait) {
    CreateCheckpointRequest request;
    request.mutable_job()->set_job(id);
    request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
    return cluster.scheduler().CreateCheckpoint(request, wait + absl::Seconds(5)).status();
  };
  for (const char* where : {"write", "finish", "finished"}) {
    INFO(where);
    // A scheduler that cannot remove what is left of a cut, so that it is there when that one dies.
    cluster.Kill("scheduler");
    cluster.Start("scheduler", "scheduler.leftovers.remove=error(UNAVAILABLE)");
    cluster.Kill("server-1");
    cluster.Start("server-1", absl::StrCat("server.snapshot.", where, "=kill@2"));
    cluster.AwaitRegistered();
    cluster.AwaitStep(id, cluster.Status(id).step() + 5);
    CHECK_FALSE(take(absl::ZeroDuration()).ok());  // begun, and not waited for
    cluster.AwaitEnd("server-1");
    AwaitThat("what the server was killed over is there", [&] {
      const auto unnamed = Unnamed(directory);
      return unnamed && !unnamed->empty();
    });
    cluster.Kill("scheduler");  // what it was to remove is forgotten
    cluster.Start("scheduler");
    cluster.Start("server-1");
    cluster.AwaitRegistered();
    CHECK(take(kCut) == absl::OkStatus());
    AwaitThat("nothing of the cuts that were given up is left",
              [&] { return Unnamed(directory) == std::set<std::string>{}; });
  }
  const CommandResult verify = cluster.Strata({"checkpoint", "verify", directory});
  INFO(verify.err);
  CHECK(verify.exit_code == 0);
  CHECK(cluster.Status(id).rollbacks() == 0);
}

}  // namespace
}  // namespace strata::testing
