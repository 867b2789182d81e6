#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "proto/core/cut_file_name.h"
#include "proto/core/shard_trailer.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/checkpoint/shard_format.h"
#include "storage/io/file_io.h"
#include "storage/io/file_stream.h"

namespace strata::storage {
namespace {

using checkpoint::BlockHeader;
using checkpoint::BlockType;

template <typename T>
std::span<const uint8_t> BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

class Writer final : public ShardFileWriter {
 public:
  Writer(std::string path, ShardFileHeader header, FileStream file, FileSystem& files)
      : path_(std::move(path)), header_(std::move(header)), files_(files), file_(std::move(file)) {
    tables_.resize(header_.tables.size());
    footer_.table_rows.resize(header_.tables.size());
  }
  ~Writer() override {
    if (!finished_) RemoveFile(file_.path(), files_).IgnoreError();
  }

  absl::Status Start() {
    const std::vector<uint8_t> bytes = checkpoint::EncodeHeader(header_);
    footer_.header_crc = checkpoint::HeaderCrc(bytes);
    crc_ = Crc32c(bytes);
    return Write(bytes);
  }

  absl::Status AddRow(TableId table, Position position, std::span<const uint8_t> row) override;
  absl::Status AddRows(TableId table, std::span<const Position> positions,
                       std::span<const uint8_t> rows) override;
  absl::Status AddErased(TableId table, std::span<const Position> positions) override;
  absl::Status AddSection(const Section& section) override;
  absl::Status AddPreImages(const PreImages& images) override;
  absl::StatusOr<ShardFileSummary> Finish() override;

 private:
  struct TableState {
    std::vector<Position> positions;  // of the block being filled
    std::vector<uint8_t> rows;
    std::optional<Position> last_row;
    std::optional<Position> last_image;
    std::optional<Position> last_erased;
  };

  absl::StatusOr<size_t> PlaceOf(TableId table) const;
  absl::Status CheckPosition(Position position, const std::optional<Position>& before) const;
  absl::Status FlushRows(size_t place);
  absl::Status WriteBlock(BlockHeader header, std::span<const Position> positions,
                          std::span<const uint8_t> rest);
  absl::Status Write(std::span<const uint8_t> bytes);
  absl::Status CheckAscend(std::span<const Position> positions,
                           std::optional<Position>& last) const;
  // Keeps the first error, and removes the file.
  absl::Status Fail(absl::Status status) {
    if (status_.ok()) {
      status_ = std::move(status);
      RemoveFile(file_.path(), files_).IgnoreError();
    }
    return status_;
  }
  PartitionRange Partitions(Position first, Position last) const {
    return {header_.partitioning.Of(first), header_.partitioning.Of(last)};
  }

  const std::string path_;
  const ShardFileHeader header_;
  FileSystem& files_;
  FileStream file_;
  absl::Status status_;
  bool finished_ = false;
  std::vector<TableState> tables_;  // by place in header_.tables
  checkpoint::Footer footer_;
  uint64_t offset_ = 0;
  uint32_t crc_ = 0;  // of everything written
};

absl::StatusOr<size_t> Writer::PlaceOf(TableId table) const {
  for (size_t i = 0; i < header_.tables.size(); ++i) {
    if (header_.tables[i].id == table) return i;
  }
  return absl::InvalidArgumentError(absl::StrCat(path_, ": no table ", table.value));
}

absl::Status Writer::CheckPosition(Position position, const std::optional<Position>& before) const {
  if (!header_.partitions.Contains(header_.partitioning.Of(position))) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": position ", position.value, " is outside the file's partitions"));
  }
  if (before && position <= *before) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": position ", position.value, " after ",
                                                   before->value, "; they must strictly ascend"));
  }
  return absl::OkStatus();
}

absl::Status Writer::AddRow(TableId table, Position position, std::span<const uint8_t> row) {
  if (!status_.ok()) return status_;
  const absl::StatusOr<size_t> place = PlaceOf(table);
  if (!place.ok()) return Fail(place.status());
  TableState& state = tables_[*place];
  const TableShape& shape = header_.tables[*place];
  if (absl::Status s = CheckPosition(position, state.last_row); !s.ok()) return Fail(s);
  if (row.size() != shape.row_bytes()) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(path_, ": a row of ", row.size(),
                                                        " bytes for table ", table.value,
                                                        ", whose rows have ", shape.row_bytes())));
  }
  state.last_row = position;
  state.positions.push_back(position);
  state.rows.insert(state.rows.end(), row.begin(), row.end());
  footer_.hash += HashRow(table, shape.KeyAt(position), row);
  ++footer_.table_rows[*place];
  return state.rows.size() < kBlockBytes ? absl::OkStatus() : FlushRows(*place);
}

