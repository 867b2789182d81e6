#include "server/shard/update_record.h"

#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace strata::server {
namespace {

struct Head {
  uint32_t tables;
  uint32_t reserved;
};
static_assert(sizeof(Head) == 8);

struct TableHead {
  uint32_t table;
  uint32_t dim;
  uint64_t rows;
};
static_assert(sizeof(TableHead) == 16);

// Rows of one table, aligned wherever the payload began.
struct Rows {
  std::vector<Position> positions;
  std::vector<float> values;
};

absl::Status Damaged(size_t offset, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("update record: ", what, " at byte ", offset, " of its payload"));
}

std::span<const uint8_t> BytesOf(const std::string& s, size_t at, size_t size) {
  return {reinterpret_cast<const uint8_t*>(s.data()) + at, size};
}

// Of `bytes`, which hold so many positions and then their values.
TableSums SumsAt(std::span<const uint8_t> bytes, size_t rows,
                 const std::shared_ptr<const void>& owner) {
  if (owner != nullptr && reinterpret_cast<uintptr_t>(bytes.data()) % alignof(Position) == 0) {
    const auto* positions = reinterpret_cast<const Position*>(bytes.data());
    const auto* values = reinterpret_cast<const float*>(bytes.data() + rows * 8);
    return {{positions, rows}, values, owner};
  }
  auto copy = std::make_shared<Rows>();
  copy->positions.resize(rows);
  copy->values.resize((bytes.size() - rows * 8) / 4);
  std::memcpy(copy->positions.data(), bytes.data(), rows * 8);
  std::memcpy(copy->values.data(), bytes.data() + rows * 8, bytes.size() - rows * 8);
  return {copy->positions, copy->values.data(), copy};
}

bool StrictlyAscends(std::span<const Position> positions) {
  for (size_t i = 1; i < positions.size(); ++i) {
    if (positions[i] <= positions[i - 1]) return false;
  }
  return true;
}

}  // namespace

std::vector<std::span<const uint8_t>> EncodeTables(std::span<const TableSums> tables,
                                                   std::span<const uint32_t> dims,
                                                   std::string& head_storage) {
  Head head = {0, 0};
  for (const TableSums& t : tables) head.tables += t.size() > 0;
  head_storage.resize(sizeof(Head) + head.tables * sizeof(TableHead));
  std::memcpy(head_storage.data(), &head, sizeof head);
  std::vector<std::span<const uint8_t>> pieces = {BytesOf(head_storage, 0, sizeof head)};
  size_t at = sizeof head;
  for (uint32_t t = 0; t < tables.size(); ++t) {
    if (tables[t].size() == 0) continue;
    const TableHead table = {t, dims[t], tables[t].size()};
    std::memcpy(head_storage.data() + at, &table, sizeof table);
    pieces.push_back(BytesOf(head_storage, at, sizeof table));
    at += sizeof table;
    const auto* positions = reinterpret_cast<const uint8_t*>(tables[t].positions.data());
    const auto* values = reinterpret_cast<const uint8_t*>(tables[t].values);
    pieces.push_back({positions, table.rows * 8});
    pieces.push_back({values, table.rows * table.dim * 4});
  }
  return pieces;
}

absl::StatusOr<std::vector<TableSums>> ParseTables(std::span<const uint8_t> payload,
                                                   std::span<const uint32_t> dims,
                                                   const std::shared_ptr<const void>& owner) {
  Head head;
  if (payload.size() < sizeof head) return Damaged(0, "short header");
  std::memcpy(&head, payload.data(), sizeof head);
  if (head.tables > dims.size()) return Damaged(0, "too many tables");
  std::vector<TableSums> tables(dims.size());
  size_t at = sizeof head;
  for (uint32_t i = 0; i < head.tables; ++i) {
    TableHead t;
    if (payload.size() - at < sizeof t) return Damaged(at, "short table header");
    std::memcpy(&t, payload.data() + at, sizeof t);
    if (t.table >= dims.size() || t.dim != dims[t.table] || tables[t.table].size() > 0) {
      return Damaged(at, "unknown or repeated table");
    }
    at += sizeof t;
    if (t.rows > (payload.size() - at) / (8 + size_t{t.dim} * 4)) return Damaged(at, "short rows");
    const size_t bytes = t.rows * (8 + size_t{t.dim} * 4);
    TableSums& sums = tables[t.table];
    sums = SumsAt(payload.subspan(at, bytes), t.rows, owner);
    at += bytes;
    if (!StrictlyAscends(sums.positions)) return Damaged(at, "positions out of order before");
  }
  if (at != payload.size()) return Damaged(at, "trailing bytes");
  return tables;
}

}  // namespace strata::server
