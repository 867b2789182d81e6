// Models on a device made of host threads, against the CPU's.
#ifndef STRATA_TESTS_WORKER_DEVICE_DEVICE_PROBLEM_H_
#define STRATA_TESTS_WORKER_DEVICE_DEVICE_PROBLEM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/products/blas.h"
#include "tests/worker/models/problem.h"
#include "worker/device/row_memory.h"
#include "worker/device/step.h"
#include "worker/step/key_runs.h"

namespace strata::testing {

// Every model, by shapes that are small enough for each call to fail in turn, and ragged.
std::vector<Shape> DeviceShapes();
// Those of them that have labels of several kinds, or weights of lines.
std::vector<Shape> TaskShapes();
// And fields that are pooled by max.
std::vector<Shape> MaxShapes();
// And fields of several widths, and sequences.
std::vector<Shape> WidthShapes();

// Whether a model has products of its rows, in the job's precision.
bool HasLayers(const Shape& shape);

// Products by cuBLASLt on a device, by the host elsewhere. First memory for `p` alone.
device::DeviceStepOptions StepOptions(
    ops::gpu::CudaApi* api, const Problem& p,
    ops::gpu::MatmulPrecision precision = ops::gpu::MatmulPrecision::kFp32);

// One training step; gradients and predictions go to memory that held NaNs.
absl::StatusOr<StepResult> TryRun(const Problem& p, device::DeviceStep& step);

// The same; while it waits for the device `next` is staged.
absl::StatusOr<StepResult> TryRunStaging(const Problem& p, device::DeviceStep& step,
                                         const std::shared_ptr<const Problem>& next);

// Rows of a problem in a device's memory, and room for their gradients there.
struct ProblemThere {
  // placed: each table's rows lie among others, in another order; else one behind the other.
  static absl::StatusOr<ProblemThere> Make(const Problem& p, device::RowMemory* memory,
                                           bool placed);
  device::RowMemory* memory = nullptr;
  std::shared_ptr<float> rows, gradients;
  std::vector<uint32_t> place;
  KeyRuns runs;  // where `placed`
};

// As TryRun, but for the rows: they come from there and their gradients go there, from where
// ReadGradients brings them.
absl::StatusOr<StepResult> TryRun(const Problem& p, device::DeviceStep& step,
                                  const ProblemThere& there);
absl::Status ReadGradients(const ProblemThere& there, StepResult* result);

// The largest difference of two arrays, in parts of the largest magnitude of `right`.
double Error(const std::vector<float>& got, const std::vector<float>& right);
// Of all arrays; adds names of those beyond `tolerance` to `where`.
double Error(const StepResult& got, const StepResult& right, double tolerance, std::string* where);

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_DEVICE_DEVICE_PROBLEM_H_
