#include "proto/job/field_tables.h"

#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/job/spec_checks.h"

namespace strata {
namespace {

constexpr int kCriteoCategories = 26, kCriteoIntegers = 13;

// A field of the data and the index of its table.
using Places = std::map<std::string, uint32_t, std::less<>>;

std::string NamesOfTables(const JobSpec& spec) {
  return absl::StrJoin(spec.tables(), ", ",
                       [](std::string* out, const TableConfig& t) { out->append(t.name()); });
}

bool HasNoFields(const DataSpec& data) {
  return data.format() == "libfm" || data.format() == "libsvm";
}

absl::Status BadField(int i, const FieldConfig& field, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("spec.fields[", i, "] (", field.name(), "): ", what));
}

const std::string& ColumnOf(const FieldConfig& field) {
  return field.column().empty() ? field.name() : field.column();
}

// The kind of each column that may have a field; empty: any number may be one (libffm).
std::map<std::string, std::string> KindsOfColumns(const DataSpec& data) {
  std::map<std::string, std::string> kinds;
  const auto columns = FieldColumns(data);
  if (!columns.has_value()) return kinds;
  for (const std::string& column : *columns) kinds[column] = "categorical";
  for (const MultiValuedColumn& c : data.columns().multi_valued()) {
    kinds[c.column()] = "multiValued";
  }
  for (const std::string& column : data.columns().numeric()) kinds[column] = "numeric";
  for (int i = 1; absl::StartsWith(data.format(), "criteo") && i <= kCriteoIntegers; ++i) {
    kinds.emplace(absl::StrCat("I", i), "numeric");  // where they are no buckets
  }
  return kinds;
}

absl::Status CheckField(const JobSpec& spec, const std::map<std::string, std::string>& kinds,
                        int i) {
  const FieldConfig& field = spec.fields(i);
  const std::string at = absl::StrCat("spec.fields[", i, "]");
  if (field.name().empty()) return spec::Bad(at + ".name", "is missing; name the field");
  STRATA_RETURN_IF_BAD(
      spec::CheckChoice(at + ".kind", field.kind(), {"categorical", "multiValued", "numeric"}));
  const auto column = kinds.find(ColumnOf(field));
  if (kinds.empty() && field.kind() != "numeric") return absl::OkStatus();
  if (column == kinds.end()) {
    return BadField(i, field,
                    absl::StrCat("'", ColumnOf(field), "' is no column that spec.data has as a ",
                                 "category or a number"));
  }
  if (column->second != field.kind()) {
    return BadField(i, field,
                    absl::StrCat("kind is ", field.kind(), ", and spec.data has column '",
                                 ColumnOf(field), "' as ", column->second));
  }
  if (field.kind() != "numeric" || field.table().empty()) return absl::OkStatus();
  return BadField(i, field, "table: a number has no rows; remove it");
}

// What spec.fields says of columns that have rows.
absl::StatusOr<Places> PlacesByColumn(const JobSpec& spec) {
  std::map<std::string, uint32_t> tables;
  for (int t = 0; t < spec.tables_size(); ++t) {
    tables[spec.tables(t).name()] = static_cast<uint32_t>(t);
  }
  Places places;
  for (int i = 0; i < spec.fields_size(); ++i) {
    const FieldConfig& field = spec.fields(i);
    if (field.kind() == "numeric" && field.table().empty()) continue;
    if (field.table().empty()) {
      return BadField(
          i, field,
          absl::StrCat("table is missing; give one of spec.tables: ", NamesOfTables(spec)));
    }
    const auto table = tables.find(field.table());
    if (table == tables.end()) {
      return BadField(i, field,
                      absl::StrCat("table '", field.table(),
                                   "' is not one of spec.tables: ", NamesOfTables(spec)));
    }
    const std::string& column = ColumnOf(field);
    if (!places.emplace(column, table->second).second) {
      return BadField(i, field, absl::StrCat("column '", column, "' has a field already"));
    }
  }
  return places;
}

}  // namespace

std::optional<std::vector<std::string>> FieldColumns(const DataSpec& data) {
  std::vector<std::string> names;
  if (data.format() == "csv") {
    names.assign(data.columns().categorical().begin(), data.columns().categorical().end());
    for (const MultiValuedColumn& c : data.columns().multi_valued()) names.push_back(c.column());
    return names;
  }
  if (!absl::StartsWith(data.format(), "criteo")) return std::nullopt;
  for (int i = 1; i <= kCriteoCategories; ++i) names.push_back(absl::StrCat("C", i));
  const bool buckets = data.integer_features() == "bucket";
  for (int i = 1; buckets && i <= kCriteoIntegers; ++i) names.push_back(absl::StrCat("I", i));
  return names;
}

absl::Status CheckFieldsOfData(const JobSpec& spec) {
  if (spec.fields().empty()) return absl::OkStatus();
  if (spec.tables().empty()) {
    return spec::Bad("spec.fields",
                     "says which table a field has its rows in, and there is no spec.tables; give "
                     "tables, or remove it");
  }
  if (HasNoFields(spec.data())) {
    return spec::Bad("spec.fields", absl::StrCat("features of format ", spec.data().format(),
                                                 " have no fields; remove it"));
  }
  const auto kinds = KindsOfColumns(spec.data());
  std::set<std::string> names;
  for (int i = 0; i < spec.fields_size(); ++i) {
    STRATA_RETURN_IF_BAD(CheckField(spec, kinds, i));
    if (!names.insert(spec.fields(i).name()).second) {
      return BadField(i, spec.fields(i), "an earlier field has that name too");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> FieldTables(const JobSpec& spec, uint32_t fields) {
  if (spec.tables().empty()) return std::vector<uint32_t>();
  if (HasNoFields(spec.data())) {
    if (spec.tables_size() == 1) return std::vector<uint32_t>();
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.tables has ", spec.tables_size(), " tables, and features of format ",
        spec.data().format(), " have no fields that could name them; give one table, or libffm"));
  }
  const auto places = PlacesByColumn(spec);
  if (!places.ok()) return places.status();
  const auto columns = FieldColumns(spec.data());
  std::vector<uint32_t> out;
  std::vector<bool> named(static_cast<size_t>(spec.tables_size()), false);
  for (uint32_t f = 0; f < fields; ++f) {
    const std::string column =
        columns.has_value() && f < columns->size() ? (*columns)[f] : absl::StrCat(f);
    const auto place = places->find(column);
    if (place == places->end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "spec.fields: none is of column '", column,
          "' of the data; give one, with a table of spec.tables: ", NamesOfTables(spec)));
    }
    named[place->second] = true;
    out.push_back(place->second);
  }
  for (size_t t = 0; t < named.size(); ++t) {
    if (named[t]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("spec.tables[", t, "] (", spec.tables(static_cast<int>(t)).name(),
                     "): no field of the data names it in spec.fields; remove it or name it"));
  }
  return out;
}

}  // namespace strata
