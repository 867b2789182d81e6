#include "tools/cluster/checkpoint/rows.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/manifest_io.h"
#include "storage/checkpoint/shard_chain.h"
#include "storage/checkpoint/shard_file.h"

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
  for (const CheckpointFile& file : FilesInOrder(manifest)) {
    const PartitionRange partitions = {PartitionId(file.first_partition()),
                                       PartitionId(file.last_partition())};
    const std::string path = absl::StrCat(out.found_.folder, "/", file.name());
    const auto writer = WriterOf(file);
    if (!writer.ok()) return writer.status();
    auto chain = std::find_if(out.chains_.begin(), out.chains_.end(),
                              [&](const Chain& c) { return c.partitions == partitions; });
    if (file.sequence() == 0) {
      out.chains_.push_back({partitions, {{path, *writer}}});
    } else if (chain == out.chains_.end() || chain->files.size() != file.sequence()) {
      return absl::DataLossError(
          absl::StrCat(path, ": the manifest does not name the file that this increment follows"));
    } else {
      chain->files.push_back({path, *writer});
    }
  }
  std::sort(out.chains_.begin(), out.chains_.end(),
            [](const Chain& a, const Chain& b) { return a.partitions.first < b.partitions.first; });
  if (absl::Status s = out.CheckFiles(); !s.ok()) return s;
  return out;
}

absl::Status CheckpointRows::CheckFiles() {
  rows_.assign(tables_.tables.size(), 0);
  uint32_t next = 0;
  for (const Chain& of_partitions : chains_) {
    const std::string& path = of_partitions.files.front().path;
    auto chain = storage::ShardChain::Open(of_partitions.files);
    if (!chain.ok()) return chain.status();
    const storage::ShardFileHeader& header = chain->header();
    if (header.partitions.first.value < next || !(header.partitions == of_partitions.partitions)) {
      return absl::DataLossError(
          absl::StrCat(path, " holds partitions ", header.partitions.first.value, " to ",
                       header.partitions.last.value, ", not those that the manifest says"));
    }
    next = header.partitions.last.value + 1;
    for (const storage::TableShape& shape : header.tables) {
      const uint32_t t = shape.id.value;
      if (t >= layouts_.size() || shape.dim != layouts_[t].dim ||
          shape.state_floats != layouts_[t].state_floats || shape.kind != tables_.tables[t].kind) {
        return absl::FailedPreconditionError(absl::StrCat(
            path, ": table ", t, " has ", shape.dim, " weights and ", shape.state_floats,
            " floats of optimizer state a row, which is not what "
            "this version of strata makes of the job"));
      }
      const auto rows = chain->rows(shape.id);
      if (!rows.ok()) return rows.status();
      rows_[t] += *rows;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointRows::ReadChain(const Chain& of_partitions, uint32_t table,
                                       PartitionRange partitions, const Visitor& visit) const {
  auto chain = storage::ShardChain::Open(of_partitions.files);
  if (!chain.ok()) return chain.status();
  const size_t row_bytes = layouts_[table].row_bytes();
  return chain->ReadRows(TableId(table), partitions,
                         [&](std::span<const Position> positions, const uint8_t* rows) {
                           for (size_t i = 0; i < positions.size(); ++i) {
                             absl::Status s = visit(positions[i], rows + i * row_bytes);
                             if (!s.ok()) return s;
                           }
                           return absl::OkStatus();
                         });
}

absl::Status CheckpointRows::ReadAll(uint32_t table, const Visitor& visit) const {
  for (const Chain& chain : chains_) {
    if (absl::Status s = ReadChain(chain, table, chain.partitions, visit); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CheckpointRows::ReadPartitions(uint32_t table, PartitionRange partitions,
                                            const Visitor& visit) const {
  for (const Chain& chain : chains_) {
    if (chain.partitions.last < partitions.first || partitions.last < chain.partitions.first) {
      continue;
    }
    if (absl::Status s = ReadChain(chain, table, partitions, visit); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CheckpointRows::ReadRange(uint32_t table, Position first, Position last,
                                       const Visitor& visit) const {
  const PartitionId partition = Partitioning(found_.manifest.partitions()).Of(first);
  return ReadPartitions(table, {partition, partition}, [&](Position position, const uint8_t* row) {
    if (position < first || position > last) return absl::OkStatus();
    return visit(position, row);
  });
}

std::vector<uint8_t> CheckpointRows::InitialRow(uint32_t table, Key key) const {
  std::vector<uint8_t> row(layouts_[table].row_bytes());
  storage::InitialRow(tables_.tables[table], layouts_[table],
                      found_.manifest.job().spec().training().seed(), key, row.data());
  return row;
}

}  // namespace strata
