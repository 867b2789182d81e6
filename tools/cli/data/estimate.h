// How much memory the processes of a job take: adds up what server/memory_estimate.h and
// worker/memory_estimate.h know. Their formulas stand in `MemoryPart::formula` and are printed.
#ifndef STRATA_TOOLS_CLI_DATA_ESTIMATE_H_
#define STRATA_TOOLS_CLI_DATA_ESTIMATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/memory_part.h"
#include "proto/job/memory_need.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/data/data_measure.h"
#include "tools/cli/data/estimate_tables.h"
#include "tools/cli/data/wire_estimate.h"

namespace strata {

struct ProcessEstimate {
  std::string role;               // scheduler, server, worker
  uint32_t count = 0;             // servers: of all copies
  std::vector<MemoryPart> parts;  // of one process; the last is the process itself
  // At most so much more while base images and checkpoints are written and training goes on.
  std::vector<MemoryPart> snapshot_parts;
  // Of a GPU's memory. Where the host stands for the GPU they are among `parts`.
  std::vector<MemoryPart> device_parts;
};

struct JobEstimate {
  DataMeasure data;
  uint64_t rows = 0;  // features that get a row
  std::vector<ProcessEstimate> processes;
  uint64_t one_process_bytes = 0;  // all of them as objects of `strata train`, without snapshots
  // Of the GPU that these objects share, as far as they use one: with rows of steps that stay
  // there.
  uint64_t one_process_device_bytes = 0;
  std::vector<MemoryPart> predict;  // of `strata predict` with its model
  std::vector<TableEstimate> tables;
  uint64_t least_dram_bytes = 0;  // least spec.storage.dramBytesPerServer that is admitted
  uint64_t hbm_bytes = 0;         // spec.storage.gpuBytesPerServer
  uint64_t least_hbm_bytes = 0;   // the least of it that is admitted
  uint32_t copies = 1;            // spec.storage.replicas
  ServerNeed kept;                // what a scheduler keeps free of each server
  WireEstimate wire;
};

// `rows`: 0: as many as `data` has distinct keys. `cores`: of a server, where the job does not say
// its shards. Errors are those of MakeModelTables and of CheckDevice (worker/memory_estimate.h).
absl::StatusOr<JobEstimate> EstimateJob(const JobSpec& spec, const DataMeasure& data, uint64_t rows,
                                        uint32_t cores);

// A table, what tables have of a limit, what dominates, and the least limit.
std::string EstimateText(const JobEstimate& estimate);
std::string EstimateJson(const JobEstimate& estimate);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DATA_ESTIMATE_H_
