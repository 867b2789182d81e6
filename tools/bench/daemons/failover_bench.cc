#include "tools/bench/daemons/failover_bench.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/strata/control.pb.h"
#include "tools/bench/cluster/daemons.h"
#include "tools/bench/daemons/small_job.h"
#include "tools/cluster/live/live_row.h"

namespace strata::bench {
namespace {

constexpr int kKills = 100;
constexpr int kLeaseMs = 2000;
constexpr absl::Duration kCall = absl::Seconds(10);
constexpr absl::Duration kPatience = absl::Seconds(60);
// Steps that may have been under way when a process was killed.
constexpr double kUnderWay = 4.0 * 2 * kSmallBatch;

double Seconds(absl::Time from) { return absl::ToDoubleSeconds(absl::Now() - from); }

// A cluster whose job trains while its processes are killed.
class Struck {
 public:
  static absl::StatusOr<std::unique_ptr<Struck>> Start(const BenchOptions& o, bool copies) {
    auto struck = std::make_unique<Struck>();
    const std::string directory = o.directory + "/failover";
    std::filesystem::remove_all(directory);
    auto daemons = Daemons::Start(
        {.directory = directory, .servers = copies ? 3 : 1, .workers = 2, .lease_ms = kLeaseMs});
    if (!daemons.ok()) return daemons.status();
    struck->daemons_ = *std::move(daemons);
    auto job = MakeSmallJob(o.directory);
    if (!job.ok()) return job.status();
    if (copies) {
      job->mutable_spec()->mutable_storage()->set_durability("replicated");
      job->mutable_spec()->mutable_storage()->set_replicas(2);
    }
    job->mutable_spec()->mutable_checkpoint()->set_directory(directory + "/checkpoints");
    auto number = struck->daemons_->Submit(*std::move(job));
    if (!number.ok()) return number.status();
    struck->ref_.set_job(*number);
    if (absl::Status s = struck->daemons_->Await(20 * kSmallBatch, kPatience); !s.ok()) return s;
    return struck;
  }

  Daemons& daemons() { return *daemons_; }
  const JobRef& ref() const { return ref_; }

  // Until the job's one slot has a head and a full copy. Returns the head's name.
  absl::StatusOr<std::string> AwaitCopies() {
    JobShards last;
    for (const absl::Time give_up = absl::Now() + kPatience; absl::Now() < give_up;) {
      auto shards = daemons_->scheduler().GetShards(ref_, kCall);
      if (!shards.ok()) return shards.status();
      int full = 0;
      last = *shards;
      if (shards->servers_size() == 1) {
        for (const CopyStatus& copy : shards->servers(0).copies()) {
          full += copy.role() == CopyStatus::HEAD || copy.role() == CopyStatus::BACKUP;
        }
        if (full == 2 && !shards->servers(0).data_address().empty()) {
          return shards->servers(0).name();
        }
      }
      absl::SleepFor(absl::Milliseconds(10));
    }
    return absl::DeadlineExceededError(absl::StrCat(
        "no second copy came to be:\n",
        last.servers_size() == 1 ? last.servers(0).DebugString() : last.DebugString()));
  }

  // Until a pull is answered by another server than `killed`.
  absl::Status AwaitPull(const std::string& killed) {
    for (const absl::Time give_up = absl::Now() + kPatience; absl::Now() < give_up;) {
      auto shards = daemons_->scheduler().GetShards(ref_, kCall);
      if (!shards.ok()) return shards.status();
      if (shards->servers_size() == 1 && shards->servers(0).name() != killed) {
        auto tables = MakeModelTables(shards->spec().spec(), shards->shape().fields(),
                                      shards->shape().numeric());
        if (!tables.ok()) return tables.status();
        const auto row = ReadLiveRow(*shards, tables->tables[0], Key(7), *transport_,
                                     Caller::Nobody(), absl::Milliseconds(200));
        if (row.ok()) return absl::OkStatus();
      }
      absl::SleepFor(absl::Milliseconds(2));
    }
    return absl::DeadlineExceededError("no pull was answered");
  }

  // Until training is past what was under way at `examples`.
  absl::Status AwaitStep(double examples) {
    for (const absl::Time give_up = absl::Now() + kPatience; absl::Now() < give_up;) {
      if (daemons_->Totals().examples > examples + kUnderWay) return absl::OkStatus();
      absl::SleepFor(absl::Milliseconds(2));
    }
    return absl::DeadlineExceededError("training does not go on");
  }

