#include "tools/bench/train/cluster_bench.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/strata/job.pb.h"
#include "tools/bench/cluster/process_cluster.h"
#include "tools/bench/job/train_case.h"
#include "tools/generate/criteo_generator.h"

namespace strata::bench {
namespace {

constexpr uint64_t kRows = 100 * kTrainBatch;  // some 90 MB of text

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
      auto cluster = ProcessCluster::Start(absl::StrCat(o.directory, "/cluster", round), job);
      if (!cluster.ok()) return cluster.status();
      absl::Status warm = (*cluster)->Await(kRows + 10 * kTrainBatch, absl::Seconds(120));
      if (!warm.ok()) return warm;
      auto window = (*cluster)->Measure(o.seconds);
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
