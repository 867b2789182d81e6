#include "storage/checkpoint/shard_chain.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/io/file_io.h"

namespace strata::storage {

absl::StatusOr<ShardChain> ShardChain::Open(const std::vector<CheckpointPath>& files) {
  ShardChain chain;
  if (files.empty()) return absl::InvalidArgumentError("a checkpoint's files: none was named");
  for (const auto& [path, writer] : files) {
    auto reader = ShardFileReader::Open(path);
    if (!reader.ok()) return reader.status();
    if (absl::Status s = CheckWriter((*reader)->header(), path, writer); !s.ok()) return s;
    chain.files_.push_back(*std::move(reader));
    if (absl::Status s = chain.CheckFollows(chain.files_.size() - 1, path); !s.ok()) return s;
  }
  return chain;
}

absl::Status ShardChain::CheckFollows(size_t i, const std::string& path) const {
  const ShardFileHeader& header = files_[i]->header();
  if (i == 0) {
    if (header.kind != ShardFileKind::kIncrement) return absl::OkStatus();
    return DamagedFile(path, 0, "an increment, but the file that it follows is not named before");
  }
  const ShardFileHeader& before = files_[i - 1]->header();
  if (header.kind != ShardFileKind::kIncrement || header.base != before.clock ||
      header.base_cut != before.cut || !(header.identity == before.identity) ||
      header.job != before.job || header.generation != before.generation ||
      !(header.partitions == before.partitions) || header.tables != before.tables) {
    return DamagedFile(path, 0,
                       absl::StrCat("not the increment that follows step ", before.clock.value));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ShardChain::rows(TableId table) const {
  if (files_.size() == 1) return files_.front()->rows(table);
  const ShardFileReader& last = *files_.back();
  const auto& tables = header().tables;
  uint64_t rows = 0;
  bool found = false;
  const PartitionRange all = header().partitions;
  absl::Status s = last.ReadSectionsOf(kTableRowsSection, all, [&](const Section& section) {
    if (section.bytes.size() != tables.size() * 8) return absl::OkStatus();
    for (size_t i = 0; i < tables.size(); ++i) {
      if (tables[i].id != table) continue;
      std::memcpy(&rows, section.bytes.data() + 8 * i, sizeof rows);
      found = true;
    }
    return absl::OkStatus();
  });
  if (!s.ok()) return s;
  if (!found) return absl::DataLossError("an increment does not say how many rows there are");
  return rows;
}

absl::Status ShardChain::LoadOverlay(TableId table, PartitionRange partitions, size_t row_bytes,
                                     Overlay& out) const {
  for (size_t f = 1; f < files_.size(); ++f) {
    absl::Status s =
        files_[f]->ReadErased(table, partitions, [&](std::span<const Position> positions) {
          for (const Position p : positions) out[p] = nullptr;
          return absl::OkStatus();
        });
    if (!s.ok()) return s;
    s = files_[f]->ReadRows(table, partitions,
                            [&](std::span<const Position> positions, const uint8_t* rows) {
                              for (size_t i = 0; i < positions.size(); ++i) {
                                auto& row = out[positions[i]];
                                if (row == nullptr) row = std::make_unique<uint8_t[]>(row_bytes);
                                std::memcpy(row.get(), rows + i * row_bytes, row_bytes);
                              }
                              return absl::OkStatus();
                            });
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

// Where the increments say something of a position, that; else the base's row.
absl::Status ShardChain::ReadMerged(TableId table, PartitionRange partitions, size_t row_bytes,
                                    const ShardFileReader::RowVisitor& visit) const {
  Overlay overlay;
  if (absl::Status s = LoadOverlay(table, partitions, row_bytes, overlay); !s.ok()) return s;
  auto next = overlay.begin();
  std::vector<Position> positions;
  std::vector<uint8_t> rows;
  const auto emit = [&](Position position, const uint8_t* row) {
    positions.push_back(position);
    rows.insert(rows.end(), row, row + row_bytes);
  };
  const auto give = [&] {
    absl::Status s = positions.empty() ? absl::OkStatus() : visit(positions, rows.data());
    positions.clear();
    rows.clear();
    return s;
  };
  absl::Status s = files_[0]->ReadRows(
      table, partitions, [&](std::span<const Position> base, const uint8_t* base_rows) {
        for (size_t i = 0; i < base.size(); ++i) {
          for (; next != overlay.end() && next->first < base[i]; ++next) {
            if (next->second != nullptr) emit(next->first, next->second.get());
          }
          if (next == overlay.end() || base[i] < next->first) {
            emit(base[i], base_rows + i * row_bytes);
            continue;
          }
          if (next->second != nullptr) emit(next->first, next->second.get());
          ++next;
        }
        return give();
      });
  if (!s.ok()) return s;
  for (; next != overlay.end(); ++next) {
    if (next->second != nullptr) emit(next->first, next->second.get());
  }
  return give();
}

absl::Status ShardChain::ReadRows(TableId table, PartitionRange partitions,
                                  const ShardFileReader::RowVisitor& visit) const {
  if (files_.size() == 1) return files_[0]->ReadRows(table, partitions, visit);
  const auto& tables = header().tables;
  const auto shape = std::find_if(tables.begin(), tables.end(),
                                  [table](const TableShape& t) { return t.id == table; });
  if (shape == tables.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no table ", table.value));
  }
  PartitionRange all = header().partitions;
  all.first = std::max(all.first, partitions.first);
  all.last = std::min(all.last, partitions.last);
  if (all.last < all.first) return absl::OkStatus();
  uint64_t bytes = 0;
  for (size_t f = 1; f < files_.size(); ++f) bytes += files_[f]->summary().bytes;
  const uint64_t runs = 1 + bytes / kMergeBytes;
  const auto run = static_cast<uint32_t>(std::max<uint64_t>(1, header().partitions.size() / runs));
  for (uint32_t first = all.first.value; first <= all.last.value; first += run) {
    const PartitionRange part = {PartitionId(first),
                                 PartitionId(std::min(all.last.value, first + run - 1))};
    if (absl::Status s = ReadMerged(table, part, shape->row_bytes(), visit); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace strata::storage
