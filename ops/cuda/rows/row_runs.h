// Rows of several tables, each table's as wide as it says, behind each other: where kernels find
// them. What a batch has of each is decided on the host and read from the device's memory.
// Tested by tests/ops/cuda/nn/field_vectors_test.cc
#ifndef STRATA_OPS_CUDA_ROWS_ROW_RUNS_H_
#define STRATA_OPS_CUDA_ROWS_ROW_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/inline.h"

namespace strata::ops::gpu {

STRATA_HD uint32_t RowQuads(uint32_t dim) { return (dim + 3) / 4; }

// One table's keys among those of a batch, which count through all tables.
struct RowRun {
  uint64_t first_float = 0;       // where its rows begin
  uint64_t first_quad = 0;        // quads of rows before them
  uint64_t first_chunk_quad = 0;  // quads of chunks' sums before its
  uint32_t first_key = 0;
  uint32_t first_chunk = 0;
  uint32_t dim = 0;
  uint32_t unused = 0;
};

struct RowRuns {
  const RowRun* runs = nullptr;  // (tables + 1), in device memory: the last has the totals
  uint32_t tables = 0;

  // The first float of a key's row.
  STRATA_HD_MEMBER size_t RowOf(uint32_t table, uint32_t key) const {
    const RowRun& run = runs[table];
    return run.first_float + size_t{key - run.first_key} * run.dim;
  }
};

// Fills out (tables + 1), on the host. keys: how many each table has; chunk_first: as GroupedKeys
// has it, of all keys.
inline void FillRowRuns(std::span<const uint32_t> dims, std::span<const uint32_t> keys,
                        const uint32_t* chunk_first, RowRun* out) {
  RowRun run;
  for (size_t t = 0; t < dims.size(); ++t) {
    run.dim = dims[t];
    out[t] = run;
    const uint32_t end = run.first_key + keys[t], chunks = chunk_first[end];
    run.first_float += uint64_t{keys[t]} * run.dim;
    run.first_quad += uint64_t{keys[t]} * RowQuads(run.dim);
    run.first_chunk_quad += uint64_t{chunks - run.first_chunk} * RowQuads(run.dim);
    run.first_key = end;
    run.first_chunk = chunks;
  }
  run.dim = 0;
  out[dims.size()] = run;
}

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_ROW_RUNS_H_
