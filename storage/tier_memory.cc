#include "storage/tier_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/row_file_version.h"
#include "storage/row_tier.h"

namespace strata::storage {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// RocksDB: a file's writer keeps up to that of blocks that are not written yet, and its builder 8
// bytes of hash for the filter and some 2 of the index for each row of the file.
constexpr uint64_t kFileBufferBytes = kMiB * 3 / 2;
constexpr uint64_t kBuilderBytesPerRow = 10;
constexpr uint64_t kFileBytes = 64 * kMiB;

MemoryPart AtMost(std::string name, uint64_t bytes, uint64_t below) {
  return {std::move(name), std::min(bytes, below),
          absl::StrCat("min(", bytes, ", bytes of rows below)")};
}

}  // namespace

std::vector<MemoryPart> RocksTierMemory(const RocksTierOptions& options, const TierLoad& load) {
  const uint64_t below = load.rows * load.row_bytes;
  // One flush of a memtable; the other jobs compact.
  const uint64_t flushed = std::min(options.memtable_bytes, below) / load.row_bytes;
  const uint64_t compacted = std::min(kFileBytes, below) / load.row_bytes;
  const auto compactions = static_cast<uint64_t>(std::max(1, options.background_jobs - 1));
  return {AtMost("SSD tier: memtables", kMaxMemtables * options.memtable_bytes, below),
          AtMost("SSD tier: block cache", options.block_cache_bytes, below),
          AtMost("SSD tier: files being written",
                 (1 + compactions) * kFileBufferBytes +
                     kBuilderBytesPerRow * (flushed + compactions * compacted),
                 below)};
}

std::vector<MemoryPart> RowFileTierMemory(const RowFileTierOptions& options, const TierLoad& load) {
  const uint64_t below = load.rows * load.row_bytes;
  const auto rows = static_cast<double>(load.rows);
  // An entry of the index is 8 bytes a block, of which four fifths and more of 4 KiB are rows.
  const double index = 8.0 / std::max(1.0, 4096.0 * 4 / 5 / static_cast<double>(load.row_bytes));
  const double base = index + options.base_filter_bits / 8.0;
  const double deltas = row_file::kDeltaShare * (index + options.delta_filter_bits / 8.0);
  const uint64_t reader = kMiB + RowTier::ReadRowsAtOnce(load.row_bytes) * load.row_bytes;
  return {AtMost("SSD tier: memtables",
                 2 * (options.memtable_bytes * 5 / 4 + RowTier::kWriteChunkBytes), below),
          {"SSD tier: index and filters", static_cast<uint64_t>(rows * (base + deltas)),
           absl::StrCat(load.rows, " rows below x (index ", index, " + filter ",
                        options.base_filter_bits, " bits, and ", row_file::kDeltaShare,
                        " of them once more)")},
          AtMost("SSD tier: reads and a merge", load.threads * reader + 16 * kMiB, below)};
}

}  // namespace strata::storage
