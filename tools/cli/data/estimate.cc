#include "tools/cli/data/estimate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ops/cuda/products/blas.h"
#include "proto/core/table_spec.h"
#include "proto/job/fields/label_spec.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/model_tables.h"
#include "server/memory_estimate.h"
#include "server/table/gpu_memory.h"
#include "server/table/memory.h"
#include "storage/eviction/kind.h"
#include "tools/cli/data/predict_estimate.h"
#include "worker/memory_estimate.h"

namespace strata {
namespace {

// Resident bytes of processes that have no job: code, libraries, gRPC, RocksDB's metadata store,
// stacks. Measured on Debian 12.
constexpr uint64_t kSchedulerBytes = uint64_t{29} << 20;
constexpr uint64_t kServerBytes = uint64_t{26} << 20;
constexpr uint64_t kWorkerBytes = uint64_t{18} << 20;
constexpr uint64_t kTaskLines = 8192;
constexpr uint64_t kTaskBytes = 128;  // of the index, with the copy that is sent

std::string Size(uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.1f %s", value, units[unit]);
}

MemoryPart Itself(uint64_t bytes) {
  return {"the process itself", bytes, "measured without a job"};
}

// The part that weighs most over all processes.
struct Dominant {
  std::string role;
  const MemoryPart* part = nullptr;
  uint64_t bytes = 0;
};
Dominant FindDominant(const JobEstimate& estimate) {
  Dominant most;
  for (const ProcessEstimate& process : estimate.processes) {
    for (const MemoryPart& part : process.parts) {
      const uint64_t bytes = part.bytes * process.count;
      if (most.part == nullptr || bytes > most.bytes) most = {process.role, &part, bytes};
    }
  }
  return most;
}

// Of all processes.
using Parts = std::vector<MemoryPart> ProcessEstimate::*;
uint64_t SumOf(const JobEstimate& estimate, Parts parts) {
  uint64_t bytes = 0;
  for (const ProcessEstimate& p : estimate.processes) bytes += p.count * TotalBytes(p.*parts);
  return bytes;
}
uint64_t ClusterBytes(const JobEstimate& estimate) {
  return SumOf(estimate, &ProcessEstimate::parts);
}
uint64_t SnapshotBytes(const JobEstimate& estimate) {
  return SumOf(estimate, &ProcessEstimate::snapshot_parts);
}
uint64_t DeviceBytes(const JobEstimate& estimate) {
  return SumOf(estimate, &ProcessEstimate::device_parts);
}

server::ServerLoad ServerLoadOf(const JobSpec& spec, const DataMeasure& data,
                                const ModelTables& tables, uint32_t shards, uint32_t cores) {
  server::ServerLoad load;
  load.tables = tables.tables;
  load.servers = spec.replicas().servers();
  load.shards_here = shards;
  load.partitions = spec.storage().partitions();
  load.workers = spec.replicas().workers();
  load.dram_bytes = *ParseBytes(spec.storage().dram_bytes_per_server());
  load.hbm_bytes = *ParseBytes(spec.storage().gpu_bytes_per_server());
  load.hbm_on_host = spec.storage().gpu_backend() == "host";
  load.eviction = storage::EvictionKindOf(spec.storage().eviction()).value_or(load.eviction);
  load.row_file = spec.storage().ssd() == "rowfile";
  load.logged = spec.storage().durability() != "memory";
  load.checkpoints = !spec.checkpoint().directory().empty();
  load.increments = spec.checkpoint().full_every() > 1;
  load.removed_stream = !spec.output().removed().empty();
  load.threads = std::min(cores, shards);
  load.synchronous = spec.training().mode() == "bsp";
  load.keys_per_push = load.synchronous ? data.keys_per_push : data.keys_per_batch;
  load.keys_per_step = data.keys_per_step;
  return load;
}

// `--rows` is of all tables: each has its share, as the data have it.
void SetKeysOfTables(const DataMeasure& data, server::ServerLoad& load) {
  const double scale = static_cast<double>(load.rows) /
                       static_cast<double>(std::max<uint64_t>(1, data.distinct_keys));
  for (const DataMeasure::OfTable& t : data.of_table) {
    load.of_table.push_back({static_cast<uint64_t>(scale * static_cast<double>(t.rows)),
                             load.synchronous ? t.per_push : t.per_batch, t.per_step});
  }
}

// The tables with the optimizers of a lane's own steps: as worker/async/lane_work.cc has them.
absl::StatusOr<std::vector<TableSpec>> LocalTables(const JobSpec& spec, const DataMeasure& data) {
  if (spec.training().mode() != "downpour" && spec.training().mode() != "easgd") {
    return std::vector<TableSpec>();
  }
  JobSpec local = spec;
  local.mutable_training()->set_mode("async");
  auto tables = MakeModelTables(local, data.fields, data.numeric);
  if (!tables.ok()) return tables.status();
  if (spec.training().mode() == "easgd") return tables->tables;
  for (TableSpec& table : tables->tables) {
    for (SegmentSpec& segment : table.segments) {
      segment.optimizer = {};
      segment.optimizer.type = OptimizerType::kSgd;
    }
  }
  return tables->tables;
}

// What lanes of asynchronous modes keep. They take tasks at their own pace: in each epoch others.
void SetLanes(const JobSpec& spec, const DataMeasure& data, uint64_t rows, WorkerLoad& load) {
  const TrainingSpec& training = spec.training();
  load.elastic = training.mode() == "easgd";
  load.batches_per_pull = data.batches_per_pull;
  load.keys_per_pull = std::max(data.keys_per_batch, data.keys_per_pull);
  const double scale =
      static_cast<double>(rows) / static_cast<double>(std::max<uint64_t>(1, data.distinct_keys));
  const double keys = scale * std::max(1u, training.epochs()) *
                      static_cast<double>(std::max(load.keys_per_pull, data.keys_of_lane));
  load.keys_of_lane = std::min(rows, static_cast<uint64_t>(keys));
}

WorkerLoad WorkerLoadOf(const JobSpec& spec, const DataMeasure& data, const ModelTables& tables,
                        uint64_t rows, uint32_t cores) {
  const TrainingSpec& training = spec.training();
  const uint32_t workers = spec.replicas().workers();
  WorkerLoad load;
  load.tables = tables;
  load.servers = spec.replicas().servers();
  load.lanes_here = (training.lanes() + workers - 1) / workers;
  load.batch_size = training.batch_size();
  load.pipeline_depth = training.pipeline_depth();
  load.prefetch = *ParseBytes(spec.storage().dram_bytes_per_server()) > 0 ||
                  *ParseBytes(spec.storage().gpu_bytes_per_server()) > 0;
  load.buffer_lines = spec.data().shuffle().enabled() ? spec.data().shuffle().buffer_lines() : 1;
  load.lines = data.lines / workers;
  load.line_bytes = data.line_bytes;
  load.task_line_bytes = data.task_line_bytes;
  load.features_per_example = data.features_per_example;
  load.features_per_batch = data.features_per_batch;
  load.of_lines = data.of_lines;
  load.keys_per_batch = data.keys_per_batch;
  load.keys_per_push = data.keys_per_push;
  load.rows = rows;
  load.pooled = data.pooled;
  load.eval_lines = data.eval_lines;
  load.gauc = !MetricsOf(spec).gauc_field.empty();
  load.synchronous = training.mode() == "bsp";
  // Lanes of the other modes have a thread each.
  if (load.synchronous) load.threads = training.threads() > 0 ? training.threads() : cores;
  if (!load.synchronous) SetLanes(spec, data, rows, load);
  if (spec.worker().precision() == "tf32") load.precision = ops::gpu::MatmulPrecision::kTf32;
  if (spec.worker().precision() == "bf16") load.precision = ops::gpu::MatmulPrecision::kBf16;
  // What auto finds is not known here: the CPU.
  if (spec.worker().device() == "host") load.device = WorkerLoad::Device::kHost;
  if (absl::StartsWith(spec.worker().device(), "cuda:")) load.device = WorkerLoad::Device::kGpu;
  return load;
}

// Whether rows of steps stay on a device that servers and workers of one process share
// (worker/bsp/row_exchange.h, worker/client/parameter_client.h, ShardTable::values_device).
bool RowsStay(const JobSpec& spec, const server::ServerLoad& server, const WorkerLoad& worker) {
  const std::vector<TableSpec>& tables = worker.tables.tables;
  const bool rows_alone = std::all_of(tables.begin(), tables.end(), [](const TableSpec& t) {
    return t.push_dim() == t.dim() && t.life_cycle.admission.type == AdmissionType::kAlways;
  });
  const bool plain = spec.training().mode() == "bsp" || spec.training().mode() == "async";
  const bool float32 =
      spec.tables().empty()
          ? spec.training().pull_codec() == "float32"
          : std::all_of(spec.tables().begin(), spec.tables().end(),
                        [](const TableConfig& t) { return t.pull_codec() == "float32"; });
  const bool same_device =
      worker.device == (server.hbm_on_host ? WorkerLoad::Device::kHost : WorkerLoad::Device::kGpu);
  return server.hbm_bytes > 0 && same_device && plain && float32 && rows_alone;
}

// A GPU's: where the host stands for one, its memory is the host's.
std::vector<MemoryPart> EstimateGpu(const WorkerLoad& load) {
  if (load.device != WorkerLoad::Device::kGpu) return {};
  return EstimateWorkerDevice(load);
}

// All processes as objects of one, whose messages need no connections.
void AddOneProcess(const JobSpec& spec, const server::ServerLoad& server, const WorkerLoad& worker,
                   JobEstimate* estimate) {
  WorkerLoad there = worker;
  there.rows_there = RowsStay(spec, server, worker);
  server::ServerLoad server_there = server;
  server_there.rows_there = there.rows_there;
  for (const ProcessEstimate& process : estimate->processes) {
    const bool is_worker = process.role == "worker", is_server = process.role == "server";
    const std::vector<MemoryPart> parts = is_worker   ? EstimateWorker(there)
                                          : is_server ? server::EstimateServer(server_there)
                                                      : process.parts;
    for (const MemoryPart& part : parts) {
      estimate->one_process_bytes += (part.reused ? 1 : process.count) * part.bytes;
    }
    estimate->one_process_device_bytes +=
        process.count * TotalBytes(is_worker ? EstimateGpu(there) : process.device_parts);
  }
}

}  // namespace

absl::StatusOr<JobEstimate> EstimateJob(const JobSpec& spec, const DataMeasure& data, uint64_t rows,
                                        uint32_t cores) {
  auto tables = MakeModelTables(spec, data.fields, data.numeric);
  if (!tables.ok()) return tables.status();
  const uint32_t shards = spec.storage().has_shards_per_server()
                              ? spec.storage().shards_per_server()
                              : std::max(4u, cores);
  JobEstimate estimate;
  estimate.data = data;
  estimate.rows = rows > 0 ? rows : data.distinct_keys;
  estimate.copies = std::max(1u, spec.storage().replicas());
  server::ServerLoad load = ServerLoadOf(spec, data, *tables, shards, std::max(1u, cores));
  load.rows = estimate.rows;
  SetKeysOfTables(data, load);
  auto local = LocalTables(spec, data);
  if (!local.ok()) return local.status();
  WorkerLoad worker = WorkerLoadOf(spec, data, *tables, estimate.rows, std::max(1u, cores));
  worker.local_tables = *std::move(local);
  if (absl::Status s = CheckDevice(worker); !s.ok()) return s;
  const uint64_t tasks = data.lines / kTaskLines + 1;
  estimate.processes = {
      {"scheduler",
       1,
       {{"index of the input", tasks * kTaskBytes, "tasks of 8192 lines x 128"}},
       {},
       {}},
      {"server", spec.replicas().servers() * estimate.copies, server::EstimateServer(load),
       server::EstimateSnapshots(load), server::EstimateServerDevice(load)},
      {"worker", spec.replicas().workers(), EstimateWorker(worker), {}, EstimateGpu(worker)}};
  AddOneProcess(spec, load, worker, &estimate);
  estimate.one_process_bytes += kSchedulerBytes;
  estimate.processes[0].parts.push_back(Itself(kSchedulerBytes));
  estimate.processes[1].parts.push_back({"connections of the workers",
                                         server::EstimateConnections(load),
                                         "workers x min(12 x bytes of a push, 20 MiB)"});
  estimate.processes[1].parts.push_back(Itself(kServerBytes));
  for (MemoryPart& part : EstimateMessages(worker)) {
    estimate.processes[2].parts.push_back(std::move(part));
  }
  estimate.processes[2].parts.push_back(Itself(kWorkerBytes));
  estimate.predict = EstimatePredict(spec, load, worker);
  estimate.kept = NeedOfServer(spec,
                               {.lines = data.lines,
                                .bytes = data.lines * data.line_bytes,
                                .fields = data.fields,
                                .numeric = data.numeric,
                                .rows = estimate.rows},
                               ShardsOfServer(spec, spec.replicas().servers(), cores));
  estimate.tables = EstimateTables(load);
  estimate.wire = EstimateWire(spec, data, *tables);
  estimate.least_dram_bytes = server::LeastDramBytesPerServer(tables->tables, shards);
  estimate.hbm_bytes = load.hbm_bytes;
  estimate.least_hbm_bytes = server::LeastGpuBytesPerServer(tables->tables, load.eviction, shards);
  return estimate;
}

namespace {

// Lines of the table, under `name` and one behind them that sums up.
void AppendParts(const std::string& name, const std::vector<MemoryPart>& parts, const char* sum,
                 std::string& text) {
  for (size_t i = 0; i < parts.size(); ++i) {
    absl::StrAppendFormat(&text, "%-15s%-32s%12s  %s\n", i == 0 ? name : "", parts[i].name,
                          Size(parts[i].bytes), parts[i].formula);
  }
  absl::StrAppendFormat(&text, "%-15s%-32s%12s\n", "", sum, Size(TotalBytes(parts)));
}

nlohmann::ordered_json PartsJson(const std::vector<MemoryPart>& parts) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const MemoryPart& part : parts) {
    json.push_back({{"name", part.name}, {"bytes", part.bytes}, {"formula", part.formula}});
  }
  return json;
}

}  // namespace

