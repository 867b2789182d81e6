// The bytes of a delta file (FORMAT.md), shared by its writer and its reader.
// Tested by tests/storage/delta/file_test.cc
// Tested by tests/tools/cli/checkpoint/delta_command_test.cc
#ifndef STRATA_STORAGE_DELTA_FORMAT_H_
#define STRATA_STORAGE_DELTA_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "storage/row/hash.h"

namespace strata::storage {

struct DeltaTable {
  TableId id;
  TableKind kind = TableKind::kHashed;
  uint32_t dim = 0;           // weights, floats
  uint32_t state_floats = 0;  // of the rows that the delta was made from
  friend bool operator==(const DeltaTable&, const DeltaTable&) = default;
};

// A model at one moment.
struct DeltaPoint {
  uint64_t step = 0;  // bsp: the committed step; async: the number of the cut
  HashSum hash;       // the sum of HashRow over its rows
  friend bool operator==(const DeltaPoint&, const DeltaPoint&) = default;
};

struct DeltaHeader {
  bool with_state = false;         // rows are whole: weights, state, metadata; else weights only
  bool all_tables = false;         // of the model: then, with state, hashes are those of its rows
  bool whole = false;              // it holds all rows: `from` is the empty model, of step 0
  bool removals = false;           // what life-cycle rules removed and nothing else: no sums
  DeltaPoint from;                 // what it must be applied to,
  DeltaPoint to;                   // and what that becomes
  std::vector<DeltaTable> tables;  // ascending by id

  size_t row_bytes(const DeltaTable& t) const {
    return with_state ? (size_t{t.dim} + t.state_floats) * 4 + 8 : size_t{t.dim} * 4;
  }
  const DeltaTable* Find(TableId id) const;
  friend bool operator==(const DeltaHeader&, const DeltaHeader&) = default;
};

inline constexpr uint32_t kDeltaVersion = 1;
inline constexpr size_t kDeltaFixedBytes = 88;  // of a header, before its tables
inline constexpr size_t kDeltaTableBytes = 16;  // of each
// The hashed ones that a job may have at most (spec.tables), and the dense one.
inline constexpr size_t kDeltaMostTables = 1024 + 1;
inline constexpr size_t kDeltaBlockHead = 40;
// A reader holds one block: rows of a block are at most this many bytes, or one row.
inline constexpr size_t kDeltaBlockBytes = size_t{1} << 18;
// The largest row that a table may have: 2^20 floats.
inline constexpr size_t kDeltaMostRowBytes = (size_t{1} << 22) + 8;
inline constexpr size_t kDeltaMostPayload = kDeltaBlockBytes + kDeltaMostRowBytes + 8;

enum class DeltaBlockType : uint32_t { kUpserts = 1, kDeletes = 2, kEnd = 3 };

struct DeltaBlockHead {
  DeltaBlockType type = DeltaBlockType::kEnd;
  uint32_t table = 0;
  uint64_t count = 0;
  uint64_t payload = 0;  // bytes
  uint64_t offset = 0;   // of the block in the file
  uint32_t crc = 0;
};

// The whole header, its checksum included.
std::vector<uint8_t> EncodeDeltaHeader(const DeltaHeader& header);
// Bytes of the whole header, from its first kDeltaFixedBytes; no value: these are no delta's.
std::optional<size_t> DeltaHeaderBytes(std::span<const uint8_t> fixed);
// Whether a header whose end is cut off may begin with these bytes, at least kDeltaFixedBytes and
// less than DeltaHeaderBytes: all tables that are there are some, so that a number of tables that
// is damaged is not taken for a cut.
bool MayBeginDeltaHeader(std::span<const uint8_t> bytes);
// INVALID_ARGUMENT says what is wrong, without the file's name.
absl::StatusOr<DeltaHeader> ParseDeltaHeader(std::span<const uint8_t> bytes);

// head.crc is computed: over the head's first 36 bytes, then the payload.
void EncodeDeltaBlockHead(DeltaBlockHead head, std::span<const uint8_t> payload, uint8_t* out);
// No value: no block begins like this.
std::optional<DeltaBlockHead> ParseDeltaBlockHead(std::span<const uint8_t, kDeltaBlockHead> bytes);
// The payload in up to two pieces.
uint32_t DeltaBlockCrc(std::span<const uint8_t, kDeltaBlockHead> head,
                       std::span<const uint8_t> payload, std::span<const uint8_t> rest = {});

}  // namespace strata::storage

#endif  // STRATA_STORAGE_DELTA_FORMAT_H_
