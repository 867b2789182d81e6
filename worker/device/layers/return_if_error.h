// For functions that give a device one piece of work after the other.
// Tested by tests/worker/device/step_fault_test.cc
#ifndef STRATA_WORKER_DEVICE_LAYERS_RETURN_IF_ERROR_H_
#define STRATA_WORKER_DEVICE_LAYERS_RETURN_IF_ERROR_H_

#include <utility>

#include "absl/status/status.h"

#define STRATA_RETURN_IF_ERROR(expression)                                \
  do {                                                                    \
    absl::Status status_of_work = (expression);                           \
    if (__builtin_expect(!status_of_work.ok(), 0)) return status_of_work; \
  } while (false)

#endif  // STRATA_WORKER_DEVICE_LAYERS_RETURN_IF_ERROR_H_
