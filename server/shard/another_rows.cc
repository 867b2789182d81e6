#include "server/shard/another_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "storage/row/layout.h"

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

// What becomes of a row of a file's table in a table here.
class Conversion {
 public:
  // Null: the shapes do not fit.
  static std::optional<Conversion> Of(const TableShape& from, const ShardTable& to,
                                      bool reset_state, bool keep_score) {
    const storage::RowLayout& layout = to.layout();
    const uint32_t state = layout.state_floats - (layout.scored ? 1 : 0);
    if (from.dim != layout.dim) return std::nullopt;
    Conversion out(from, to);
    out.keep_score_ = keep_score;
    if (keep_score && (!layout.scored || from.state_floats == 0)) return std::nullopt;
    if (reset_state) return out;
    // A score lies behind the optimizers' state.
    if (from.state_floats != state && from.state_floats != state + 1) return std::nullopt;
    out.state_floats_ = std::min(from.state_floats, layout.state_floats);
    return out;
  }

  size_t row_bytes() const { return from_.row_bytes(); }
  size_t new_row_bytes() const { return to_->layout().row_bytes(); }
  void Convert(uint64_t seed, Key key, const uint8_t* row, uint8_t* out) const {
    const storage::RowLayout& layout = to_->layout();
    if (state_floats_ == layout.state_floats && row_bytes() == layout.row_bytes()) {
      std::memcpy(out, row, row_bytes());
      return;
    }
    storage::InitialRow(to_->spec(), layout, seed, key, out);
    std::memcpy(out, row, (size_t{layout.dim} + state_floats_) * 4);
    if (keep_score_) {
      std::memcpy(out + layout.score_offset(),
                  row + from_.row_bytes() - sizeof(storage::RowMeta) - 4, 4);
    }
    std::memcpy(out + layout.meta_offset(), row + from_.row_bytes() - sizeof(storage::RowMeta),
                sizeof(storage::RowMeta));
  }

 private:
  Conversion(const TableShape& from, const ShardTable& to) : from_(from), to_(&to) {}

  TableShape from_;
  const ShardTable* to_;
  uint32_t state_floats_ = 0;  // that are kept
  bool keep_score_ = false;    // the last of them
};

// Rows that came for a table, in any order; positions are new.
class Taken {
 public:
  Taken(const Conversion& conversion, uint64_t seed, ShardTable* table)
      : conversion_(conversion), seed_(seed), table_(table) {}

  void Add(Position position, const uint8_t* row) {
    positions_.push_back(position);
    rows_.resize(rows_.size() + conversion_.new_row_bytes());
    conversion_.Convert(seed_, table_->spec().KeyAtPosition(position), row,
                        rows_.data() + rows_.size() - conversion_.new_row_bytes());
  }

  absl::Status Put() {
    if (std::is_sorted(positions_.begin(), positions_.end())) return PutSorted(positions_, rows_);
    std::vector<uint32_t> order(positions_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [this](uint32_t a, uint32_t b) { return positions_[a] < positions_[b]; });
    const size_t bytes = conversion_.new_row_bytes();
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

  const Conversion& conversion_;
  const uint64_t seed_;
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

// All rows of a hashed table whose keys belong to the shard. Under its own number a table's rows
// keep their positions; under another one they may come from any partition.
absl::Status TakeTable(const RestoreTable& plan, const ShardFileReader& file,
                       const RowTaker& taker) {
  ShardTable* const table = FindTable(taker, plan.to());
  if (table == nullptr) return absl::OkStatus();
  const auto shape = ShapeOf(file, plan.from());
  if (!shape.ok()) return shape.status();
  const auto conversion = Conversion::Of(*shape, *table, plan.reset_state(), plan.keep_score());
  if (!conversion || table->spec().kind != TableKind::kHashed) return OtherShape(*table);
  const PartitionRange source = plan.from() == plan.to() ? taker.range : All(taker.partitioning);
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
  Taken taken(*conversion, taker.seed, table);
  return file.ReadRows(shape->id, source,
                       [&](std::span<const Position> positions, const uint8_t* rows) {
                         for (size_t i = 0; i < positions.size(); ++i) {
                           const Position to = moved(positions[i]);
                           if (mine(to)) taken.Add(to, rows + i * conversion->row_bytes());
                         }
                         return taken.Put();
                       });
}

// A tensor's rows lie within one partition, there and here.
absl::Status TakeTensor(const RestoreTensor& plan, const ShardFileReader& file, TableId dense,
                        const Conversion& conversion, const RowTaker& taker, ShardTable* table) {
  const PartitionRange to = PartitionOfRow(taker.partitioning, plan.to_row());
  const PartitionRange from = PartitionOfRow(taker.partitioning, plan.from_row());
  if (!Meet(to, taker.range) || !Meet(from, file.header().partitions)) return absl::OkStatus();
  Taken taken(conversion, taker.seed, table);
  return file.ReadRows(dense, from, [&](std::span<const Position> positions, const uint8_t* rows) {
    for (size_t i = 0; i < positions.size(); ++i) {
      const uint64_t row = positions[i].value - plan.from_row();
      if (positions[i].value < plan.from_row() || row >= plan.rows()) continue;
      taken.Add(Position(plan.to_row() + row), rows + i * conversion.row_bytes());
    }
    return taken.Put();
  });
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
  const auto shape = ShapeOf(file, dense->spec().id.value);
  if (!shape.ok()) return shape.status();
  for (const RestoreTensor& tensor : plan.tensors()) {
    const auto conversion = Conversion::Of(*shape, *dense, tensor.reset_state(), false);
    if (!conversion) return OtherShape(*dense);
    absl::Status s = TakeTensor(tensor, file, shape->id, *conversion, taker, dense);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace strata::server
