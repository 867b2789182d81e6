// What users are told of durations, whose beginning an earlier run of the scheduler has seen.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/strata/control.pb.h"
#include "scheduler/store/rocks_metadata_store.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

// A scheduler whose runs have clocks of their own, and a job whose nodes live on.
class Cluster {
 public:
  Cluster() { Run(absl::Hours(24)); }

  // Kills the scheduler and starts it where the wall clock is so long after that of ManualTimer.
  void Run(absl::Duration set_to) {
    scheduler_.reset();
    timer_ = std::make_unique<ManualTimer>();
    timer_->Advance(set_to);
    auto store = OpenRocksMetadataStore(folder_.path() + "/metadata");
    REQUIRE(store.ok());
    scheduler_ = Start(*std::move(store), timer_.get());
  }
  // The nodes report, and nothing is computed.
  void Pass(absl::Duration time) {
    timer_->Advance(time);
    Report();
  }
  // Nobody reports before the scheduler dies.
  void PassUnheard(absl::Duration time) { timer_->Advance(time); }

  void Begin() {
    REQUIRE(scheduler_->Submit(Job("job", folder_.path() + "/c"), kTimeout).ok());
    nodes_.works = false;
    nodes_.Until(*scheduler_, [this] { return status().state() == RUNNING; });
  }
  void Finish() {
    nodes_.works = true;
    nodes_.Until(*scheduler_, [this] { return status().state() == SUCCEEDED; });
  }
  JobStatus status() { return Get(*scheduler_, "job"); }
  double train_seconds() { return status().train_seconds(); }
  std::string last_condition() { return status().conditions().rbegin()->message(); }

  bool server_has_trouble = false;

 private:
  void Report() {
    NodeReport report = nodes_.servers.at("s0").Report();
    if (server_has_trouble) {
      report.mutable_server_jobs(0)->add_troubles()->set_reason("DiskFull");
    }
    REQUIRE(scheduler_->Sync(report, kTimeout).ok());
    REQUIRE(scheduler_->Sync(nodes_.worker.Report(), kTimeout).ok());
  }

  const TempFolder folder_;
  Nodes nodes_;
  std::unique_ptr<ManualTimer> timer_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_CASE("the time of training is added up run by run, wherever the clock was set between",
          "[scheduler]") {
  const absl::Duration set_to = GENERATE(absl::ZeroDuration(), absl::Hours(48));
  Cluster cluster;
  cluster.Begin();
  CHECK(cluster.train_seconds() == 0);
  cluster.Pass(absl::Seconds(30));
  CHECK(cluster.train_seconds() == 30);
  cluster.PassUnheard(absl::Seconds(9));  // less than is stored
  CHECK(cluster.train_seconds() == 39);
  cluster.Run(set_to);
  CHECK(cluster.train_seconds() == 30);
  cluster.Pass(absl::Milliseconds(5500));
  CHECK(cluster.train_seconds() == 35.5);
  cluster.Finish();
  CHECK(cluster.train_seconds() == 35.5);
  cluster.Pass(absl::Hours(1));
  CHECK(cluster.train_seconds() == 35.5);
  cluster.Run(absl::Hours(24));
  CHECK(cluster.train_seconds() == 35.5);
}

TEST_CASE("a trouble that stands over a restart lasts as long as schedulers heard of it",
          "[scheduler]") {
  const absl::Duration set_to = GENERATE(absl::ZeroDuration(), absl::Hours(48));
  Cluster cluster;
  cluster.Begin();
  cluster.server_has_trouble = true;
  cluster.Pass(absl::Seconds(1));
  cluster.Pass(absl::Seconds(30));
  cluster.Run(set_to);
  cluster.Pass(absl::Seconds(5));
  cluster.server_has_trouble = false;
  cluster.Pass(absl::Seconds(2));
  CHECK(cluster.last_condition() == "s0: DiskFull is over after 37s");
}

}  // namespace
}  // namespace strata::scheduler
