// The scheduler's own silence is not its nodes'. It stops, is slow, its disk is full: whoever is
// alive is evicted by none of it, and whoever is dead is found out all the same. Real scheduler,
// time moved by hand: what holds it up moves it, too.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/base/manual_timer.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "tests/scheduler/one_job.h"
#include "tests/seed.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);  // what Start gives
constexpr char kSpare[] = "s1";
const char* const kLevels[] = {"memory", "logged", "synced"};

// What an append meets before it is done.
struct Disk {
  std::function<absl::Status()> meets = [] { return absl::OkStatus(); };
};

class DiskStore : public MetadataStore {
 public:
  explicit DiskStore(Disk* disk) : disk_(disk), inner_(MakeMemoryMetadataStore()) {}
  absl::Status Append(const std::vector<MetadataChange>& batch) override {
    const absl::Status s = disk_->meets();
    return s.ok() ? inner_->Append(batch) : s;
  }
  absl::StatusOr<std::map<std::string, std::string>> Read() const override {
    return inner_->Read();
  }

 private:
  Disk* const disk_;
  const std::unique_ptr<MetadataStore> inner_;
};

// A job on one server and one worker, with one of each to spare, that trains for ever. Whoever is
// due speaks, in an order drawn by chance: a tick may come before all that waits to be read.
class Cluster {
 public:
  Cluster(uint64_t seed, const std::string& durability, uint64_t checkpoint_every = 4)
      : random_(seed) {
    const SimJob job = {
        .lanes = 2, .steps = 100'000, .memory = durability == "memory", .real_files = true};
    for (const char* name : {"s0", kSpare}) servers_.emplace(name, SimServer(name, job, &disk_));
    for (auto& [name, server] : servers_) server.Start(++incarnation_);
    for (const char* name : {"w0", "w1"}) {
      workers_.emplace(name, SimWorker(name, job, &servers_));
      workers_.at(name).Start(++incarnation_);
      workers_.at(name).index_lines = 50'000;
    }
    for (const char* name : {"s0", kSpare, "w0", "w1"}) due_[name] = timer.Now();
    scheduler_ = Start(std::make_unique<DiskStore>(&disk), &timer);
    request_ = Job("a", folder_.path() + "/c");
    JobSpec& spec = *request_.mutable_job()->mutable_spec();
    spec.mutable_storage()->set_durability(durability);
    spec.mutable_checkpoint()->set_every_steps(checkpoint_every);
    spec.mutable_checkpoint()->set_keep(1);
    Until([&] { return scheduler_->Counters().live_servers == 2; });
    REQUIRE(scheduler_->Submit(request_, kTimeout).ok());
    Until([&] { return Get(*scheduler_, "a").step() >= 4; });
  }

  uint64_t Roll(uint64_t n) { return random_() % n; }

  // All that is due next, in any order.
  void Round() {
    absl::Time next = tick_;
    for (const auto& [name, due] : due_) next = std::min(next, due);
    timer.AdvanceTo(std::max(next, timer.Now()));
    std::vector<std::string> now;
    for (auto& [name, due] : due_) {
      // Its call has ended without an answer, and it waits before the next.
      if (due < timer.Now() - absl::Seconds(5) && Roll(2) == 0) {
        due = timer.Now() + absl::Milliseconds(Roll(4000));
      }
      if (due <= timer.Now()) now.push_back(name);
    }
    if (tick_ <= timer.Now()) now.emplace_back("tick");
    std::shuffle(now.begin(), now.end(), random_);
    for (const std::string& name : now) name == "tick" ? Tick() : Speak(name);
  }
  void Pass(absl::Duration time) {
    for (const absl::Time end = timer.Now() + time; timer.Now() < end;) Round();
  }
  template <typename Done>
  void Until(Done done) {
    for (int i = 0; !done(); ++i) {
      REQUIRE(i < 2000);
      Round();
    }
  }

  // A tick without time of its own: a fault comes between two of them, wherever it lies.
  void Tick() {
    scheduler_->Tick();
    tick_ = timer.Now() + kLease / 16;
  }
  // One call of a node, and what it waits after that.
  void Speak(const std::string& name) {
    const auto server = servers_.find(name);
    const bool lives =
        server != servers_.end() ? server->second.alive() : workers_.at(name).alive();
    const auto reply = !lives ? absl::UnavailableError("dead")
                       : server != servers_.end()
                           ? scheduler_->Sync(server->second.Report(), kTimeout)
                           : scheduler_->Sync(workers_.at(name).Report(), kTimeout);
    if (!reply.ok()) {  // as a node does: with longer and longer pauses, and the channel's
      REQUIRE(absl::IsUnavailable(reply.status()));
      pause_[name] = std::min(absl::Seconds(2), std::max(absl::Milliseconds(50), pause_[name] * 2));
      due_[name] = timer.Now() + pause_[name] + absl::Milliseconds(Roll(2000));
      return;
    }
    pause_.erase(name);
    due_[name] = timer.Now() + kLease / 4 * static_cast<double>(Roll(100)) / 100;
    for (auto& [folder, contents] : disk_) contents.complete = true;  // manifests are real files
    if (server != servers_.end()) return server->second.Act(*reply);
    workers_.at(name).Act(*reply);
    workers_.at(name).Work();
  }
  void Kill(const std::string& server) { servers_.at(server).Kill(); }

  size_t Events(const std::set<std::string>& reasons) {
    const auto events = scheduler_->GetEvents({}, kTimeout);
    REQUIRE(events.ok());
    return static_cast<size_t>(
        std::count_if(events->events().begin(), events->events().end(),
                      [&](const Event& e) { return reasons.count(e.reason()) > 0; }));
  }
  JobStatus job() { return Get(*scheduler_, "a"); }
  void CheckNobodyEvicted() {
    INFO(job().DebugString());
    REQUIRE(job().state() == RUNNING);
    REQUIRE(job().generation() == 1);
    REQUIRE(job().rollbacks() == 0);
    REQUIRE(Events({"NodeLapsed", "NodeFenced", "ServerLost", "WorkerLost", "WorkerRestarted",
                    "WorkerJoined", "RolledBack"}) == 0);
    const SchedulerCounters counters = scheduler_->Counters();
    REQUIRE(counters.live_servers == 2);
    REQUIRE(counters.live_workers == 2);
  }

  ManualTimer timer;
  Disk disk;

 private:
  std::mt19937_64 random_;
  TempFolder folder_;
  SimDisk disk_;
  std::map<std::string, SimServer> servers_;
  std::map<std::string, SimWorker> workers_;
  std::map<std::string, absl::Time> due_;
  std::map<std::string, absl::Duration> pause_;
  absl::Time tick_;
  uint64_t incarnation_ = 0;
  SubmitRequest request_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_CASE("stopped for four leases, a scheduler evicts nobody, whoever it hears first",
          "[scheduler][silence]") {
  for (const char* level : kLevels) {
    for (const std::vector<std::string>& first : std::vector<std::vector<std::string>>{
             {}, {"tick"}, {kSpare, "tick", "w1"}, {"tick", kSpare, "w1", "tick"}}) {
      INFO(level << ", first " << first.size());
      Cluster cluster(1, level);
      cluster.timer.Advance(kLease * 4);
      for (const std::string& name : first) name == "tick" ? cluster.Tick() : cluster.Speak(name);
      cluster.Pass(kLease * 3);
      cluster.CheckNobodyEvicted();
      CHECK(cluster.Events({"SchedulerStalled"}) == 1);
    }
  }
}

TEST_CASE("nobody is evicted while the scheduler's disk is full", "[scheduler][silence]") {
  for (const char* level : kLevels) {
    INFO(level);
    Cluster cluster(2, level);
    const absl::Time room = cluster.timer.Now() + kLease * 3;
    cluster.disk.meets = [&] {
      return cluster.timer.Now() < room ? absl::ResourceExhaustedError("disk full")
                                        : absl::OkStatus();
    };
    cluster.Pass(kLease * 3.5);
    REQUIRE(cluster.timer.Now() > room);
    cluster.Pass(kLease * 2);
    cluster.CheckNobodyEvicted();
    CHECK(cluster.Events({"SchedulerStalled"}) == 1);
  }
}

TEST_CASE("nobody is evicted while the scheduler's disk is slow", "[scheduler][silence]") {
  for (const char* level : kLevels) {
    for (const double leases : {3.0, 0.4, 0.1}) {  // of one write; some leases in all
      INFO(level << ", writes of " << leases);
      Cluster cluster(3, level);
      double left = 3;
      cluster.disk.meets = [&] {
        if (left > 0) cluster.timer.Advance(kLease * leases);
        left -= leases;
        return absl::OkStatus();
      };
      cluster.Until([&] { return left <= 0; });
      cluster.Pass(kLease * 3);
      cluster.CheckNobodyEvicted();
    }
  }
}

TEST_CASE("nobody is evicted while the scheduler waits for a checkpoint's share",
          "[scheduler][silence]") {
  for (const char* level : kLevels) {
    INFO(level);
    Cluster cluster(4, level);
    int removed = 0;
    ScopedFailpoint slow("scheduler.checkpoint.remove", {.act = [&] {
                           if (++removed == 2) cluster.timer.Advance(kLease * 3);
                           return absl::OkStatus();
                         }});
    cluster.Until([&] { return removed >= 2; });
    cluster.Pass(kLease * 3);
    cluster.CheckNobodyEvicted();
  }
}

TEST_CASE("a server that died is replaced, though the scheduler stood still meanwhile",
          "[scheduler][silence]") {
  Cluster cluster(5, "memory");
  cluster.Kill("s0");
  cluster.Pass(kLease / 2);
  cluster.timer.Advance(kLease * 4);
  cluster.Pass(kLease * 0.9);
  CHECK(cluster.job().generation() == 1);
  cluster.Pass(kLease * 0.3);
  CHECK(cluster.job().generation() == 2);
  CHECK(cluster.Events({"NodeLapsed"}) == 1);
  const uint64_t step = cluster.job().step();
  cluster.Until([&] { return cluster.job().step() > step + 4; });
}

TEST_CASE("whatever befalls the scheduler, nobody who is alive is evicted",
          "[scheduler][silence][seeds]") {
  uint64_t stalls = 0;
  for (const uint64_t seed : Seeds("scheduler_silence", 0, LongRun() ? 3000 : 30)) {
    INFO("seed " << seed);
    Cluster cluster(seed, kLevels[seed % 3], /*checkpoint_every=*/20);
    absl::Time room = absl::InfinitePast();  // the disk is full until then
    uint64_t slow = 0, slowness = 0;         // appends, in percent of a lease
    cluster.disk.meets = [&] {
      if (slow > 0) {
        --slow;
        cluster.timer.Advance(kLease * static_cast<double>(slowness) / 100);
      }
      return cluster.timer.Now() < room ? absl::ResourceExhaustedError("disk full")
                                        : absl::OkStatus();
    };
    for (int round = 0; round < 300; ++round) {
      switch (cluster.Roll(60)) {
        case 0:
          cluster.timer.Advance(kLease * static_cast<double>(cluster.Roll(600)) / 100);
          break;
        case 1:
          room = cluster.timer.Now() + kLease * static_cast<double>(cluster.Roll(400)) / 100;
          break;
        case 2:
          slow = 1 + cluster.Roll(40);
          slowness = cluster.Roll(slow < 4 ? 400 : 60);
          break;
        default:
          cluster.Round();
      }
    }
    cluster.Pass(kLease * 8);  // ends all of it
    cluster.CheckNobodyEvicted();
    stalls += cluster.Events({"SchedulerStalled"});
  }
  if (!SeedsAreGiven()) REQUIRE(stalls > 30);  // the faults do bite
}

}  // namespace
}  // namespace strata::scheduler
