#include "tools/cluster/checkpoint/diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "proto/job/checks/shown.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_settings.h"
#include "proto/job/schema/schema_start.h"
#include "proto/job/tables/model_tables.h"
#include "storage/row/layout.h"
#include "tools/cluster/checkpoint/folder.h"
#include "tools/cluster/checkpoint/rows.h"

namespace strata {
namespace {

constexpr uint64_t kRunBytes = uint64_t{16} << 20;

using TensorPair = std::pair<const SchemaTensor*, const SchemaTensor*>;

// What of two schemas is the same thing in both.
struct Common {
  std::set<uint32_t> tables;        // numbers
  std::vector<TensorPair> tensors;  // in the schemas
  std::vector<NotCompared> rest;
};

// Why rows of a table or tensor are not compared, by what differs; empty: they are. Where another
// optimizer or rule wrote what lies behind the weights, that is something else.
std::string WhyNot(SchemaChange change) {
  const std::set<SchemaChange> same = {SchemaChange::kLoaded, SchemaChange::kRenamed,
                                       SchemaChange::kOtherSettings, SchemaChange::kOtherOrder};
  if (same.contains(change)) return "";
  if (change == SchemaChange::kNew) return "in b alone";
  return change == SchemaChange::kDropped ? "in a alone" : ChangeName(change);
}

// The table with the rows of a field that means something else in b, whose keys may do so as well;
// empty: the entry tells of none.
std::string ChangedTable(const SchemaEntry& entry, const Schema& b) {
  if (entry.part != SchemaPart::kField || entry.change != SchemaChange::kChangedMeaning) return "";
  if (!entry.table.empty()) return entry.table;
  const auto field = std::find_if(b.fields().begin(), b.fields().end(),
                                  [&](const SchemaField& f) { return f.name() == entry.name; });
  return field == b.fields().end() ? "" : field->table();
}

Common CommonOf(const Schema& a, const Schema& b) {
  const SchemaMapping mapping = MapSchemas(a, b);
  Common out;
  std::set<std::pair<SchemaPart, std::string>> left;  // of what is in b
  // The first reason is told.
  const auto leave = [&](SchemaPart part, const std::string& name, std::string why) {
    if (!left.emplace(part, name).second) return;
    out.rest.push_back({PartName(part), ShownText(name), std::move(why)});
  };
  for (const SchemaEntry& e : mapping.entries) {
    if (std::string table = ChangedTable(e, b); !table.empty()) {
      leave(SchemaPart::kTable, table, EntryText(e));
    }
    if (e.part != SchemaPart::kTable && e.part != SchemaPart::kTensor) continue;
    std::string why = WhyNot(e.change);
    if (e.change == SchemaChange::kDropped) {  // a part of b may have its name
      out.rest.push_back({PartName(e.part), ShownText(e.name), std::move(why)});
    } else if (!why.empty()) {
      leave(e.part, e.name, std::move(why));
    }
  }
  for (const auto& [from, to] : mapping.tables) {
    const SchemaTable &in_a = a.tables(from), &in_b = b.tables(to);
    if (in_a.table() != in_b.table()) {  // which says in what order its rows lie
      leave(SchemaPart::kTable, in_b.name(),
            absl::StrCat("number ", in_a.table(), " in a, ", in_b.table(), " in b"));
    }
    if (!left.contains({SchemaPart::kTable, in_b.name()})) out.tables.insert(in_a.table());
  }
  for (const auto& [from, to] : mapping.tensors) {
    if (left.contains({SchemaPart::kTensor, b.tensors(to).name()})) continue;
    out.tensors.emplace_back(&a.tensors(from), &b.tensors(to));
  }
  return out;
}

// What the rows are of. DATA_LOSS: the manifest contradicts itself.
absl::StatusOr<Schema> SchemaOf(const CheckpointRows& rows) {
  const Manifest& manifest = rows.manifest();
  Schema saved = SavedSchema(manifest);
  const absl::Status s = CheckSaved(saved, MakeSchema(manifest.job().spec(), rows.tables()));
  if (s.ok()) return saved;
  return absl::DataLossError(absl::StrCat("checkpoint ", rows.folder(), ": ", s.message()));
}

// One table's difference, fed with both checkpoints' rows by runs of partitions.
class Differ {
 public:
  Differ(const TableSpec& spec, const storage::RowLayout& layout, size_t top, TableDifference& out)
      : spec_(spec), layout_(layout), top_(top), out_(out) {}