absl::Status Writer::CheckAscend(std::span<const Position> positions,
                                 std::optional<Position>& last) const {
  if (positions.empty()) return absl::OkStatus();
  // All lie in the file's partitions if they ascend and the first and the last do.
  bool ascend = !last || *last < positions.front();
  for (size_t i = 1; i < positions.size(); ++i) ascend &= positions[i - 1] < positions[i];
  if (ascend && CheckPosition(positions.front(), std::nullopt).ok() &&
      CheckPosition(positions.back(), std::nullopt).ok()) {
    last = positions.back();
    return absl::OkStatus();
  }
  for (const Position position : positions) {
    if (absl::Status s = CheckPosition(position, last); !s.ok()) return s;
    last = position;
  }
  return absl::OkStatus();
}

absl::Status Writer::AddRows(TableId table, std::span<const Position> positions,
                             std::span<const uint8_t> rows) {
  if (!status_.ok()) return status_;
  if (positions.empty()) return absl::OkStatus();
  const absl::StatusOr<size_t> place = PlaceOf(table);
  if (!place.ok()) return Fail(place.status());
  const TableShape& shape = header_.tables[*place];
  const size_t row_bytes = shape.row_bytes();
  if (rows.size() != positions.size() * row_bytes || !tables_[*place].positions.empty()) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        path_, ": ", rows.size(), " bytes for ", positions.size(), " rows of table ", table.value,
        ", which have ", row_bytes, " each, or a row added alone before")));
  }
  if (absl::Status s = CheckAscend(positions, tables_[*place].last_row); !s.ok()) return Fail(s);
  for (size_t i = 0; i < positions.size(); ++i) {
    footer_.hash +=
        HashRow(table, shape.KeyAt(positions[i]), rows.subspan(i * row_bytes, row_bytes));
  }
  footer_.table_rows[*place] += positions.size();
  BlockHeader block;
  block.type = BlockType::kRows;
  block.number = table.value;
  block.count = positions.size();
  block.partitions = Partitions(positions.front(), positions.back());
  return WriteBlock(block, positions, rows);
}

absl::Status Writer::AddErased(TableId table, std::span<const Position> positions) {
  if (!status_.ok()) return status_;
  if (positions.empty()) return absl::OkStatus();
  const absl::StatusOr<size_t> place = PlaceOf(table);
  if (!place.ok()) return Fail(place.status());
  if (header_.kind != ShardFileKind::kIncrement) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat(path_, ": only an increment names rows that are gone")));
  }
  if (absl::Status s = CheckAscend(positions, tables_[*place].last_erased); !s.ok()) return Fail(s);
  BlockHeader block;
  block.type = BlockType::kErased;
  block.number = table.value;
  block.count = positions.size();
  block.partitions = Partitions(positions.front(), positions.back());
  return WriteBlock(block, positions, {});
}

absl::Status Writer::FlushRows(size_t place) {
  TableState& state = tables_[place];
  if (state.positions.empty()) return absl::OkStatus();
  BlockHeader block;
  block.type = BlockType::kRows;
  block.number = header_.tables[place].id.value;
  block.count = state.positions.size();
  block.partitions = Partitions(state.positions.front(), state.positions.back());
  absl::Status s = WriteBlock(block, state.positions, state.rows);
  state.positions.clear();
  state.rows.clear();
  return s;
}

absl::Status Writer::AddSection(const Section& section) {
  if (!status_.ok()) return status_;
  if (section.partitions.last < section.partitions.first ||
      !header_.partitions.Contains(section.partitions.first) ||
      !header_.partitions.Contains(section.partitions.last)) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat(path_, ": a section's partitions are outside the file's")));
  }
  BlockHeader block;
  block.type = BlockType::kSection;
  block.number = section.type;
  block.partitions = section.partitions;
  block.count = 1;
  return WriteBlock(block, {}, section.bytes);
}

