#include "server/shard/another_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "server/shard/file_sections.h"
#include "server/shard/row_conversion.h"
#include "server/shard/tensor_columns.h"

namespace strata::server {
namespace {

using storage::ShardFileReader;
using storage::TableShape;

constexpr PartitionRange All(Partitioning partitioning) {
  return {PartitionId(0), PartitionId(partitioning.count() - 1)};
}

bool Meet(PartitionRange a, PartitionRange b) { return a.first <= b.last && b.first <= a.last; }

PartitionRange PartitionOfRow(Partitioning partitioning, uint64_t row) {
  const PartitionId partition = partitioning.Of(Position(row));
  return {partition, partition};
}

ShardTable* FindTable(const RowTaker& taker, uint32_t number) {
  for (ShardTable& t : *taker.tables) {
    if (t.spec().id.value == number) return &t;
  }
  return nullptr;
}

ShardTable* DenseTable(const RowTaker& taker) {
  for (ShardTable& t : *taker.tables) {
    if (t.spec().kind == TableKind::kDense) return &t;
  }
  return nullptr;
}

// Rows that came for a table, in any order; positions are new.
class Taken {
 public:
  Taken(const RowTaker& taker, ShardTable* table) : taker_(taker), table_(table) {}

  void Add(const RowConversion& conversion, Position position, const uint8_t* row) {
    positions_.push_back(position);
    rows_.resize(rows_.size() + row_bytes());
    conversion.Convert(taker_.seed, taker_.row_clock, table_->spec().KeyAtPosition(position), row,
                       rows_.data() + rows_.size() - row_bytes());
  }

  absl::Status Put() {
    if (std::is_sorted(positions_.begin(), positions_.end())) return PutSorted(positions_, rows_);
    std::vector<uint32_t> order(positions_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [this](uint32_t a, uint32_t b) { return positions_[a] < positions_[b]; });
    const size_t bytes = row_bytes();
    std::vector<Position> positions;
    std::vector<uint8_t> rows(rows_.size());
    for (const uint32_t i : order) {
      std::memcpy(rows.data() + positions.size() * bytes, rows_.data() + i * bytes, bytes);
      positions.push_back(positions_[i]);
    }
    return PutSorted(positions, rows);
  }

 private:
  absl::Status PutSorted(const std::vector<Position>& positions, const std::vector<uint8_t>& rows) {
    absl::Status s = table_->Put(positions, rows.data());
    positions_.clear();
    rows_.clear();
    return s;
  }

  size_t row_bytes() const { return table_->layout().row_bytes(); }

