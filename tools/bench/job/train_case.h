// What the training benchmarks train: the models and shapes of PyTorch's program in the baselines
// folder.
#ifndef STRATA_TOOLS_BENCH_JOB_TRAIN_CASE_H_
#define STRATA_TOOLS_BENCH_JOB_TRAIN_CASE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "proto/strata/job.pb.h"
#include "tools/bench/base/figure.h"
#include "worker/metrics/stage_times.h"

namespace strata::bench {

inline constexpr uint32_t kTrainBatch = 4096;
inline constexpr size_t kTrainThreads = 2;

struct TrainCase {
  const char* model;
  const char* optimizer;  // sparse and dense
  double bar;             // wanted ratio to the peer; 0: the peer has no such model
};

// Bsp, one lane of kTrainBatch, durability logged; the input is to be named by the caller, or
// "memory".
TrainingJob MakeTrainJob(const TrainCase& c);

// The peer's median examples per second, or nothing when it cannot be run.
std::optional<double> RunPeer(const TrainCase& c, const BenchOptions& o);

// What was counted over a measured window.
struct TrainWindow {
  double seconds = 0;
  double examples = 0;
  StageSeconds stages;
  double rate() const { return examples / seconds; }
};

// The table of a step's time: milliseconds a step by stage, and their sum beside the time that a
// step took by the window's clock.
void ReportSteps(const std::string& bench, const TrainWindow& window, const Report& report);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_JOB_TRAIN_CASE_H_
