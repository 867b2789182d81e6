// Asynchronous modes with real processes: each window takes effect once per partition (promise
// P7), whoever is killed.
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/row_updates.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-e2e");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

// One task an epoch.
TrainingJob AsyncJob(const std::string& folder, uint32_t epochs) {
  TrainingJob job = SmallJob(folder);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_training()->set_mode("async");
  WriteLibfm(folder + "/train.libfm", 1, 3000, 6, 40);
  WriteLibfm(folder + "/eval.libfm", 2, 1000, 6, 40);
  spec.mutable_training()->set_epochs(epochs);
  spec.mutable_checkpoint()->set_directory(folder + "/checkpoints");
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  return job;
}

// The same with five tables of four widths, of which a sequence and two fields share one
// and two have life cycles.
TrainingJob FiveTablesJob(const std::string& folder, uint32_t epochs) {
  TrainingJob job = AsyncJob(folder, epochs);
  UseFiveTables(folder, 3000, 40, job);
  return job;
}

// Of the dense table: every window pushes to every row.
std::map<Position, uint32_t> DenseUpdates(const std::string& folder) {
  return RowUpdates(folder, TableId(1));
}

// How often workers of the job changed after its start: each time lanes go from one to another.
uint64_t WorkerChanges(ProcessCluster& cluster, uint64_t job) {
  GetEventsRequest request;
  request.mutable_job()->set_job(job);
  auto events = cluster.scheduler().GetEvents(request, absl::Seconds(10));
  REQUIRE(events.ok());
  uint64_t changes = 0;
  for (const Event& e : events->events()) {
    changes += e.reason() == "WorkerLost" || e.reason() == "WorkerRestarted" ||
               e.reason() == "WorkerJoined";
  }
  return changes;
}

// Submits the job and kills `who` in its midst, while every lane still has work; starts them again.
// Number of the job.
uint64_t KillInTheMidst(ProcessCluster& cluster, const TrainingJob& job,
                        const std::vector<std::string>& who) {
  for (int i = 0; i < 10; ++i) {
    const uint64_t id = cluster.Submit(job, false, /*overwrite=*/true);
    cluster.Await(id, [](const JobStatus& s) { return s.examples() >= 2000; });
    for (const std::string& name : who) cluster.Kill(name);
    const JobStatus now = cluster.Status(id);
    for (const std::string& name : who) cluster.Start(name);
    if (now.examples() < now.total_examples() / 2) return id;
    cluster.AwaitEnd(id);  // the kill came late
  }
  FAIL("no kill came in time");
  return 0;
}

// Runs the job calmly, then with processes killed: each window takes effect once per partition.
// `lost` judges the local steps that went with workers that were killed, or too slow to be seen.
void KillEach(const ScratchFolder& folder, const TrainingJob& job,
              const std::vector<std::vector<std::string>>& victims,
              const std::function<void(const JobStatus&, uint64_t worker_changes,
                                       bool worker_killed)>& lost) {
  ProcessCluster cluster({.folder = folder.path() + "/cluster"});
  const uint64_t undisturbed = cluster.Submit(job);
  const JobStatus calm = cluster.AwaitEnd(undisturbed);
  INFO(Conditions(calm));
  REQUIRE(calm.state() == SUCCEEDED);
  CHECK(calm.result().auc() > 0.55);
  CHECK(calm.examples() == calm.total_examples());
  CHECK(calm.examples() == 3000 * job.spec().training().epochs());
  lost(calm, WorkerChanges(cluster, undisturbed), false);
  const auto once = DenseUpdates(calm.checkpoint());
  REQUIRE(once.size() > 5);
  const uint64_t windows = calm.step();
  for (const auto& [position, count] : once) REQUIRE(count == windows);
  for (const auto& who : victims) {
    INFO(who.front() << " and " << who.back());
    const uint64_t id = KillInTheMidst(cluster, job, who);
    const JobStatus end = cluster.AwaitEnd(id);
    INFO(Conditions(end));
    CHECK(end.state() == SUCCEEDED);
    CHECK(end.step() == calm.step());
    CHECK(end.rollbacks() == 0);
    const auto updates = DenseUpdates(end.checkpoint());
    CHECK(updates.size() == once.size());
    for (const auto& [position, count] : updates) CHECK(count == windows);
    CHECK(end.result().auc() > 0.55);
    const bool worker_killed = who.back().find("worker") == 0;
    const uint64_t changes = WorkerChanges(cluster, id);
    if (worker_killed) CHECK(changes > 0);
    lost(end, changes, worker_killed);
  }
}

TEST_CASE("async: every example once, with whatever is killed", "[e2e][async]") {
  const ScratchFolder folder = Folder();
  KillEach(folder, FiveTablesJob(folder.path(), 10),
           {{"worker-0"}, {"server-0"}, {"server-1", "worker-1"}, {"server-0", "server-1"}},
           [](const JobStatus& s, uint64_t, bool) { CHECK(s.lost_local_steps() == 0); });
}

// With copies of the lanes' own: a worker, whose copies go with it, and a server beside it. What
// servers do with windows is the same in every mode.
const std::vector<std::vector<std::string>> kWithCopies = {{"worker-0"}, {"server-1", "worker-1"}};

// A worker hosts 2 of the 4 lanes; each is at most 4 batches ahead of what it pushed or exchanged.
// Lanes that went to others go back when the worker is there again.
void CheckLost(const JobStatus& status, uint64_t worker_changes, bool worker_killed) {
  CHECK(status.lost_local_steps() <= worker_changes * 2 * 4);
  if (worker_killed) CHECK(status.lost_local_steps() > 0);
}

TEST_CASE("downpour: every window once; a killed worker loses at most nPush batches a lane",
          "[e2e][downpour]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = FiveTablesJob(folder.path(), 48);
  TrainingSpec& training = *job.mutable_spec()->mutable_training();
  training.set_mode("downpour");
  training.set_n_fetch(4);
  training.set_n_push(4);
  KillEach(folder, job, kWithCopies, CheckLost);
}

TEST_CASE("easgd: every window once; a killed worker loses at most tau batches a lane",
          "[e2e][easgd]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = AsyncJob(folder.path(), 48);
  TrainingSpec& training = *job.mutable_spec()->mutable_training();
  training.set_mode("easgd");
  training.set_tau(4);
  KillEach(folder, job, kWithCopies, CheckLost);
}

}  // namespace
}  // namespace strata::testing
