// How much memory a job takes on one of its workers, by formula (`strata estimate`).
#ifndef STRATA_WORKER_MEMORY_ESTIMATE_H_
#define STRATA_WORKER_MEMORY_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "proto/core/memory_part.h"
#include "proto/core/model_tables.h"

namespace strata {

struct WorkerLoad {
  ModelTables tables;
  uint32_t lanes_here = 1;
  uint32_t servers = 1;
  uint32_t batch_size = 1;
  uint32_t pipeline_depth = 1;
  bool prefetch = false;      // TrainingPlan::prefetch
  uint32_t buffer_lines = 1;  // of the shuffle
  uint64_t lines = 0;         // of the input
  uint64_t line_bytes = 0;    // on average
  double features_per_example = 0;
  // Distinct keys: of one batch, and of the batches of all lanes here at one step.
  uint64_t keys_per_batch = 0;
  uint64_t keys_per_push = 0;
  // What spec.worker.device names: nothing, or the CPU; a GPU; or the host's threads for one.
  enum class Device : uint8_t { kCpu, kGpu, kHost };
  Device device = Device::kCpu;
};

// Resident bytes of the worker's parts, once the busiest step has been. What one process has beside
// jobs (code, gRPC, its threads) is not among them.
std::vector<MemoryPart> EstimateWorker(const WorkerLoad& load);

// What messages to and from servers in other processes take here. Objects of one process share
// them: then the server's parts count them.
std::vector<MemoryPart> EstimateMessages(const WorkerLoad& load);

}  // namespace strata

#endif  // STRATA_WORKER_MEMORY_ESTIMATE_H_
