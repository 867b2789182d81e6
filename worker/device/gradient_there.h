// Gradients whose rows lie in a device's memory (Gradient::rows_there).
// Tested by tests/worker/bsp/row_exchange_test.cc
#ifndef STRATA_WORKER_DEVICE_GRADIENT_THERE_H_
#define STRATA_WORKER_DEVICE_GRADIENT_THERE_H_

#include <span>

#include "absl/status/statusor.h"
#include "proto/core/table_spec.h"
#include "worker/device/row_memory.h"
#include "worker/step/gradient.h"

namespace strata {

// As AddGradients, to the bit, of rows there: the host merges positions, the device adds. A side
// without rows gives the other's, which the sum then shares. REQUIRES: push dim == dim. Errors:
// the device's, and its memory's.
absl::StatusOr<Gradient> AddGradientsThere(std::span<const TableSpec> tables,
                                           device::RowMemory* memory, const Gradient& left,
                                           const Gradient& right);

// The same gradient with rows on the host.
absl::StatusOr<Gradient> BringHere(std::span<const TableSpec> tables, device::RowMemory* memory,
                                   const Gradient& there);

}  // namespace strata

#endif  // STRATA_WORKER_DEVICE_GRADIENT_THERE_H_
