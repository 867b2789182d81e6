// The local step on the dense part by a device (ops/cuda/rows/apply.h), whose memory keeps the
// optimizer's state.
#ifndef STRATA_WORKER_DEVICE_DENSE_STEP_H_
#define STRATA_WORKER_DEVICE_DENSE_STEP_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "proto/core/table_spec.h"
#include "worker/step/dense_optimizer.h"

namespace strata::device {

// `table`: of the dense part, with the local step's optimizer; `rows` of it. `api` outlives the
// result. Takes from the runtime, once: of the device rows x (3 x dense row dim + state) floats and
// a bit, of pinned memory 2 x rows x dense row dim floats and a bit. A step allocates nothing and
// waits once. RESOURCE_EXHAUSTED: there is not that much.
absl::StatusOr<std::unique_ptr<DenseOptimizer>> MakeDenseStep(ops::gpu::CudaApi* api,
                                                              const TableSpec& table, size_t rows);

}  // namespace strata::device

#endif  // STRATA_WORKER_DEVICE_DENSE_STEP_H_
