#include "proto/job/fields/data_fields.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace strata::spec {
namespace {

constexpr char kTable[] = "features";
constexpr int kCategories = 26, kIntegers = 13;

class FieldList {
 public:
  // A field of a column; its name is the column's as far as names of fields may be so.
  FieldConfig* Add(absl::string_view column, absl::string_view kind) {
    FieldConfig* f = list_.Add();
    f->set_name(NameFor(column));
    f->set_column(std::string(column));
    f->set_kind(std::string(kind));
    if (kind != "numeric") f->set_table(kTable);
    return f;
  }

  FieldConfigs Take() { return std::move(list_); }

 private:
  std::string NameFor(absl::string_view column) {
    constexpr size_t kMostBytes = 63, kNumbered = 56;  // room for a number behind it
    std::string base(column.substr(0, kMostBytes));
    for (char& c : base) {
      if (!absl::ascii_isalnum(c) && c != '_' && c != '-') c = '_';
    }
    std::string name = base;
    if (seen_.insert(name).second) return name;
    base.resize(std::min(base.size(), kNumbered));
    int& next = next_.try_emplace(base, 2).first->second;
    do {
      name = absl::StrCat(base, "_", next++);
    } while (!seen_.insert(name).second);
    return name;
  }

  FieldConfigs list_;
  std::set<std::string> seen_;
  std::map<std::string, int> next_;  // by what stands before a number: those below are seen
};

void AddCsv(const ColumnsSpec& columns, FieldList* fields) {
  for (const std::string& column : columns.numeric()) fields->Add(column, "numeric");
  for (const std::string& column : columns.categorical()) fields->Add(column, "categorical");
  for (const MultiValuedColumn& column : columns.multi_valued()) {
    FieldConfig* f = fields->Add(column.column(), "multiValued");
    f->set_separator(column.separator());
    f->set_pooling(column.pooling());
    f->set_default_value("");  // a column without any value is a missing category
  }
}

void AddCriteo(bool buckets, FieldList* fields) {
  for (int i = 1; i <= kCategories; ++i) fields->Add(absl::StrCat("C", i), "categorical");
  for (int i = 1; i <= kIntegers; ++i) {
    FieldConfig* f = fields->Add(absl::StrCat("I", i), buckets ? "categorical" : "numeric");
    if (!buckets) f->mutable_transform()->set_type("log");
  }
}

FieldConfig* AddWeighted(absl::string_view column, FieldList* fields) {
  FieldConfig* f = fields->Add(column, "multiValued");
  f->set_pooling("sum");
  return f;
}

void AddLibffm(uint32_t number, FieldList* fields) { AddWeighted(absl::StrCat(number), fields); }

// Gives the fields of a format what the job says of them.
void NameFields(const JobSpec& job, FieldConfigs* configs) {
  std::map<std::string, const FieldConfig*> by_column;
  for (const FieldConfig& f : job.fields()) {
    // A job of an older manifest may not say the column that is the name.
    by_column[f.column().empty() ? f.name() : f.column()] = &f;
  }
  for (FieldConfig& f : *configs) {
    const auto named = by_column.find(f.column());
    if (named == by_column.end()) continue;
    f.set_name(named->second->name());
    f.set_table(named->second->table());
  }
}

}  // namespace

FieldConfigs FieldsOfData(const DataSpec& data, uint32_t libffm_fields) {
  FieldList fields;
  if (data.format() == "csv") {
    AddCsv(data.columns(), &fields);
  } else if (absl::StartsWith(data.format(), "criteo")) {
    AddCriteo(data.integer_features() == "bucket", &fields);
  } else if (data.format() == "libffm") {
    for (uint32_t i = 0; i < libffm_fields; ++i) AddLibffm(i, &fields);
  } else {
    AddWeighted("0", &fields)->set_name("features");
  }
  return fields.Take();
}

FieldConfig LibffmField(uint32_t number) {
  FieldList fields;
  AddLibffm(number, &fields);
  return fields.Take()[0];
}

FieldConfigs FieldsOfJob(const JobSpec& job, uint32_t libffm_fields) {
  const bool csv = job.data().format() == "csv";
  if (csv && !job.fields().empty()) return job.fields();
  FieldConfigs fields = FieldsOfData(job.data(), libffm_fields);
  if (!csv) NameFields(job, &fields);
  return fields;
}

bool KeysHashTable(const JobSpec& job) {
  return job.data().format() == "csv" && !job.fields().empty() && !job.tables().empty();
}

}  // namespace strata::spec
