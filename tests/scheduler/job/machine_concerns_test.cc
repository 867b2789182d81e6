// What users are told of a job that is slow or stuck: who, since when, how it is known.
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/strata/control.pb.h"
#include "scheduler/store/memory_metadata_store.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

// A job that trains, and whose nodes say what the test has them say.
class Cluster {
 public:
  Cluster() : scheduler_(Start(MakeMemoryMetadataStore(), &timer_)) {
    REQUIRE(scheduler_->Submit(Job("job", folder_.path() + "/c"), kTimeout).ok());
    nodes_.works = false;
    nodes_.Until(*scheduler_, [this] { return status().state() == RUNNING; });
  }

  // All report every second. `server`, `worker` change what they say; null: it is silent.
  using Change = std::function<void(NodeReport&)>;
  void Pass(absl::Duration time, const Change& server, const Change& worker) {
    for (absl::Duration passed; passed < time; passed += absl::Seconds(1)) {
      timer_.Advance(absl::Seconds(1));
      Say(nodes_.servers.at("s0").Report(), server);
      Say(nodes_.worker.Report(), worker);
      scheduler_->Tick();
    }
  }
  JobStatus status() { return Get(*scheduler_, "job"); }
  // "REASON WHO; ..." of all concerns.
  std::string told() {
    std::string text;
    const JobStatus all = status();
    for (const Concern& c : all.concerns()) {
      absl::StrAppend(&text, c.reason(), " ", c.who(), "; ");
    }
    return text;
  }
  const Concern& First() {
    last_ = status();
    REQUIRE(last_.concerns_size() > 0);
    return last_.concerns(0);
  }
  int64_t now() { return absl::ToUnixMillis(timer_.Now()); }

 private:
  void Say(NodeReport report, const Change& change) {
    if (!change) return;
    change(report);
    const auto directive = scheduler_->Sync(report, kTimeout);
    INFO(directive.status());
    REQUIRE(directive.ok());
  }

  TempFolder folder_;
  ManualTimer timer_;
  std::unique_ptr<Scheduler> scheduler_;
  Nodes nodes_;
  JobStatus last_;
};

void AsIs(NodeReport&) {}

TEST_CASE("a job whose nodes say nothing special has no concerns for a while, then none moves",
          "[concerns]") {
  Cluster cluster;
  cluster.Pass(absl::Seconds(5), AsIs, AsIs);
  CHECK(cluster.told().empty());
  const int64_t stood = cluster.now();
  cluster.Pass(absl::Seconds(20), AsIs, AsIs);
  CHECK(cluster.told() == "NoProgress job; ");
  CHECK(cluster.First().since_unix_ms() <= stood);
  CHECK(absl::StrContains(cluster.First().known_by(), "nothing was committed for 2"));
  // An evaluation is no standstill.
  cluster.Pass(absl::Seconds(20), AsIs, [](NodeReport& report) {
    for (WorkerJobReport& job : *report.mutable_worker_jobs()) job.set_evaluating(true);
  });
  CHECK(cluster.told().empty());
}

TEST_CASE("a job that has lost its last worker says so, and what to do", "[concerns]") {
  Cluster cluster;
  cluster.Pass(absl::Seconds(30), AsIs, nullptr);
  const JobStatus status = cluster.status();
  const JobCondition& lost = status.conditions(status.conditions_size() - 1);
  CHECK(lost.reason() == "WorkerLost");
  CHECK(lost.message() ==
        "worker w0 is silent; the job has no worker left, and stands until there is one: start "
        "strata-worker");
  CHECK(cluster.told() == "NoProgress job; ");
  CHECK(absl::StrContains(cluster.First().known_by(), "; the job has no worker"));
  CHECK(cluster.First().remedy() == "start strata-worker; see why the one before has ended");
}

TEST_CASE("a trouble of a node is told while it lasts, with its text", "[concerns]") {
  Cluster cluster;
  cluster.Pass(
      absl::Seconds(3),
      [](NodeReport& report) {
        Trouble* trouble = report.mutable_server_jobs(0)->add_troubles();
        trouble->set_reason("SlowDisk");
        trouble->set_message("an append takes 40 ms, usually 1 ms");
      },
      AsIs);
  CHECK(cluster.told() == "SlowDisk server/s0; ");
  CHECK(cluster.First().known_by() == "an append takes 40 ms, usually 1 ms");
  CHECK(cluster.First().since_unix_ms() <= cluster.now() - 2000);
  cluster.Pass(absl::Seconds(2), AsIs, AsIs);
  CHECK(cluster.told().empty());
}

TEST_CASE("a server that a worker cannot reach, though the scheduler hears both", "[concerns]") {
  Cluster cluster;
  uint64_t for_ms = 1000;
  const auto unreachable = [&for_ms](NodeReport& report) {
    PeerTrouble* peer = report.add_peers();
    peer->set_name("s0");
    peer->set_role(SERVER);
    peer->set_kind(PeerTrouble::SILENT);
    peer->set_for_ms(for_ms);
    peer->set_message("no answer");
  };
  cluster.Pass(absl::Seconds(1), AsIs, unreachable);
  CHECK(cluster.told().empty());  // it may be a restart
  for_ms = 7000;
  cluster.Pass(absl::Seconds(1), AsIs, unreachable);
  REQUIRE(cluster.told() == "Unreachable server/s0; ");
  CHECK(cluster.First().other() == "worker/w0");
  CHECK(cluster.First().since_unix_ms() == cluster.now() - 7000);
  CHECK(absl::StrContains(cluster.First().known_by(), "the scheduler hears both"));
  cluster.Pass(absl::Seconds(1), AsIs, AsIs);
  CHECK(cluster.told().empty());
}

TEST_CASE("a silent server is told from when it was heard last", "[concerns]") {
  Cluster cluster;
  cluster.Pass(absl::Seconds(2), AsIs, AsIs);
  const int64_t heard = cluster.now();
  cluster.Pass(absl::Seconds(60), nullptr, AsIs);
  REQUIRE(absl::StrContains(cluster.told(), "SilentServer server/s0; "));
  const JobStatus status = cluster.status();
  for (const Concern& c : status.concerns()) {
    if (c.reason() != "SilentServer") continue;
    CHECK(c.since_unix_ms() >= heard - 2000);
    CHECK(c.since_unix_ms() <= heard + 10000);
  }
}

}  // namespace
}  // namespace strata::scheduler
