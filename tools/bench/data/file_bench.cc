#include "tools/bench/data/file_bench.h"

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/job/job_spec.h"
#include "tools/bench/job/preparsed_data.h"
#include "tools/bench/job/train_case.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/generate/criteo_generator.h"

namespace strata::bench {
namespace {

constexpr uint64_t kRows = 50 * kTrainBatch;  // some 45 MB of text

struct FileCase {
  const char* model;
  double wanted;  // ratio to training from memory
};

TrainingJob MakeJob(const FileCase& c, const std::string& file) {
  TrainingJob job = MakeTrainJob({c.model, "adagrad", 0});
  job.mutable_spec()->mutable_data()->set_train(0, file);
  job.mutable_spec()->mutable_training()->set_epochs(10'000);  // more than any window reaches
  return job;
}

// Examples per second of a job that is ended after the window.
absl::StatusOr<double> Run(const TrainingJob& job, DataAccess* data, const std::string& directory,
                           double seconds) {
  EmbeddedClusterOptions options;
  options.directory = directory;
  options.data = data;
  auto cluster = EmbeddedCluster::Start(options);
  if (!cluster.ok()) return cluster.status();
  SubmitRequest submit;
  *submit.mutable_job() = job;
  if (absl::Status s = ResolveJob(*submit.mutable_job()); !s.ok()) return s;
  submit.set_request_id("bench");
  auto id = (*cluster)->scheduler().Submit(submit, absl::Seconds(30));
  if (!id.ok()) return id.status();
  const Worker& worker = *(*cluster)->worker(0);
  const absl::Time give_up = absl::Now() + absl::Seconds(120);
  // After a pass and a few steps every id has its row.
  while (worker.Counters().examples < kRows + 10 * kTrainBatch) {
    if (absl::Now() > give_up) return absl::InternalError("the job does not train");
    absl::SleepFor(absl::Milliseconds(5));
  }
  const uint64_t before = worker.Counters().examples;
  const absl::Time from = absl::Now();
  absl::SleepFor(absl::Seconds(seconds));
  const uint64_t examples = worker.Counters().examples - before;
  return static_cast<double>(examples) / absl::ToDoubleSeconds(absl::Now() - from);
}

absl::Status RunFile(const FileCase& c, const BenchOptions& o, const Report& report) {
  const std::string directory = absl::StrCat(o.directory, "/", c.model, "-file");
  const std::string file = directory + ".tsv";
  CriteoGeneratorOptions generate;
  generate.rows = kRows;
  generate.vocabulary = 10'000'000;
  auto generated = GenerateCriteo(generate, file, {});
  if (!generated.ok()) return generated.status();
  const TrainingJob job = MakeJob(c, file);
  const auto memory = MakePreparsedData();
  std::vector<double> from_file, from_memory;
  for (int round = 0; round < o.rounds; ++round) {
    for (const bool files : {false, true}) {
      auto rate = Run(job, files ? DataAccess::Files() : memory.get(),
                      absl::StrCat(directory, round, files ? "f" : "m"), o.seconds);
      if (!rate.ok()) return rate.status();
      (files ? from_file : from_memory).push_back(*rate);
    }
  }
  Figure f;
  f.bench = absl::StrCat("train_", c.model, "_file");
  f.name = absl::StrCat(c.model, " adagrad from a file, wanted ", c.wanted, "x of memory");
  f.value = Median(from_file);
  f.unit = "examples/s";
  f.limit = Median(from_memory);
  f.limit_name = "the same parsed in memory";
  report(f);
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> FileBenchmarks() {
  static constexpr FileCase kCases[] = {{"lr", 0.60}, {"fm", 0.80}, {"deepfm", 0.95}};
  std::vector<NamedBenchmark> out;
  for (const FileCase& c : kCases) {
    out.push_back({absl::StrCat("train_", c.model, "_file"),
                   absl::StrCat(c.model, " as train_", c.model, ", input from a Criteo TSV file"),
                   [c](const BenchOptions& o, const Report& r) { return RunFile(c, o, r); }});
  }
  return out;
}

}  // namespace strata::bench
