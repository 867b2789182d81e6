#include "worker/data/formats/fields_parser.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/job/fields/field_plan.h"
#include "worker/data/formats/csv_columns.h"
#include "worker/data/formats/csv_cursor.h"
#include "worker/data/formats/field_reader.h"
#include "worker/data/formats/target_columns.h"

namespace strata {
namespace {

constexpr uint32_t kUnused = UINT32_MAX;
constexpr float kNoLabel = std::numeric_limits<float>::quiet_NaN();

// The text of a column of one line, and where it begins.
struct Cell {
  absl::string_view text;
  size_t column = 0;
};
using Cells = absl::InlinedVector<Cell, 48>;

// Columns of the file that are used have a slot each; several fields may read one.
struct Layout {
  char delimiter = ',';
  bool header = true;
  std::vector<uint32_t> slot_of;  // by column; kUnused
  uint32_t slots = 0;
  std::vector<uint32_t> label_slots;  // by task; kUnused: the file has no such column
  uint32_t weight_slot = kUnused;
  std::vector<uint32_t> field_slots;  // by field of the plan

  uint32_t SlotOf(size_t column) {
    if (slot_of[column] == kUnused) slot_of[column] = slots++;
    return slot_of[column];
  }
};

class FieldsParser : public LineParser {
 public:
  FieldsParser(Layout layout, TargetColumns targets, std::vector<FieldReader> fields)
      : layout_(std::move(layout)), targets_(std::move(targets)), fields_(std::move(fields)) {
    for (const FieldReader& field : fields_) {
      numbers_ += field.plan().is_number() ? 1 : 0;
      sequences_ += field.plan().kind == FieldKind::kSequence ? 1 : 0;
    }
  }

  uint32_t numeric() const override { return numbers_; }
  uint32_t tasks() const override { return static_cast<uint32_t>(targets_.tasks().size()); }
  uint32_t sequences() const override { return sequences_; }

 private:
  LineOutcome ParseExample(absl::string_view line, Batch* batch, LineError* error) const override;
  // Fills `cells` by slot; `unquoted` holds what was quoted.
  LineOutcome Cut(absl::string_view line, Cells* cells, std::string* unquoted,
                  LineError* error) const;
  LineOutcome Take(const Cells& cells, Batch* batch, LineError* error) const;
  std::string TakeTargets(const Cells& cells, Batch* batch, size_t* column) const;

