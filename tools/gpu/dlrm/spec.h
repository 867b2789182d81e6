// The job that the dlrm bar trains: its model and tables, and how much of them lies in HBM.
// Tested by tests/tools/gpu/dlrm/bar_test.cc
// Tested by tests/tools/gpu/dlrm/sizes_test.cc
#ifndef STRATA_TOOLS_GPU_DLRM_SPEC_H_
#define STRATA_TOOLS_GPU_DLRM_SPEC_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/cuda/products/blas.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"

namespace strata::gpu_check {

struct DlrmSpec {
  uint32_t fields = 26;
  uint32_t numeric = 13;
  uint32_t dim = 128;            // of an embedding
  std::vector<uint32_t> bottom;  // widths above the numbers; one more of `dim` follows
  std::vector<uint32_t> top;     // widths above the interaction; one more of 1 follows
  uint64_t rows = 0;             // of the features' table
  double hbm_slots = 1;          // slots in HBM, of `rows`; at least a bucket in each shard
  uint32_t batch = 65536;
  uint32_t servers = 1;
  uint32_t shards = 16;  // of each server
  uint32_t threads = 1;  // that compute in the worker
  ops::gpu::MatmulPrecision precision = ops::gpu::MatmulPrecision::kFp32;
};

// Bsp with one lane, rowwise_adagrad for embeddings, durability memory, no DRAM limit. Defaults are
// resolved. INVALID_ARGUMENT names the field.
absl::StatusOr<TrainingJob> MakeDlrmJob(const DlrmSpec& spec);

absl::StatusOr<ModelTables> DlrmTables(const DlrmSpec& spec, const TrainingJob& job);

// Bytes of HBM that a table of a shard is to be given so that it has so many slots, or a few more;
// as many as a table can have, if that is less.
uint64_t HbmBytesFor(uint64_t slots, size_t row_bytes);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_DLRM_SPEC_H_
