#include "tools/bench/checkpoint/bench.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/partition.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/io/file_stream.h"
#include "storage/row/layout.h"
#include "tools/bench/job/memory_data.h"
#include "tools/bench/job/train_case.h"
#include "tools/cluster/embedded/cluster.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLongData = uint64_t{1} << 29;  // lines: more than any window reaches
constexpr uint32_t kBatches = 260;  // distinct ones; they name some 5 % of a model of 4 GiB
constexpr uint32_t kFields = 26, kNumeric = 13;

uint64_t ModelBytes() {
  const char* gib = std::getenv("STRATA_BENCH_GIB");
  return static_cast<uint64_t>((gib == nullptr ? 4.0 : std::atof(gib)) * (uint64_t{1} << 30));
}

TrainingJob MakeJob(const std::string& checkpoints, const std::string& init_from) {
  TrainingJob job = MakeTrainJob({"deepfm", "adagrad", 0});
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_storage()->set_durability("memory");
  spec.mutable_model()->mutable_init_from()->set_checkpoint(init_from);
  spec.mutable_checkpoint()->set_directory(checkpoints);
  spec.mutable_checkpoint()->set_full_every(2);
  spec.mutable_storage()->set_snapshot_bytes_per_second("300MiB");  // .31 GB/s
  spec.mutable_checkpoint()->set_keep(2);
  return job;
}

// A checkpoint whose features are spread evenly over the positions; other rows read as new.
absl::Status MakeModel(const std::string& folder) {
  TrainingJob job = MakeJob("", "");
  if (absl::Status s = ResolveJob(job); !s.ok()) return s;
  auto tables = MakeModelTables(job.spec(), kFields, kNumeric);
  if (!tables.ok()) return tables.status();
  storage::ShardFileHeader header;
  header.kind = storage::ShardFileKind::kCheckpoint;
  header.job = JobId(1);
  header.generation = Generation(1);
  header.identity = {{0, 1}, {0, 1}};
  header.partitioning = Partitioning(job.spec().storage().partitions());
  header.partitions = {PartitionId(0), PartitionId(header.partitioning.count() - 1)};
  for (const TableSpec& t : tables->tables) {
    const auto layout = storage::RowLayout::For(t);
    header.tables.push_back({t.id, t.kind, layout.dim, layout.state_floats});
  }
  if (absl::Status s = storage::MakeFolder(folder); !s.ok()) return s;
  auto writer = storage::ShardFileWriter::Create(folder + "/shard-00000.strata", header);
  if (!writer.ok()) return writer.status();
  const size_t row_bytes = header.tables[0].row_bytes();
  const uint64_t rows = ModelBytes() / row_bytes, each = ~uint64_t{0} / rows;
  std::vector<float> row(row_bytes / 4, 0.01f);
  std::memset(row.data() + row.size() - 2, 0, 8);
  for (uint64_t i = 0; i < rows; ++i) {
    row[0] = static_cast<float>(i % 1000) * 1e-5f;
    absl::Status s = (*writer)->AddRow(TableId(0), Position(i * each + i % 97),
                                       {reinterpret_cast<const uint8_t*>(row.data()), row_bytes});
    if (!s.ok()) return s;
  }
  auto summary = (*writer)->Finish();
  if (!summary.ok()) return summary.status();
  Manifest manifest;
  *manifest.mutable_job() = job;
  manifest.set_generation(1);
  manifest.set_partitions(header.partitioning.count());
  manifest.set_fields(kFields);
  manifest.set_numeric(kNumeric);
  CheckpointFile& file = *manifest.add_files();
  file.set_name("shard-00000.strata");
  SetWriter(header.writer(), &file);
  file.set_bytes(summary->bytes);
  file.set_crc32c(summary->crc32c);
  file.set_last_partition(header.partitions.last.value);
  file.set_rows(summary->rows);
  file.set_hash_low(summary->hash.low);
  file.set_hash_high(summary->hash.high);
  manifest.set_model_hash(ModelHashText({file}, 0));
  return WriteManifest(folder, manifest);
}

// What a step took, and its pull (which in bsp waits for the commit before).
struct Steps {
  double seconds = 0;
  uint64_t examples = 0;
  std::vector<double> pulls;
  double rate() const { return static_cast<double>(examples) / seconds; }
  double PullP99() {
    if (pulls.empty()) return 0;
    std::sort(pulls.begin(), pulls.end());
    return pulls[std::min(pulls.size() - 1, pulls.size() * 99 / 100)];
  }
};

// A step takes several times as long; each look sorts the worker's recent scores for its AUC.
constexpr absl::Duration kLook = absl::Milliseconds(10);

Steps Watch(const Worker& worker, const std::function<bool()>& over) {
  constexpr auto kPull = static_cast<size_t>(Stage::kPull);
  Steps steps;
  const WorkerCounters first = worker.Counters();
  const absl::Time from = absl::Now();
  for (WorkerCounters before = first; !over();) {
    absl::SleepFor(kLook);
    const WorkerCounters now = worker.Counters();
    if (now.examples == before.examples) continue;
    steps.pulls.push_back(now.stages.path[kPull] - before.stages.path[kPull]);
    before = now;
  }
  steps.seconds = absl::ToDoubleSeconds(absl::Now() - from);
  steps.examples = worker.Counters().examples - first.examples;
  return steps;
}

