// The machine's clock is set by an hour while a cluster runs, and nothing comes of it: no node is
// lost or registers anew, nothing is rolled back, polls are answered in their time, checkpoints are
// taken, durations are what passed, the model is the same to the bit. The processes are real;
// libfaketime shows them another wall clock.
//
// Forth and back are not the same here. The kernel keeps the true time: what waits for a time of
// the shown clock (as Abseil's timed waits do by themselves) sleeps for an hour when that runs an
// hour ahead, as it would when a true clock is set an hour back; where the shown clock is behind,
// it does not wait at all.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/files_below.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/shown_clock.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/skip.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

// Of a call that hangs: the clock is set by an hour, and a busy machine takes seconds.
constexpr absl::Duration kCall = absl::Seconds(30);

// Two servers and two workers that see `clock`.
class Cluster : public ProcessCluster {
 public:
  Cluster(const std::string& folder, const ShownClock& clock, int lease_ms)
      : ProcessCluster({.folder = folder, .lease_ms = lease_ms, .variables = clock.variables()}) {}
  ~Cluster() {
    for (const char* name : kNames) RemoveFakeTimeOf(process(name).pid());
  }

  static constexpr const char* kNames[] = {"scheduler", "server-0", "server-1", "worker-0",
                                           "worker-1"};
  void KillAndForget(const std::string& name) {
    Kill(name);
    RemoveFakeTimeOf(process(name).pid());
  }
};

std::map<std::string, NodeStatus> Nodes(ProcessCluster& cluster) {
  std::map<std::string, NodeStatus> nodes;
  auto status = cluster.scheduler().GetCluster(kCall);
  if (!status.ok()) return nodes;  // it is just starting
  for (const NodeStatus& n : status->nodes()) nodes[n.name()] = n;
  return nodes;
}

// Waits until the scheduler has heard of every node twice: the poll that was there has ended, and
// one that began since. A poll that hangs ends by its caller's deadline, of which that one's log
// says a word.
void AwaitHeard(ProcessCluster& cluster) {
  std::map<std::string, std::pair<int64_t, int>> heard;  // last time, how often
  AwaitThat("every node heard of twice", [&] {
    const auto nodes = Nodes(cluster);
    bool all = nodes.size() == 4;
    for (const auto& [name, node] : nodes) {
      auto& [last, n] = heard[name];
      n += last != 0 && last != node.last_seen_unix_ms();
      last = node.last_seen_unix_ms();
      all = all && n >= 2;
    }
    return all;
  });
}

// The last event so far.
uint64_t LastEvent(ProcessCluster& cluster) {
  auto events = cluster.scheduler().GetEvents({}, kCall);
  REQUIRE(events.ok());
  return events->last_sequence();
}

// Checkpoints of the job that were complete after the event.
int CheckpointsSince(ProcessCluster& cluster, uint64_t event, uint64_t job) {
  GetEventsRequest request;
  request.set_after_sequence(event);
  request.mutable_job()->set_job(job);
  auto events = cluster.scheduler().GetEvents(request, kCall);
  REQUIRE(events.ok());
  int checkpoints = 0;
  for (const Event& e : events->events()) checkpoints += e.reason() == "CheckpointComplete";
  return checkpoints;
}

// When nodes were heard of, as the users' clock shows it: not ahead of that, which the text of
// `strata nodes` would make "0.0 s ago" of.
void CheckSeen(const ShownClock& clock, const std::vector<int64_t>& last_seen_unix_ms) {
  CHECK(last_seen_unix_ms.size() == 4);
  for (const int64_t seen : last_seen_unix_ms) {
    const absl::Duration ago = clock.Now() - absl::FromUnixMillis(seen);
    INFO(ago);
    CHECK(ago > -absl::Seconds(1));  // Clock::Wall leaves out what is less
    CHECK(ago < absl::Minutes(10));  // of an hour that the clock was set by
  }
}

// What users ask, whatever difference there is between the clock at the scheduler's start and now.
void CheckUsers(ProcessCluster& cluster, const ShownClock& clock, uint64_t job) {
  GetEventsRequest events;
  events.set_after_sequence(LastEvent(cluster));
  events.set_wait_ms(100);
  CHECK(cluster.scheduler().GetEvents(events, kCall).ok());  // a long poll ends
  const auto strata = [&](const std::string& command, const std::vector<std::string>& more) {
    const std::string log = cluster.folder() + "/" + command;
    fs::remove(log);
    std::vector<std::string> argv = {Program("tools/cli/strata"), command, "--scheduler",
                                     cluster.address()};
    argv.insert(argv.end(), more.begin(), more.end());
    ChildProcess child(argv, log, cluster.folder(), clock.variables());
    CHECK(child.Wait() == 0);
    RemoveFakeTimeOf(child.pid());
    return ReadFile(log);
  };
  CHECK(absl::StrContains(strata("events", {"--since", "5m"}), "JobSubmitted"));
  CHECK(absl::StrContains(strata("status", {absl::StrCat(job)}), "succeeded"));
  std::vector<int64_t> seen;
  const auto nodes = nlohmann::json::parse(strata("nodes", {"--json"}));
  for (const auto& node : nodes.at("nodes")) seen.push_back(node.at("lastSeenUnixMs"));
  CheckSeen(clock, seen);
}

// Everything in files whose paths begin with `prefix`.
std::string Logs(const std::string& prefix) {
  std::string text;
  const fs::path folder = fs::path(prefix).parent_path();
  for (const std::string& path : FilesBelow(folder.string())) {
    if (!absl::StartsWith(path, prefix)) continue;
    if (absl::StrContains(path, "log")) text += ReadFile(path);
  }
  return text;
}