  void AddA(Position position, const uint8_t* row) {
    positions_.push_back(position);
    rows_.insert(rows_.end(), row, row + layout_.row_bytes());
  }
  // After all of the run's AddA, ascending.
  void AddB(Position position, const uint8_t* row) {
    for (; at_ < positions_.size() && positions_[at_] < position; ++at_) ++out_.removed;
    ++out_.rows_b;
    if (at_ == positions_.size() || position < positions_[at_]) {
      ++out_.added;
      return;
    }
    const uint8_t* before = rows_.data() + at_++ * layout_.row_bytes();
    if (std::memcmp(before, row, layout_.row_bytes()) != 0) Compare(position, before, row);
  }
  void EndRun() {
    out_.removed += positions_.size() - at_;
    out_.rows_a += positions_.size();
    positions_.clear();
    rows_.clear();
    at_ = 0;
  }
  void End() {
    std::sort_heap(out_.top.begin(), out_.top.end(), Farther);
    out_.distance = std::sqrt(squares_);
  }

 private:
  static bool Farther(const RowDifference& a, const RowDifference& b) {
    return a.distance > b.distance || (a.distance == b.distance && a.key < b.key);
  }

  void Compare(Position position, const uint8_t* before, const uint8_t* after) {
    ++out_.changed;
    RowDifference row;
    row.key = spec_.KeyAtPosition(position);
    double squares = 0;
    for (uint32_t i = 0; i < layout_.dim; ++i) {
      float x, y;
      std::memcpy(&x, before + 4 * i, 4);
      std::memcpy(&y, after + 4 * i, 4);
      const double d = std::abs(static_cast<double>(y) - x);
      squares += d * d;
      row.largest = std::max(row.largest, d);
    }
    squares_ += squares;
    row.distance = std::sqrt(squares);
    out_.largest = std::max(out_.largest, row.largest);
    if (top_ == 0) return;
    // A heap whose front is the nearest of the farthest.
    if (out_.top.size() == top_) {
      if (!Farther(row, out_.top.front())) return;
      std::pop_heap(out_.top.begin(), out_.top.end(), Farther);
      out_.top.pop_back();
    }
    out_.top.push_back(row);
    std::push_heap(out_.top.begin(), out_.top.end(), Farther);
  }