class Job {
 public:
  static absl::StatusOr<std::unique_ptr<Job>> Start(const TrainingJob& job, DataAccess* data,
                                                    const std::string& directory) {
    EmbeddedClusterOptions options;
    options.directory = directory;
    options.data = data;
    auto cluster = EmbeddedCluster::Start(options);
    if (!cluster.ok()) return cluster.status();
    auto out = std::make_unique<Job>();
    out->cluster_ = *std::move(cluster);
    SubmitRequest submit;
    *submit.mutable_job() = job;
    if (absl::Status s = ResolveJob(*submit.mutable_job()); !s.ok()) return s;
    submit.set_request_id("bench");
    auto id = out->cluster_->scheduler().Submit(submit, absl::Seconds(60));
    if (!id.ok()) return id.status();
    out->ref_.set_job(id->job());
    return out;
  }

  const Worker& worker() const { return *cluster_->worker(0); }
  absl::Status AwaitExamples(uint64_t examples) const {
    for (const absl::Time end = absl::Now() + absl::Minutes(5);
         worker().Counters().examples < examples;) {
      if (absl::Now() > end) return absl::InternalError("the job does not train");
      absl::SleepFor(absl::Milliseconds(5));
    }
    return absl::OkStatus();
  }

  // A checkpoint from asking to its manifest, and training meanwhile.
  absl::StatusOr<Steps> Checkpoint(std::string& folder) {
    std::atomic<bool> over{false};
    absl::StatusOr<CreateCheckpointReply> reply;
    std::thread asks([&] {
      CreateCheckpointRequest request;
      *request.mutable_job() = ref_;
      request.set_wait_ms(120'000);
      reply = cluster_->scheduler().CreateCheckpoint(request, absl::Seconds(130));
      over = true;
    });
    Steps steps = Watch(worker(), [&] { return over.load(); });
    asks.join();
    if (!reply.ok()) return reply.status();
    folder = reply->directory();
    return steps;
  }

 private:
  std::unique_ptr<EmbeddedCluster> cluster_;
  JobRef ref_;
};

// Bytes of the files that the checkpoint itself wrote.
uint64_t OwnBytes(const std::string& folder) {
  uint64_t bytes = 0;
  const auto manifest = ReadManifest(folder);
  if (!manifest.ok()) return 0;
  uint32_t newest = 0;
  for (const CheckpointFile& f : manifest->files()) newest = std::max(newest, f.sequence());
  for (const CheckpointFile& f : manifest->files()) {
    if (f.sequence() == newest) bytes += f.bytes();
  }
  return bytes;
}

// GB/s of sequential writes around the page cache, by as many files as shards write.
absl::StatusOr<double> DiskRate(const std::string& directory, uint64_t bytes) {
  constexpr size_t kFiles = 4;
  const std::vector<uint8_t> block(size_t{4} << 20, 7);
  std::vector<absl::Status> results(kFiles);
  const absl::Time from = absl::Now();
  std::vector<std::thread> threads;
  for (size_t f = 0; f < kFiles; ++f) {
    threads.emplace_back([&, f] {
      auto file = storage::FileStream::Create(absl::StrCat(directory, "/disk-", f));
      results[f] = file.status();
      for (uint64_t n = 0; results[f].ok() && n < bytes / kFiles; n += block.size()) {
        results[f] = file->Append(block);
      }
      if (results[f].ok()) results[f] = file->Finish();
    });
  }
  for (std::thread& t : threads) t.join();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - from);
  for (size_t f = 0; f < kFiles; ++f) {
    fs::remove(absl::StrCat(directory, "/disk-", f));
    if (!results[f].ok()) return results[f];
  }
  return static_cast<double>(bytes) / seconds / 1e9;
}

// Seconds from the first file of the last checkpoint to its manifest: the job has one step.
absl::StatusOr<double> AtTheEnd(const std::string& directory, const std::string& model,
                                double& bytes) {
  MemoryDataOptions options;
  options.batch_size = kTrainBatch;
  options.batches = 1;
  options.lines = kTrainBatch;
  const auto data = MakeMemoryData(options);
  const std::string checkpoints = directory + "/end";
  TrainingJob job = MakeJob(checkpoints, model);
  job.mutable_spec()->mutable_storage()->set_snapshot_bytes_per_second("0");
  auto running = Job::Start(job, data.get(), directory + "/end-servers");
  if (!running.ok()) return running.status();
  const std::string folder = checkpoints + "/" + CheckpointFolderName(1);
  const absl::Time end = absl::Now() + absl::Minutes(5);
  absl::Time from = absl::InfinitePast();
  while (!fs::exists(folder + "/" + kManifestName)) {
    if (from == absl::InfinitePast() && fs::exists(folder)) from = absl::Now();
    if (absl::Now() > end) return absl::InternalError("no checkpoint at the end");
    absl::SleepFor(absl::Microseconds(500));
  }
  bytes = static_cast<double>(OwnBytes(folder));
  fs::remove_all(checkpoints);
  return absl::ToDoubleSeconds(absl::Now() - from);
}

