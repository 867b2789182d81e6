// The SSD tier on a file of our own: sorted extents in one big file, an index of one number and a
// small filter per block in memory, and reads of many blocks at once (FORMAT.md, "Row file").
//
// A write goes to the memtable; a full one is cut along the ranges of keys and written, sorted, as
// one delta per range. Deltas are merged with each other and into their range's base by rules of
// version.h, one range at a time, so that merging takes room for one range only. A lookup
// passes the filters of its range's deltas, newest first, and reads about one block.
//
// A full disk: the memtable stays, a write that needs its room asks for one more attempt and
// answers RESOURCE_EXHAUSTED; reads go on. After a failed fsync, of which another one would say
// nothing, it is not known what of the rows was lost: Sync, and writes that need room in memory,
// are DATA_LOSS from then on, no manifest names those rows, and reads, whose blocks have
// checksums, go on.
//
// Memory: 2 * (memtable_bytes * 5/4 + RowTier::kWriteChunkBytes)
//         + rows * (base_filter_bits / 8 + 8 / rows of a block), and at most
//           kDeltaShare * rows * (delta_filter_bits / 8 + 8 / rows of a block) for deltas
//         + readers * (1 MiB + a window of RowTier::ReadRowsAtOnce rows)
//         + 1 MiB * 16 while a range is merged + cursors * (memtable_bytes + 2 MiB).
#ifndef STRATA_STORAGE_ROW_FILE_TIER_H_
#define STRATA_STORAGE_ROW_FILE_TIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/file_system.h"
#include "storage/tier/row_tier.h"

namespace strata::storage {

struct RowFileTierOptions {
  std::string directory;    // of this tier alone, one per server and job; made if missing
  uint32_t partitions = 0;  // of the job (partition.h: a power of two)
  OpenMode mode = OpenMode::kFresh;
  uint64_t memtable_bytes = uint64_t{8} << 20;  // >= 1 KiB
  uint32_t base_filter_bits = 8;                // per row, 1 .. 16: 2 % of absent rows cost a read
  uint32_t delta_filter_bits = 14;              // per row, 1 .. 16: .12 % a delta cost one more
  enum class Reads : uint8_t { kBest, kThreads } reads = Reads::kBest;  // io_uring or threads
  // Outlives the tier; null: the kernel's. Of batched reads the kernel's always.
  FileSystem* files = nullptr;
  Timer* timer = Timer::Real();  // outlives the tier
};

inline constexpr size_t kRowFileMostRowBytes = size_t{192} << 10;

// Errors: INVALID_ARGUMENT (an option, with its value and limit); those of storage/tier/row_tier.h,
// and FAILED_PRECONDITION if another process has the folder open or it is of other partitions.
absl::StatusOr<std::unique_ptr<RowTier>> OpenRowFileTier(const RowFileTierOptions& options);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROW_FILE_TIER_H_
