// What a job goes on from when its server lost all (level `memory`), and the checkpoint cannot be
// read: by one server, by any, at the moment, or there is none. One cluster, real files.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/damage_checkpoint.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/e2e/cluster/table_room.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kTimeout = absl::Seconds(20);

// A job that trains for ever, on one of two servers, with five tables of which one has most rows
// below DRAM.
class Running {
 public:
  Running(ProcessCluster& cluster, TrainingJob job, const std::string& directory)
      : cluster_(cluster), spec_(job.spec()) {
    job.mutable_spec()->mutable_checkpoint()->set_directory(directory);
    id_ = cluster.Submit(job);
    cluster.AwaitStep(id_, 20);
  }
  ~Running() { (void)cluster_.scheduler().CancelJob(Ref(), kTimeout); }

  std::string TakeCheckpoint() {
    CreateCheckpointRequest request;
    *request.mutable_job() = Ref();
    request.set_wait_ms(20'000);
    const auto made = cluster_.scheduler().CreateCheckpoint(request, kTimeout);
    INFO(made.status());
    REQUIRE(made.ok());
    const TableRoom room = RoomOf(made->directory(), "first", spec_);
    INFO(room.rows << " rows, at most " << room.most_in_dram << " in DRAM");
    CHECK(room.MostlyBelow());
    return made->directory();
  }
  std::string Server() {
    const auto shards = cluster_.scheduler().GetShards(Ref(), kTimeout);
    REQUIRE(shards.ok());
    REQUIRE(shards->servers_size() == 1);
    return shards->servers(0).name();
  }
  // The job's server forgets all.
  void Restart(const std::string& failpoints = "") {
    const std::string server = Server();
    cluster_.Kill(server);
    cluster_.Start(server, failpoints);
  }
  JobStatus Await(const std::function<bool(const JobStatus&)>& done) {
    return cluster_.Await(id_, done);
  }
  JobStatus AwaitCondition(const std::string& reason) {
    return Await([&](const JobStatus& s) { return HasCondition(s, reason); });
  }
  // It trains in that generation.
  JobStatus AwaitTraining(uint64_t generation) {
    return Await([&](const JobStatus& s) {
      return s.generation() == generation && s.conditions().rbegin()->reason() == "Training" &&
             s.examples_per_second() > 0;
    });
  }
  JobRef Ref() const {
    JobRef ref;
    ref.set_job(id_);
    return ref;
  }

 private:
  ProcessCluster& cluster_;
  const JobSpec spec_;
  uint64_t id_ = 0;
};

TEST_CASE("what a job goes on from when a checkpoint cannot be read", "[faults][p5]") {
  auto scratch = ScratchFolder::Make("strata-fault");
  REQUIRE(scratch.ok());
  // The lease is so long that nobody is missed who begins again on a busy machine.
  ProcessCluster cluster(
      {.servers = 2, .workers = 1, .folder = scratch->path() + "/cluster", .lease_ms = 60'000});
  TrainingJob job = SmallJob(scratch->path());
  UseFiveTables(scratch->path(), 600, 4000, job);
  job.mutable_spec()->mutable_training()->set_epochs(100'000);
  StorageSpec& storage = *job.mutable_spec()->mutable_storage();
  storage.set_durability("memory");
  storage.set_shards_per_server(1);
  storage.set_dram_bytes_per_server("96KiB");
  const std::string directory = scratch->path() + "/checkpoints-";
  {
    INFO("one bad reader");
    Running run(cluster, job, directory + "1");
    const std::string folder = run.TakeCheckpoint(), reader = run.Server();
    run.Restart("server.restore=error(DATA_LOSS)");
    const JobStatus now = run.AwaitTraining(3);
    INFO(Conditions(now));
    CHECK(HasCondition(now, "CheckpointReadAgain"));
    CHECK_FALSE(HasCondition(now, "CheckpointDamaged"));
    CHECK(absl::StrContains(Conditions(now), "starts from checkpoint " + folder));
    CHECK(now.checkpoint() == folder);
    CHECK(now.rollbacks() == 1);
    CHECK(run.Server() != reader);
    cluster.Kill(reader);
    cluster.Start(reader);  // reads well from now on
    cluster.AwaitRegistered();
  }
  {
    INFO("really damaged");
    Running run(cluster, job, directory + "2");
    const std::string older = run.TakeCheckpoint(), newer = run.TakeCheckpoint();
    REQUIRE(older != newer);
    FlipBit(newer);
    run.Restart();
    const JobStatus now = run.AwaitTraining(4);
    INFO(Conditions(now));
    CHECK(HasCondition(now, "CheckpointReadAgain"));
    CHECK(HasCondition(now, "CheckpointDamaged"));
    CHECK(absl::StrContains(Conditions(now), "starts from checkpoint " + older));
    CHECK(now.rollbacks() == 2);
  }
  {
    INFO("not there, as where its share is not mounted");
    Running run(cluster, job, directory + "3");
    const std::string folder = run.TakeCheckpoint();
    fs::rename(folder, folder + ".away");
    run.Restart();
    const JobStatus waits = run.AwaitCondition("ServerWaits");
    INFO(Conditions(waits));
    CHECK(waits.state() == RUNNING);
    CHECK(absl::StrContains(Conditions(waits), "checkpoint " + folder + " is not there"));
    CHECK(absl::StrContains(Conditions(waits), "mount its share again"));
    fs::rename(folder + ".away", folder);
    const JobStatus now = run.AwaitTraining(2);
    CHECK(now.rollbacks() == 1);
    CHECK(now.checkpoint() == folder);
  }
  {
    INFO("all damaged");
    Running run(cluster, job, directory + "4");
    FlipBit(run.TakeCheckpoint());
    run.Restart();
    const JobStatus end = run.Await([](const JobStatus& s) { return s.state() != RUNNING; });
    INFO(Conditions(end));
    CHECK(end.state() == FAILED);
    CHECK(absl::StrContains(Conditions(end), "no whole checkpoint is left to start from"));
    CHECK(absl::StrContains(Conditions(end), "--resume"));
  }
  {
    INFO("none");
    Running run(cluster, job, directory + "5");
    run.Restart();
    const JobStatus now = run.AwaitTraining(2);
    INFO(Conditions(now));
    CHECK(absl::StrContains(Conditions(now),
                            "from the beginning, as no checkpoint was completed yet"));
    GetEventsRequest request;
    *request.mutable_job() = run.Ref();
    const auto events = cluster.scheduler().GetEvents(request, kTimeout);
    REQUIRE(events.ok());
    CHECK(absl::StrContains(events->DebugString(), "as no checkpoint was completed yet"));
  }
}

}  // namespace
}  // namespace strata::testing
