#include "proto/job/tables/field_tables.h"

#include <map>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/fields/field_plan.h"

namespace strata {
namespace {

bool HasNoFields(const DataSpec& data) {
  return data.format() == "libfm" || data.format() == "libsvm";
}

std::string NamesOfTables(const JobSpec& spec) {
  return absl::StrJoin(spec.tables(), ", ",
                       [](std::string* out, const TableConfig& t) { out->append(t.name()); });
}

}  // namespace

std::optional<std::vector<std::string>> NamesOfFields(const JobSpec& spec) {
  const std::string& format = spec.data().format();
  if (format != "csv" && !absl::StartsWith(format, "criteo")) return std::nullopt;
  std::vector<std::string> names;
  const FieldsPlan plan = PlanFields(spec);
  for (const FieldPlan* f : plan.ByNumber()) names.push_back(f->name);
  return names;
}

absl::StatusOr<std::vector<uint32_t>> FieldTables(const JobSpec& spec, uint32_t fields) {
  if (spec.tables().empty()) return std::vector<uint32_t>();
  if (HasNoFields(spec.data())) {
    if (spec.tables_size() == 1) return std::vector<uint32_t>();
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.tables has ", spec.tables_size(), " tables, and features of format ",
        spec.data().format(), " have no fields that could name them; give one table, or libffm"));
  }
  std::map<std::string, uint32_t> tables;
  for (int t = 0; t < spec.tables_size(); ++t) {
    tables[spec.tables(t).name()] = static_cast<uint32_t>(t);
  }
  std::vector<uint32_t> out;
  std::vector<bool> named(static_cast<size_t>(spec.tables_size()), false);
  const FieldsPlan plan = PlanFields(spec, fields);
  for (const FieldPlan* f : plan.ByNumber()) {
    const auto table = tables.find(f->table);
    if (table == tables.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "spec.fields: none is of column '", f->column,
          "' of the data; give one, with a table of spec.tables: ", NamesOfTables(spec)));
    }
    named[table->second] = true;
    out.push_back(table->second);
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