absl::Status Writer::AddPreImages(const PreImages& images) {
  if (!status_.ok()) return status_;
  const absl::StatusOr<size_t> place = PlaceOf(images.table);
  if (!place.ok()) return Fail(place.status());
  const size_t dim = header_.tables[*place].dim;
  if (images.weights.size() != images.positions.size() * dim) {
    return Fail(
        absl::InvalidArgumentError(absl::StrCat(path_, ": ", images.weights.size(), " weights for ",
                                                images.positions.size(), " pre-images of ", dim)));
  }
  if (absl::Status s = CheckAscend(images.positions, tables_[*place].last_image); !s.ok()) {
    return Fail(s);
  }
  const size_t at_once = std::max<size_t>(1, kBlockBytes / (8 + 4 * dim));
  for (size_t begin = 0; begin < images.positions.size(); begin += at_once) {
    const size_t n = std::min(at_once, images.positions.size() - begin);
    const std::span<const Position> positions = images.positions.subspan(begin, n);
    BlockHeader block;
    block.type = BlockType::kPreImages;
    block.number = images.table.value;
    block.count = n;
    block.partitions = Partitions(positions.front(), positions.back());
    absl::Status s =
        WriteBlock(block, positions, BytesOf(images.weights.subspan(begin * dim, n * dim)));
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

// The payload is read once for both checksums, the block's and the file's.
absl::Status Writer::WriteBlock(BlockHeader block, std::span<const Position> positions,
                                std::span<const uint8_t> rest) {
  static constexpr std::array<uint8_t, 8> kZeros{};
  block.offset = offset_;
  block.payload_bytes = positions.size_bytes() + rest.size();
  const std::span<const uint8_t> padding(
      kZeros.data(), checkpoint::Padded(block.payload_bytes) - block.payload_bytes);
  std::array<uint8_t, checkpoint::kBlockHeaderBytes> header;
  checkpoint::EncodeBlockHeader(block, header.data());
  uint32_t payload_crc = Crc32c(BytesOf(positions));
  for (std::span<const uint8_t> part : {rest, padding}) {
    payload_crc = Crc32cExtend(payload_crc, part);
  }
  const uint64_t padded = block.payload_bytes + padding.size();
  block.crc = Crc32cJoin(Crc32c({header.data(), header.size() - 4}), payload_crc, padded);
  checkpoint::SetBlockCrc(block.crc, header.data());
  crc_ = Crc32cJoin(Crc32cExtend(crc_, header), payload_crc, padded);
  if (block.type != BlockType::kFooter) {
    checkpoint::IndexEntry entry{.block = block};
    if (!positions.empty()) {
      entry.first = positions.front();
      entry.last = positions.back();
    }
    footer_.blocks.push_back(entry);
  }
  for (std::span<const uint8_t> part :
       {std::span<const uint8_t>(header), BytesOf(positions), rest, padding}) {
    if (absl::Status s = Write(part); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Writer::Write(std::span<const uint8_t> bytes) {
  if (absl::Status s = file_.Append(bytes); !s.ok()) return Fail(s);
  offset_ += bytes.size();
  return absl::OkStatus();
}

// 1. the blocks being filled  2. footer  3. trailer  4. fsync  5. rename  6. fsync of the folder.
absl::StatusOr<ShardFileSummary> Writer::Finish() {
  for (size_t place = 0; place < tables_.size() && status_.ok(); ++place) {
    (void)FlushRows(place);
  }
  if (!status_.ok()) return status_;
  ShardTrailer trailer{.footer_offset = offset_};
  BlockHeader block;
  block.type = BlockType::kFooter;
  block.partitions = header_.partitions;
  block.count = footer_.blocks.size();
  const std::vector<uint8_t> footer = checkpoint::EncodeFooter(footer_);
  if (absl::Status s = WriteBlock(block, {}, footer); !s.ok()) return s;
  trailer.file_bytes = offset_ + kShardTrailerBytes;
  std::array<uint8_t, kShardTrailerBytes> end;
  EncodeShardTrailer(trailer, end.data());
  crc_ = Crc32cExtend(crc_, end);
  if (absl::Status s = Write(end); !s.ok()) return s;
  if (absl::Status s = file_.Finish(); !s.ok()) return Fail(s);
  if (absl::Status s = RenameFile(file_.path(), path_, files_); !s.ok()) return Fail(s);
  finished_ = true;
  status_ = absl::FailedPreconditionError(absl::StrCat(path_, " is finished"));
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  if (absl::Status s = SyncFolder(folder, files_); !s.ok()) return s;
  ShardFileSummary summary{.bytes = offset_, .crc32c = crc_, .hash = footer_.hash};
  for (uint64_t rows : footer_.table_rows) summary.rows += rows;
  return summary;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardFileWriter>> ShardFileWriter::Create(
    const std::string& path, const ShardFileHeader& header, FileSystem& files) {
  if (absl::Status s = checkpoint::CheckHeader(header); !s.ok()) return s;
  absl::StatusOr<FileStream> file =
      FileStream::Create(NameWhileWritten(path, header.identity.job), files);
  if (!file.ok()) return file.status();
  auto writer = std::make_unique<Writer>(path, header, *std::move(file), files);
  if (absl::Status s = writer->Start(); !s.ok()) return s;
  return writer;
}

}  // namespace strata::storage
