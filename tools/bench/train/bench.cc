#include "tools/bench/train/bench.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/bench/base/limits.h"
#include "tools/bench/job/memory_data.h"
#include "tools/bench/job/running_job.h"
#include "tools/bench/job/train_case.h"

namespace strata::bench {
namespace {

// FLOP of an example in products of layers: forward and both halves of backward. 0 where a model
// has none.
double LayerFlop(const TrainCase& c) {
  const std::string model = c.model;
  std::vector<std::vector<double>> perceptrons;
  if (model == "deepfm" || model == "wide_deep") {
    perceptrons = {{26 * 16 + 13, 400, 400, 400, 1}};
  } else if (model == "dlrm") {
    perceptrons = {{13, 512, 256, 64, 16}, {16 + 27 * 26 / 2, 512, 256, 1}};
  }
  double flop = 0;
  for (const std::vector<double>& width : perceptrons) {
    for (size_t i = 0; i + 1 < width.size(); ++i) flop += 6 * width[i] * width[i + 1];
  }
  return flop;
}

absl::Status RunTrain(const TrainCase& c, const BenchOptions& o, const Report& report) {
  MemoryDataOptions data_options;
  data_options.batch_size = kTrainBatch;
  data_options.lines = uint64_t{1} << 29;  // more than any window reaches
  const auto data = MakeMemoryData(data_options);
  std::vector<double> ours, peers, limits;
  TrainWindow last;
  for (int round = 0; round < o.rounds; ++round) {
    {
      auto job = RunningJob::Start(MakeTrainJob(c), data.get(),
                                   absl::StrCat(o.directory, "/", c.model, round));
      if (!job.ok()) return job.status();
      // Twice round the batches: every id that can come has its row.
      auto window = (*job)->Measure(o.seconds, 2 * data_options.batches * kTrainBatch);
      if (!window.ok()) return window.status();
      ours.push_back(window->rate());
      last = *window;
    }
    if (auto peer = RunPeer(c, o)) peers.push_back(*peer);
    if (LayerFlop(c) > 0) {
      limits.push_back(FmaPeak(kTrainThreads, 0.5) * 1e9 / LayerFlop(c));
    } else {
      // Each example reads and writes 26 rows of its distinct ids' share; a row is gathered twice.
      limits.push_back(GatherRate(kTrainThreads, 4'000'000, 0.5) * 1e6 / (26 * 2));
    }
  }
  Figure f;
  f.bench = absl::StrCat("train_", c.model);
  f.name = absl::StrCat(c.model, " ", c.optimizer, ", 1 lane x ", kTrainBatch);
  f.value = Median(ours);
  f.unit = "examples/s";
  f.limit = Median(limits);
  f.limit_name = LayerFlop(c) > 0 ? "FMA peak / FLOP" : "row gathers";
  if (!peers.empty()) {
    f.peer = Median(peers);
    f.peer_name = absl::StrCat("PyTorch tuned, wanted ", c.bar, "x");
  }
  report(f);
  ReportSteps(f.bench, last, report);
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> TrainBenchmarks() {
  static constexpr TrainCase kCases[] = {{"lr", "adagrad", 4.0},
                                         {"fm", "adagrad", 4.0},
                                         {"deepfm", "adagrad", 1.2},
                                         {"dlrm", "adagrad", 1.2},
                                         {"wide_deep", "adagrad", 0}};
  std::vector<NamedBenchmark> out;
  for (const TrainCase& c : kCases) {
    out.push_back({absl::StrCat("train_", c.model),
                   absl::StrCat(c.model, " with Adagrad, embedded, bsp, logged, input in memory"),
                   [c](const BenchOptions& o, const Report& r) { return RunTrain(c, o, r); }});
  }
  return out;
}

}  // namespace strata::bench
