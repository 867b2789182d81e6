// Which of a job's time counts as training, and what of it is stored when.
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/strata/control.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/state/state.pb.h"
#include "scheduler/store/memory_metadata_store.h"
#include "scheduler/store/metadata_store.h"
#include "tests/scheduler/failing_store.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

// A scheduler that is stopped, killed and begins again, and a job that has begun to train.
class Cluster {
 public:
  Cluster() {
    Begin();
    REQUIRE(scheduler->Submit(Job("job", folder_.path() + "/c"), kTimeout).ok());
    nodes.works = false;
    nodes.Until(*scheduler, [this] { return status().state() == RUNNING; });
  }

  void Begin() { scheduler = Start(std::make_unique<FailingStore>(&disk_full, store_), &timer); }
  void Stop() { scheduler.reset(); }
  void Kill() {
    disk_full = true;
    scheduler.reset();
    disk_full = false;
  }
  // The nodes report, and nothing is computed.
  void Pass(absl::Duration time) {
    timer.Advance(time);
    REQUIRE(scheduler->Sync(nodes.servers.at("s0").Report(), kTimeout).ok());
    REQUIRE(scheduler->Sync(nodes.worker.Report(), kTimeout).ok());
  }
  // Until nothing is left but the last cut, which the server does not hear of.
  void TrainToTheLastCut() {
    nodes.works = true;
    nodes.Until(*scheduler, [this] { return status().step() == 16; });
    nodes.works = false;
    Pass(absl::ZeroDuration());
  }
  void Finish() {
    nodes.works = true;
    nodes.Until(*scheduler, [this] { return status().state() == SUCCEEDED; });
  }
  JobStatus status() { return Get(*scheduler, "job"); }
  double train_seconds() { return status().train_seconds(); }

  Nodes nodes;
  ManualTimer timer;
  bool disk_full = false;
  std::unique_ptr<Scheduler> scheduler;

 private:
  const TempFolder folder_;
  const std::shared_ptr<MetadataStore> store_ = MakeMemoryMetadataStore();
};

TEST_CASE("the last cut is no time of training", "[scheduler]") {
  Cluster cluster;
  cluster.Pass(absl::Seconds(30));
  cluster.TrainToTheLastCut();
  cluster.Pass(absl::Seconds(3));
  CHECK(cluster.status().state() == RUNNING);
  CHECK(cluster.train_seconds() == 30);
  cluster.Pass(absl::Seconds(30));
  CHECK(cluster.train_seconds() == 30);
  cluster.Finish();
  CHECK(cluster.train_seconds() == 30);
}

TEST_CASE("to go back, also from the last cut, is time of training", "[scheduler]") {
  Cluster cluster;
  cluster.TrainToTheLastCut();
  cluster.Pass(absl::Seconds(30));
  CHECK(cluster.train_seconds() == 0);
  SimServer& server = cluster.nodes.servers.at("s0");
  server.Kill();
  server.Wipe();
  server.Start(3);
  cluster.nodes.Until(*cluster.scheduler, [&] { return cluster.status().rollbacks() == 1; });
  cluster.timer.Advance(absl::Seconds(3));
  CHECK(cluster.train_seconds() == 3);
  cluster.Finish();
  CHECK(cluster.train_seconds() == 3);
}

TEST_CASE("a job that ended before its time trains no more", "[scheduler]") {
  Cluster cluster;
  cluster.Pass(absl::Seconds(30));
  cluster.timer.Advance(absl::Seconds(3));
  SECTION("by a user") {
    JobRef ref;
    ref.set_name("job");
    REQUIRE(cluster.scheduler->CancelJob(ref, kTimeout)->state() == CANCELLED);
  }
  SECTION("by an error") {
    NodeReport report = cluster.nodes.worker.Report();
    report.mutable_worker_jobs(0)->set_fatal("a bad line");
    REQUIRE(cluster.scheduler->Sync(report, kTimeout).ok());
    REQUIRE(cluster.status().state() == FAILED);
  }
  CHECK(cluster.train_seconds() == 33);
  cluster.timer.Advance(absl::Hours(1));
  CHECK(cluster.train_seconds() == 33);
  cluster.Kill();
  cluster.Begin();
  CHECK(cluster.train_seconds() == 33);
}

TEST_CASE("a scheduler that is stopped has stored all time of training", "[scheduler]") {
  Cluster cluster;
  cluster.Pass(absl::Seconds(30));
  cluster.timer.Advance(absl::Seconds(9));
  SECTION("at once") { cluster.scheduler->Stop(); }
  SECTION("with the object") {}
  cluster.Stop();
  cluster.Begin();
  CHECK(cluster.train_seconds() == 39);
  cluster.timer.Advance(absl::Seconds(9));
  cluster.Kill();
  cluster.Begin();
  CHECK(cluster.train_seconds() == 39);
}

TEST_CASE("what could not be read is not written over by the scheduler's end", "[scheduler]") {
  const std::shared_ptr<MetadataStore> store = MakeMemoryMetadataStore();
  ClusterRecord cluster;
  cluster.set_format(3);
  cluster.set_cluster_id("000102030405060708090a0b0c0d0e0f");
  // A number of two bytes, which the scheduler would write as one.
  REQUIRE(store->Append({{"cluster", std::string("\x08\x81\0", 3) + cluster.SerializeAsString()}})
              .ok());
  REQUIRE(store->Append({{"node/x", "\xff\xff\xff"}}).ok());
  const auto before = store->Read();
  bool fails = false;
  CHECK(absl::IsDataLoss(
      Scheduler::Start({.store = std::make_unique<FailingStore>(&fails, store)}).status()));
  CHECK(*store->Read() == *before);
}

TEST_CASE("nobody waits for a full disk where only durations would be written", "[scheduler]") {
  Cluster cluster;
  const auto tick = [&] {
    cluster.Pass(absl::Milliseconds(500));
    cluster.scheduler->Tick();
  };
  for (int i = 0; i < 4; ++i) tick();
  cluster.disk_full = true;
  for (int i = 0; i < 17; ++i) tick();  // 10.5 s
  CHECK(cluster.scheduler->Counters().append_failures == 1);
  CHECK(cluster.train_seconds() == 10.5);
  CHECK(cluster.scheduler->ListJobs(kTimeout).ok());
  NodeReport report = cluster.nodes.servers.at("s0").Report();
  report.set_disk_bytes(1 << 30);  // what is free there it tells again
  CHECK(cluster.scheduler->Sync(report, kTimeout).ok());
  CHECK(cluster.scheduler->ListJobs(kTimeout).ok());
  // What is more than that has to wait.
  CHECK(absl::IsUnavailable(cluster.scheduler->Submit(Job("other", ""), kTimeout).status()));
  CHECK(absl::IsUnavailable(cluster.scheduler->ListJobs(kTimeout).status()));
}

TEST_CASE("durations that a full disk did not take are in what it takes next", "[scheduler]") {
  Cluster cluster;
  cluster.disk_full = true;
  cluster.Pass(absl::Seconds(11));
  cluster.disk_full = false;
  cluster.Pass(absl::Seconds(11));
  cluster.Kill();
  cluster.Begin();
  CHECK(cluster.train_seconds() == 22);
}

}  // namespace
}  // namespace strata::scheduler
