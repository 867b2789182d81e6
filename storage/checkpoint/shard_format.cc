#include "storage/checkpoint/shard_format.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "proto/core/mutation.h"
#include "proto/core/partition.h"
#include "proto/core/shard_head.h"
#include "proto/core/uid.h"
#include "storage/io/byte_codec.h"

namespace strata::storage::checkpoint {
namespace {

constexpr uint32_t kBlockMagic = 0x4b4c4253u;  // "SBLK"
constexpr size_t kTablesOffset = 64;

}  // namespace

absl::Status CheckHeader(const ShardFileHeader& header) {
  if (header.kind == ShardFileKind::kBaseImage && (header.cut != 0 || header.base_cut != 0)) {
    return absl::InvalidArgumentError("a base image is of no cut");
  }
  const uint32_t partitions = header.partitioning.count();
  if (header.partitions.last < header.partitions.first ||
      header.partitions.last.value >= partitions) {
    return absl::InvalidArgumentError(absl::StrCat("partitions ", header.partitions.first.value,
                                                   " .. ", header.partitions.last.value, " of ",
                                                   partitions, " are not a range"));
  }
  if (header.tables.size() > kMaxTables) {
    return absl::InvalidArgumentError(
        absl::StrCat(header.tables.size(), " tables; the limit is ", kMaxTables));
  }
  for (size_t i = 0; i < header.tables.size(); ++i) {
    const TableShape& table = header.tables[i];
    if (i > 0 && !(header.tables[i - 1].id < table.id)) {
      return absl::InvalidArgumentError("tables must ascend by id");
    }
    if (table.dim > kMaxRowFloats || table.state_floats > kMaxRowFloats) {
      return absl::InvalidArgumentError(
          absl::StrCat("table ", table.id.value, " has rows of ", table.dim, " + ",
                       table.state_floats, " floats; the limit of each is ", kMaxRowFloats));
    }
  }
  return absl::OkStatus();
}

std::vector<uint8_t> EncodeHeader(const ShardFileHeader& header) {
  std::vector<uint8_t> out(HeaderBytes(header.tables.size()));
  FieldWriter fields(out.data());
  fields.U64(kShardFileMagic);
  fields.U32(kVersion);
  fields.U32(static_cast<uint32_t>(header.kind));
  fields.U64(header.job.value);
  fields.U64(header.generation.value);
  fields.U64(header.clock.value);
  fields.U64(header.kind == ShardFileKind::kIncrement ? header.base.value : header.log_segment);
  fields.U32(header.shard.value);
  fields.U32(header.partitioning.count());
  fields.U32(header.partitions.first.value);
  fields.U32(header.partitions.last.value);
  fields.U32(static_cast<uint32_t>(header.tables.size()));
  fields.U32(0);
  fields.U64(header.identity.cluster.high);
  fields.U64(header.identity.cluster.low);
  fields.U64(header.identity.job.high);
  fields.U64(header.identity.job.low);
  fields.U64(header.cut);
  fields.U64(header.base_cut);
  fields.U64(header.map_epoch.value);
  for (int reserved = 0; reserved < 4; ++reserved) fields.U64(0);
  for (const TableShape& table : header.tables) {
    fields.U32(table.id.value);
    fields.U32(static_cast<uint32_t>(table.kind));
    fields.U32(table.dim);
    fields.U32(table.state_floats);
  }
  fields.U32(0);
  fields.U32(Crc32c({out.data(), out.size() - 4}));
  return out;
}

std::optional<HeaderPeek> PeekHeader(const uint8_t* in) {
  FieldReader start(in);
  if (start.U64() != kShardFileMagic) return std::nullopt;
  const uint32_t version = start.U32();
  const HeaderPeek peek = {version, FieldReader(in + kTablesOffset).U32()};
  return peek.tables <= kMaxTables ? std::optional<HeaderPeek>(peek) : std::nullopt;
}

std::optional<ShardFileHeader> DecodeHeader(std::span<const uint8_t> in) {
  if (Crc32c(in.first(in.size() - 4)) != HeaderCrc(in)) return std::nullopt;
  FieldReader fields(in.data());
  fields.U64();
  fields.U32();
  ShardFileHeader header;
  const uint32_t kind = fields.U32();
  if (kind < 1 || kind > 3) return std::nullopt;
  header.kind = static_cast<ShardFileKind>(kind);
  header.job = JobId(fields.U64());
  header.generation = Generation(fields.U64());
  header.clock = Step(fields.U64());
  const uint64_t follows = fields.U64();
  if (header.kind == ShardFileKind::kIncrement) {
    header.base = Step(follows);
  } else {
    header.log_segment = follows;
  }
  header.shard = ShardId(fields.U32());
  const uint32_t partitions = fields.U32();
  if (!Partitioning::IsValid(partitions)) return std::nullopt;
  header.partitioning = Partitioning(partitions);
  header.partitions.first = PartitionId(fields.U32());
  header.partitions.last = PartitionId(fields.U32());
  header.tables.resize(fields.U32());
  fields.U32();
  header.identity.cluster.high = fields.U64();
  header.identity.cluster.low = fields.U64();
  header.identity.job.high = fields.U64();
  header.identity.job.low = fields.U64();
  header.cut = fields.U64();
  header.base_cut = fields.U64();
  header.map_epoch = MapEpoch(fields.U64());
  for (int reserved = 0; reserved < 4; ++reserved) fields.U64();
  for (TableShape& table : header.tables) {
    table.id = TableId(fields.U32());
    const uint32_t table_kind = fields.U32();
    if (table_kind > 1) return std::nullopt;
    table.kind = static_cast<TableKind>(table_kind);
    table.dim = fields.U32();
    table.state_floats = fields.U32();
  }
  if (!CheckHeader(header).ok()) return std::nullopt;
  return header;
}

}  // namespace strata::storage::checkpoint

