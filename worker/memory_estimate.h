// How much memory a job takes on one of its workers, by formula (`strata estimate`).
// Tested by tests/tools/cli/data/estimate_memory_test.cc
#ifndef STRATA_WORKER_MEMORY_ESTIMATE_H_
#define STRATA_WORKER_MEMORY_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/products/blas.h"
#include "proto/core/memory_part.h"
#include "proto/core/table_spec.h"
#include "proto/job/tables/model_tables.h"
#include "worker/step/batch_memory.h"
#include "worker/step/feature_counts.h"

namespace strata {

struct WorkerLoad {
  ModelTables tables;
  uint32_t lanes_here = 1;
  uint32_t servers = 1;
  uint32_t batch_size = 1;
  uint32_t pipeline_depth = 1;
  bool prefetch = false;         // TrainingPlan::prefetch
  uint32_t buffer_lines = 1;     // of the shuffle
  uint64_t lines = 0;            // of the input
  uint64_t line_bytes = 0;       // on average
  uint64_t task_line_bytes = 0;  // of the longest ones that are shuffled together; 0: as above
  double features_per_example = 0;
  uint64_t features_per_batch = 0;  // the most; 0: as many as examples have on average
  FeatureCounts of_lines;           // of the lines that are scored; empty: as above
  // Distinct keys: of one batch, and of the batches of all lanes here at one step.
  uint64_t keys_per_batch = 0;
  uint64_t keys_per_push = 0;
  uint64_t rows = 0;  // features that get a row, of which batches have no more; 0: not known
  // What spec.worker.device names: nothing, or the CPU; a GPU; or the host's threads for one.
  enum class Device : uint8_t { kCpu, kGpu, kHost };
  Device device = Device::kCpu;
  ops::gpu::MatmulPrecision precision = ops::gpu::MatmulPrecision::kFp32;  // of products there
  uint32_t threads = 1;                                                    // of one lane's products
  bool pooled = false;      // some field of an example has several features
  uint64_t eval_lines = 0;  // held-out lines; 0: nothing is evaluated
  bool gauc = false;        // spec.evaluation.metrics has one
  bool synchronous = true;
  // Asynchronous modes. Batches that a lane pulls for at once (BatchesPerPull) and their distinct
  // keys, and those of all that a lane steps on over the job.
  uint64_t batches_per_pull = 1;
  uint64_t keys_per_pull = 0;
  uint64_t keys_of_lane = 0;
  // Downpour and easgd: the tables with the optimizers of a lane's own steps (LocalTables). Empty:
  // lanes have none.
  std::vector<TableSpec> local_tables;
  bool elastic = false;  // easgd: they live on over pulls
  // Rows of steps lie in the device's memory, which servers of this process share (DESIGN.md
  // section 6, "Rows that stay there").
  bool rows_there = false;
};

// Resident bytes of the worker's parts, once the busiest step has been. What one process has beside
// jobs (code, gRPC, its threads) is not among them.
std::vector<MemoryPart> EstimateWorker(const WorkerLoad& load);

// The most that is scored at a time of `lines` lines, in whatever order they come: the longest
// ones, as far as ScoredAtATime or, on a device, ScoredOnDevice takes them together
// (worker/models/model_memory.h), with features that all differ while there are rows enough.
BatchCounts MostScored(const WorkerLoad& load, uint64_t lines);

// Of those, what scoring takes: in the worker that evaluates, and in `strata predict`, by the
// model's scratch on the CPU, rows and batch of MostScored; and what the metrics keep of `lines`
// lines.
std::vector<MemoryPart> EstimateScoring(const WorkerLoad& load, uint64_t lines);

// Whether the worker's device takes such a job. Errors are CheckOnDevice's (worker/device/step.h).
absl::Status CheckDevice(const WorkerLoad& load);

// What it takes of its device's memory; none on the CPU. Where the host stands for the device this
// is the host's memory, of which only what is touched counts, and is among EstimateWorker's parts.
//   model          DeviceStepBytes of batches as the data's are; bf16 has factors of its own
//   rows of steps  of bsp, with K keys of a push, L lanes of k keys and rows of r floats:
//                    5/4 x (2 K 4 r + L k 4 r + sums + places)
//                  weights of the step at hand and of the next one; gradients; sums of the nodes of
//                  the lane tree, of which those are there at once that a sum still waits for; two
//                  places of 4 bytes for each row that is added. Asynchronous: 5/4 x 2 L k 4 r.
//                  A quarter is RowMemory's to spare.
std::vector<MemoryPart> EstimateWorkerDevice(const WorkerLoad& load);

// What messages to and from servers in other processes take here. Objects of one process share
// them: then the server's parts count them.
std::vector<MemoryPart> EstimateMessages(const WorkerLoad& load);

}  // namespace strata

#endif  // STRATA_WORKER_MEMORY_ESTIMATE_H_
