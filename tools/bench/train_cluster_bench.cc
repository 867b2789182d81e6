#include "tools/bench/train_cluster_bench.h"

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
#include "proto/core/job_spec.h"
#include "scheduler/memory_metadata_store.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_service.h"
#include "tools/bench/train_case.h"
#include "tools/bench/wire_cluster.h"
#include "tools/cli/top_scrape.h"
#include "tools/generate/criteo_generator.h"

namespace strata::bench {
namespace {

constexpr uint64_t kRows = 100 * kTrainBatch;  // some 90 MB of text
constexpr absl::Duration kPatience = absl::Seconds(30);

// A scheduler here, a server and a worker as processes, and a job on them until the end.
class Cluster {
 public:
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(const std::string& directory,
                                                        TrainingJob job) {
    std::filesystem::create_directories(directory);
    auto cluster = std::make_unique<Cluster>();
    absl::Status s = cluster->Open(directory, std::move(job));
    if (!s.ok()) return s;
    return cluster;
  }

  // A window of that length, after `warm_up` examples were seen.
  absl::StatusOr<TrainWindow> Measure(double seconds, uint64_t warm_up) const {
    const absl::Time give_up = absl::Now() + absl::Seconds(120);
    absl::StatusOr<TrainWindow> before = Totals();
    while (!before.ok() || before->examples < static_cast<double>(warm_up)) {
      if (absl::Now() > give_up) {
        return before.ok() ? absl::InternalError("the job does not train") : before.status();
      }
      absl::SleepFor(absl::Milliseconds(20));
      before = Totals();
    }
    const absl::Time from = absl::Now();
    absl::SleepFor(absl::Seconds(seconds));
    absl::StatusOr<TrainWindow> after = Totals();
    if (!after.ok()) return after.status();
    after->seconds = absl::ToDoubleSeconds(absl::Now() - from);
    after->examples -= before->examples;
    after->stages = after->stages - before->stages;
    return after;
  }

 private:
  absl::Status Open(const std::string& directory, TrainingJob job) {
    scheduler::SchedulerOptions options;
    options.store = scheduler::MakeMemoryMetadataStore();
    auto scheduler = scheduler::Scheduler::Start(std::move(options));
    if (!scheduler.ok()) return scheduler.status();
    scheduler_ = *std::move(scheduler);
    scheduler::SchedulerServiceOptions service;
    service.scheduler = scheduler_.get();
    auto started = scheduler::SchedulerService::Start(service);
    if (!started.ok()) return started.status();
    service_ = *std::move(started);
    auto server = ChildProcess::Start({BinaryBeside("server/strata-server"), "--scheduler",
                                       service_->address(), "--name", "server-0", "--dir",
                                       directory + "/server"});
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    const std::string address_file = directory + "/worker-address";
    auto worker = ChildProcess::Start({BinaryBeside("worker/strata-worker"), "--scheduler",
                                       service_->address(), "--name", "worker-0", "--dir",
                                       directory + "/worker", "--metrics-listen", "127.0.0.1:0",
                                       "--address-file", address_file});
    if (!worker.ok()) return worker.status();
    worker_ = *std::move(worker);
    auto address = ReadAddressFile(address_file);
    if (!address.ok()) return address.status();
    metrics_ = *address;
    SubmitRequest submit;
    *submit.mutable_job() = std::move(job);
    if (absl::Status s = ResolveJob(*submit.mutable_job()); !s.ok()) return s;
    submit.set_request_id("bench");
    return scheduler_->Submit(submit, kPatience).status();
  }

  // Since the worker began.
  absl::StatusOr<TrainWindow> Totals() const {
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

  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<scheduler::SchedulerService> service_;
  std::unique_ptr<ChildProcess> server_;
  std::unique_ptr<ChildProcess> worker_;
  std::string metrics_;
};

absl::Status RunCluster(const BenchOptions& o, const Report& report) {
  constexpr TrainCase kCase = {"deepfm", "adagrad", 1.0};
  const std::string file = o.directory + "/cluster.tsv";
  CriteoGeneratorOptions generate;
  generate.rows = kRows;
  generate.vocabulary = 10'000'000;
  auto generated = GenerateCriteo(generate, file, {});
  if (!generated.ok()) return generated.status();
  TrainingJob job = MakeTrainJob(kCase);
  job.mutable_spec()->mutable_data()->set_train(0, file);
  job.mutable_spec()->mutable_training()->set_epochs(10'000);  // more than any window reaches
  std::vector<double> ours, peers;
  TrainWindow last;
  for (int round = 0; round < o.rounds; ++round) {
    {
      auto cluster = Cluster::Start(absl::StrCat(o.directory, "/cluster", round), job);
      if (!cluster.ok()) return cluster.status();
      auto window = (*cluster)->Measure(o.seconds, kRows + 10 * kTrainBatch);
      if (!window.ok()) return window.status();
      ours.push_back(window->rate());
      last = *window;
    }
    if (auto peer = RunPeer(kCase, o)) peers.push_back(*peer);
  }
  Figure f;
  f.bench = "train_deepfm_cluster";
  f.name = absl::StrCat("deepfm adagrad, 1 lane x ", kTrainBatch, ", one server, one worker");
  f.value = Median(ours);
  f.unit = "examples/s";
  if (!peers.empty()) {
    f.peer = Median(peers);
    f.peer_name = absl::StrCat("PyTorch tuned, wanted ", kCase.bar, "x");
  }
  report(f);
  ReportSteps(f.bench, last, report);
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> TrainClusterBenchmarks() {
  return {{"train_deepfm_cluster",
           "deepfm with Adagrad, one server and one worker process, bsp, logged, input from a file",
           RunCluster}};
}

}  // namespace strata::bench