void Say(const Report& report, const std::string& name, double value, const std::string& unit,
         double limit, const std::string& limit_name) {
  Figure f;
  f.bench = "checkpoint";
  f.name = name;
  f.value = value;
  f.unit = unit;
  f.limit = limit;
  f.limit_name = limit_name;
  report(f);
}

absl::Status RunTraining(const BenchOptions& o, const std::string& model, const Report& report) {
  MemoryDataOptions data_options;
  data_options.batch_size = kTrainBatch;
  data_options.batches = kBatches;
  data_options.lines = kLongData;
  const auto data = MakeMemoryData(data_options);
  auto job = Job::Start(MakeJob(o.directory + "/checkpoints", model), data.get(),
                        o.directory + "/servers");
  if (!job.ok()) return job.status();
  const uint64_t round_trip = uint64_t{data_options.batches} * kTrainBatch;
  if (absl::Status s = (*job)->AwaitExamples(round_trip); !s.ok()) return s;
  std::vector<double> alone, with, p99_alone, p99_with, full_s, full_b, part_s, part_b;
  for (int round = 0; round < o.rounds; ++round) {
    std::string folder;
    const absl::Time until = absl::Now() + absl::Seconds(o.seconds);
    Steps by_itself = Watch((*job)->worker(), [&] { return absl::Now() >= until; });
    auto full = (*job)->Checkpoint(folder);
    if (!full.ok()) return full.status();
    full_b.push_back(static_cast<double>(OwnBytes(folder)));
    alone.push_back(by_itself.rate());
    p99_alone.push_back(by_itself.PullP99());
    with.push_back(full->rate());
    p99_with.push_back(full->PullP99());
    full_s.push_back(full->seconds);
    // Every row that the data name is touched.
    const uint64_t seen = (*job)->worker().Counters().examples;
    if (absl::Status s = (*job)->AwaitExamples(seen + round_trip); !s.ok()) return s;
    auto part = (*job)->Checkpoint(folder);
    if (!part.ok()) return part.status();
    part_b.push_back(static_cast<double>(OwnBytes(folder)));
    part_s.push_back(part->seconds);
  }
  Say(report, "DeepFM while a checkpoint is written", Median(with), "examples/s", Median(alone),
      "alone, wanted 0.95x");
  Say(report, "p99 pull while a checkpoint is written", Median(p99_with) * 1e3, "ms",
      Median(p99_alone) * 1e3, "alone, wanted at most 2x");
  Say(report, "checkpoint while DeepFM trains", Median(full_b) / Median(full_s) / 1e9, "GB/s", 0.3,
      "the bar");
  Say(report, "increment: bytes", Median(full_b) / Median(part_b), "times smaller", 10, "the bar");
  Say(report, "increment: time", Median(full_s) / Median(part_s), "times faster", 8, "the bar");
  job->reset();
  fs::remove_all(o.directory + "/checkpoints");
  return absl::OkStatus();
}

absl::Status RunStopped(const BenchOptions& o, const std::string& model, const Report& report) {
  std::vector<double> disk, ours;
  for (int round = 0; round < o.rounds; ++round) {
    auto rate = DiskRate(o.directory, ModelBytes() / 2);
    if (!rate.ok()) return rate.status();
    disk.push_back(*rate);
    double bytes = 0;
    auto seconds = AtTheEnd(absl::StrCat(o.directory, "/", round), model, bytes);
    if (!seconds.ok()) return seconds.status();
    ours.push_back(bytes / *seconds / 1e9);
  }
  Say(report, "checkpoint with training stopped", Median(ours), "GB/s", Median(disk),
      "sequential writes, wanted 0.5x");
  return absl::OkStatus();
}

absl::Status WithModel(const BenchOptions& o, const Report& report,
                       std::initializer_list<decltype(&RunTraining)> parts) {
  const std::string model = o.directory + "/model";
  if (absl::Status s = MakeModel(model); !s.ok()) return s;
  for (const auto part : parts) {
    if (absl::Status s = part(o, model, report); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> CheckpointBenchmarks() {
  return {{"checkpoint", "a checkpoint of 4 GiB while DeepFM trains, an increment, one at the end",
           [](const BenchOptions& o, const Report& r) {
             return WithModel(o, r, {RunTraining, RunStopped});
           }},
          {"checkpoint_training", "a checkpoint of 4 GiB while DeepFM trains, and an increment",
           [](const BenchOptions& o, const Report& r) { return WithModel(o, r, {RunTraining}); }},
          {"checkpoint_stopped", "a checkpoint of 4 GiB with training stopped",
           [](const BenchOptions& o, const Report& r) { return WithModel(o, r, {RunStopped}); }}};
}

}  // namespace strata::bench
