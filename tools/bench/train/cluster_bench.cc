#include "tools/bench/train/cluster_bench.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/strata/job.pb.h"
#include "tools/bench/cluster/daemons.h"
#include "tools/bench/job/train_case.h"
#include "tools/generate/criteo_generator.h"

namespace strata::bench {
namespace {

constexpr uint64_t kRows = 100 * kTrainBatch;  // some 90 MB of text

// A job over a file that it goes round for longer than any window.
absl::StatusOr<TrainingJob> MakeFileJob(const TrainCase& c, const BenchOptions& o) {
  const std::string file = o.directory + "/cluster.tsv";
  CriteoGeneratorOptions generate;
  generate.rows = kRows;
  generate.vocabulary = 10'000'000;
  auto generated = GenerateCriteo(generate, file, {});
  if (!generated.ok()) return generated.status();
  TrainingJob job = MakeTrainJob(c);
  job.mutable_spec()->mutable_data()->set_train(0, file);
  job.mutable_spec()->mutable_training()->set_epochs(10'000);
  return job;
}

// A window on a cluster of its own, when every row is there.
absl::StatusOr<TrainWindow> MeasureOn(const DaemonsOptions& options, const TrainingJob& job,
                                      double seconds) {
  auto cluster = Daemons::Start(options);
  if (!cluster.ok()) return cluster.status();
  if (auto number = (*cluster)->Submit(job); !number.ok()) return number.status();
  absl::Status warm = (*cluster)->Await(kRows + 10 * kTrainBatch, absl::Seconds(120));
  if (!warm.ok()) return warm;
  auto window = (*cluster)->Measure(seconds);
  cluster->reset();
  std::filesystem::remove_all(options.directory);
  return window;
}

absl::Status RunCluster(const BenchOptions& o, const Report& report) {
  constexpr TrainCase kCase = {"deepfm", "adagrad", 1.0};
  auto job = MakeFileJob(kCase, o);
  if (!job.ok()) return job.status();
  std::vector<double> ours, peers;
  TrainWindow last;
  for (int round = 0; round < o.rounds; ++round) {
    auto window =
        MeasureOn({.directory = absl::StrCat(o.directory, "/cluster", round)}, *job, o.seconds);
    if (!window.ok()) return window.status();
    ours.push_back(window->rate());
    last = *window;
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

// The same job on clusters with a guarantee and without, in turn.
absl::Status RunGuarantees(const BenchOptions& o, const Report& report, const char* model) {
  struct Case {
    const char* what;
    const char* durability;
    int servers;
    bool secure;
    double bar;
    std::vector<double> rates = {};
  };
  Case cases[] = {{"logged, without TLS", "logged", 1, false, 0},
                  {"replicated, 2 copies", "replicated", 2, false, .85},
                  {"logged, by TLS", "logged", 1, true, .95}};
  auto job = MakeFileJob({model, "adagrad", 0}, o);
  if (!job.ok()) return job.status();
  job->mutable_spec()->mutable_replicas()->set_servers(1);
  for (int round = 0; round < o.rounds; ++round) {
    for (Case& c : cases) {
      job->mutable_spec()->mutable_storage()->set_durability(c.durability);
      auto window = MeasureOn({.directory = absl::StrCat(o.directory, "/guarantees"),
                               .servers = c.servers,
                               .secure = c.secure},
                              *job, o.seconds);
      if (!window.ok()) return window.status();
      c.rates.push_back(window->rate());
    }
  }
  for (const Case& c : cases) {
    if (c.bar == 0) continue;
    report({"train_guarantees",
            absl::StrCat(model, ", ", c.what),
            Median(c.rates),
            "examples/s",
            Median(cases[0].rates),
            absl::StrCat(cases[0].what, ", wanted ", c.bar),
            {},
            ""});
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> TrainClusterBenchmarks() {
  return {{"train_deepfm_cluster",
           "deepfm with Adagrad, one server and one worker process, bsp, logged, input from a file",
           RunCluster},
          {"train_guarantees", "deepfm and fm on a cluster with copies, with TLS, and without",
           [](const BenchOptions& o, const Report& r) {
             for (const char* model : {"deepfm", "fm"}) {
               if (absl::Status s = RunGuarantees(o, r, model); !s.ok()) return s;
             }
             return absl::OkStatus();
           }}};
}

}  // namespace strata::bench