  const RowTaker& taker_;
  ShardTable* const table_;
  std::vector<Position> positions_;
  std::vector<uint8_t> rows_;
};

absl::StatusOr<TableShape> ShapeOf(const ShardFileReader& file, uint32_t number) {
  for (const TableShape& shape : file.header().tables) {
    if (shape.id.value == number) return shape;
  }
  return absl::FailedPreconditionError(absl::StrCat("the checkpoint's file has no table ", number));
}

absl::Status OtherShape(const ShardTable& table) {
  return absl::FailedPreconditionError(
      absl::StrCat("rows of table ", table.spec().name,
                   " have another size in the checkpoint's file than its manifest says"));
}

const RestoreColumns* ColumnsOf(const RestoreTable& table) {
  return table.has_columns() ? &table.columns() : nullptr;
}

uint64_t Partitions(PartitionRange range) {
  return uint64_t{range.last.value} - range.first.value + 1;
}

// Of a file's rows of a hashed table, about how many belong to the shard.
uint64_t Share(uint64_t rows, PartitionRange file, const RowTaker& taker, bool same_places) {
  if (!same_places) return rows * Partitions(taker.range) / taker.partitioning.count();
  if (!Meet(file, taker.range)) return 0;
  const PartitionRange both{std::max(file.first, taker.range.first),
                            std::min(file.last, taker.range.last)};
  return rows * Partitions(both) / Partitions(file);
}

// All rows of a hashed table whose keys belong to the shard. Under its own number a table's rows
// keep their positions; under another one they may come from any partition.
absl::Status TakeTable(const RestoreTable& plan, const ShardFileReader& file,
                       const RowTaker& taker) {
  ShardTable* const table = FindTable(taker, plan.to());
  if (table == nullptr) return absl::OkStatus();
  const auto shape = ShapeOf(file, plan.from());
  if (!shape.ok()) return shape.status();
  const auto conversion =
      RowConversion::Of(*shape, *table, {plan.reset_state(), plan.keep_score(), ColumnsOf(plan)});
  if (!conversion || table->spec().kind != TableKind::kHashed) return OtherShape(*table);
  const bool same_places = plan.from() == plan.to();
  const PartitionRange source = same_places ? taker.range : All(taker.partitioning);
  const Position first = taker.partitioning.First(taker.range.first);
  const Position last = taker.partitioning.Last(taker.range.last);
  const auto moved = [&](Position p) { return table->spec().PositionOfKey(shape->KeyAt(p)); };
  const auto mine = [&](Position p) { return first <= p && p <= last; };
  absl::Status s = file.ReadErased(shape->id, source, [&](std::span<const Position> positions) {
    std::vector<Position> erased;
    for (const Position p : positions) {
      if (mine(moved(p))) erased.push_back(moved(p));
    }
    std::sort(erased.begin(), erased.end());
    return table->Erase(erased);
  });
  if (!s.ok()) return s;
  table->rows().Expect(Share(file.rows(shape->id), file.header().partitions, taker, same_places));
  Taken taken(taker, table);
  return file.ReadRows(shape->id, source,
                       [&](std::span<const Position> positions, const uint8_t* rows) {
                         for (size_t i = 0; i < positions.size(); ++i) {
                           const Position to = moved(positions[i]);
                           if (!mine(to)) continue;
                           taken.Add(*conversion, to, rows + i * conversion->row_bytes());
                         }
                         return taken.Put();
                       });
}

// A tensor that has rows in the file and here.
struct TakenTensor {
  const RestoreTensor* plan;
  RowConversion conversion;
  std::optional<TensorColumns> columns;  // of one whose rows are not taken as they are
};

// The tensors of one partition of the file, by their first rows. A tensor's rows lie within one
// partition, there and here.
absl::Status TakeTensors(std::map<uint64_t, TakenTensor>& tensors, PartitionRange from,
                         const ShardFileReader& file, const RowTaker& taker, ShardTable* table) {
  Taken taken(taker, table);
  const auto visit = [&](std::span<const Position> positions, const uint8_t* rows) {
    for (size_t i = 0; i < positions.size(); ++i) {
      auto at = tensors.upper_bound(positions[i].value);
      if (at == tensors.begin()) continue;
      auto& [plan, conversion, columns] = (--at)->second;
      const uint64_t row = positions[i].value - plan->from_row();
      if (row >= plan->rows()) continue;
      const uint8_t* const bytes = rows + i * conversion.row_bytes();
      if (!columns) {
        taken.Add(conversion, Position(plan->to_row() + row), bytes);
      } else if (absl::Status s = columns->Take(row, bytes); !s.ok()) {
        return s;
      }
    }
    return taken.Put();
  };
  return file.ReadRows(table->spec().id, from, visit);
}

// Each partition is read once, however many tensors lie there.
absl::Status TakeDense(const RestorePlan& plan, const ShardFileReader& file, const RowTaker& taker,
                       ShardTable* dense) {
  const auto shape = ShapeOf(file, dense->spec().id.value);
  if (!shape.ok()) return shape.status();
  std::map<PartitionId, std::map<uint64_t, TakenTensor>> tensors;
  for (const RestoreTensor& tensor : plan.tensors()) {
    const auto conversion =
        RowConversion::Of(*shape, *dense, {.reset_state = tensor.reset_state()});
    if (!conversion) return OtherShape(*dense);
    std::optional<TensorColumns> columns =
        tensor.has_columns()
            ? TensorColumns::Of(tensor, *conversion, taker.seed, taker.row_clock, dense)
            : std::nullopt;
    if (tensor.has_columns() && !columns) return OtherShape(*dense);
    const PartitionRange from = PartitionOfRow(taker.partitioning, tensor.from_row());
    const PartitionRange to = PartitionOfRow(taker.partitioning, tensor.to_row());
    if (!Meet(to, taker.range) || !Meet(from, file.header().partitions)) continue;
    tensors[from.first].emplace(tensor.from_row(),
                                TakenTensor{&tensor, *conversion, std::move(columns)});
  }
  for (auto& [partition, there] : tensors) {
    absl::Status s = TakeTensors(there, {partition, partition}, file, taker, dense);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

bool MayHoldRows(const RestorePlan* plan, Partitioning partitioning, PartitionRange file,
                 PartitionRange range) {
  if (Meet(file, range)) return true;
  if (plan == nullptr) return false;
  for (const RestoreTable& table : plan->tables()) {
    if (table.from() != table.to()) return true;
  }
  return std::any_of(plan->tensors().begin(), plan->tensors().end(),
                     [&](const RestoreTensor& tensor) {
                       return Meet(PartitionOfRow(partitioning, tensor.from_row()), file) &&
                              Meet(PartitionOfRow(partitioning, tensor.to_row()), range);
                     });
}

bool KeepsPartitions(const RestorePlan* plan, TableId table) {
  return plan == nullptr ||
         std::any_of(plan->tables().begin(), plan->tables().end(), [table](const RestoreTable& t) {
           return t.from() == table.value && t.to() == table.value;
         });
}

absl::Status TakeRows(const RestorePlan& plan, const ShardFileReader& file, const RowTaker& taker) {
  if (!(file.header().partitioning == taker.partitioning)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the file has ", file.header().partitioning.count(), " partitions, the job ",
                     taker.partitioning.count(), ": set spec.storage.partitions to that"));
  }
  for (const RestoreTable& table : plan.tables()) {
    if (absl::Status s = TakeTable(table, file, taker); !s.ok()) return s;
  }
  ShardTable* const dense = DenseTable(taker);
  if (dense == nullptr || plan.tensors().empty()) return absl::OkStatus();
  return TakeDense(plan, file, taker, dense);
}

absl::StatusOr<uint64_t> RowClock(const ShardFileReader& file) {
  uint64_t clock = file.header().clock.value;
  // Of bsp there is none.
  const absl::Status s = file.ReadSectionsOf(
      kCountersSection, file.header().partitions, [&](const storage::Section& section) {
        if (section.bytes.size() >= sizeof clock) {
          std::memcpy(&clock, section.bytes.data(), sizeof clock);
        }
        return absl::OkStatus();
      });
  if (!s.ok()) return s;
  return clock;
}

}  // namespace strata::server
