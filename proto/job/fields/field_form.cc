#include "proto/job/fields/field_form.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/spec_checks.h"
#include "proto/job/fields/data_fields.h"
#include "proto/job/fields/label_form.h"

namespace strata {
namespace {

using spec::Bad;

// All but the label, and how lines are cut.
void ClearLists(ColumnsSpec& columns) {
  columns.clear_numeric();
  columns.clear_categorical();
  columns.clear_multi_valued();
  columns.clear_ignored();
}

absl::Status NoShortForm(int i, const FieldConfig& f, absl::string_view option,
                         absl::string_view what) {
  return Bad(absl::StrCat("spec.fields[", i, "].", option),
             absl::StrCat("field '", f.name(), "' ", what, ", which spec.data.columns cannot say"));
}

// What columns cannot say of a field.
absl::Status CheckShort(int i, const FieldConfig& f) {
  if (f.name() != f.column()) {  // so no two read one column
    return NoShortForm(i, f, "name",
                       absl::StrCat("has another name than its column '", f.column(), "'"));
  }
  if (f.kind() == "sequence") return NoShortForm(i, f, "kind", "is a sequence");
  if (f.has_transform()) return NoShortForm(i, f, "transform", "has a transform");
  if (f.has_vocabulary()) return NoShortForm(i, f, "vocabulary", "has a vocabulary");
  if (f.has_hash_seed()) return NoShortForm(i, f, "hashSeed", "has a seed of its own");
  if (!f.weight_separator().empty()) {
    return NoShortForm(i, f, "weightSeparator", "has values with weights");
  }
  if (f.pooling() == "max") return NoShortForm(i, f, "pooling", "is pooled by max");
  if (f.kind() == "multiValued") {
    if (f.has_default_value() && f.default_value().empty()) return absl::OkStatus();
    return NoShortForm(i, f, "defaultValue", "has no category for a column without a value");
  }
  if (f.default_value().empty()) return absl::OkStatus();  // what a category is without one
  return NoShortForm(i, f, "defaultValue", "has a default of its own");
}

absl::Status FieldsToColumns(JobSpec& job) {
  ColumnsSpec& columns = *job.mutable_data()->mutable_columns();
  for (int i = 0; i < job.fields_size(); ++i) {
    const FieldConfig& f = job.fields(i);
    STRATA_RETURN_IF_BAD(CheckShort(i, f));
    if (f.kind() == "numeric") columns.add_numeric(f.column());
    if (f.kind() == "categorical") {
      if (columns.multi_valued_size() > 0) {
        return NoShortForm(i, f, "kind", "is categorical and comes after a multiValued one");
      }
      columns.add_categorical(f.column());
    }
    if (f.kind() != "multiValued") continue;
    MultiValuedColumn* column = columns.add_multi_valued();
    column->set_column(f.column());
    column->set_separator(f.separator());
    column->set_pooling(f.pooling());
  }
  columns.add_ignored()->assign(1, '*');
  return absl::OkStatus();
}

// What the field of a column is called without spec.fields, of other formats than csv.
std::string OwnName(const DataSpec& data, const std::string& column) {
  const bool one = data.format() == "libfm" || data.format() == "libsvm";
  return one ? spec::FieldsOfData(data, 0)[0].name() : column;
}

// Names and tables are all that a job says of the fields of other formats.
absl::Status CheckFormatForm(const JobSpec& job) {
  for (int i = 0; i < job.fields_size(); ++i) {
    const FieldConfig& f = job.fields(i);
    const std::string own = OwnName(job.data(), f.column());
    if (f.name() == own) continue;
    return Bad(absl::StrCat("spec.fields[", i, "].name"),
               absl::StrCat("'", f.name(), "' is a name for ", own,
                            " of the format, which spec.data cannot say"));
  }
  return absl::OkStatus();
}

// An option of a table, and what a job without spec.tables says instead.
struct TableSetting {
  const char* option;
  const char* of_job;
};

// The first one of the job's first table that is not as the rest of the job says it; none: without
// spec.tables such a table would be the same one, but for its name.
std::optional<TableSetting> OwnSetting(const JobSpec& job) {
  const TableConfig& t = job.tables(0);
  const auto same = [](const auto& a, const auto& b) {
    return a.SerializeAsString() == b.SerializeAsString();
  };
  if (t.has_dim() && t.dim() != job.model().embedding_dim()) {
    return TableSetting{"dim", "spec.model.embeddingDim"};
  }
  if (!same(t.optimizer(), job.optimizer().sparse())) {
    return TableSetting{"optimizer", "spec.optimizer.sparse"};
  }
  if (!same(t.linear(), job.optimizer().linear())) {
    return TableSetting{"linear", "spec.optimizer.linear"};
  }
  if (t.has_init_scale() && t.init_scale() != job.model().init_scale()) {
    return TableSetting{"initScale", "spec.model.initScale"};
  }
  if (!same(t.life_cycle(), job.life_cycle())) return TableSetting{"lifeCycle", "spec.lifeCycle"};
  if (t.pull_codec() != job.training().pull_codec()) {
    return TableSetting{"pullCodec", "spec.training.pullCodec"};
  }
  return std::nullopt;
}

// Keys of data.columns hash their column's name, and those of spec.fields beside spec.tables their
// table's.
absl::Status CheckKeysOfColumns(const JobSpec& job) {
  if (job.tables().empty()) return absl::OkStatus();
  for (int i = 0; i < job.fields_size(); ++i) {
    const FieldConfig& f = job.fields(i);
    if (f.table().empty()) continue;
    return Bad(
        absl::StrCat("spec.fields[", i, "].table"),
        absl::StrCat("the keys of field '", f.name(), "' hash the name of its table, '", f.table(),
                     "', and those of spec.data.columns their column's: its rows would be "
                     "others"));
  }
  return absl::OkStatus();
}

// The fields of other formats have one table without spec.fields, `features`. Libfm and libsvm have
// no fields: there it is the one of spec.tables, whatever its name.
absl::Status CheckFormatTables(const JobSpec& job) {
  if (job.tables_size() > 1) {
    return Bad("spec.tables[1].name",
               absl::StrCat("'", job.tables(1).name(),
                            "' is a second table of the fields, which spec.data cannot say"));
  }
  const std::string only = spec::FieldsOfData(job.data(), 1)[0].table();
  if (job.tables().empty() || job.tables(0).name() == only) return absl::OkStatus();
  if (job.data().format() == "libfm" || job.data().format() == "libsvm") return absl::OkStatus();
  return Bad("spec.tables[0].name",
             absl::StrCat("'", job.tables(0).name(), "' is another name than ", only,
                          ", that of the table without spec.fields"));
}

// Takes a table away that says nothing.
void ClearPlainTable(JobSpec& job) {
  if (job.tables_size() != 1 || OwnSetting(job)) return;
  if (job.tables(0).name() == spec::FieldsOfData(job.data(), 1)[0].table()) job.clear_tables();
}

// Of csv: keys of spec.fields beside spec.tables would hash the table's name.
absl::Status ClearTableOfColumns(JobSpec& job) {
  if (job.tables().empty()) return absl::OkStatus();
  if (const std::optional<TableSetting> own = OwnSetting(job)) {
    return Bad(absl::StrCat("spec.tables[0].", own->option),
               absl::StrCat("is not as ", own->of_job,
                            ", and beside spec.tables the keys of spec.fields hash the name of the "
                            "table, those of spec.data.columns their column's; say it in ",
                            own->of_job, ", and remove spec.tables"));
  }
  job.clear_tables();
  return absl::OkStatus();
}

bool IgnoresRest(const ColumnsSpec& columns) {
  return columns.ignored_size() == 1 && columns.ignored(0) == "*";
}

// Metrics and --resume go by names, and without spec.fields a field is called as its column.
absl::Status CheckColumnNames(const JobSpec& job) {
  for (const FieldConfig& f : spec::FieldsOfData(job.data(), 0)) {
    if (f.name() == f.column()) continue;
    return Bad(
        "spec.data.columns",
        absl::StrCat("column '", f.column(),
                     "' is no name of a field (letters, digits, '_' and '-', at most 63), and "
                     "under another --resume would find another field; keep "
                     "spec.data.columns, or rename the column in the data"));
  }
  return absl::OkStatus();
}

absl::Status GiveFields(uint32_t libffm_fields, JobSpec& job, FormNotes& notes) {
  if (!job.fields().empty()) return absl::OkStatus();
  const std::string& format = job.data().format();
  if (format == "libffm" && libffm_fields == 0) {
    return Bad("spec.data.format",
               "libffm says in its lines how many fields there are, and it is not known here; name "
               "those that a table needs");
  }
  if (format == "csv") {
    STRATA_RETURN_IF_BAD(CheckColumnNames(job));
    STRATA_RETURN_IF_BAD(ClearTableOfColumns(job));
    if (!IgnoresRest(job.data().columns())) {
      notes.push_back(
          absl::StrCat("with spec.fields a column of the data that no field names is not used; ",
                       "spec.data.columns refuses one that is in no list"));
    }
  }
  *job.mutable_fields() = spec::FieldsOfData(job.data(), libffm_fields);
  for (FieldConfig& f : *job.mutable_fields()) {
    if (!f.table().empty() && !job.tables().empty()) f.set_table(job.tables(0).name());
  }
  if (format == "csv") ClearLists(*job.mutable_data()->mutable_columns());
  return absl::OkStatus();
}

absl::Status TakeFields(JobSpec& job) {
  if (job.fields().empty()) return absl::OkStatus();
  if (job.data().format() == "csv") {
    STRATA_RETURN_IF_BAD(CheckKeysOfColumns(job));
    STRATA_RETURN_IF_BAD(FieldsToColumns(job));
  } else {
    STRATA_RETURN_IF_BAD(CheckFormatForm(job));
    STRATA_RETURN_IF_BAD(CheckFormatTables(job));
    ClearPlainTable(job);
  }
  job.clear_fields();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FormNotes> ToFieldsForm(JobSpec& job, uint32_t libffm_fields) {
  JobSpec other = job;
  FormNotes notes;
  STRATA_RETURN_IF_BAD(GiveFields(libffm_fields, other, notes));
  spec::ToNamedLabel(other, notes);
  job = std::move(other);
  return notes;
}

absl::StatusOr<FormNotes> ToColumnsForm(JobSpec& job) {
  JobSpec other = job;
  FormNotes notes;
  STRATA_RETURN_IF_BAD(TakeFields(other));
  STRATA_RETURN_IF_BAD(spec::ToUnnamedLabel(other, notes));
  job = std::move(other);
  return notes;
}

}  // namespace strata
