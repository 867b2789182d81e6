#include <fcntl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "proto/core/shard_trailer.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/checkpoint/shard_format.h"
#include "storage/io/file_io.h"

namespace strata::storage {
namespace {

using checkpoint::BlockHeader;
using checkpoint::BlockType;
using checkpoint::IndexEntry;

// A block's payload in memory, 8-byte aligned.
struct Payload {
  std::vector<uint64_t> words;
  size_t bytes = 0;
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(words.data()); }
  std::span<const Position> positions(size_t count) const {
    return {reinterpret_cast<const Position*>(words.data()), count};
  }
};

class Reader final : public ShardFileReader {
 public:
  explicit Reader(File file) : file_(std::move(file)) {}

  absl::Status Start();
  const ShardFileHeader& header() const override { return header_; }
  uint64_t rows(TableId table) const override;
  const ShardFileSummary& summary() const override { return summary_; }
  absl::Status ReadRows(TableId table, PartitionRange partitions,
                        const RowVisitor& visit) const override;
  absl::Status ReadSections(PartitionRange partitions, const SectionVisitor& visit) const override {
    return ReadChosen(std::nullopt, partitions, visit);
  }
  absl::Status ReadSectionsOf(uint32_t type, PartitionRange partitions,
                              const SectionVisitor& visit) const override {
    return ReadChosen(type, partitions, visit);
  }
  absl::Status ReadPreImages(TableId table, PartitionRange partitions,
                             const PreImageVisitor& visit) const override;
  absl::Status ReadErased(TableId table, PartitionRange partitions,
                          const ErasedVisitor& visit) const override;
  absl::StatusOr<ShardFileSummary> Verify() const override;

 private:
  absl::Status ReadHeader(uint64_t size, uint32_t& crc);
  absl::Status ReadFooter(uint64_t size, uint32_t header_crc);
  absl::Status CheckEntry(const IndexEntry& entry) const;
  // Reads a block and checks it against what the footer says of it.
  absl::StatusOr<Payload> ReadBlock(const BlockHeader& expected) const;
  const TableShape* ShapeOf(TableId table) const {
    for (const TableShape& shape : header_.tables) {
      if (shape.id == table) return &shape;
    }
    return nullptr;
  }
  // Blocks of a type and table that hold positions of the partitions, read and cut to them:
  // visit(shape, positions, their first index in the block, values behind the block's positions).
  using PositionedVisitor = std::function<absl::Status(const TableShape&, std::span<const Position>,
                                                       size_t begin, const uint8_t* values)>;
  absl::Status ReadPositioned(BlockType type, TableId table, PartitionRange partitions,
                              const PositionedVisitor& visit) const;
  // Sections of the type; without one all.
  absl::Status ReadChosen(std::optional<uint32_t> type, PartitionRange partitions,
                          const SectionVisitor& visit) const;
  absl::Status Damage(uint64_t offset, absl::string_view what) const {
    return DamagedFile(file_.path(), offset, what);
  }

