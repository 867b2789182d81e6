#include "worker/data/formats/csv_parser.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/job/fields/field_plan.h"
#include "worker/data/formats/csv_columns.h"
#include "worker/data/formats/csv_cursor.h"
#include "worker/data/formats/feature_hash.h"
#include "worker/data/formats/field_reader.h"
#include "worker/data/formats/number_text.h"
#include "worker/data/formats/target_columns.h"

namespace strata {
namespace {

constexpr float kNoLabel = std::numeric_limits<float>::quiet_NaN();

enum class Role : uint8_t {
  kUnset,
  kIgnored,
  kLabel,
  kWeight,
  kNumeric,
  kCategorical,
  kMultiValued
};

struct Column {
  Role role = Role::kUnset;
  // In the tasks, columns.numeric, columns.categorical or columns.multi_valued.
  uint32_t index = 0;
  std::string name;
};

struct MultiValued {
  char separator = '|';
  bool mean = false;
};

struct Layout {
  bool header = true;
  std::vector<Column> columns;
  uint32_t numeric = 0;
  uint32_t categorical = 0;
  std::vector<MultiValued> multi_valued;
  char delimiter = ',';
};

// Texts of the multi-valued columns of one line, until all its columns are known.
struct MultiTexts {
  std::vector<absl::string_view> text;  // by index; in the line or in `unquoted`
  std::vector<std::string> unquoted;    // by index
};

// Where the values of an example go.
struct Places {
  float* labels;  // (tasks)
  float* weight;  // null: lines have none
  float* dense;
  uint64_t* keys;
};

class CsvParser : public LineParser {
 public:
  CsvParser(Layout layout, TargetColumns targets, const FieldsPlan& plan)
      : layout_(std::move(layout)), targets_(std::move(targets)) {
    for (const FieldPlan* field : plan.ByNumber()) field_seeds_.push_back(SeedOf(*field));
  }

  uint32_t numeric() const override { return layout_.numeric; }
  uint32_t tasks() const override { return static_cast<uint32_t>(targets_.tasks().size()); }

 private:
  LineOutcome ParseExample(absl::string_view line, Batch* batch, LineError* error) const override;
  LineOutcome ParseFields(absl::string_view line, Batch* batch, LineError* error) const;
  // The values of multi-valued column `i` as further features of the example.
  void AppendValues(size_t i, absl::string_view text, Batch* batch) const;
  // One field into its place; empty on success, else the reason.
  std::string TakeField(const Column& column, absl::string_view text, const Places& places) const;

