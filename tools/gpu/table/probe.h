// Bare probes of a GPU table's memory: kernels that make the accesses of finding and of inserting,
// at slots that they are told, and decide nothing.
// Tested by tests/tools/gpu/table/work_test.cc
#ifndef STRATA_TOOLS_GPU_TABLE_PROBE_H_
#define STRATA_TOOLS_GPU_TABLE_PROBE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "storage/gpu/slots.h"

namespace strata::gpu_check {

// All pointers in the device's memory; rows at multiples of 16 bytes, of tables with buckets of
// kBarBucketSlots (fill.h).
struct TableProbe {
  storage::gpu::GpuSlots t;
  const uint32_t* slots = nullptr;  // (n), distinct
  uint32_t n = 0;
  uint8_t* rows = nullptr;  // (n, t.stride)
};

// Of each slot: its bucket's control bytes, its position and its row are read; the row is written
// to `rows`. Asynchronous.
absl::Status ProbeLookUps(ops::gpu::CudaApi& api, const TableProbe& probe,
                          ops::gpu::StreamHandle stream);

// Of each slot: control bytes, pins, flags and scores of its bucket, its position and its row are
// read; the position and one of each of the others are written back as they were, the row to
// `rows`. Asynchronous.
absl::Status ProbeInserts(ops::gpu::CudaApi& api, const TableProbe& probe,
                          ops::gpu::StreamHandle stream);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_TABLE_PROBE_H_
