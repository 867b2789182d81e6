#include "storage/rocks/memory.h"

#include <algorithm>
#include <cstdint>

namespace strata::storage {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// A file's writer keeps up to that of blocks that are not written yet, and its builder 8 bytes of
// hash for the filter and some 2 of the index for each row of the file.
constexpr uint64_t kFileBufferBytes = kMiB * 3 / 2;
constexpr uint64_t kBuilderBytesPerRow = 10;
constexpr uint64_t kFileBytes = 64 * kMiB;

}  // namespace

std::vector<MemoryPart> RocksTierMemory(const RocksTierOptions& options, const TierLoad& load) {
  const uint64_t below = load.bytes();
  // One flush of a memtable; the other jobs compact.
  const uint64_t flushed = std::min(options.memtable_bytes, below) / load.row_bytes;
  const uint64_t compacted = std::min(kFileBytes, below) / load.row_bytes;
  const auto compactions = static_cast<uint64_t>(std::max(1, options.background_jobs - 1));
  return {TierBuffer("SSD tier: memtables", kMaxMemtables * options.memtable_bytes, load),
          TierBuffer("SSD tier: block cache", options.block_cache_bytes, load),
          TierBuffer("SSD tier: files being written",
                     (1 + compactions) * kFileBufferBytes +
                         kBuilderBytesPerRow * (flushed + compactions * compacted),
                     load)};
}

}  // namespace strata::storage