  const Layout layout_;
  const TargetColumns targets_;
  std::vector<uint64_t> field_seeds_;
};

std::string CsvParser::TakeField(const Column& column, absl::string_view text,
                                 const Places& places) const {
  switch (column.role) {
    case Role::kLabel:
      return targets_.ParseLabel(column.index, text, &places.labels[column.index]);
    case Role::kWeight:
      return targets_.ParseWeight(text, places.weight);
    case Role::kNumeric: {
      const absl::string_view number = absl::StripAsciiWhitespace(text);
      float value = 0;
      if (number.empty()) return "";
      if (const NumberError e = ParseReal(number, &value); e != NumberError::kNone) {
        return absl::StrCat("column ", column.name, ": ", Quoted(text), " ", WhyNoReal(e));
      }
      places.dense[column.index] = value;
      return "";
    }
    case Role::kCategorical:
      places.keys[column.index] = FeatureKey(field_seeds_[column.index], text);
      return "";
    case Role::kMultiValued:  // comes when all columns are known
    case Role::kUnset:
    case Role::kIgnored:
      return "";
  }
  return "";
}

void CsvParser::AppendValues(size_t i, absl::string_view text, Batch* batch) const {
  const uint32_t field = layout_.categorical + static_cast<uint32_t>(i);
  const MultiValued& spec = layout_.multi_valued[i];
  const size_t first = batch->keys.size();
  while (!text.empty()) {
    const size_t end = std::min(text.find(spec.separator), text.size());
    if (end > 0) batch->keys.push_back(FeatureKey(field_seeds_[field], text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (batch->keys.size() == first) batch->keys.push_back(FeatureKey(field_seeds_[field], ""));
  const size_t count = batch->keys.size() - first;
  batch->values.resize(batch->keys.size(), spec.mean ? 1.0f / static_cast<float>(count) : 1.0f);
  batch->fields.resize(batch->keys.size(), field);
}

LineOutcome CsvParser::ParseFields(absl::string_view line, Batch* batch, LineError* error) const {
  const size_t first_key = batch->keys.size();
  const size_t first_dense = batch->dense.size();
  const size_t first_label = batch->labels.size();
  batch->keys.resize(first_key + layout_.categorical);
  batch->dense.resize(first_dense + layout_.numeric);
  batch->labels.resize(first_label + tasks(), kNoLabel);
  if (targets_.weighted()) batch->weights.push_back(1.0f);
  const Places places = {batch->labels.data() + first_label,
                         targets_.weighted() ? &batch->weights.back() : nullptr,
                         batch->dense.data() + first_dense, batch->keys.data() + first_key};
  const size_t multi_count = layout_.multi_valued.size();
  MultiTexts multi{std::vector<absl::string_view>(multi_count),
                   std::vector<std::string>(multi_count)};
  CsvCursor cursor(line, layout_.delimiter);
  absl::string_view field;
  std::string scratch;
  size_t columns = 0;
  while (cursor.Next(&field, &scratch)) {
    if (columns < layout_.columns.size()) {
      const Column& column = layout_.columns[columns];
      std::string reason = TakeField(column, field, places);
      if (column.role == Role::kMultiValued) {
        const bool unquoted = field.data() == scratch.data();
        if (unquoted) multi.unquoted[column.index] = scratch;
        multi.text[column.index] = unquoted ? multi.unquoted[column.index] : field;
      }
      if (!reason.empty()) return BadLine(cursor.column(), std::move(reason), error);
    }
    ++columns;
  }
  if (cursor.error() != nullptr) return BadLine(cursor.column(), cursor.error(), error);
  if (columns != layout_.columns.size()) {
    return BadLine(1, OtherColumnCount(columns, layout_.columns.size(), layout_.header), error);
  }
  if (multi_count == 0) return LineOutcome::kExample;
  batch->values.resize(batch->keys.size(), 1.0f);
  for (uint32_t f = 0; f < layout_.categorical; ++f) batch->fields.push_back(f);
  for (size_t i = 0; i < multi_count; ++i) AppendValues(i, multi.text[i], batch);
  return LineOutcome::kExample;
}

LineOutcome CsvParser::ParseExample(absl::string_view line, Batch* batch, LineError* error) const {
  const BatchMark mark(*batch);
  const LineOutcome outcome = ParseFields(line, batch, error);
  if (outcome != LineOutcome::kExample) {
    mark.Restore(batch);
    return outcome;
  }
  EndExample(batch);
  return outcome;
}

// The character that `text` of the job file means.
absl::StatusOr<char> Separator(absl::string_view text, char fallback, absl::string_view where) {
  if (text.empty()) return fallback;
  if (text == "\\t") return '\t';
  if (text.size() == 1 && text[0] != '"' && text[0] != '\n' && text[0] != '\r') return text[0];
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": ", Quoted(text), " must be one character (no quote, no line end), or \"\\t\""));
}

absl::Status ReadMultiValued(const ColumnsSpec& spec, Layout* layout) {
  for (int i = 0; i < spec.multi_valued_size(); ++i) {
    const MultiValuedColumn& column = spec.multi_valued(i);
    const std::string where = absl::StrCat("spec.data.columns.multiValued[", i, "].");
    absl::StatusOr<char> separator = Separator(column.separator(), '|', where + "separator");
    if (!separator.ok()) return separator.status();
    if (!column.pooling().empty() && column.pooling() != "sum" && column.pooling() != "mean") {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "pooling: ", Quoted(column.pooling()), " is neither sum nor mean"));
    }
    layout->multi_valued.push_back({*separator, column.pooling() == "mean"});
  }
  return absl::OkStatus();
}

absl::Status Assign(const std::string& wanted, const std::string& where, const CsvColumns& names,
                    Column value, std::vector<Column>* columns) {
  absl::StatusOr<size_t> at = names.Find(wanted, where);
  if (!at.ok()) return at.status();
  Column& column = (*columns)[*at];
  if (column.role != Role::kUnset) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": column ", Quoted(wanted), " is listed twice"));
  }
  column.role = value.role;
  column.index = value.index;
  return absl::OkStatus();
}

