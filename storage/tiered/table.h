// A table whose rows lie in DRAM up to a hard limit, and on SSD beyond it.
//
// Resolve: rows found in DRAM are used there; the others are read from below in batches and moved
// up; rows that exist nowhere are born or answered null as Access says. A failed write below drops
// nothing: the call returns the error, every row stays where it was, and the call may be repeated.
//
// Leaving: the eviction policy names a sixteenth of the tier, at most kMostVictims rows, which wait
// in line. Those that are referenced meanwhile stay. When room is needed the first in line go:
// clean ones are dropped, dirty ones written below before that, with others of the line in one
// batch sorted by position. Tidy does that writing ahead of need.
//
// References: the policy, and the counters of hits, count one for a read and none for the update
// that follows it, nor for a call whose hint was right (the call that gave the hint was counted).
//
// Bytes: CapacityFor(limit) rows fit (storage/dram/store.h's formula, extra_bytes = 2 +
// EvictionBytesPerSlot). max_batch() = capacity / 2 and Pin holds at most capacity / 2 rows (each
// 2047 times at most), so that there is always room for a batch. Least limit admitted:
// MinimumDramBytes, which is that of kMinimumRows rows. Beside the limit there are 4 bytes for each
// row in line and those of AbsentMemo, and a call needs lists of at most max(capacity / 2, 65536) *
// 28 bytes, 256 KiB (or 16 rows) of rows just read, the policy's lists (storage/eviction/policy.h)
// and the tier's own buffers (storage/rocks/tier.h).
#ifndef STRATA_STORAGE_TIERED_TABLE_H_
#define STRATA_STORAGE_TIERED_TABLE_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "storage/row/table.h"
#include "storage/tiered/options.h"

namespace strata::storage {

// INVALID_ARGUMENT names the option, its value and its limit; errors of the tier with kAdopt.
absl::StatusOr<std::unique_ptr<RowTable>> MakeTieredTable(const TieredOptions& options);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_TIERED_TABLE_H_
