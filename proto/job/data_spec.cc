#include "proto/job/data_spec.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/spec_checks.h"
#include "proto/job/fields/data_fields.h"

namespace strata::spec {
namespace {

uint64_t Features(const ColumnsSpec& columns) {
  return static_cast<uint64_t>(columns.numeric_size() + columns.categorical_size() +
                               columns.multi_valued_size());
}

bool IsPosition(absl::string_view column) {
  uint32_t position;
  return absl::SimpleAtoi(column, &position);
}

// A column that the file cannot have, or that is in two lists.
absl::Status CheckColumn(const ColumnsSpec& columns, const std::string& field,
                         const std::string& column, std::set<std::string>& seen) {
  if (column.empty()) return Bad(field, "is empty; name a column");
  if (!columns.header() && !IsPosition(column)) {
    return Bad(field,
               absl::StrCat("'", column,
                            "' is not a position; without a header columns are numbered from "
                            "0"));
  }
  if (!seen.insert(column).second) {
    return Bad(field, absl::StrCat("'", column, "' is named twice; a column has one use"));
  }
  return absl::OkStatus();
}

absl::Status CheckSeparator(const std::string& field, const std::string& text) {
  if (text.size() == 1 && text != "\n" && text != "\r" && text != "\"" && text[0] != '\0') {
    return absl::OkStatus();
  }
  return Bad(field, absl::StrCat("'", text, "' must be one character, or \"\\t\""));
}

absl::Status ResolveMultiValued(ColumnsSpec& columns, std::set<std::string>& seen) {
  for (int i = 0; i < columns.multi_valued_size(); ++i) {
    MultiValuedColumn& column = *columns.mutable_multi_valued(i);
    const std::string at = absl::StrCat("spec.data.columns.multiValued[", i, "].");
    STRATA_RETURN_IF_BAD(CheckColumn(columns, at + "column", column.column(), seen));
    if (column.separator().empty()) column.set_separator("|");
    if (column.separator() == "\\t") column.set_separator("\t");
    STRATA_RETURN_IF_BAD(CheckSeparator(at + "separator", column.separator()));
    if (column.separator() == columns.delimiter()) {
      return Bad(at + "separator", absl::StrCat("'", column.separator(),
                                                "' is the delimiter of columns too; take another"));
    }
    if (column.pooling().empty()) column.set_pooling("sum");
    STRATA_RETURN_IF_BAD(CheckChoice(at + "pooling", column.pooling(), {"sum", "mean"}));
  }
  return absl::OkStatus();
}

// How lines are cut into columns.
absl::Status ResolveCut(ColumnsSpec& columns) {
  if (!columns.has_header()) columns.set_header(true);
  if (columns.delimiter().empty()) columns.set_delimiter(",");
  if (columns.delimiter() == "\\t") columns.set_delimiter("\t");
  return CheckSeparator("spec.data.columns.delimiter", columns.delimiter());
}

// With spec.fields: no list of columns but the label.
absl::Status ResolveColumnsOfFields(ColumnsSpec& columns) {
  const std::pair<const char*, bool> lists[] = {{"numeric", !columns.numeric().empty()},
                                                {"categorical", !columns.categorical().empty()},
                                                {"ignored", !columns.ignored().empty()},
                                                {"multiValued", !columns.multi_valued().empty()}};
  for (const auto& [list, given] : lists) {
    if (!given) continue;
    return Bad(absl::StrCat("spec.data.columns.", list),
               "spec.fields says what the columns are; remove one of the two");
  }
  return ResolveCut(columns);
}

absl::Status ResolveColumns(ColumnsSpec& columns) {
  const std::string at = "spec.data.columns.";
  STRATA_RETURN_IF_BAD(ResolveCut(columns));
  std::set<std::string> seen;
  if (!columns.label().empty()) {  // whether there is one: label_spec.h
    STRATA_RETURN_IF_BAD(CheckColumn(columns, at + "label", columns.label(), seen));
  }
  const std::pair<const char*, const google::protobuf::RepeatedPtrField<std::string>*> lists[] = {
      {"numeric", &columns.numeric()},
      {"categorical", &columns.categorical()},
      {"ignored", &columns.ignored()}};
  STRATA_RETURN_IF_BAD(ResolveMultiValued(columns, seen));
  for (const auto& [list, names] : lists) {
    if (names == &columns.ignored() && names->size() == 1 && names->Get(0) == "*") continue;
    for (int i = 0; i < names->size(); ++i) {
      const std::string field = absl::StrCat(at, list, "[", i, "]");
      STRATA_RETURN_IF_BAD(CheckColumn(columns, field, names->Get(i), seen));
    }
  }
  if (Features(columns) == 0) {
    return Bad("spec.data.columns", "names no feature; fill numeric, categorical or multiValued");
  }
  return absl::OkStatus();
}

int64_t CountStandardInput(const google::protobuf::RepeatedPtrField<std::string>& files) {
  return std::count(files.begin(), files.end(), "-");
}

absl::Status CheckStandardInput(const DataSpec& data) {
  const int64_t eval = CountStandardInput(data.eval());
  if (CountStandardInput(data.train()) + eval <= 1) return absl::OkStatus();
  return Bad(eval > 0 ? "spec.data.eval" : "spec.data.train",
             "'-', standard input, is named more than once in spec.data; it can be read once");
}

}  // namespace

absl::Status CheckColumnCount(const DataSpec& data) {
  return CheckRange("spec.data.columns (numeric, categorical and multiValued)",
                    Features(data.columns()), 0, kMostFields);
}

bool ReadsStandardInput(const DataSpec& data) {
  return CountStandardInput(data.train()) + CountStandardInput(data.eval()) > 0;
}

absl::Status ResolveData(JobSpec& job) {
  DataSpec& data = *job.mutable_data();
  STRATA_RETURN_IF_BAD(CheckChoice("spec.data.format", data.format(),
                                   {"criteo", "criteo_csv", "libfm", "libsvm", "libffm", "csv"}));
  if (data.train().empty()) return Bad("spec.data.train", "is missing; name the files to train on");
  STRATA_RETURN_IF_BAD(CheckNoneEmpty("spec.data.train", data.train()));
  STRATA_RETURN_IF_BAD(CheckNoneEmpty("spec.data.eval", data.eval()));
  STRATA_RETURN_IF_BAD(CheckStandardInput(data));
  if (data.format() == "csv") {
    if (!job.fields().empty()) {
      STRATA_RETURN_IF_BAD(ResolveColumnsOfFields(*data.mutable_columns()));
    } else if (!data.has_columns()) {
      return Bad("spec.data.columns",
                 "is missing; format csv needs label, numeric, categorical, or spec.fields");
    } else {
      STRATA_RETURN_IF_BAD(ResolveColumns(*data.mutable_columns()));
    }
  } else if (data.has_columns()) {
    return Bad("spec.data.columns", absl::StrCat("applies to format csv only, and the format is ",
                                                 data.format(), "; remove it"));
  }
  if (data.format() == "criteo" || data.format() == "criteo_csv") {
    if (data.integer_features().empty()) data.set_integer_features("dense");
    STRATA_RETURN_IF_BAD(
        CheckChoice("spec.data.integerFeatures", data.integer_features(), {"dense", "bucket"}));
  } else if (!data.integer_features().empty()) {
    return Bad("spec.data.integerFeatures",
               absl::StrCat("applies to formats criteo and criteo_csv only, and the format is ",
                            data.format(), "; remove it"));
  }
  ShuffleSpec& shuffle = *data.mutable_shuffle();
  if (!shuffle.has_enabled()) shuffle.set_enabled(true);
  if (!shuffle.has_buffer_lines()) shuffle.set_buffer_lines(16384);
  STRATA_RETURN_IF_BAD(
      CheckRange("spec.data.shuffle.bufferLines", shuffle.buffer_lines(), 1, 1u << 24));
  if (!data.has_max_bad_lines()) data.set_max_bad_lines(0);
  return absl::OkStatus();
}

}  // namespace strata::spec
