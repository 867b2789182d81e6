#include "proto/job/fields/format_fields.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/job/checks/spec_checks.h"
#include "proto/job/fields/data_fields.h"

namespace strata::spec {
namespace {

// Fields of a format by their columns, but of csv. Of libffm the data say how many there are: each
// is made when it is asked for.
class FormatFields {
 public:
  explicit FormatFields(const DataSpec& data) : libffm_(data.format() == "libffm") {
    if (!libffm_) all_ = FieldsOfData(data, 0);
    for (const FieldConfig& f : all_) by_column_[f.column()] = &f;
  }
  // None: there is no such column.
  std::optional<FieldConfig> Find(const std::string& column) const {
    if (libffm_) {
      uint32_t number = 0;
      const bool is_one = absl::SimpleAtoi(column, &number) && number < kMostFields &&
                          absl::StrCat(number) == column;
      return is_one ? std::optional(LibffmField(number)) : std::nullopt;
    }
    const auto found = by_column_.find(column);
    return found == by_column_.end() ? std::nullopt : std::optional(*found->second);
  }
  // "C1 to I13".
  std::string Columns() const {
    if (libffm_) return absl::StrCat(0, " to ", kMostFields - 1);
    return absl::StrCat(all_[0].column(), " to ", all_[all_.size() - 1].column());
  }

 private:
  const bool libffm_;
  FieldConfigs all_;  // but of libffm
  std::map<std::string, const FieldConfig*> by_column_;
};

}  // namespace

absl::Status CheckFormatFields(const JobSpec& job) {
  const std::string base = absl::StrCat("format ", job.data().format());
  const FormatFields fields(job.data());
  std::map<std::string, std::string> seen;
  for (int i = 0; i < job.fields_size(); ++i) {
    const FieldConfig& f = job.fields(i);
    const std::string at = absl::StrCat("spec.fields[", i, "].");
    const std::optional<FieldConfig> found = fields.Find(f.column());
    if (!found) {
      return Bad(at + "column",
                 absl::StrCat("'", f.column(), "' of field '", f.name(), "' is no column of ", base,
                              "; there are ", fields.Columns()));
    }
    const auto [first, fresh] = seen.emplace(f.column(), f.name());
    if (!fresh) {
      return Bad(at + "column", absl::StrCat("'", f.column(), "' is that of field '", first->second,
                                             "' too; name each column once"));
    }
    const FieldConfig& expected = *found;
    if (f.kind() != expected.kind()) {
      return Bad(at + "kind", absl::StrCat("field '", f.name(), "' is ", expected.kind(), " in ",
                                           base, ", not ", f.kind()));
    }
    FieldConfig rest = f;
    rest.set_name(expected.name());
    rest.set_table(expected.table());
    rest.clear_separator();
    if (!rest.has_transform() && expected.has_transform()) {
      *rest.mutable_transform() = expected.transform();
    }
    if (rest.SerializeAsString() == expected.SerializeAsString()) continue;
    return Bad(at + "kind", absl::StrCat("of field '", f.name(), "' ", base,
                                         " says all but name and table; remove the "
                                         "other options"));
  }
  return absl::OkStatus();
}

}  // namespace strata::spec