  const File file_;
  ShardFileHeader header_;
  checkpoint::Footer footer_;
  ShardFileSummary summary_;
};

absl::Status Reader::Start() {
  const absl::StatusOr<uint64_t> size = file_.Size();
  if (!size.ok()) return size.status();
  uint32_t header_crc = 0;
  if (absl::Status s = ReadHeader(*size, header_crc); !s.ok()) return s;
  if (absl::Status s = ReadFooter(*size, header_crc); !s.ok()) return s;
  summary_.bytes = *size;
  summary_.hash = footer_.hash;
  for (uint64_t rows : footer_.table_rows) summary_.rows += rows;
  return absl::OkStatus();
}

absl::Status Reader::ReadHeader(uint64_t size, uint32_t& crc) {
  if (size < checkpoint::kPeekBytes) return Damage(0, "too short for a header");
  std::array<uint8_t, checkpoint::kPeekBytes> start;
  if (absl::Status s = file_.ReadAt(0, start); !s.ok()) return s;
  const std::optional<checkpoint::HeaderPeek> peek = checkpoint::PeekHeader(start.data());
  if (!peek) return Damage(0, "not a Strata shard file, or its header is damaged");
  if (peek->version > 0 && peek->version < checkpoint::kVersion) {
    return absl::UnimplementedError(absl::StrCat("shard file ", file_.path(), " has version ",
                                                 peek->version, "; this program reads version ",
                                                 checkpoint::kVersion,
                                                 "; use the version of strata that wrote it"));
  }
  if (peek->version != checkpoint::kVersion) {
    return Damage(0, absl::StrCat("not a Strata shard file of version ", checkpoint::kVersion,
                                  ", or its header is damaged"));
  }
  if (size < checkpoint::HeaderBytes(peek->tables)) return Damage(0, "the header is cut off");
  std::vector<uint8_t> bytes(checkpoint::HeaderBytes(peek->tables));
  if (absl::Status s = file_.ReadAt(0, bytes); !s.ok()) return s;
  std::optional<ShardFileHeader> header = checkpoint::DecodeHeader(bytes);
  if (!header) return Damage(0, "the header does not check");
  header_ = *std::move(header);
  crc = checkpoint::HeaderCrc(bytes);
  return absl::OkStatus();
}

absl::Status Reader::ReadFooter(uint64_t size, uint32_t header_crc) {
  const uint64_t start = checkpoint::HeaderBytes(header_.tables.size());
  if (size < start + checkpoint::kBlockHeaderBytes + kShardTrailerBytes) {
    return Damage(size, "the file is cut off");
  }
  const uint64_t trailer_offset = size - kShardTrailerBytes;
  std::array<uint8_t, kShardTrailerBytes> raw;
  if (absl::Status s = file_.ReadAt(trailer_offset, raw); !s.ok()) return s;
  const std::optional<ShardTrailer> trailer = DecodeShardTrailer(raw.data());
  if (!trailer) return Damage(trailer_offset, "the end does not check; the file is cut off");
  if (trailer->file_bytes != size || trailer->footer_offset < start ||
      trailer->footer_offset > trailer_offset - checkpoint::kBlockHeaderBytes) {
    return Damage(trailer_offset, "the end names another size or place");
  }
  std::array<uint8_t, checkpoint::kBlockHeaderBytes> head;
  if (absl::Status s = file_.ReadAt(trailer->footer_offset, head); !s.ok()) return s;
  const std::optional<BlockHeader> block = checkpoint::DecodeBlockHeader(head.data());
  if (!block || block->type != BlockType::kFooter || block->offset != trailer->footer_offset ||
      block->payload_bytes > size || IndexEntry{.block = *block}.end() != trailer_offset) {
    return Damage(trailer->footer_offset, "the footer's header does not check");
  }
  const absl::StatusOr<Payload> payload = ReadBlock(*block);
  if (!payload.ok()) return payload.status();
  std::optional<checkpoint::Footer> footer = checkpoint::DecodeFooter(
      block->count, header_.tables.size(), {payload->data(), payload->bytes});
  if (!footer || footer->header_crc != header_crc) {
    return Damage(trailer->footer_offset, "the footer does not fit the file");
  }
  footer_ = *std::move(footer);
  uint64_t expected = start;
  for (const IndexEntry& entry : footer_.blocks) {
    if (entry.block.offset != expected || entry.block.payload_bytes > size) {
      return Damage(trailer->footer_offset, "the footer's blocks do not follow each other");
    }
    if (absl::Status s = CheckEntry(entry); !s.ok()) return s;
    expected = entry.end();
  }
  if (expected != trailer->footer_offset) {
    return Damage(expected, "bytes that no block accounts for");
  }
  return absl::OkStatus();
}

absl::Status Reader::CheckEntry(const IndexEntry& entry) const {
  const BlockHeader& block = entry.block;
  bool good = block.partitions.first <= block.partitions.last &&
              header_.partitions.Contains(block.partitions.first) &&
              header_.partitions.Contains(block.partitions.last);
  if (block.type != BlockType::kSection) {
    const TableShape* shape = ShapeOf(TableId(block.number));
    uint64_t each = 8;
    if (shape != nullptr && block.type == BlockType::kRows) each += shape->row_bytes();
    if (shape != nullptr && block.type == BlockType::kPreImages) each += size_t{shape->dim} * 4;
    // Counts beyond the payload's own size cannot be right (and would overflow).
    good = good && shape != nullptr && block.count > 0 && block.count <= block.payload_bytes &&
           block.count * each == block.payload_bytes && entry.first <= entry.last &&
           header_.partitioning.Of(entry.first) == block.partitions.first &&
           header_.partitioning.Of(entry.last) == block.partitions.last;
  }
  return good ? absl::OkStatus() : Damage(block.offset, "the footer's entry contradicts itself");
}

uint64_t Reader::rows(TableId table) const {
  for (size_t i = 0; i < header_.tables.size(); ++i) {
    if (header_.tables[i].id == table) return footer_.table_rows[i];
  }
  return 0;
}

absl::StatusOr<Payload> Reader::ReadBlock(const BlockHeader& expected) const {
  const uint64_t padded = checkpoint::Padded(expected.payload_bytes);
  std::array<uint8_t, checkpoint::kBlockHeaderBytes> head;
  if (absl::Status s = file_.ReadAt(expected.offset, head); !s.ok()) return s;
  const std::optional<BlockHeader> found = checkpoint::DecodeBlockHeader(head.data());
  if (!found || !(*found == expected)) {
    return Damage(expected.offset, "the block's header does not check");
  }
  Payload payload;
  payload.bytes = expected.payload_bytes;
  payload.words.resize(padded / 8);
  const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(payload.words.data()), padded);
  const uint64_t start = expected.offset + head.size();
  if (absl::Status s = file_.ReadAt(start, bytes); !s.ok()) return s;
  const uint32_t crc = Crc32cExtend(Crc32c({head.data(), head.size() - 4}), bytes);
  if (crc != expected.crc) {
    return Damage(expected.offset, absl::StrCat("a block of ", head.size() + padded,
                                                " bytes does not match its checksum"));
  }
  return payload;
}