 private:
  std::unique_ptr<Daemons> daemons_;
  std::unique_ptr<DataTransport> transport_ = MakeGrpcTransport({});
  JobRef ref_;
};

void ReportTimes(const std::string& what, std::vector<double> seconds, double bar,
                 const Report& report) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double part) {
    return seconds[static_cast<size_t>(part * static_cast<double>(seconds.size() - 1) + 0.5)];
  };
  const std::string times = absl::StrCat(what, ", ", seconds.size(), " kills");
  report({"failover", times + ", median", at(.5), "s", {}, "", {}, ""});
  report({"failover", times + ", p99", at(.99), "s", bar, "wanted, at most", {}, ""});
  report({"failover", times + ", longest", seconds.back(), "s", {}, "", {}, ""});
}

absl::Status RunPromotion(const BenchOptions& o, const Report& report) {
  auto struck = Struck::Start(o, true);
  if (!struck.ok()) return struck.status();
  Daemons& daemons = (*struck)->daemons();
  std::vector<double> pulls, steps;
  for (int kill = 0; kill < kKills; ++kill) {
    auto head = (*struck)->AwaitCopies();
    if (!head.ok()) return head.status();
    const double examples = daemons.Totals().examples;
    const absl::Time from = absl::Now();
    daemons.Kill(*head);
    if (absl::Status s = (*struck)->AwaitPull(*head); !s.ok()) return s;
    pulls.push_back(Seconds(from));
    if (absl::Status s = (*struck)->AwaitStep(examples); !s.ok()) return s;
    steps.push_back(Seconds(from));
    if (absl::Status s = daemons.StartOne(*head); !s.ok()) return s;
    if (absl::Status s = daemons.AwaitRegistered(); !s.ok()) return s;
  }
  ReportTimes("head killed, to a pull from its copy", std::move(pulls), 2, report);
  ReportTimes("head killed, to the workers' next steps", std::move(steps), 2, report);
  return absl::OkStatus();
}

absl::Status RunWorkers(const BenchOptions& o, const Report& report) {
  auto struck = Struck::Start(o, false);
  if (!struck.ok()) return struck.status();
  Daemons& daemons = (*struck)->daemons();
  std::vector<double> lanes, scheduler;
  for (int kill = 0; kill < kKills / 10; ++kill) {
    const absl::Time from = absl::Now();
    daemons.Kill("worker-1");
    // What the other one has trained on: it can go on only with the lanes of both.
    const double examples = daemons.Totals().examples;
    if (absl::Status s = (*struck)->AwaitStep(examples); !s.ok()) return s;
    lanes.push_back(Seconds(from));
    if (absl::Status s = daemons.StartOne("worker-1"); !s.ok()) return s;
    if (absl::Status s = daemons.AwaitRegistered(); !s.ok()) return s;
  }
  for (int kill = 0; kill < kKills / 10; ++kill) {
    daemons.Kill("scheduler");
    const absl::Time from = absl::Now();
    if (absl::Status s = daemons.StartOne("scheduler"); !s.ok()) return s;
    CreateCheckpointRequest request;
    *request.mutable_job() = (*struck)->ref();
    request.set_wait_ms(20'000);
    auto made = daemons.scheduler().CreateCheckpoint(request, absl::Seconds(30));
    while (!made.ok() && Seconds(from) < 30) {
      absl::SleepFor(absl::Milliseconds(5));
      made = daemons.scheduler().CreateCheckpoint(request, absl::Seconds(30));
    }
    if (!made.ok()) return made.status();
    scheduler.push_back(Seconds(from));
  }
  ReportTimes("worker killed, to steps with its lanes, lease 2 s", std::move(lanes),
              kLeaseMs / 1000.0 + 1, report);
  ReportTimes("scheduler killed, from its start to a checkpoint made", std::move(scheduler), 3,
              report);
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> FailoverBenchmarks() {
  return {{"failover_head", "kills of a server whose shards have copies, while workers train",
           RunPromotion},
          {"failover_others", "kills of a worker and of the scheduler", RunWorkers}};
}

}  // namespace strata::bench
