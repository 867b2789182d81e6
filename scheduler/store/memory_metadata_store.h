// MetadataStore for a scheduler that lives no longer than its process (embedded runner, tests).
// Tested by tests/scheduler/store/metadata_store_test.cc
// Tested by tests/scheduler/scheduler_test.cc
#ifndef STRATA_SCHEDULER_STORE_MEMORY_METADATA_STORE_H_
#define STRATA_SCHEDULER_STORE_MEMORY_METADATA_STORE_H_

#include <memory>

#include "scheduler/store/metadata_store.h"

namespace strata::scheduler {

std::unique_ptr<MetadataStore> MakeMemoryMetadataStore();

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_MEMORY_METADATA_STORE_H_
