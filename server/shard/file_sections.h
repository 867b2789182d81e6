// Types of the sections that a shard writes into its files (storage/FORMAT.md); beside them
// AdmissionFilter::kSection and storage::kTableRowsSection.
// Tested by tests/server/job/restoring_test.cc
#ifndef STRATA_SERVER_SHARD_FILE_SECTIONS_H_
#define STRATA_SERVER_SHARD_FILE_SECTIONS_H_

#include <cstdint>

namespace strata::server {

inline constexpr uint32_t kLedgerSection = 1;    // WindowLedger::Serialize
inline constexpr uint32_t kCountersSection = 2;  // u64 applied windows, u64 newest cut taken
inline constexpr uint32_t kServedSection = 3;    // u64 oldest step that is served (bsp images)
inline constexpr uint32_t kRemovedSection = 6;   // u64 bytes of the file of removals (images)
inline constexpr uint32_t kEarlierSection = 7;   // EncodeEarlierCommits

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_FILE_SECTIONS_H_
