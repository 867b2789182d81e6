#include "tools/bench/train/tiered_bench.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/core/memory_part.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/model_tables.h"
#include "server/memory_estimate.h"
#include "storage/dram/store.h"
#include "storage/row/layout.h"
#include "storage/tiered/options.h"
#include "tools/bench/cluster/child_process.h"
#include "tools/bench/job/memory_data.h"
#include "tools/bench/job/paced_job.h"
#include "tools/bench/job/train_case.h"
#include "tools/bench/train/tiered_memory.h"
#include "worker/memory_estimate.h"

namespace strata::bench {
namespace {

constexpr uint64_t kIds = 10'000'000;
constexpr uint32_t kShards = 4;
constexpr uint32_t kFields = 26;
constexpr uint32_t kNumeric = 13;
constexpr uint64_t kWarmSteps = 40;
constexpr uint64_t kWindowSteps = 30;
constexpr TrainCase kCase = {"deepfm", "adagrad", 0};

MemoryDataOptions Data(uint64_t windows) {
  MemoryDataOptions data;
  data.batch_size = kTrainBatch;
  data.ids = kIds;
  data.every_id_first = true;
  data.batches = static_cast<uint32_t>(kWarmSteps + windows * kWindowSteps);
  data.lines = (EveryIdSteps(data) + data.batches) * kTrainBatch;
  return data;
}

// DRAM for a tenth of the rows, and for the dense part.
uint64_t LimitBytes(const ModelTables& model) {
  uint64_t bytes = 0;
  for (const TableSpec& table : model.tables) {
    storage::TieredOptions options;
    options.row_bytes = storage::RowLayout::For(table).row_bytes();
    uint64_t rows = kIds / 10;
    if (table.kind == TableKind::kDense) {
      rows = 0;
      for (const TensorSpec& tensor : table.tensors) rows += tensor.Rows(table.dim());
    }
    bytes += kShards *
             (storage::RowStore::BytesFor(storage::TieredStoreOptions(options), rows / kShards) +
              storage::RowStore::kPageSlack);
  }
  return bytes;
}

// What the formulas of `strata estimate` say of a job's server and worker in one process.
uint64_t Formula(const TrainingJob& job, const ModelTables& model, uint64_t limit) {
  server::ServerLoad server;
  server.tables = model.tables;
  server.rows = kIds;
  server.shards_here = kShards;
  server.dram_bytes = limit;
  server.row_file = job.spec().storage().ssd() == "rowfile";
  server.threads = std::min(kShards, std::max(1u, std::thread::hardware_concurrency()));
  server.keys_per_push = server.keys_per_step = uint64_t{kFields} * kTrainBatch;
  WorkerLoad worker;
  worker.tables = model;
  worker.batch_size = kTrainBatch;
  worker.pipeline_depth = job.spec().training().pipeline_depth();
  worker.prefetch = true;
  worker.lines = kIds;
  worker.features_per_example = kFields;
  worker.keys_per_batch = worker.keys_per_push = server.keys_per_push;
  uint64_t bytes = TotalBytes(server::EstimateServer(server));
  for (const MemoryPart& part : EstimateWorker(worker)) {
    if (part.name != "reading" && part.name != "lines being shuffled") bytes += part.bytes;
  }
  return bytes;
}

Figure Line(std::string name, double value, std::string unit) {
  Figure f;
  f.bench = "tiered_training";
  f.name = std::move(name);
  f.value = value;
  f.unit = std::move(unit);
  return f;
}

// What the job added to this process: its input in memory, the cluster and whatever else was there
// before are not the formula's business.
void ReportMemory(uint64_t before, uint64_t formula, const Report& report) {
  constexpr double kMiB = 1 << 20;
  Figure f = Line("resident memory of the job, embedded, a tenth of the rows in DRAM",
                  static_cast<double>(OwnResidentBytes() - before) / kMiB, "MiB");
  f.limit = static_cast<double>(formula) / kMiB;
  f.limit_name = "strata estimate, wanted within 5 %";
  report(f);
}

struct Pair {
  std::unique_ptr<PacedJob> limited, unlimited;
  uint64_t first_step = 0;  // of the first window
};

absl::StatusOr<Pair> Prepare(const BenchOptions& o, const std::string& ssd,
                             const MemoryDataOptions& data, const Report& report) {
  Pair pair;
  pair.first_step = EveryIdSteps(data) + kWarmSteps;
  TrainingJob job = MakeTrainJob(kCase);
  StorageSpec& storage = *job.mutable_spec()->mutable_storage();
  storage.set_shards_per_server(kShards);
  storage.set_ssd(ssd);
  if (absl::Status s = ResolveJob(job); !s.ok()) return s;
  auto limited = PacedJob::Make(data, absl::StrCat(o.directory, "/limited"));
  if (!limited.ok()) return limited.status();
  pair.limited = *std::move(limited);
  auto model = MakeModelTables(job.spec(), kFields, kNumeric);
  if (!model.ok()) return model.status();
  const uint64_t limit = LimitBytes(*model);
  TrainingJob tenth = job;
  tenth.mutable_spec()->mutable_storage()->set_dram_bytes_per_server(absl::StrCat(limit));
  const uint64_t before = OwnResidentBytes();
  if (absl::Status s = pair.limited->Submit(tenth); !s.ok()) return s;
  if (auto s = pair.limited->RunTo(pair.first_step); !s.ok()) return s.status();
  ReportMemory(before, Formula(tenth, *model, limit), report);
  if (absl::Status s = MeasureTieredMemory(o, tenth, kIds, report); !s.ok()) return s;
  auto unlimited = PacedJob::Make(data, absl::StrCat(o.directory, "/unlimited"));
  if (!unlimited.ok()) return unlimited.status();
  pair.unlimited = *std::move(unlimited);
  if (absl::Status s = pair.unlimited->Submit(job); !s.ok()) return s;
  if (auto s = pair.unlimited->RunTo(pair.first_step); !s.ok()) return s.status();
  return pair;
}

absl::Status ReportModels(Pair& pair, const Report& report) {
  auto limited = pair.limited->Finish();
  if (!limited.ok()) return limited.status();
  auto unlimited = pair.unlimited->Finish();
  if (!unlimited.ok()) return unlimited.status();
  if (limited->model_hash() != unlimited->model_hash()) {
    return absl::InternalError(absl::StrCat("the models differ: ", limited->model_hash(),
                                            " with the limit, ", unlimited->model_hash(),
                                            " without"));
  }
  report(Line("models equal to the bit", 1, "of 1"));
  return absl::OkStatus();
}

absl::Status RunTieredTraining(const std::string& ssd, const BenchOptions& o,
                               const Report& report) {
  const auto rounds = static_cast<uint64_t>(o.rounds);
  auto pair = Prepare(o, ssd, Data(rounds), report);
  if (!pair.ok()) return pair.status();
  std::vector<double> limited, unlimited;
  TrainWindow last_limited, last_unlimited;
  for (uint64_t round = 1; round <= rounds; ++round) {
    const uint64_t step = pair->first_step + round * kWindowSteps;
    auto a = pair->unlimited->RunTo(step);
    if (!a.ok()) return a.status();
    auto b = pair->limited->RunTo(step);
    if (!b.ok()) return b.status();
    unlimited.push_back((last_unlimited = *a).rate());
    limited.push_back((last_limited = *b).rate());
  }
  Figure f = Line("deepfm, a tenth of 10 M rows in DRAM", Median(limited), "examples/s");
  f.limit = Median(unlimited);
  f.limit_name = "all rows in DRAM, wanted .80";
  report(f);
  ReportSteps("tiered_training (all in DRAM)", last_unlimited, report);
  ReportSteps("tiered_training", last_limited, report);
  return ReportModels(*pair, report);
}

}  // namespace

std::vector<NamedBenchmark> TieredTrainingBenchmarks() {
  const auto on = [](const char* ssd) {
    return [ssd](const BenchOptions& o, const Report& r) { return RunTieredTraining(ssd, o, r); };
  };
  return {{"tiered_training", "DeepFM with DRAM for a tenth of its 10 M rows, and without a limit",
           on("rowfile")},
          {"tiered_training_rocksdb", "the same with RocksDB below", on("rocksdb")}};
}

}  // namespace strata::bench