namespace strata::storage {

absl::Status CheckWriter(const ShardFileHeader& header, const std::string& path,
                         const FileWriter& expected) {
  if (header.writer() == expected || STRATA_MUTATION("checkpoint.file_of_another_writer"))
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("checkpoint file ", path, " was written by ",
                                          Describe(header.writer()),
                                          "; its manifest means that of ", Describe(expected)));
}

}  // namespace strata::storage

namespace strata::storage::checkpoint {

uint32_t HeaderCrc(std::span<const uint8_t> header) {
  return FieldReader(header.data() + header.size() - 4).U32();
}

void EncodeBlockHeader(const BlockHeader& header, uint8_t* out) {
  FieldWriter fields(out);
  fields.U32(kBlockMagic);
  fields.U32(static_cast<uint32_t>(header.type));
  fields.U32(header.number);
  fields.U32(header.partitions.first.value);
  fields.U32(header.partitions.last.value);
  fields.U32(0);
  fields.U64(header.count);
  fields.U64(header.payload_bytes);
  fields.U64(header.offset);
  fields.U32(0);
}

void SetBlockCrc(uint32_t crc, uint8_t* out) { FieldWriter(out + kBlockHeaderBytes - 4).U32(crc); }

std::optional<BlockHeader> DecodeBlockHeader(const uint8_t* in) {
  FieldReader fields(in);
  if (fields.U32() != kBlockMagic) return std::nullopt;
  BlockHeader header;
  const uint32_t type = fields.U32();
  if (type < 1 || type > 5) return std::nullopt;
  header.type = static_cast<BlockType>(type);
  header.number = fields.U32();
  header.partitions.first = PartitionId(fields.U32());
  header.partitions.last = PartitionId(fields.U32());
  fields.U32();
  header.count = fields.U64();
  header.payload_bytes = fields.U64();
  header.offset = fields.U64();
  fields.U32();
  header.crc = fields.U32();
  return header;
}

std::vector<uint8_t> EncodeFooter(const Footer& footer) {
  std::vector<uint8_t> out(footer.blocks.size() * kIndexEntryBytes + footer.table_rows.size() * 8 +
                           24);
  FieldWriter fields(out.data());
  for (const IndexEntry& entry : footer.blocks) {
    fields.U32(static_cast<uint32_t>(entry.block.type));
    fields.U32(entry.block.number);
    fields.U32(entry.block.partitions.first.value);
    fields.U32(entry.block.partitions.last.value);
    fields.U64(entry.block.count);
    fields.U64(entry.block.payload_bytes);
    fields.U64(entry.block.offset);
    fields.U64(entry.first.value);
    fields.U64(entry.last.value);
    fields.U32(entry.block.crc);
    fields.U32(0);
  }
  for (uint64_t rows : footer.table_rows) fields.U64(rows);
  fields.U64(footer.hash.low);
  fields.U64(footer.hash.high);
  fields.U32(footer.header_crc);
  fields.U32(0);
  return out;
}

std::optional<Footer> DecodeFooter(uint64_t blocks, size_t tables, std::span<const uint8_t> in) {
  if (blocks > in.size() / kIndexEntryBytes ||
      in.size() != blocks * kIndexEntryBytes + tables * 8 + 24) {
    return std::nullopt;
  }
  FieldReader fields(in.data());
  Footer footer;
  footer.blocks.resize(blocks);
  footer.table_rows.resize(tables);
  for (IndexEntry& entry : footer.blocks) {
    const uint32_t type = fields.U32();
    if (type < 1 || type > 5 || type == 4) return std::nullopt;
    entry.block.type = static_cast<BlockType>(type);
    entry.block.number = fields.U32();
    entry.block.partitions.first = PartitionId(fields.U32());
    entry.block.partitions.last = PartitionId(fields.U32());
    entry.block.count = fields.U64();
    entry.block.payload_bytes = fields.U64();
    entry.block.offset = fields.U64();
    entry.first = Position(fields.U64());
    entry.last = Position(fields.U64());
    entry.block.crc = fields.U32();
    fields.U32();
  }
  for (uint64_t& rows : footer.table_rows) rows = fields.U64();
  footer.hash.low = fields.U64();
  footer.hash.high = fields.U64();
  footer.header_crc = fields.U32();
  return footer;
}

}  // namespace strata::storage::checkpoint