std::string EstimateText(const JobEstimate& estimate) {
  std::string text = absl::StrFormat(
      "%d lines, %d features get a row; a batch has %d distinct keys, a step %d\n\n",
      estimate.data.lines, estimate.rows, estimate.data.keys_per_batch,
      estimate.data.keys_per_step);
  absl::StrAppendFormat(&text, "%-15s%-32s%12s  %s\n", "PROCESS", "MEMORY", "SIZE", "HOW");
  for (const ProcessEstimate& process : estimate.processes) {
    AppendParts(absl::StrCat(process.role, " x ", process.count), process.parts, "each", text);
  }
  absl::StrAppend(&text, TablesText(estimate.tables));
  if (SnapshotBytes(estimate) > 0) {
    absl::StrAppend(&text, "\nWhile a base image or a checkpoint is written, at most:\n");
  }
  for (const ProcessEstimate& process : estimate.processes) {
    if (process.snapshot_parts.empty()) continue;
    AppendParts(absl::StrCat(process.role, " x ", process.count), process.snapshot_parts,
                "more, each", text);
  }
  if (DeviceBytes(estimate) > 0) absl::StrAppend(&text, "\nIn a GPU's memory:\n");
  for (const ProcessEstimate& process : estimate.processes) {
    if (process.device_parts.empty()) continue;
    AppendParts(absl::StrCat(process.role, " x ", process.count), process.device_parts, "each",
                text);
  }
  absl::StrAppendFormat(&text, "\nOn the wire, for %s, at most:\n",
                        estimate.wire.of_step ? "a step of all lanes" : "a batch of one lane");
  AppendParts("all processes", estimate.wire.parts, "in all", text);
  absl::StrAppend(&text, "\nTo score lines with its model, at most:\n");
  AppendParts("strata predict", estimate.predict, "in all", text);
  const Dominant most = FindDominant(estimate);
  const double share =
      100.0 * static_cast<double>(most.bytes) / static_cast<double>(ClusterBytes(estimate));
  absl::StrAppendFormat(&text, "\nThe cluster: %s. In one process (strata train): %s.\n",
                        Size(ClusterBytes(estimate)), Size(estimate.one_process_bytes));
  if (SnapshotBytes(estimate) > 0) {
    absl::StrAppendFormat(&text, "Snapshots: at most %s more.\n", Size(SnapshotBytes(estimate)));
  }
  if (DeviceBytes(estimate) > 0) {
    absl::StrAppendFormat(&text, "Of GPUs: %s. Of one that one process has: %s.\n",
                          Size(DeviceBytes(estimate)), Size(estimate.one_process_device_bytes));
  }
  absl::StrAppendFormat(&text, "Most of it: %s, %s (%.0f %%).\n", most.role, most.part->name,
                        share);
  absl::StrAppendFormat(&text,
                        "A scheduler keeps %s of each server for it, with that many rows%s.\n",
                        NeedText(estimate.kept.likely),
                        estimate.kept.guessed ? "; it does not know them, and takes lines and "
                                                "fields instead where no limit is set"
                                              : "");
  if (estimate.copies > 1) {
    absl::StrAppendFormat(&text,
                          "Each of the %d copies of a server's shards counts as a server: one with "
                          "several takes as much for each.\n",
                          estimate.copies);
  }
  absl::StrAppendFormat(&text, "Least spec.storage.dramBytesPerServer: %d.\n",
                        estimate.least_dram_bytes);
  if (estimate.hbm_bytes > 0) {
    absl::StrAppendFormat(
        &text, "GPU tier of each server: %s. Least spec.storage.gpuBytesPerServer: %d.\n",
        Size(estimate.hbm_bytes), estimate.least_hbm_bytes);
  }
  return text;
}

