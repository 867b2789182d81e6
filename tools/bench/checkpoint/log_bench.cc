#include "tools/bench/checkpoint/log_bench.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/strata/job.pb.h"
#include "tools/bench/checkpoint/replay_load.h"
#include "tools/bench/job/memory_data.h"
#include "tools/bench/job/running_job.h"
#include "tools/bench/job/train_case.h"
#include "tools/bench/wire/driver.h"

namespace strata::bench {
namespace {

struct Level {
  const char* durability;
  double bar;  // wanted ratio to `memory`; 0: none
  std::vector<double> rates = {};
};

void ReportLevels(const std::string& what, const std::string& unit,
                  const std::vector<Level>& levels, const Report& report) {
  for (size_t i = 1; i < levels.size(); ++i) {
    Figure f;
    f.bench = "log";
    f.name = absl::StrCat(what, ", ", levels[i].durability);
    f.value = Median(levels[i].rates);
    f.unit = unit;
    f.limit = Median(levels[0].rates);
    f.limit_name = levels[i].bar == 0 ? "memory" : absl::StrCat("memory, wanted ", levels[i].bar);
    report(f);
  }
}

absl::Status RunTraining(const BenchOptions& o, const Report& report, const TrainCase& c) {
  MemoryDataOptions data_options;
  data_options.batch_size = kTrainBatch;
  data_options.lines = uint64_t{1} << 29;
  const auto data = MakeMemoryData(data_options);
  std::vector<Level> levels = {{"memory", 0}, {"logged", .85}, {"synced", 0}};
  for (int round = 0; round < o.rounds; ++round) {
    for (Level& level : levels) {
      TrainingJob job = MakeTrainJob(c);
      job.mutable_spec()->mutable_storage()->set_durability(level.durability);
      const std::string folder =
          absl::StrCat(o.directory, "/log-", c.model, "-", level.durability, round);
      auto running = RunningJob::Start(std::move(job), data.get(), folder);
      if (!running.ok()) return running.status();
      auto window =
          (*running)->Measure(o.seconds, uint64_t{2} * data_options.batches * kTrainBatch);
      if (!window.ok()) return window.status();
      level.rates.push_back(window->rate());
      running->reset();
      std::filesystem::remove_all(folder);
    }
  }
  ReportLevels(absl::StrCat("train_", c.model), "examples/s", levels, report);
  return absl::OkStatus();
}

absl::Status RunWire(const BenchOptions& o, const Report& report) {
  std::vector<Level> levels = {{"memory", 0}, {"logged", .70}, {"synced", 0}};
  std::vector<std::unique_ptr<WireDriver>> drivers;
  for (const Level& level : levels) {
    auto driver = WireDriver::Open(o, {.durability = level.durability});
    if (!driver.ok()) return driver.status();
    drivers.push_back(*std::move(driver));
  }
  for (int round = 0; round < o.rounds; ++round) {
    for (size_t i = 0; i < levels.size(); ++i) {
      auto calls = drivers[i]->Pushes(o.seconds);
      if (!calls.ok()) return calls.status();
      levels[i].rates.push_back(*calls * kKeys / 1e6);
    }
  }
  ReportLevels("wire_push", "Mkeys/s", levels, report);
  return absl::OkStatus();
}

// One shard recovers, which one thread does: reading, checking and applying.
absl::Status RunReplay(const BenchOptions& o, const Report& report) {
  const std::string folder = o.directory + "/log-replay";
  auto load = ReplayLoad::Write(folder);
  if (!load.ok()) return load.status();
  std::vector<double> recover, read;
  for (int round = 0; round < o.rounds; ++round) {
    auto seconds = load->Recover();
    if (!seconds.ok()) return seconds.status();
    recover.push_back(static_cast<double>(load->log_bytes()) / 1e6 / *seconds);
    seconds = load->Read();
    if (!seconds.ok()) return seconds.status();
    read.push_back(static_cast<double>(load->log_bytes()) / 1e6 / *seconds);
  }
  std::filesystem::remove_all(folder);
  Figure f;
  f.bench = "log";
  f.name = absl::StrCat("replay of ", load->log_bytes() >> 20, " MiB on one core, wanted 300");
  f.value = Median(recover);
  f.unit = "MB/s";
  f.limit = Median(read);
  f.limit_name = "read and check alone";
  report(f);
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> LogBenchmarks() {
  return {{"log", "levels logged and synced against memory; replay",
           [](const BenchOptions& o, const Report& r) -> absl::Status {
             if (absl::Status s = RunReplay(o, r); !s.ok()) return s;
             for (const char* model : {"lr", "fm", "deepfm"}) {
               if (absl::Status s = RunTraining(o, r, {model, "adagrad", 0}); !s.ok()) return s;
             }
             return RunWire(o, r);
           }},
          {"log_replay", "replay of a log of one shard on one core", RunReplay},
          {"log_deepfm", "train_deepfm at each level, in turn",
           [](const BenchOptions& o, const Report& r) {
             return RunTraining(o, r, {"deepfm", "adagrad", 0});
           }},
          {"log_wire", "pushes over gRPC at each level, in turn", RunWire}};
}

}  // namespace strata::bench
