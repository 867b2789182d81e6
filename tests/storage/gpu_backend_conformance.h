// What every GpuBackend must do, held against a model and against another one.
#ifndef STRATA_TESTS_STORAGE_GPU_BACKEND_CONFORMANCE_H_
#define STRATA_TESTS_STORAGE_GPU_BACKEND_CONFORMANCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "storage/gpu_backend.h"

namespace strata::storage {

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

// Memory of a backend's device; gone before the device.
using DeviceFloats = std::function<std::shared_ptr<float>(size_t floats)>;
std::shared_ptr<float> HostFloats(size_t floats);

// Updates of every optimizer, with gradients that are refused and cut, and what is gathered of the
// rows, by the host's memory and by the device's: of both backends as of the functions that a table
// in DRAM is updated and read by. `memory` is the other's; that of `one` is the host's.
void CheckUpdates(const GpuBackendFactory& one, const GpuBackendFactory& other,
                  const DeviceFloats& memory = &HostFloats);

// A row takes 255 pins, one by one or in one call.
void CheckPins(const GpuBackendFactory& make);

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_GPU_BACKEND_CONFORMANCE_H_
