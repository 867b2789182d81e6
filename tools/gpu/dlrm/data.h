// Input of the dlrm bar: examples with numbers and one key of each field, made from a seed alone
// and ready in memory before they are asked for.
#ifndef STRATA_TOOLS_GPU_DLRM_DATA_H_
#define STRATA_TOOLS_GPU_DLRM_DATA_H_

#include <cstdint>
#include <memory>

#include "ops/parallel.h"
#include "proto/strata/control.pb.h"
#include "worker/data/reading/data_access.h"
#include "worker/step/batch.h"

namespace strata::gpu_check {

struct DlrmDataOptions {
  uint32_t batch = 0;       // examples of a step
  uint32_t fields = 26;     // one key each
  uint32_t numeric = 13;    // uniform in [0, 1)
  uint64_t field_rows = 1;  // distinct values of each field
  // The r-th value of a field comes with a weight of about r^-zipf (0 < zipf, not 1); 0: all alike.
  double zipf = 0;
  uint64_t seed = 1;
};

// Key of value `value` of field `field`: field * field_rows + value, so that all keys together are
// 0 .. fields * field_rows - 1.
//
// The batch of a step, a function of (options, step) alone.
Batch MakeDlrmBatch(const DlrmDataOptions& options, uint64_t step);

uint64_t DistinctKeys(const Batch& batch);

// The index of so many examples, in files that nobody opens.
InputIndex DlrmIndex(const DlrmDataOptions& options, uint64_t examples);

// Of one lane. Batches of steps first .. first + count - 1 are made now, by all threads of
// `parallel`, and handed out as they are, each once; others, and those asked for again, are made
// when they are asked for. Memory: count * batch * (8 * fields + 4 * numeric + 8) bytes.
// Bsp only.
std::unique_ptr<DataAccess> MakeDlrmData(const DlrmDataOptions& options, uint64_t first,
                                         uint32_t count, ops::Parallel* parallel);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_DLRM_DATA_H_