void CheckEnd(const JobStatus& end, const JobStatus& reference) {
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(end.generation() == 1);
  CHECK(end.rollbacks() == 0);
  for (const char* reason :
       {"WorkerLost", "WorkerRestarted", "WorkerJoined", "ServerLost", "CheckpointFailed"}) {
    CHECK_FALSE(HasCondition(end, reason));
  }
}

// Of all jobs together.
double Computed(const ProcessCluster& cluster) {
  return cluster.ExamplesOf("worker-0") + cluster.ExamplesOf("worker-1");
}

// Submits the job and waits until it is in its midst, where server-1, which began anew, stands
// still. Number of the job.
uint64_t SubmitAndStop(Cluster& cluster, const TrainingJob& job) {
  cluster.KillAndForget("server-1");
  const double earlier = Computed(cluster);
  const uint64_t id = cluster.SubmitAndStop(job, "server-1", "server.commit.append=stop@150*1");
  const double computed = Computed(cluster) - earlier;
  const JobStatus status = cluster.Status(id);
  INFO(Conditions(status));
  REQUIRE(status.state() == RUNNING);
  REQUIRE(computed > 0);
  REQUIRE(computed < static_cast<double>(status.total_examples()));
  return id;
}

// Durations on one clock, of a job that takes seconds.
void CheckDurations(const JobStatus& end) {
  CHECK(end.train_seconds() > 0);
  CHECK(end.train_seconds() < 600);
}

TrainingJob Job(const std::string& folder, const std::string& mode, uint32_t epochs) {
  TrainingJob job = SmallJob(folder);
  job.mutable_metadata()->set_name(mode);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_training()->set_mode(mode);
  spec.mutable_training()->set_epochs(epochs);
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(mode == "bsp" ? 2 : 1);
  if (mode != "bsp") spec.mutable_training()->set_lanes(1);  // then it has one model, too
  return job;
}

TEST_CASE("the clock is set forth and back while jobs train: nothing comes of it",
          "[faults][clock]") {
  if (!fs::exists(kFakeTimeLibrary)) STRATA_SKIP("libfaketime is not installed");
  auto folder = ScratchFolder::Make("strata-clock");
  REQUIRE(folder.ok());
  ShownClock clock(folder->path() + "/clock");
  // Of a busy machine nobody may miss another; an hour is longer still.
  Cluster cluster(folder->path() + "/cluster", clock, 60'000);
  for (const char* mode : {"bsp", "async"}) {
    INFO(mode);
    TrainingJob job = Job(folder->path(), mode, 20);
    const JobStatus reference = Train(job);
    const bool bsp = mode == std::string("bsp");
    // Forth, back by two hours, forth by two, and back, each time while a job trains.
    for (const int hours : {1, -1}) {
      INFO("shown: " << hours << " h");
      if (bsp) {  // an asynchronous model's hash tells how many there were
        CheckpointSpec& checkpoint = *job.mutable_spec()->mutable_checkpoint();
        checkpoint.set_directory(absl::StrCat(folder->path(), "/checkpoints", hours));
        checkpoint.set_every_steps(20);  // ten in all
      }
      const uint64_t id = SubmitAndStop(cluster, job);
      const auto before = Nodes(cluster);
      REQUIRE(before.size() == 4);
      const uint64_t event = LastEvent(cluster);
      clock.Set(hours);
      cluster.process("server-1").Signal(SIGCONT);
      AwaitHeard(cluster);
      std::vector<int64_t> seen;
      for (const auto& [name, node] : Nodes(cluster)) seen.push_back(node.last_seen_unix_ms());
      CheckSeen(clock, seen);
      const JobStatus end = cluster.AwaitEnd(id);
      CheckEnd(end, reference);
      CheckDurations(end);
      for (const auto& [name, node] : Nodes(cluster)) {
        INFO(name);
        CHECK(node.alive());
        CHECK(node.session() == before.at(name).session());
      }
      if (!bsp) continue;
      CHECK(CheckpointsSince(cluster, event, id) >= 2);  // the last one is among them
      CheckUsers(cluster, clock, id);
    }
  }
  // Nobody of the cluster had to say that another was gone.
  const std::string logs = Logs(cluster.folder() + "/");
  CHECK_FALSE(logs.empty());
  for (const char* word : {"scheduler_unreachable", "scheduler_lost", "fenced "}) {
    INFO(word);
    CHECK_FALSE(absl::StrContains(logs, word));
  }
}

TEST_CASE("the clock was set: who dies is missed, and reached again when it is back",
          "[faults][clock]") {
  if (!fs::exists(kFakeTimeLibrary)) STRATA_SKIP("libfaketime is not installed");
  auto folder = ScratchFolder::Make("strata-clock");
  REQUIRE(folder.ok());
  const TrainingJob job = Job(folder->path(), "bsp", 40);
  const JobStatus reference = Train(job);
  ShownClock clock(folder->path() + "/clock");
  Cluster cluster(folder->path() + "/cluster", clock, 500);
  const uint64_t id = SubmitAndStop(cluster, job);
  clock.Set(1);
  cluster.KillAndForget("server-1");  // from here on no step is complete
  cluster.Await(id, [](const JobStatus& s) { return HasCondition(s, "ServerLost"); });
  cluster.KillAndForget("scheduler");
  for (const char* name : {"server-0", "worker-0", "worker-1"}) {
    AwaitThat(absl::StrCat(name, " misses it"), [&] {  // and has begun to try again
      const std::string logs = Logs(cluster.folder() + "/" + name);
      return absl::StrContains(logs, "scheduler_unreachable") ||
             absl::StrContains(logs, "scheduler_lost");
    });
  }
  cluster.Start("scheduler");
  cluster.Start("server-1");
  AwaitHeard(cluster);
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(end.rollbacks() == 0);
  CheckDurations(end);
}

}  // namespace
}  // namespace strata::testing
