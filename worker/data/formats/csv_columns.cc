#include "worker/data/formats/csv_columns.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/data/formats/csv_cursor.h"
#include "worker/data/formats/number_text.h"

namespace strata {
namespace {

// For people.
std::string Shown(const std::vector<std::string>& names) {
  constexpr size_t kMost = 20;
  const size_t shown = std::min(kMost, names.size());
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + shown, ", ",
                    [](std::string* out, const std::string& name) { *out += Quoted(name); }),
      shown < names.size() ? absl::StrCat(" and ", names.size() - shown, " more") : "");
}

}  // namespace

bool CsvColumns::Has(const std::string& wanted) const {
  if (wanted.empty()) return true;
  if (places.contains(wanted)) return true;
  uint64_t position = 0;
  if (ParseUnsigned(wanted, &position) != NumberError::kNone) return !header;
  const auto of_training = numbered.find(wanted);
  if (of_training != numbered.end() && of_training->second == wanted) return false;  // a name there
  return position < names.size();
}

// What a number means under the header of the training data it means under any other.
absl::Status CsvColumns::CheckNumbered(const std::string& wanted, size_t at,
                                       const std::string& where) const {
  const auto of_training = numbered.find(wanted);
  if (of_training == numbered.end() || of_training->second == names[at]) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": ", Quoted(wanted), " is the column ", Quoted(names[at]),
      ", and that of the training data is ", Quoted(of_training->second),
      ": numbers go by places; give the file the columns of the training data in their "
      "order, or have a job name its columns"));
}

absl::StatusOr<size_t> CsvColumns::Find(const std::string& wanted, const std::string& where) const {
  if (wanted.empty()) return absl::InvalidArgumentError(absl::StrCat(where, " is empty"));
  if (const auto place = places.find(wanted); place != places.end()) {
    if (place->second.again) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": the header names ", Quoted(wanted),
                                                     " twice; give positions instead"));
    }
    const size_t at = place->second.first;
    if (absl::Status s = CheckNumbered(wanted, at, where); !s.ok()) return s;
    return at;
  }
  uint64_t position = 0;
  if (ParseUnsigned(wanted, &position) != NumberError::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": ", Quoted(wanted),
        header ? absl::StrCat(" is no column of the header, which names ", Shown(names),
                              "; name one of these, or give the file that column")
               : absl::StrCat(" is not a position, and there is no header; give one of 0 to ",
                              names.size() - 1)));
  }
  if (position >= names.size()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": position ", position,
                                                   " is past the last column, ", names.size() - 1,
                                                   "; give one that is there, or a file with "
                                                   "that column"));
  }
  const size_t at = static_cast<size_t>(position);
  if (absl::Status s = CheckNumbered(wanted, at, where); !s.ok()) return s;
  return at;
}

absl::StatusOr<CsvColumns> ReadCsvColumns(absl::string_view first_line, char delimiter, bool header,
                                          const DataShape& known) {
  CsvColumns columns;
  columns.header = header;
  if (!header && known.columns() > 0) {
    for (uint32_t i = 0; i < known.columns(); ++i) columns.names.push_back(absl::StrCat(i));
    return columns;
  }
  for (const NumberedColumn& column : known.numbered_columns()) {
    if (header) columns.numbered[column.number()] = column.name();
  }
  if (!first_line.empty() && first_line.back() == '\r') first_line.remove_suffix(1);
  CsvCursor cursor(first_line, delimiter);
  absl::string_view field;
  std::string scratch;
  while (cursor.Next(&field, &scratch)) {
    columns.names.push_back(header ? std::string(field) : absl::StrCat(columns.names.size()));
  }
  if (cursor.error() != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("first line of the csv file, column ", cursor.column(), ": ", cursor.error()));
  }
  for (size_t i = 0; header && i < columns.names.size(); ++i) {
    const auto [place, fresh] = columns.places.try_emplace(columns.names[i], CsvColumns::Place{i});
    if (!fresh) place->second.again = true;
  }
  return columns;
}

std::string OtherColumnCount(size_t found, size_t expected, bool header) {
  return absl::StrCat("found ", found, " columns, expected ", expected,
                      header ? ""
                             : "; without a header columns go by their places: leave one that is "
                               "not known empty");
}

std::string HeaderDifference(absl::string_view header, absl::string_view other, char delimiter) {
  const auto here = ReadCsvColumns(header, delimiter, true);
  const auto there = ReadCsvColumns(other, delimiter, true);
  if (!here.ok()) return std::string(here.status().message());
  if (!there.ok()) return std::string(there.status().message());
  const size_t both = std::min(here->names.size(), there->names.size());
  for (size_t i = 0; i < both; ++i) {
    if (here->names[i] == there->names[i]) continue;
    return absl::StrCat("column ", i + 1, " is ", Quoted(here->names[i]), ", and there ",
                        Quoted(there->names[i]));
  }
  if (here->names.size() > both) {
    return absl::StrCat("column ", both + 1, ", ", Quoted(here->names[both]), ", is not there");
  }
  if (there->names.size() == both) return "";
  return absl::StrCat("column ", both + 1, " is missing, there ", Quoted(there->names[both]));
}

}  // namespace strata