  const Layout layout_;
  const TargetColumns targets_;
  const std::vector<FieldReader> fields_;
  uint32_t numbers_ = 0;
  uint32_t sequences_ = 0;
};

LineOutcome FieldsParser::Cut(absl::string_view line, Cells* cells, std::string* unquoted,
                              LineError* error) const {
  cells->resize(layout_.slots);
  CsvCursor cursor(line, layout_.delimiter);
  absl::string_view text;
  std::string scratch;
  size_t columns = 0;
  for (; cursor.Next(&text, &scratch); ++columns) {
    if (columns >= layout_.slot_of.size() || layout_.slot_of[columns] == kUnused) continue;
    if (text.data() == scratch.data()) {
      // Never moves: what was quoted is shorter than the line.
      if (unquoted->empty()) unquoted->reserve(line.size());
      const size_t at = unquoted->size();
      unquoted->append(scratch);
      text = absl::string_view(*unquoted).substr(at);
    }
    (*cells)[layout_.slot_of[columns]] = {text, cursor.column()};
  }
  if (cursor.error() != nullptr) return BadLine(cursor.column(), cursor.error(), error);
  if (columns == layout_.slot_of.size()) return LineOutcome::kExample;
  return BadLine(1, OtherColumnCount(columns, layout_.slot_of.size(), layout_.header), error);
}

std::string FieldsParser::TakeTargets(const Cells& cells, Batch* batch, size_t* column) const {
  for (size_t t = 0; t < layout_.label_slots.size(); ++t) {
    batch->labels.push_back(kNoLabel);
    if (layout_.label_slots[t] == kUnused) continue;
    const Cell& cell = cells[layout_.label_slots[t]];
    *column = cell.column;
    std::string reason = targets_.ParseLabel(t, cell.text, &batch->labels.back());
    if (!reason.empty()) return reason;
  }
  if (!targets_.weighted()) return "";
  batch->weights.push_back(1.0f);
  if (layout_.weight_slot == kUnused) return "";
  const Cell& cell = cells[layout_.weight_slot];
  *column = cell.column;
  return targets_.ParseWeight(cell.text, &batch->weights.back());
}

LineOutcome FieldsParser::Take(const Cells& cells, Batch* batch, LineError* error) const {
  size_t column = 1;
  std::string reason = TakeTargets(cells, batch, &column);
  for (size_t f = 0; reason.empty() && f < fields_.size(); ++f) {
    const FieldReader& field = fields_[f];
    const Cell& cell = cells[layout_.field_slots[f]];
    column = cell.column;
    if (field.plan().is_number()) {
      batch->dense.push_back(0.0f);
      reason = field.ReadNumber(cell.text, &batch->dense.back());
      continue;
    }
    const size_t first = batch->keys.size();
    reason = field.AppendFeatures(cell.text, batch);
    if (field.plan().kind != FieldKind::kSequence) continue;
    batch->sequence_first.push_back(static_cast<uint32_t>(first));
    batch->sequence_length.push_back(static_cast<uint32_t>(batch->keys.size() - first));
  }
  if (!reason.empty()) return BadLine(column, std::move(reason), error);
  EndExample(batch);
  return LineOutcome::kExample;
}

LineOutcome FieldsParser::ParseExample(absl::string_view line, Batch* batch,
                                       LineError* error) const {
  Cells cells;
  std::string unquoted;
  const LineOutcome cut = Cut(line, &cells, &unquoted, error);
  if (cut != LineOutcome::kExample) return cut;
  const BatchMark mark(*batch);
  const LineOutcome outcome = Take(cells, batch, error);
  if (outcome != LineOutcome::kExample) mark.Restore(batch);
  return outcome;
}

// Finds every column that the job names.
absl::Status FindColumns(const FieldsPlan& plan, const TargetColumns& targets,
                         const CsvColumns& columns, Layout* layout) {
  const auto slot = [&](const std::string& wanted,
                        const std::string& where) -> absl::StatusOr<uint32_t> {
    const absl::StatusOr<size_t> at = columns.Find(wanted, where);
    if (!at.ok()) return at.status();
    return layout->SlotOf(*at);
  };
  const auto absent = [&](const std::string& column) {
    return targets.optional() && !columns.Has(column);
  };
  for (size_t t = 0; t < targets.tasks().size(); ++t) {
    if (absent(targets.tasks()[t].column)) {
      layout->label_slots.push_back(kUnused);
      continue;
    }
    const uint32_t before = layout->slots;
    const auto found = slot(targets.tasks()[t].column, targets.Where(t));
    if (!found.ok()) return found.status();
    if (*found < before) {
      return absl::InvalidArgumentError(absl::StrCat(targets.Where(t), ": '",
                                                     targets.tasks()[t].column,
                                                     "' is the column of an earlier label in the "
                                                     "data; name another column"));
    }
    layout->label_slots.push_back(*found);
  }
  if (targets.weighted() && !absent(targets.weight_column())) {
    const uint32_t of_labels = layout->slots;
    const auto found = slot(targets.weight_column(), "spec.sampleWeight");
    if (!found.ok()) return found.status();
    if (*found < of_labels) {
      return absl::InvalidArgumentError(
          absl::StrCat("spec.sampleWeight: '", targets.weight_column(),
                       "' is the column of a label in the data; name another column"));
    }
    layout->weight_slot = *found;
  }
  const uint32_t of_targets = layout->slots;
  for (size_t f = 0; f < plan.fields.size(); ++f) {
    const std::string where = absl::StrCat("spec.fields[", f, "].column");
    const auto found = slot(plan.fields[f].column, where);
    if (!found.ok()) return targets.WithRemedy(found.status(), columns);
    if (*found < of_targets) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": '", plan.fields[f].column, "' of field '", plan.fields[f].name,
          "' is the column of a label or of the weight in the data; name another column"));
    }
    layout->field_slots.push_back(*found);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineParser>> MakeFieldsParser(const JobSpec& spec,
                                                             absl::string_view first_line,
                                                             const Vocabularies& vocabularies,
                                                             Labels labels,
                                                             const DataShape& known) {
  const ColumnsSpec& cut = spec.data().columns();
  Layout layout;
  if (!cut.delimiter().empty()) layout.delimiter = cut.delimiter()[0];
  layout.header = !cut.has_header() || cut.header();
  const auto columns = ReadCsvColumns(first_line, layout.delimiter, layout.header, known);
  if (!columns.ok()) return columns.status();
  layout.slot_of.assign(columns->names.size(), kUnused);
  TargetColumns targets(spec, labels);
  const FieldsPlan plan = PlanFields(spec);
  if (absl::Status s = FindColumns(plan, targets, *columns, &layout); !s.ok()) return s;
  std::vector<FieldReader> fields;
  for (const FieldPlan& field : plan.fields) {
    std::shared_ptr<const Vocabulary> vocabulary;
    if (field.vocabulary) vocabulary = vocabularies.at(field.vocabulary->file);
    fields.emplace_back(field, std::move(vocabulary));
  }
  return std::unique_ptr<LineParser>(
      std::make_unique<FieldsParser>(std::move(layout), std::move(targets), std::move(fields)));
}

}  // namespace strata
