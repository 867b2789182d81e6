#include "tools/cluster/checkpoint/diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "proto/job/checks/shown.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_settings.h"
#include "storage/row/layout.h"
#include "tools/cluster/checkpoint/folder.h"
#include "tools/cluster/checkpoint/rows.h"

namespace strata {
namespace {

constexpr uint64_t kRunBytes = uint64_t{16} << 20;

// Where rows of a table lie, and of how many floats they are, by the table's name.
struct Shape {
  size_t number = 0;
  uint32_t dim = 0, state_floats = 0;
};
using Shapes = std::map<std::string, Shape>;

Shapes ShapesOf(const CheckpointRows& rows) {
  Shapes shapes;
  for (uint32_t t = 0; t < rows.tables().tables.size(); ++t) {
    const storage::RowLayout& layout = rows.layout(t);
    shapes[rows.tables().tables[t].name] = {t, layout.dim, layout.state_floats};
  }
  return shapes;
}

std::string FloatsText(const Shape& shape) {
  return absl::StrCat(shape.dim, " weights and ", shape.state_floats, " floats of state");
}

// What keeps rows of the two from being compared in their order; empty: nothing.
std::vector<std::string> RowsDiffer(const CheckpointRows& a, const CheckpointRows& b) {
  std::vector<std::string> out;
  if (const uint32_t x = a.manifest().partitions(), y = b.manifest().partitions(); x != y) {
    out.push_back(absl::StrCat("spec.storage.partitions is ", x, " in a, ", y, " in b"));
  }
  const Shapes first = ShapesOf(a), second = ShapesOf(b);
  for (const auto& [name, in_a] : first) {
    const auto other = second.find(name);
    if (other == second.end()) {
      out.push_back(absl::StrCat("b has no table ", name));
      continue;
    }
    const Shape& in_b = other->second;
    if (in_a.dim != in_b.dim || in_a.state_floats != in_b.state_floats) {
      out.push_back(absl::StrCat("rows of table ", name, " have ", FloatsText(in_a), " in a, ",
                                 FloatsText(in_b), " in b"));
    } else if (in_a.number != in_b.number) {
      out.push_back(absl::StrCat("table ", name, " has number ", in_a.number, " in a, ",
                                 in_b.number, " in b"));
    }
  }
  for (const auto& [name, in_b] : second) {
    if (!first.contains(name)) out.push_back(absl::StrCat("a has no table ", name));
  }
  return out;
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
  if (const auto differ = RowsDiffer(*first, *second); !differ.empty()) {
    return absl::FailedPreconditionError(
        ShownText(absl::StrCat("the rows of a, ", first->folder(), ", and b, ", second->folder(),
                               ", cannot be compared: ", absl::StrJoin(differ, "; "))));
  }
  CheckpointDifference out;
  out.hash_a = first->manifest().model_hash();
  out.hash_b = second->manifest().model_hash();
  for (uint32_t t = 0; t < first->tables().tables.size(); ++t) {
    out.tables.emplace_back();
    if (absl::Status s = DiffTable(*first, *second, t, top, out.tables.back()); !s.ok()) return s;
  }
  return out;
}

}  // namespace strata