std::string EstimateJson(const JobEstimate& estimate) {
  using Json = nlohmann::ordered_json;
  Json json{{"lines", estimate.data.lines},
            {"rows", estimate.rows},
            {"keysPerBatch", estimate.data.keys_per_batch},
            {"keysPerStep", estimate.data.keys_per_step}};
  if (estimate.copies > 1) json["copies"] = estimate.copies;
  json["processes"] = Json::array();
  for (const ProcessEstimate& process : estimate.processes) {
    json["processes"].push_back({{"role", process.role},
                                 {"count", process.count},
                                 {"bytes", TotalBytes(process.parts)},
                                 {"parts", PartsJson(process.parts)},
                                 {"snapshotBytes", TotalBytes(process.snapshot_parts)},
                                 {"snapshotParts", PartsJson(process.snapshot_parts)},
                                 {"deviceBytes", TotalBytes(process.device_parts)},
                                 {"deviceParts", PartsJson(process.device_parts)}});
  }
  json["wire"] = WireJson(estimate.wire);
  json["predictBytes"] = TotalBytes(estimate.predict);
  json["predictParts"] = PartsJson(estimate.predict);
  const Dominant most = FindDominant(estimate);
  json["clusterBytes"] = ClusterBytes(estimate);
  json["oneProcessBytes"] = estimate.one_process_bytes;
  json["snapshotBytes"] = SnapshotBytes(estimate);
  json["deviceBytes"] = DeviceBytes(estimate);
  json["oneProcessDeviceBytes"] = estimate.one_process_device_bytes;
  json["dominates"] = {{"role", most.role}, {"name", most.part->name}, {"bytes", most.bytes}};
  if (!estimate.tables.empty()) json["tables"] = TablesJson(estimate.tables);
  json["leastDramBytesPerServer"] = estimate.least_dram_bytes;
  json["gpuBytesPerServer"] = estimate.hbm_bytes;
  json["leastGpuBytesPerServer"] = estimate.least_hbm_bytes;
  return json.dump();
}

}  // namespace strata
