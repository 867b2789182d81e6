#include "tools/bench/cluster/process_cluster.h"

#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/cli/inspect/top_scrape.h"

namespace strata::bench {
absl::StatusOr<std::unique_ptr<ProcessCluster>> ProcessCluster::Start(const std::string& directory,
                                                                      TrainingJob job) {
  std::filesystem::create_directories(directory);
  auto cluster = std::make_unique<ProcessCluster>();
  absl::Status s = cluster->Open(directory, std::move(job));
  if (!s.ok()) return s;
  return cluster;
}

absl::Status ProcessCluster::Open(const std::string& directory, TrainingJob job) {
  auto scheduler = BenchScheduler::Start();
  if (!scheduler.ok()) return scheduler.status();
  scheduler_ = *std::move(scheduler);
  auto server = ChildProcess::Start({BinaryBeside("server/strata-server"), "--scheduler",
                                     scheduler_->address(), "--name", "server-0", "--dir",
                                     directory + "/server"});
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  const std::string address_file = directory + "/worker-address";
  auto worker = ChildProcess::Start({BinaryBeside("worker/strata-worker"), "--scheduler",
                                     scheduler_->address(), "--name", "worker-0", "--dir",
                                     directory + "/worker", "--metrics-listen", "127.0.0.1:0",
                                     "--address-file", address_file});
  if (!worker.ok()) return worker.status();
  worker_ = *std::move(worker);
  auto address = ReadAddressFile(address_file);
  if (!address.ok()) return address.status();
  metrics_ = *address;
  return scheduler_->Submit(std::move(job));
}

absl::Status ProcessCluster::Await(uint64_t examples, absl::Duration patience) const {
  const absl::Time give_up = absl::Now() + patience;
  absl::StatusOr<TrainWindow> now = Totals();
  while (!now.ok() || now->examples < static_cast<double>(examples)) {
    if (absl::Now() > give_up) {
      if (!now.ok()) return now.status();
      return absl::InternalError(absl::StrCat("the job has seen ", now->examples,
                                              " examples and not ", examples, " after ",
                                              absl::FormatDuration(patience)));
    }
    absl::SleepFor(absl::Milliseconds(20));
    now = Totals();
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainWindow> ProcessCluster::Measure(double seconds) const {
  const absl::StatusOr<TrainWindow> before = Totals();
  if (!before.ok()) return before;
  const absl::Time from = absl::Now();
  absl::SleepFor(absl::Seconds(seconds));
  absl::StatusOr<TrainWindow> after = Totals();
  if (!after.ok()) return after;
  after->seconds = absl::ToDoubleSeconds(absl::Now() - from);
  after->examples -= before->examples;
  after->stages = after->stages - before->stages;
  return after;
}

// Since the worker began.
absl::StatusOr<TrainWindow> ProcessCluster::Totals() const {
  auto values = Scrape(metrics_, absl::Seconds(5));
  if (!values.ok()) return values.status();
  TrainWindow totals;
  totals.examples = (*values)["strata_worker_examples_total"];
  for (size_t i = 0; i < kStages; ++i) {
    const std::string name = absl::StrCat(kStageNames[i], "_seconds_total");
    totals.stages.path[i] = (*values)["strata_worker_step_" + name];
    totals.stages.ahead[i] = (*values)["strata_worker_ahead_" + name];
  }
  return totals;
}

}  // namespace strata::bench
