#include "tools/bench/train_bench.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/job_spec.h"
#include "tools/bench/limits.h"
#include "tools/bench/memory_data.h"
#include "tools/cluster/embedded_cluster.h"

namespace strata::bench {
namespace {

constexpr uint32_t kBatch = 4096;
constexpr size_t kThreads = 2;

struct TrainCase {
  const char* model;
  const char* optimizer;  // sparse and dense
  double bar;             // wanted ratio to the peer
};

TrainingJob MakeJob(const TrainCase& c) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name(absl::StrCat("bench-", c.model));
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("criteo");
  spec.mutable_data()->add_train("memory");
  spec.mutable_model()->set_type(c.model);
  spec.mutable_optimizer()->mutable_sparse()->set_type(c.optimizer);
  spec.mutable_optimizer()->mutable_dense()->set_type(c.optimizer);
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(0.01f);
  spec.mutable_optimizer()->mutable_dense()->set_learning_rate(0.01f);
  spec.mutable_training()->set_lanes(1);
  spec.mutable_training()->set_batch_size(kBatch);
  spec.mutable_training()->set_threads(kThreads);
  spec.mutable_storage()->set_durability("logged");
  return job;
}

// A job that runs until it is destroyed.
class RunningJob {
 public:
  static absl::StatusOr<std::unique_ptr<RunningJob>> Start(const TrainCase& c, DataAccess* data,
                                                           const std::string& directory) {
    EmbeddedClusterOptions options;
    options.directory = directory;
    options.data = data;
    auto cluster = EmbeddedCluster::Start(options);
    if (!cluster.ok()) return cluster.status();
    auto running = std::make_unique<RunningJob>();
    running->cluster_ = *std::move(cluster);
    SubmitRequest submit;
    *submit.mutable_job() = MakeJob(c);
    if (absl::Status s = ResolveJob(*submit.mutable_job()); !s.ok()) return s;
    submit.set_request_id("bench");
    auto id = running->cluster_->scheduler().Submit(submit, absl::Seconds(30));
    if (!id.ok()) return id.status();
    running->job_ = id->job();
    return running;
  }

  // Examples per second over a window, after `warm_up` examples were seen.
  absl::StatusOr<double> Measure(double seconds, uint64_t warm_up) {
    const Worker& worker = *cluster_->worker(0);
    const absl::Time give_up = absl::Now() + absl::Seconds(120);
    while (worker.Counters().examples < warm_up) {
      if (absl::Now() > give_up) return Stuck();
      absl::SleepFor(absl::Milliseconds(5));
    }
    const uint64_t before = worker.Counters().examples;
    const absl::Time from = absl::Now();
    absl::SleepFor(absl::Seconds(seconds));
    const uint64_t examples = worker.Counters().examples - before;
    return static_cast<double>(examples) / absl::ToDoubleSeconds(absl::Now() - from);
  }

 private:
  absl::Status Stuck() {
    JobRef ref;
    ref.set_job(job_);
    auto status = cluster_->scheduler().GetJob(ref, absl::Seconds(5));
    return absl::InternalError(absl::StrCat(
        "the job does not train: ",
        status.ok() ? status->ShortDebugString() : std::string(status.status().message())));
  }

  std::unique_ptr<EmbeddedCluster> cluster_;
  uint64_t job_ = 0;
};

// The peer's median examples per second, or nothing when it cannot be run.
std::optional<double> RunPeer(const TrainCase& c, const BenchOptions& o) {
  if (o.baselines.empty()) return std::nullopt;
  const std::string command = absl::StrCat(
      "cd '", o.baselines, "/torch' && MALLOC_MMAP_THRESHOLD_=1073741824 ",
      "MALLOC_TRIM_THRESHOLD_=8589934592 ",
      "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp OMP_NUM_THREADS=", kThreads,
      " OPENBLAS_CORETYPE=SkylakeX PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 ctr.py ", c.model,
      " ", c.optimizer, " ", kThreads, " ", o.seconds, " 2>&1");
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer;
  while (size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), n);
  }
  pclose(pipe);
  const size_t at = text.find("samples/s median ");
  if (at == std::string::npos) {
    std::fprintf(stderr, "the peer said: %s\n", text.c_str());
    return std::nullopt;
  }
  return std::strtod(text.c_str() + at + 17, nullptr);
}

// Multiply-adds of a DeepFM example's perceptron, forward and both halves of backward, as FLOP.
double PerceptronFlop() {
  const std::array<double, 5> width = {26 * 16 + 13, 400, 400, 400, 1};
  double flop = 0;
  for (size_t i = 0; i + 1 < width.size(); ++i) flop += 6 * width[i] * width[i + 1];
  return flop;
}

absl::Status RunTrain(const TrainCase& c, const BenchOptions& o, const Report& report) {
  MemoryDataOptions data_options;
  data_options.batch_size = kBatch;
  data_options.lines = uint64_t{1} << 29;  // more than any window reaches
  const auto data = MakeMemoryData(data_options);
  std::vector<double> ours, peers, limits;
  for (int round = 0; round < o.rounds; ++round) {
    {
      auto job = RunningJob::Start(c, data.get(), absl::StrCat(o.directory, "/", c.model, round));
      if (!job.ok()) return job.status();
      // Twice round the batches: every id that can come has its row.
      auto rate = (*job)->Measure(o.seconds, 2 * data_options.batches * kBatch);
      if (!rate.ok()) return rate.status();
      ours.push_back(*rate);
    }
    if (auto peer = RunPeer(c, o)) peers.push_back(*peer);
    if (std::string(c.model) == "deepfm") {
      limits.push_back(FmaPeak(kThreads, 0.5) * 1e9 / PerceptronFlop());
    } else {
      // Each example reads and writes 26 rows of its distinct ids' share; a row is gathered twice.
      limits.push_back(GatherRate(kThreads, 4'000'000, 0.5) * 1e6 / (26 * 2));
    }
  }
  Figure f;
  f.bench = absl::StrCat("train_", c.model);
  f.name = absl::StrCat(c.model, " ", c.optimizer, ", 1 lane x ", kBatch);
  f.value = Median(ours);
  f.unit = "examples/s";
  f.limit = Median(limits);
  f.limit_name = std::string(c.model) == "deepfm" ? "FMA peak / FLOP" : "row gathers";
  if (!peers.empty()) {
    f.peer = Median(peers);
    f.peer_name = absl::StrCat("PyTorch tuned, wanted ", c.bar, "x");
  }
  report(f);
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> TrainBenchmarks() {
  static constexpr TrainCase kCases[] = {
      {"lr", "adagrad", 4.0}, {"fm", "adagrad", 4.0}, {"deepfm", "adagrad", 1.2}};
  std::vector<NamedBenchmark> out;
  for (const TrainCase& c : kCases) {
    out.push_back({absl::StrCat("train_", c.model),
                   absl::StrCat(c.model, " with Adagrad, embedded, bsp, logged, input in memory"),
                   [c](const BenchOptions& o, const Report& r) { return RunTrain(c, o, r); }});
  }
  return out;
}

}  // namespace strata::bench
