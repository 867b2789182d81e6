// What a row file holds at a moment, as a value, and what to merge next.
#ifndef STRATA_STORAGE_ROW_FILE_VERSION_H_
#define STRATA_STORAGE_ROW_FILE_VERSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/row_file/block.h"
#include "storage/row_file/extent.h"
#include "storage/row_file/volume.h"

namespace strata::storage::row_file {

// The rows from `begin` up to the next range's begin: a base, and deltas over it, each written at
// once from a memtable or merged from others. No row is in two places of one extent; the newest
// delta that has a row decides.
struct Range {
  RowKey begin;
  std::shared_ptr<const Extent> base;                 // may be null
  std::vector<std::shared_ptr<const Extent>> deltas;  // oldest first; levels never ascend

  uint64_t base_bytes() const { return base == nullptr ? 0 : base->bytes(); }
  uint64_t delta_bytes() const;
};

struct Version {
  std::vector<Range> ranges = {{}};  // ascending; the first begins at key 0

  size_t RangeOf(RowKey key) const;
  // The last key of a range.
  RowKey LastOf(size_t range) const;
  uint64_t base_bytes() const;
  uint64_t delta_bytes() const;
  uint64_t memory_bytes() const;
};

// When to merge what. Deltas of a level are merged into one of the next when there are kFanIn:
// a lookup passes at most kFanIn - 1 filters a level. The range with the most deltas is merged into
// a new base while all deltas together are more than kDeltaShare of the bases: then they are
// written about 1 + levels + (1 + 2 kDeltaShare) / (2 kDeltaShare) times, and take kDeltaShare more
// space.
inline constexpr size_t kFanIn = 8;
inline constexpr double kDeltaShare = 0.2;
inline constexpr uint64_t kLeastDeltaBytes = uint64_t{1} << 20;  // of all ranges, before any merge

struct MergeJob {
  size_t range = 0;
  size_t first_delta = 0;  // of those that are merged; the newest is always one of them
  bool into_base = false;
  uint32_t level = 0;  // of the new delta
};
std::optional<MergeJob> NextJob(const Version& version);

// Into how many pieces to cut the new base, so that there are at most `most_ranges`.
size_t PiecesOfBase(const Version& version, uint64_t new_base_bytes, size_t most_ranges);

// The manifest: FORMAT.md.
struct Manifest {
  uint64_t next_number = 1;  // of extents
  uint32_t partitions = 0;
  struct RangePlaces {
    RowKey begin;
    std::vector<ExtentPlace> deltas;
    std::optional<ExtentPlace> base;
  };
  std::vector<RangePlaces> ranges;
};
Manifest MakeManifest(const Version& version, uint64_t next_number, uint32_t partitions);
std::vector<uint8_t> EncodeManifest(const Manifest& manifest);
// Nothing if the bytes are no manifest.
std::optional<Manifest> DecodeManifest(std::span<const uint8_t> bytes);

}  // namespace strata::storage::row_file

#endif  // STRATA_STORAGE_ROW_FILE_VERSION_H_