absl::Status AssignTargets(const TargetColumns& targets, const CsvColumns& names,
                           std::vector<Column>* columns) {
  const auto absent = [&](const std::string& column) {
    return targets.optional() && !names.Has(column);
  };
  absl::Status s = absl::OkStatus();
  for (size_t t = 0; s.ok() && t < targets.tasks().size(); ++t) {
    if (absent(targets.tasks()[t].column)) continue;
    s = Assign(targets.tasks()[t].column, targets.Where(t), names,
               {Role::kLabel, static_cast<uint32_t>(t), ""}, columns);
  }
  if (!s.ok() || !targets.weighted() || absent(targets.weight_column())) return s;
  return Assign(targets.weight_column(), "spec.sampleWeight", names, {Role::kWeight, 0, ""},
                columns);
}

absl::Status AssignAll(const ColumnsSpec& spec, const TargetColumns& targets,
                       const CsvColumns& names, std::vector<Column>* columns) {
  const std::string base = "spec.data.columns.";
  absl::Status s = AssignTargets(targets, names, columns);
  if (!s.ok()) return s;
  for (int i = 0; s.ok() && i < spec.numeric_size(); ++i) {
    s = Assign(spec.numeric(i), absl::StrCat(base, "numeric[", i, "]"), names,
               {Role::kNumeric, static_cast<uint32_t>(i), ""}, columns);
  }
  for (int i = 0; s.ok() && i < spec.categorical_size(); ++i) {
    s = Assign(spec.categorical(i), absl::StrCat(base, "categorical[", i, "]"), names,
               {Role::kCategorical, static_cast<uint32_t>(i), ""}, columns);
  }
  for (int i = 0; s.ok() && i < spec.multi_valued_size(); ++i) {
    s = Assign(spec.multi_valued(i).column(), absl::StrCat(base, "multiValued[", i, "].column"),
               names, {Role::kMultiValued, static_cast<uint32_t>(i), ""}, columns);
  }
  const bool rest_ignored = spec.ignored_size() == 1 && spec.ignored(0) == "*";
  for (int i = 0; s.ok() && !rest_ignored && i < spec.ignored_size(); ++i) {
    s = Assign(spec.ignored(i), absl::StrCat(base, "ignored[", i, "]"), names,
               {Role::kIgnored, 0, ""}, columns);
  }
  if (!s.ok()) return targets.WithRemedy(s, names);
  if (rest_ignored) return s;
  for (size_t i = 0; i < columns->size(); ++i) {
    if ((*columns)[i].role != Role::kUnset) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.data.columns: column ", names.header ? Quoted((*columns)[i].name) : absl::StrCat(i),
        " is in no list; add it to numeric, categorical, multiValued or "
        "ignored, or set ignored: [\"*\"]"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineParser>> MakeCsvParser(const JobSpec& spec,
                                                          absl::string_view first_line,
                                                          Labels labels, const DataShape& known) {
  const ColumnsSpec& columns = spec.data().columns();
  TargetColumns targets(spec, labels);
  Layout layout;
  layout.header = !columns.has_header() || columns.header();
  absl::StatusOr<char> delimiter =
      Separator(columns.delimiter(), ',', "spec.data.columns.delimiter");
  if (!delimiter.ok()) return delimiter.status();
  layout.delimiter = *delimiter;
  if (absl::Status s = ReadMultiValued(columns, &layout); !s.ok()) return s;
  const auto names = ReadCsvColumns(first_line, layout.delimiter, layout.header, known);
  if (!names.ok()) return names.status();
  for (const std::string& name : names->names) layout.columns.push_back({Role::kUnset, 0, name});
  if (absl::Status s = AssignAll(columns, targets, *names, &layout.columns); !s.ok()) return s;
  layout.numeric = static_cast<uint32_t>(columns.numeric_size());
  layout.categorical = static_cast<uint32_t>(columns.categorical_size());
  return std::unique_ptr<LineParser>(
      std::make_unique<CsvParser>(std::move(layout), std::move(targets), PlanFields(spec)));
}

}  // namespace strata