  const TableSpec& spec_;
  const storage::RowLayout& layout_;
  const size_t top_;
  TableDifference& out_;
  std::vector<Position> positions_;
  std::vector<uint8_t> rows_;
  size_t at_ = 0;
  double squares_ = 0;
};

absl::Status DiffTable(const CheckpointRows& a, const CheckpointRows& b, uint32_t table, size_t top,
                       TableDifference& out) {
  out.name = a.tables().tables[table].name;
  const uint32_t partitions = a.manifest().partitions();
  const uint64_t bytes = a.rows(table) * a.layout(table).row_bytes();
  const auto run =
      static_cast<uint32_t>(std::max<uint64_t>(1, partitions / (1 + bytes / kRunBytes)));
  Differ differ(a.tables().tables[table], a.layout(table), top, out);
  for (uint32_t first = 0; first < partitions; first += run) {
    const PartitionRange part = {PartitionId(first),
                                 PartitionId(std::min(partitions, first + run) - 1)};
    absl::Status s = a.ReadPartitions(table, part, [&](Position position, const uint8_t* row) {
      differ.AddA(position, row);
      return absl::OkStatus();
    });
    if (!s.ok()) return s;
    s = b.ReadPartitions(table, part, [&](Position position, const uint8_t* row) {
      differ.AddB(position, row);
      return absl::OkStatus();
    });
    if (!s.ok()) return s;
    differ.EndRun();
  }
  differ.End();
  return absl::OkStatus();
}

// Tensor by tensor, wherever in b the one of a lies.
absl::Status DiffTensors(const CheckpointRows& a, const CheckpointRows& b,
                         const std::vector<TensorPair>& tensors, size_t top, TableDifference& out) {
  constexpr uint32_t kDense = ModelTables::kDenseTable;
  out.name = a.tables().tables[kDense].name;
  Differ differ(a.tables().tables[kDense], a.layout(kDense), top, out);
  for (const auto& [in_a, in_b] : tensors) {
    const uint64_t first = in_a->first_row(), there = in_b->first_row(), last = in_a->rows() - 1;
    absl::Status s = a.ReadRange(kDense, Position(first), Position(first + last),
                                 [&](Position position, const uint8_t* row) {
                                   differ.AddA(position, row);
                                   return absl::OkStatus();
                                 });
    if (!s.ok()) return s;
    s = b.ReadRange(kDense, Position(there), Position(there + last),
                    [&](Position position, const uint8_t* row) {
                      differ.AddB(Position(position.value - there + first), row);
                      return absl::OkStatus();
                    });
    if (!s.ok()) return s;
    differ.EndRun();
  }
  differ.End();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SchemaDifference> CompareSchemas(const std::string& a, const std::string& b) {
  const auto first = FindCheckpoint(a);
  if (!first.ok()) return first.status();
  const auto second = FindCheckpoint(b);
  if (!second.ok()) return second.status();
  const Manifest &from = first->manifest, &to = second->manifest;
  const Schema in_a = SavedSchema(from), in_b = SavedSchema(to);
  SchemaDifference out{first->folder, second->folder, from.step(), to.step(),
                       MapSchemas(in_a, in_b)};
  MapSettings(in_a, from.job().spec(), in_b, to.job().spec(), out.mapping);
  // No line has weighed what was imported.
  if (in_a.model() != kImportedModel && in_b.model() != kImportedModel) {
    MapSampleWeight(from.job().spec().sample_weight(), to.job().spec().sample_weight(), {},
                    out.mapping);
  }
  return out;
}

absl::StatusOr<CheckpointDifference> DiffCheckpoints(const std::string& a, const std::string& b,
                                                     size_t top) {
  auto first = CheckpointRows::Open(a);
  if (!first.ok()) return first.status();
  auto second = CheckpointRows::Open(b);
  if (!second.ok()) return second.status();
  if (const uint32_t x = first->manifest().partitions(), y = second->manifest().partitions();
      x != y) {
    return absl::FailedPreconditionError(ShownText(absl::StrCat(
        "the rows of a, ", first->folder(), ", and b, ", second->folder(),
        ", cannot be compared: spec.storage.partitions is ", x, " in a, ", y, " in b")));
  }
  const auto in_a = SchemaOf(*first);
  if (!in_a.ok()) return in_a.status();
  const auto in_b = SchemaOf(*second);
  if (!in_b.ok()) return in_b.status();
  Common common = CommonOf(*in_a, *in_b);
  CheckpointDifference out;
  out.hash_a = first->manifest().model_hash();
  out.hash_b = second->manifest().model_hash();
  out.not_compared = std::move(common.rest);
  for (uint32_t t = 0; t < first->tables().tables.size(); ++t) {
    const bool dense = t == ModelTables::kDenseTable;
    if (dense ? common.tensors.empty() : !common.tables.contains(t)) continue;
    TableDifference& table = out.tables.emplace_back();
    const absl::Status s = dense ? DiffTensors(*first, *second, common.tensors, top, table)
                                 : DiffTable(*first, *second, t, top, table);
    if (!s.ok()) return s;
  }
  return out;
}

}  // namespace strata
