// MetadataStore for a scheduler that lives no longer than its process (embedded runner, tests).
#ifndef STRATA_SCHEDULER_MEMORY_METADATA_STORE_H_
#define STRATA_SCHEDULER_MEMORY_METADATA_STORE_H_

#include <memory>

#include "scheduler/metadata_store.h"

namespace strata::scheduler {

std::unique_ptr<MetadataStore> MakeMemoryMetadataStore();

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_MEMORY_METADATA_STORE_H_
