#include "tests/storage/tier/tier_model.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <tuple>

#include "proto/core/partition.h"

namespace strata::storage {
namespace {

std::string Text(const absl::Status& s) { return s.ToString(); }

}  // namespace

absl::Status WriteAll(RowTier& tier, TableId table, const Rows& rows, size_t row_bytes) {
  std::vector<Position> positions;
  std::vector<const uint8_t*> pointers;
  for (const auto& [position, row] : rows) {
    positions.push_back(Position(position));
    pointers.push_back(row.data());
  }
  return tier.Write(table, positions, pointers, row_bytes);
}

absl::StatusOr<Rows> ReadAll(RowTier& tier, TableId table, const std::set<uint64_t>& wanted,
                             size_t row_bytes) {
  std::vector<Position> positions;
  for (uint64_t p : wanted) positions.push_back(Position(p));
  Rows out;
  size_t next = 0;
  absl::Status s = tier.Read(table, positions, row_bytes, [&](size_t i, const uint8_t* row) {
    REQUIRE(i >= next);  // ascending, each once
    next = i + 1;
    out[positions[i].value] = Bytes(row, row + row_bytes);
  });
  if (!s.ok()) return s;
  return out;
}

absl::StatusOr<Rows> Scan(RowTier& tier, TableId table, uint64_t first, uint64_t last,
                          size_t row_bytes) {
  Rows out;
  auto cursor = tier.NewCursor(table, Position(first), Position(last), row_bytes);
  for (; cursor->Valid(); cursor->Next()) {
    REQUIRE((out.empty() || cursor->position().value > out.rbegin()->first));
    out[cursor->position().value] = Bytes(cursor->row().begin(), cursor->row().end());
  }
  if (!cursor->status().ok()) return cursor->status();
  return out;
}

TierModel::TierModel(Open open, std::string directory, uint32_t partitions, uint64_t seed)
    : open_(std::move(open)),
      directory_(std::move(directory)),
      partitions_(partitions),
      random_(seed) {
  OpenTier(OpenMode::kFresh);
}

size_t TierModel::Step() {
  const size_t table = random_() % kTables;
  switch (random_() % 40) {
    case 0:
      Drop();
      return 1;
    case 1:
      REQUIRE(Text(tier_->Sync()) == "OK");
      if (random_() % 4 == 0) OpenTier(OpenMode::kKeep);
      return 1;
    case 2:
      return CheckScan(table);
    case 3:
    case 4:
      return Delete(table);
    default:
      return random_() % 2 == 0 ? Write(table) : CheckRead(table);
  }
}

void TierModel::CheckAll() {
  for (size_t t = 0; t < kTables; ++t) {
    auto found = Scan(*tier_, TableId(kIds[t]), 0, ~0ull, kRowBytes[t]);
    REQUIRE(found.ok());
    REQUIRE((*found == rows_[t]));
  }
}

void TierModel::OpenTier(OpenMode mode) {
  tier_.reset();
  auto opened = open_(directory_, mode);
  INFO(opened.status().ToString());
  REQUIRE(opened.ok());
  tier_ = *std::move(opened);
}

std::set<uint64_t> TierModel::AnyPositions() {
  std::set<uint64_t> out;
  for (size_t n = 1 + random_() % 300; n > 0; --n) out.insert(AnyPosition());
  return out;
}

size_t TierModel::Write(size_t t) {
  Rows rows;
  for (uint64_t p : AnyPositions()) {
    Bytes row(kRowBytes[t]);
    for (size_t at = 0; at < row.size(); at += sizeof(uint64_t)) {
      const uint64_t bytes = random_();
      std::memcpy(row.data() + at, &bytes, std::min(sizeof(bytes), row.size() - at));
    }
    rows[p] = row;
  }
  REQUIRE(Text(WriteAll(*tier_, TableId(kIds[t]), rows, kRowBytes[t])) == "OK");
  for (auto& [p, row] : rows) rows_[t][p] = row;
  return rows.size();
}

size_t TierModel::Delete(size_t t) {
  std::vector<Position> positions;
  for (uint64_t p : AnyPositions()) {
    positions.push_back(Position(p));
    rows_[t].erase(p);
  }
  REQUIRE(Text(tier_->Delete(TableId(kIds[t]), positions)) == "OK");
  return positions.size();
}

size_t TierModel::CheckRead(size_t t) {
  const std::set<uint64_t> wanted = AnyPositions();
  Rows expected;
  for (uint64_t p : wanted) {
    const auto it = rows_[t].find(p);
    if (it != rows_[t].end()) expected.insert(*it);
  }
  auto found = ReadAll(*tier_, TableId(kIds[t]), wanted, kRowBytes[t]);
  INFO(found.status().ToString());
  REQUIRE(found.ok());
  REQUIRE((*found == expected));
  return wanted.size();
}

size_t TierModel::CheckScan(size_t t) {
  const auto [first, last] = std::minmax({AnyPosition(), AnyPosition()});
  auto found = Scan(*tier_, TableId(kIds[t]), first, last, kRowBytes[t]);
  REQUIRE(found.ok());
  const Rows expected(rows_[t].lower_bound(first), rows_[t].upper_bound(last));
  REQUIRE((*found == expected));
  return expected.size() + 1;
}

void TierModel::Drop() {
  const Partitioning parts(partitions_);
  const auto first = static_cast<uint32_t>(random_() % partitions_);
  const auto last =
      std::min<uint32_t>(partitions_ - 1, first + static_cast<uint32_t>(random_() % 3));
  REQUIRE(Text(tier_->DeletePartitions(PartitionId(first), PartitionId(last))) == "OK");
  for (Rows& rows : rows_) {
    rows.erase(rows.lower_bound(parts.First(PartitionId(first)).value),
               rows.upper_bound(parts.Last(PartitionId(last)).value));
  }
}

}  // namespace strata::storage
