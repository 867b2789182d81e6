#include "tools/bench/daemons/idle_bench.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/bench/cluster/child_process.h"
#include "tools/bench/cluster/daemons.h"
#include "tools/bench/daemons/small_job.h"

namespace strata::bench {
namespace {

constexpr double kIdleSeconds = 20;

absl::Status RunOne(const BenchOptions& o, bool secure, const Report& report) {
  const std::string with = secure ? ", TLS" : "";
  const std::vector<std::string> names = {"scheduler", "server-0", "worker-0"};
  std::map<std::string, std::vector<double>> idle, start, stop;
  for (int round = 0; round < o.rounds; ++round) {
    auto cluster = Daemons::Start(
        {.directory = absl::StrCat(o.directory, "/daemons", round, with), .secure = secure});
    if (!cluster.ok()) return cluster.status();
    absl::SleepFor(absl::Seconds(2));  // what a start leaves to do
    std::map<std::string, double> before;
    for (const std::string& name : names) before[name] = (*cluster)->process(name).CpuSeconds();
    const absl::Time from = absl::Now();
    absl::SleepFor(absl::Seconds(kIdleSeconds));
    const double seconds = absl::ToDoubleSeconds(absl::Now() - from);
    for (const std::string& name : names) {
      idle[name].push_back(((*cluster)->process(name).CpuSeconds() - before[name]) / seconds * 100);
    }
    for (const std::string& name : names) {
      (void)(*cluster)->process(name).Terminate();
      const absl::Time begun = absl::Now();
      if (absl::Status s = (*cluster)->StartOne(name); !s.ok()) return s;
      if (absl::Status s = (*cluster)->AwaitRegistered(); !s.ok()) return s;
      start[name].push_back(absl::ToDoubleSeconds(absl::Now() - begun));
    }
    auto job = MakeSmallJob(o.directory);
    if (!job.ok()) return job.status();
    job->mutable_spec()->mutable_replicas()->set_workers(1);
    if (auto number = (*cluster)->Submit(*job); !number.ok()) return number.status();
    absl::Status trains = (*cluster)->Await(20 * kSmallBatch, absl::Seconds(60));
    if (!trains.ok()) return trains;
    for (const std::string& name : names) {
      stop[name].push_back(absl::ToDoubleSeconds((*cluster)->process(name).Terminate()));
      if (absl::Status s = (*cluster)->StartOne(name); !s.ok()) return s;
    }
  }
  for (const std::string& name : names) {
    report({"daemons",
            absl::StrCat(name, with, ", idle, of a core"),
            Median(idle[name]),
            "%",
            1,
            "wanted, at most",
            {},
            ""});
    report({"daemons",
            absl::StrCat(name, with, ", from start to ready"),
            Median(start[name]),
            "s",
            1,
            "wanted, at most",
            {},
            ""});
    report({"daemons",
            absl::StrCat(name, with, ", SIGTERM to end, while a job trains"),
            Median(stop[name]),
            "s",
            5,
            "wanted, at most",
            {},
            ""});
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> IdleBenchmarks() {
  return {{"daemons", "processes that are idle, start and end, with TLS and without",
           [](const BenchOptions& o, const Report& r) {
             if (absl::Status s = RunOne(o, false, r); !s.ok()) return s;
             return RunOne(o, true, r);
           }}};
}

}  // namespace strata::bench
