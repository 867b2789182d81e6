// The SSD tier on RocksDB. Key: partition (4 bytes), table (4), position (8), all big-endian, so a
// partition is one range; value: the row as it lies in memory (storage/row/layout.h).
//
// Settings and why: no WAL (recovery starts from base images and our log, never from this tier); no
// compression (weights do not compress); whole-key Bloom filters of 10 bits (reads of rows that do
// not exist yet are the common miss); index and filter blocks inside the block cache, so that the
// cache's bound covers them, in few shards, so that a file's filter fits one; leveled compaction.
// Measured: tools/bench/RESULTS.md, "SSD tier".
// A full disk (or want of file handles) is RESOURCE_EXHAUSTED once the memtables are full, and the
// work goes on when there is room again; background threads wait for it (files.h). Any
// other failure of a background thread, a failed write or sync of a file, stays until the tier is
// opened afresh: Write, Delete and Sync are DATA_LOSS from then on, named, while reads go on. No
// call waits longer than a minute without a flush or compaction that ends.
// Memory: at most kMaxMemtables * memtable_bytes + block_cache_bytes
//         + readers * ReadRowsAtOnce * (row_bytes + block_bytes)
//         + writers * RowTier::kWriteChunkBytes * 2.
#ifndef STRATA_STORAGE_ROCKS_TIER_H_
#define STRATA_STORAGE_ROCKS_TIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/runtime/base/timer.h"
#include "storage/tier/row_tier.h"

namespace strata::storage {

struct RocksTierOptions {
  std::string directory;    // of this tier alone, one per server and job; made if missing
  uint32_t partitions = 0;  // of the job (partition.h: a power of two)
  OpenMode mode = OpenMode::kFresh;
  uint64_t memtable_bytes = uint64_t{16} << 20;     // >= 64 KiB
  uint64_t block_cache_bytes = uint64_t{32} << 20;  // shared by all readers
  uint64_t block_bytes = 4096;                      // unit of a disk read
  int background_jobs = 2;                          // flushes and compactions at once
  int max_open_files = 512;
  // kDirect: around the page cache, the reads of a batch that fall into one file at once.
  enum class Io : uint8_t { kBuffered, kDirect } io = Io::kBuffered;
  // Changes to the options in RocksDB's own text ("compression=kZSTD;..."), applied last: to
  // measure what they do (STRATA_SSD_ROCKSDB of tools/bench/run ssd).
  std::string changes;
  Timer* timer = Timer::Real();  // outlives the tier
};

inline constexpr int kMaxMemtables = 3;

// Errors: INVALID_ARGUMENT (an option, with its value and limit); those of storage/tier/row_tier.h,
// and FAILED_PRECONDITION if another process has the folder open.
absl::StatusOr<std::unique_ptr<RowTier>> OpenRocksTier(const RocksTierOptions& options);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROCKS_TIER_H_
