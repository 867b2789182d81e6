// The bytes of base images and checkpoint files, shared by writer and reader (FORMAT.md).
// Tested by tests/storage/checkpoint/shard_file_test.cc
#ifndef STRATA_STORAGE_CHECKPOINT_SHARD_FORMAT_H_
#define STRATA_STORAGE_CHECKPOINT_SHARD_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/shard_head.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/hash.h"

namespace strata::storage::checkpoint {

inline constexpr uint32_t kVersion = kShardFileVersion;
inline constexpr size_t kPeekBytes = 72;
inline constexpr size_t kHeaderFixedBytes = 160;  // then the tables, then kHeaderEndBytes
inline constexpr size_t kTableBytes = 16;
inline constexpr size_t kHeaderEndBytes = 8;
inline constexpr size_t kBlockHeaderBytes = 56;
inline constexpr size_t kIndexEntryBytes = 64;
inline constexpr uint32_t kMaxTables = 1u << 16;
inline constexpr uint32_t kMaxRowFloats = 1u << 24;

constexpr size_t HeaderBytes(size_t tables) {
  return kHeaderFixedBytes + tables * kTableBytes + kHeaderEndBytes;
}
constexpr uint64_t Padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// INVALID_ARGUMENT names what contradicts itself.
absl::Status CheckHeader(const ShardFileHeader& header);
// (HeaderBytes(tables)).
std::vector<uint8_t> EncodeHeader(const ShardFileHeader& header);
// What a header's first bytes speak of; nothing if they are none. in: (kPeekBytes).
struct HeaderPeek {
  uint32_t version = 0;  // `tables` holds for kVersion alone
  uint32_t tables = 0;
};
std::optional<HeaderPeek> PeekHeader(const uint8_t* in);
// Nothing if damaged. in: (HeaderBytes(tables)).
std::optional<ShardFileHeader> DecodeHeader(std::span<const uint8_t> in);

enum class BlockType : uint32_t {
  kRows = 1,
  kSection = 2,
  kPreImages = 3,
  kFooter = 4,
  kErased = 5,
};

// A block: this header, payload, zeros to a multiple of 8.
struct BlockHeader {
  BlockType type = BlockType::kRows;
  uint32_t number = 0;  // table, or type of section
  PartitionRange partitions{};
  uint64_t count = 0;          // of rows, pre-images or index entries; 1 for a section
  uint64_t payload_bytes = 0;  // without padding
  uint64_t offset = 0;         // of this header in the file
  uint32_t crc = 0;            // of header (without this field), payload and padding

  friend bool operator==(const BlockHeader&, const BlockHeader&) = default;
};

// out: (kBlockHeaderBytes). Writes everything but the checksum, which follows the payload's.
void EncodeBlockHeader(const BlockHeader& header, uint8_t* out);
void SetBlockCrc(uint32_t crc, uint8_t* out);
std::optional<BlockHeader> DecodeBlockHeader(const uint8_t* in);

// A block as the footer knows it.
struct IndexEntry {
  BlockHeader block;
  Position first;  // of rows or pre-images
  Position last;

  uint64_t end() const { return block.offset + kBlockHeaderBytes + Padded(block.payload_bytes); }
};

struct Footer {
  std::vector<IndexEntry> blocks;    // in file order
  std::vector<uint64_t> table_rows;  // by place in header.tables
  HashSum hash;
  uint32_t header_crc = 0;  // ties the footer to the header
};
std::vector<uint8_t> EncodeFooter(const Footer& footer);
std::optional<Footer> DecodeFooter(uint64_t blocks, size_t tables, std::span<const uint8_t> in);

// The last 4 bytes of an encoded header.
uint32_t HeaderCrc(std::span<const uint8_t> header);

}  // namespace strata::storage::checkpoint

#endif  // STRATA_STORAGE_CHECKPOINT_SHARD_FORMAT_H_
