// What every GpuBackend must do, held against a model and against another one.
#ifndef STRATA_TESTS_STORAGE_GPU_BACKEND_CONFORMANCE_H_
#define STRATA_TESTS_STORAGE_GPU_BACKEND_CONFORMANCE_H_

#include <cstdint>

#include "storage/gpu/backend.h"
#include "storage/gpu/shape.h"

namespace strata::storage::gpu {

// Random batches of reads, updates, removals, pins and sweeps, of every bucket size and policy:
// what is found, what rows hold, which rows leave in which order. Both backends give the same
// answers. Batches are of at most 3000 positions, with 4096 staging places. `operations`: positions
// named, at least; fewer under a sanitizer.
void CheckBackendsAgree(const GpuBackendFactory& one, const GpuBackendFactory& other,
                        uint64_t operations);

// Random calls of every kind, with what callers may ask and what they need not make sense of:
// wrong guesses, slots named again and again, positions that are not there. Both answer the same,
// and hold the same bytes in the end. `calls`: fewer under a sanitizer.
void CheckSameAnswers(const GpuBackendFactory& one, const GpuBackendFactory& other, uint64_t calls);

// Updates of every optimizer, with gradients that are refused and cut, and what is gathered of the
// rows: of both backends as of the functions that a table in DRAM is updated and read by. Sums and
// what is gathered lie on the host, or in memory of the device, between which Upload and Download
// move them.
void CheckUpdates(const GpuBackendFactory& one, const GpuBackendFactory& other);

// Rows of every optimizer and initializer that are born, and absent ones read, where they lie.
void CheckBirths(const GpuBackendFactory& make);

// Memory beyond the table's: at most half of what is free, again and again. free_bytes: what a
// backend of that shape leaves of the device's, a power of 2.
void CheckAllocations(const GpuBackendFactory& make, const GpuShape& shape, uint64_t free_bytes);

// A row takes 255 pins, one by one or in one call.
void CheckPins(const GpuBackendFactory& make);

}  // namespace strata::storage::gpu

#endif  // STRATA_TESTS_STORAGE_GPU_BACKEND_CONFORMANCE_H_
