// Which RESOURCE_EXHAUSTED means that the system has no memory, and which that a disk is full.
// Tested by tests/storage/memory_limit_test.cc
#ifndef STRATA_STORAGE_IO_OUT_OF_MEMORY_H_
#define STRATA_STORAGE_IO_OUT_OF_MEMORY_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace strata::storage {

// RESOURCE_EXHAUSTED with a mark.
absl::Status OutOfMemory(absl::string_view message);
// The mark; lost where a new status is made of the message.
bool IsOutOfMemory(const absl::Status& status);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_IO_OUT_OF_MEMORY_H_
