// The columns that the first line of a csv file names.
// Tested by tests/worker/data/formats/fields_parser_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_CSV_COLUMNS_H_
#define STRATA_WORKER_DATA_FORMATS_CSV_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/strata/control.pb.h"

namespace strata {

struct CsvColumns {
  // Where a name stands in the header.
  struct Place {
    size_t first = 0;
    bool again = false;
  };

  bool header = true;
  std::vector<std::string> names;       // without a header: positions
  std::map<std::string, Place> places;  // of the header's names; without one: none
  // By what the job gives as a number: what the training data's header calls that column.
  std::map<std::string, std::string> numbered = {};

  // Whether Find would find something, or has a fault of `wanted` to tell.
  bool Has(const std::string& wanted) const;
  // The column that the job file's `wanted` means: a name, or a position from 0. INVALID_ARGUMENT
  // begins with `where`, and says which there are, or which one the training data had there.
  absl::StatusOr<size_t> Find(const std::string& wanted, const std::string& where) const;

 private:
  absl::Status CheckNumbered(const std::string& wanted, size_t at, const std::string& where) const;
};

// `first_line`: the header, or without one the first line of data; without its newline. `known`: of
// the training data, `columns` (of data without a header; 0: as many as the first line) and
// `numbered_columns`.
absl::StatusOr<CsvColumns> ReadCsvColumns(absl::string_view first_line, char delimiter, bool header,
                                          const DataShape& known = {});

// What is wrong with a line of `found` columns where every line has `expected`.
std::string OtherColumnCount(size_t found, size_t expected, bool header);

// What the first column is in which a header differs from that of another file, as part of a
// sentence: 'column 3 is "d", and there "c"'. Empty: both name the same columns in the same order.
std::string HeaderDifference(absl::string_view header, absl::string_view other, char delimiter);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_CSV_COLUMNS_H_
