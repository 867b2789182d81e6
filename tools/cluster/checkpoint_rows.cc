#include "tools/cluster/checkpoint_rows.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/shard_file.h"

namespace strata {

absl::StatusOr<CheckpointRows> CheckpointRows::Open(const std::string& directory) {
  auto found = FindCheckpoint(directory);
  if (!found.ok()) return found.status();
  CheckpointRows out;
  out.found_ = *std::move(found);
  const Manifest& manifest = out.found_.manifest;
  auto tables = MakeModelTables(manifest.job().spec(), manifest.fields(), manifest.numeric());
  if (!tables.ok()) return tables.status();
  out.tables_ = *std::move(tables);
  for (const TableSpec& table : out.tables_.tables) {
    out.layouts_.push_back(storage::RowLayout::For(table));
  }
  out.files_.assign(manifest.files().begin(), manifest.files().end());
  std::sort(out.files_.begin(), out.files_.end(),
            [](const CheckpointFile& a, const CheckpointFile& b) {
              return a.first_partition() < b.first_partition();
            });
  if (absl::Status s = out.CheckFiles(); !s.ok()) return s;
  return out;
}

absl::Status CheckpointRows::CheckFiles() {
  rows_.assign(tables_.tables.size(), 0);
  uint32_t next = 0;
  for (const CheckpointFile& file : files_) {
    const std::string path = absl::StrCat(found_.folder, "/", file.name());
    auto reader = storage::ShardFileReader::Open(path);
    if (!reader.ok()) return reader.status();
    const storage::ShardFileHeader& header = (*reader)->header();
    if (header.partitions.first.value < next ||
        header.partitions.first.value != file.first_partition() ||
        header.partitions.last.value != file.last_partition()) {
      return absl::DataLossError(
          absl::StrCat(path, " holds partitions ", header.partitions.first.value, " to ",
                       header.partitions.last.value, ", not those that the manifest says"));
    }
    next = file.last_partition() + 1;
    for (const storage::TableShape& shape : header.tables) {
      const uint32_t t = shape.id.value;
      if (t >= layouts_.size() || shape.dim != layouts_[t].dim ||
          shape.state_floats != layouts_[t].state_floats || shape.kind != tables_.tables[t].kind) {
        return absl::FailedPreconditionError(absl::StrCat(
            path, ": table ", t, " has ", shape.dim, " weights and ", shape.state_floats,
            " floats of optimizer state a row, which is not what "
            "this version of strata makes of the job"));
      }
      rows_[t] += (*reader)->rows(shape.id);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointRows::ReadFile(const CheckpointFile& file, uint32_t table,
                                      PartitionRange partitions, const Visitor& visit) const {
  auto reader = storage::ShardFileReader::Open(absl::StrCat(found_.folder, "/", file.name()));
  if (!reader.ok()) return reader.status();
  const size_t row_bytes = layouts_[table].row_bytes();
  return (*reader)->ReadRows(TableId(table), partitions,
                             [&](std::span<const Position> positions, const uint8_t* rows) {
                               for (size_t i = 0; i < positions.size(); ++i) {
                                 absl::Status s = visit(positions[i], rows + i * row_bytes);
                                 if (!s.ok()) return s;
                               }
                               return absl::OkStatus();
                             });
}

absl::Status CheckpointRows::ReadAll(uint32_t table, const Visitor& visit) const {
  for (const CheckpointFile& file : files_) {
    const PartitionRange all = {PartitionId(file.first_partition()),
                                PartitionId(file.last_partition())};
    if (absl::Status s = ReadFile(file, table, all, visit); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CheckpointRows::ReadRange(uint32_t table, Position first, Position last,
                                       const Visitor& visit) const {
  const PartitionId partition = Partitioning(found_.manifest.partitions()).Of(first);
  for (const CheckpointFile& file : files_) {
    if (partition.value < file.first_partition() || partition.value > file.last_partition()) {
      continue;
    }
    return ReadFile(file, table, {partition, partition},
                    [&](Position position, const uint8_t* row) {
                      if (position < first || position > last) return absl::OkStatus();
                      return visit(position, row);
                    });
  }
  return absl::OkStatus();
}

std::vector<uint8_t> CheckpointRows::InitialRow(uint32_t table, Key key) const {
  std::vector<uint8_t> row(layouts_[table].row_bytes());
  storage::InitialRow(tables_.tables[table], layouts_[table],
                      found_.manifest.job().spec().training().seed(), key, row.data());
  return row;
}

}  // namespace strata
