// The fields of a csv line.
// Tested by tests/worker/data/formats/parsers_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_CSV_CURSOR_H_
#define STRATA_WORKER_DATA_FORMATS_CSV_CURSOR_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace strata {

// Walks the fields of one line. A field may be quoted with '"', a quote within it doubled; a quoted
// field ends on its line.
class CsvCursor {
 public:
  CsvCursor(absl::string_view line, char delimiter) : line_(line), delimiter_(delimiter) {}

  // The next field; it lies in the line or in `scratch`. False at the end of the line or at an
  // error (then `error` says which).
  bool Next(absl::string_view* field, std::string* scratch);

  const char* error() const { return error_; }  // nullptr: none
  size_t column() const { return begin_ + 1; }  // of the field that Next gave, from 1

 private:
  bool NextQuoted(absl::string_view* field, std::string* scratch);

  const absl::string_view line_;
  const char delimiter_;
  size_t at_ = 0;
  size_t begin_ = 0;
  bool done_ = false;
  const char* error_ = nullptr;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_CSV_CURSOR_H_
