// MetadataStore in an embedded RocksDB, every batch synced to disk (survives power loss).
// Tested by tests/scheduler/store/metadata_store_test.cc
#ifndef STRATA_SCHEDULER_STORE_ROCKS_METADATA_STORE_H_
#define STRATA_SCHEDULER_STORE_ROCKS_METADATA_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/store/metadata_store.h"

namespace strata::scheduler {

// Opens or makes the store in `directory` (made where missing). FAILED_PRECONDITION: another
// process has it open. PERMISSION_DENIED, RESOURCE_EXHAUSTED, DATA_LOSS, INTERNAL: name the
// directory.
//
// A disk without room: Append (and opening) is RESOURCE_EXHAUSTED, names directory and remedy, and
// changes nothing; once there is room (8 MiB) the same Append succeeds, and so does another start.
// No call waits for room.
// A directory that was removed, emptied or moved while it is open, or has another store: Append is
// NOT_FOUND and changes nothing, since nobody would find it; once it is back the same Append
// succeeds.
// Read is UNAVAILABLE between a failed Append and the next that succeeds.
absl::StatusOr<std::unique_ptr<MetadataStore>> OpenRocksMetadataStore(const std::string& directory);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_ROCKS_METADATA_STORE_H_