absl::Status Reader::ReadPositioned(BlockType type, TableId table, PartitionRange partitions,
                                    const PositionedVisitor& visit) const {
  const TableShape* shape = ShapeOf(table);
  if (shape == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(file_.path(), " holds no table ", table.value));
  }
  std::optional<Position> before;
  for (const IndexEntry& entry : footer_.blocks) {
    if (entry.block.type != type || entry.block.number != table.value) continue;
    if (entry.block.partitions.last < partitions.first ||
        partitions.last < entry.block.partitions.first) {
      continue;
    }
    const absl::StatusOr<Payload> payload = ReadBlock(entry.block);
    if (!payload.ok()) return payload.status();
    const std::span<const Position> all = payload->positions(entry.block.count);
    bool ascending = !before || *before < all.front();
    for (size_t i = 1; i < all.size(); ++i) ascending &= all[i - 1] < all[i];
    if (!ascending || all.front() != entry.first || all.back() != entry.last) {
      return Damage(entry.block.offset, "a block's positions are not in order");
    }
    before = all.back();
    const auto in = [&](PartitionId p) {
      return [this, p](Position position) { return header_.partitioning.Of(position) < p; };
    };
    const auto begin = std::partition_point(all.begin(), all.end(), in(partitions.first));
    const auto end = std::partition_point(begin, all.end(), in(partitions.last.Next()));
    if (begin == end) continue;
    const auto skip = static_cast<size_t>(begin - all.begin());
    absl::Status s = visit(*shape, all.subspan(skip, static_cast<size_t>(end - begin)), skip,
                           payload->data() + all.size_bytes());
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Reader::ReadRows(TableId table, PartitionRange partitions,
                              const RowVisitor& visit) const {
  return ReadPositioned(
      BlockType::kRows, table, partitions,
      [&](const TableShape& shape, std::span<const Position> positions, size_t begin,
          const uint8_t* values) { return visit(positions, values + begin * shape.row_bytes()); });
}

absl::Status Reader::ReadPreImages(TableId table, PartitionRange partitions,
                                   const PreImageVisitor& visit) const {
  return ReadPositioned(
      BlockType::kPreImages, table, partitions,
      [&](const TableShape& shape, std::span<const Position> positions, size_t begin,
          const uint8_t* values) {
        const auto* weights = reinterpret_cast<const float*>(values) + begin * shape.dim;
        return visit(PreImages{table, positions, {weights, positions.size() * shape.dim}});
      });
}

absl::Status Reader::ReadErased(TableId table, PartitionRange partitions,
                                const ErasedVisitor& visit) const {
  return ReadPositioned(BlockType::kErased, table, partitions,
                        [&](const TableShape&, std::span<const Position> positions, size_t,
                            const uint8_t*) { return visit(positions); });
}

absl::Status Reader::ReadChosen(std::optional<uint32_t> type, PartitionRange partitions,
                                const SectionVisitor& visit) const {
  for (const IndexEntry& entry : footer_.blocks) {
    const BlockHeader& block = entry.block;
    if (type && block.number != *type) continue;
    if (block.type != BlockType::kSection || block.partitions.last < partitions.first ||
        partitions.last < block.partitions.first) {
      continue;
    }
    const absl::StatusOr<Payload> payload = ReadBlock(block);
    if (!payload.ok()) return payload.status();
    const Section section{block.number, block.partitions, {payload->data(), payload->bytes}};
    if (absl::Status s = visit(section); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// 1. every block against its checksum, order and the footer's counts and hash  2. the checksum of
// the whole file, which also covers the header and the end.
absl::StatusOr<ShardFileSummary> Reader::Verify() const {
  HashSum hash;
  for (size_t i = 0; i < header_.tables.size(); ++i) {
    const TableShape& shape = header_.tables[i];
    uint64_t rows = 0;
    absl::Status s = ReadRows(shape.id, header_.partitions,
                              [&](std::span<const Position> positions, const uint8_t* bytes) {
                                for (size_t k = 0; k < positions.size(); ++k) {
                                  hash +=
                                      HashRow(shape.id, shape.KeyAt(positions[k]),
                                              {bytes + k * shape.row_bytes(), shape.row_bytes()});
                                }
                                rows += positions.size();
                                return absl::OkStatus();
                              });
    if (!s.ok()) return s;
    if (rows != footer_.table_rows[i]) {
      return Damage(0, absl::StrCat("table ", shape.id.value, " has ", rows,
                                    " rows, but the footer says ", footer_.table_rows[i]));
    }
    s = ReadPreImages(shape.id, header_.partitions,
                      [](const PreImages&) { return absl::OkStatus(); });
    if (!s.ok()) return s;
    s = ReadErased(shape.id, header_.partitions,
                   [](std::span<const Position>) { return absl::OkStatus(); });
    if (!s.ok()) return s;
  }
  absl::Status s =
      ReadSections(header_.partitions, [](const Section&) { return absl::OkStatus(); });
  if (!s.ok()) return s;
  if (!(hash == footer_.hash)) return Damage(0, "the rows do not have the footer's hash");
  ShardFileSummary summary = summary_;
  std::vector<uint8_t> bytes(ShardFileWriter::kBlockBytes);
  for (uint64_t offset = 0; offset < summary.bytes; offset += bytes.size()) {
    bytes.resize(std::min<uint64_t>(bytes.size(), summary.bytes - offset));
    if (s = file_.ReadAt(offset, bytes); !s.ok()) return s;
    summary.crc32c = Crc32cExtend(summary.crc32c, bytes);
  }
  return summary;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardFileReader>> ShardFileReader::Open(const std::string& path) {
  absl::StatusOr<File> file = File::Open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  auto reader = std::make_unique<Reader>(*std::move(file));
  if (absl::Status s = reader->Start(); !s.ok()) return s;
  return reader;
}

}  // namespace strata::storage
